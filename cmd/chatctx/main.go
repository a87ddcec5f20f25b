// Command chatctx keeps conversations with language models in one file, with all their branches. See docs/cli.md.
package main

import (
	"os"

	"github.com/chatctx/chatctx/cmd"
)

func main() {
	os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
