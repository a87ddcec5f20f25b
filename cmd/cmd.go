// Package cmd is the command chatctx as a function: a program of its own main package gets the same command line, with the providers, formats of files and engines of
// stores that it imports besides.
//
//	import (
//		"os"
//
//		"example.org/acme" // its init function calls adapter.Register
//		"github.com/chatctx/chatctx/cmd"
//	)
//
//	func main() { os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
package cmd

import (
	"io"

	"github.com/chatctx/chatctx/enhancer/tokens"
	"github.com/chatctx/chatctx/internal/cli"
)

// Main runs one command line, without the program's name, and returns the exit code of the program. It takes over the process as a program does: it handles
// interrupts, and a tool may run under a copy of the program, which Main must be the first to see. So call it once, at the beginning of main.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	tokens.UseOfflineLoader() // before anything can ask tiktoken-go, which fetches its vocabularies otherwise
	return cli.Main(args, in, out, errOut)
}
