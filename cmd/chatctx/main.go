// Command chatctx keeps conversations with language models in one file, with all their branches. See docs/cli.md.
package main

import (
	"os"

	"github.com/chatctx/chatctx/enhancer/tokens"
	"github.com/chatctx/chatctx/internal/cli"
)

func main() {
	tokens.UseOfflineLoader() // before anything can ask tiktoken-go, which fetches its vocabularies otherwise
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
