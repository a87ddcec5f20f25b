// Command chatacme is chatctx with a provider, a format of files and an engine of its own.
package main

import (
	"os"

	_ "example.org/outside/acme"
	_ "example.org/outside/logbook"
	_ "example.org/outside/shelf"
	"github.com/chatctx/chatctx/cmd"
)

func main() { os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
