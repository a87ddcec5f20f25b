package operation

import (
	"encoding/json"
	"path/filepath"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/quote"
	"github.com/chatctx/chatctx/pool"
)

// RecallNote is a note.
type RecallNote struct {
	Text string `json:"text" doc:"what a later conversation should know: a decision and its reason, what failed and why; no secrets"`
}

// The conversation of a folder's notes has notesLabel. A note has at most mostNote bytes.
const (
	notesLabel = "notes"
	mostNote   = 4 << 10
)

// recallNote keeps a note in the folder's conversation of notes, as words of a model.
func recallNote(r *Request, in *RecallNote) (out Recalled, err error) {
	text := quote.Clean(in.Text)
	if text == "" || len(text) > mostNote {
		return out, base.Invalid("text has %d bytes, and has to have from 1 to %d", len(text), mostNote)
	}
	var c *chatctx.ChatContext
	for info, err := range r.Store.Contexts(r.Ctx, record.ListOptions{Labels: []string{notesLabel}, Folders: FolderNames(r.Folder)}) {
		if err == nil {
			c, err = r.Store.Context(r.Ctx, info.ID.String())
		}
		if err != nil {
			return out, err
		}
		break
	}
	if c == nil {
		if c, err = r.Store.New(r.Ctx, record.NewContext{Title: "Notes about " + filepath.Base(r.Folder), Stay: true}); err != nil {
			return out, err
		}
	}
	b := c.Begin("")
	b.SetContextData(base.FolderData, json.RawMessage(`{"`+base.FolderMember+`":`+string(jsontree.AppendString(nil, r.Folder))+`}`))
	b.Label(notesLabel)
	b.Append(pool.NewText(pool.Assistant, text))
	done, err := b.Commit(r.Ctx)
	if err != nil {
		return out, err
	}
	f := quote.New(0)
	f.Say("kept as %s", placeOf(c.ID, done.Last().Placed[0].Message))
	return Recalled{f.String()}, nil
}
