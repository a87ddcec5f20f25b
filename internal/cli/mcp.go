package cli

import (
	"os"
	"path/filepath"

	"github.com/chatctx/chatctx/internal/mcpserver"
	"github.com/chatctx/chatctx/internal/operation"
)

func mcpCommand() *command {
	return &command{name: "mcp", does: "answer agents from stored conversations, by the Model Context Protocol over standard input and output", scope: onStore, run: in(doMCP),
		more: "An agent starts it in the folder in which it works, and it answers from conversations of that folder alone: never from the trash, nor with messages that are hidden, excluded or redacted. Keys and tokens in texts are left out. docs/mcp.md says how to add it to an agent.",
		json: "the protocol alone", example: "chatctx mcp\nchatctx mcp --write"}
}

type mcpIn struct {
	Write      bool `flag:"write" doc:"let the agent keep notes about the folder"`
	Everywhere bool `flag:"all-folders" old:"everywhere" doc:"answer from the conversations of all folders"`
}

func doMCP(r *run, in *mcpIn) error {
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	o := mcpserver.Options{Version: programVersion().Version, Folder: folder, Write: in.Write}
	if !in.Everywhere {
		o.Folders = operation.FolderNames(folder)
		if pwd := os.Getenv("PWD"); pwd != "" && sameFile(pwd, folder) {
			o.Folders = append(o.Folders, pwd)
		}
	}
	if in.Write {
		o.Store, err = r.writer()
	} else {
		o.Store, err = r.reader()
	}
	if err != nil {
		return err
	}
	return mcpserver.Serve(r.ctx, o, os.Stdin, os.Stdout)
}
