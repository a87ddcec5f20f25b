package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os/exec"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/ui"
)

func uiCommand() *command {
	return &command{name: "ui", does: "walk the tree: conversations, branches and messages on the full screen", scope: onContext, do: doUI,
		more: "It begins in the current conversation, or in the list if there is none. ? shows the keys: fork, edit, retry, ask several, compare, take, pick, merge, rewind, tag, search, decide about calls. Changes by other programs appear at once. See docs/ui.md.",
		json: "none: ui shows a screen and needs a terminal", example: "chatctx ui"}
}

func doUI(r *run) error {
	if !r.con.inTTY || !r.con.tty || r.json() || r.con.plain {
		return r.wantsTerminal("ui needs a terminal", "without one: "+r.again("ls")+", "+r.again("tree")+", "+r.again("log"))
	}
	st, err := r.writer()
	if errors.Is(err, chatctx.ErrReadOnly) {
		st, err = r.reader()
	}
	if err != nil {
		return err
	}
	prices, err := r.request().Prices()
	if err == nil {
		err = r.prove(st)
	}
	if err != nil {
		return err
	}
	if err := r.con.out.flush(); err != nil {
		return err
	}
	return ui.Run(engine.WithWaiting(r.ctx, nil), ui.Options{Store: st, In: r.con.stdin(), Out: r.con.out.w, Context: r.contextRef(), Color: r.con.color, Prices: prices,
		Editor: editorOf, Command: r.commandTool, Turn: r.turnOnScreen})
}

// turnOnScreen returns a turn of ui. Answers may begin at the same time.
func (r *run) turnOnScreen(c *chatctx.ChatContext, branch string, set map[string]json.RawMessage, told func(string)) *turn.Turn {
	e := r.executor(c)
	e.Show = func(ev approval.Event) { // the screen is not for notes
		if ev.Step == approval.StepClaimed && ev.Older {
			told(callName(ev.Call) + " " + clean(ev.Call.Tool) + " " + approval.OlderNote)
		}
	}
	return &turn.Turn{Context: c, Branch: branch, Settings: set, Calls: e.Calls}
}

// editorOf returns the command with which the person edits a file.
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

// canPick reports whether somebody can choose from a list here.
func (r *run) canPick() bool { return r.con.inTTY && r.con.tty && !r.con.plain && !r.json() }

// errNonePicked means that the person chose nothing.
var errNonePicked = errors.New("nothing was chosen, so nothing was done")

// pickContext lets the person choose a conversation.
func (r *run) pickContext() (string, error) {
	if !r.canPick() {
		return "", &usageError{"use needs CTX", "usage: chatctx use CTX; on a terminal, without CTX, it shows a list to choose from"}
	}
	st, err := r.reader()
	if err != nil {
		return "", err
	}
	next, stop := iter.Pull2(st.Contexts(r.ctx, record.ListOptions{Orderly: true}))
	defer stop()
	var ids []chatctx.ID
	i, err := r.pick("conversation", func() (out []ui.Choice, whole bool, err error) {
		const page = 256
		for range page {
			info, err, ok := next()
			if !ok || err != nil {
				return out, true, err
			}
			ids = append(ids, info.ID)
			title := info.Title
			if title == "" {
				title = "(no title) " + short(info.ID)
			}
			out = append(out, ui.Choice{Name: title, Before: moment(info.Updated), Marked: info.Current})
		}
		return out, false, nil
	})
	r.close()
	if err != nil {
		return "", err
	}
	return ids[i].String(), nil
}

// pickBranch lets the person choose a branch.
func (r *run) pickBranch() (string, error) {
	if !r.canPick() {
		return "", &usageError{"switch needs BRANCH", "usage: chatctx switch BRANCH; on a terminal, without BRANCH, it shows a list to choose from"}
	}
	c, err := r.conversation()
	if err != nil {
		return "", err
	}
	branches, err := c.Branches(r.ctx)
	r.close()
	if err != nil {
		return "", err
	}
	i, err := r.pick("branch", func() (out []ui.Choice, whole bool, err error) {
		for _, b := range branches {
			out = append(out, ui.Choice{Name: b.Name, Before: fmt.Sprintf("%6d", b.Messages), Marked: b.Active})
		}
		return out, true, nil
	})
	if err != nil {
		return "", err
	}
	return branches[i].Name, nil
}

func (r *run) pick(title string, more func() ([]ui.Choice, bool, error)) (int, error) {
	if err := r.con.out.flush(); err != nil {
		return 0, err
	}
	i, err := ui.Pick(r.ctx, r.con.stdin(), r.con.out.w, r.con.color, title, more)
	if err == nil && i < 0 {
		err = errNonePicked
	}
	return i, err
}
