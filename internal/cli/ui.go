package cli

import (
	"encoding/json"
	"errors"
	"os/exec"
	"sync"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/ui"
)

func uiCommand() *command {
	return &command{name: "ui", does: "walk the tree: conversations, branches and messages on the full screen", scope: onContext, do: doUI,
		more: "It begins in the current conversation, or in the list where there is none. ? shows the keys: fork, edit, retry, ask several, compare, take, pick, merge, rewind, tag, search, decide about calls. What other programs change appears at once. See docs/ui.md.",
		json: "none: ui shows a screen and needs a terminal", example: "chatctx ui"}
}

func doUI(r *run) error {
	if !r.con.inTTY || !r.con.tty || r.json() || r.con.plain {
		return &usageError{"ui needs a terminal", "without one: " + r.again("ls") + ", " + r.again("tree") + ", " + r.again("log")}
	}
	st, err := r.writer()
	if errors.Is(err, chatctx.ErrReadOnly) {
		st, err = r.reader()
	}
	if err != nil {
		return err
	}
	prices, err := r.storePrices(st)
	if err != nil {
		return err
	}
	if err := r.con.out.flush(); err != nil {
		return err
	}
	var mu sync.Mutex // answers begin beside each other
	return ui.Run(r.ctx, ui.Options{
		Store: st, In: r.con.stdin(), Out: r.con.out.w, Context: r.contextRef(), Color: r.con.color, Prices: prices, Editor: editorOf,
		Turn: func(c *chatctx.ChatContext, branch string, set map[string]json.RawMessage) *turn.Turn {
			mu.Lock()
			defer mu.Unlock()
			e := r.executor(c)
			e.Show = nil // the screen is not for notes
			return &turn.Turn{Context: c, Branch: branch, Settings: set, Calls: e.Calls}
		},
	})
}

// editorOf is the command with which the person edits a file.
func editorOf(file string) (*exec.Cmd, error) {
	editor, err := chosenEditor()
	if err != nil {
		return nil, err
	}
	if editor == nil {
		editor = []string{defaultEditor}
	}
	return exec.Command(editor[0], append(editor[1:len(editor):len(editor)], file)...), nil
}
