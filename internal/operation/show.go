package operation

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/pool"
	"github.com/chatctx/chatctx/subtask"
)

func init() { Register(Group{Heading: "Conversations", Of: showOperations}) }

func showOperations() []*Operation {
	return []*Operation{
		Define("show", "GET", Read, "show a message, or the conversation if none is named", show).
			As("show", "chatctx show @-1\nchatctx show 8f3a21bc --save pictures"),
	}
}

// Showing names a message, else the conversation is meant.
type Showing struct {
	Target
	Message record.Ref `json:"message,omitempty" arg:"[REF]"`
	Save    string     `json:"-" flag:"save" doc:"write the message's images and files into {DIR}; a file that is there stays"`
	Text    bool       `json:"-" flag:"text" doc:"the text alone, as it is stored"`
	Code    bool       `json:"-" flag:"code" doc:"the message's code block alone, byte for byte"`
	Block   *int       `json:"-" flag:"block" doc:"with --code: the block {N} of several"`
}

// Shown is a message, or what stands in its place.
type Shown struct {
	*chatctx.Entry
	Whole []ShownConversation `json:"-" when:"-REF"`
	Saved []SavedParts        `json:"-" when:"save"`
	Words []ShownText         `json:"-" when:"text"`
	Code  []ShownCode         `json:"-" when:"code"`

	Mark  string             `json:"-"`
	Tasks []*record.TaskInfo `json:"-"` // that the message's calls started
}

// ShownConversation is a conversation with its branches, prompts and settings.
type ShownConversation struct {
	record.ContextFacts
	Branches []*record.BranchInfo       `json:"branches"`
	Settings map[string]json.RawMessage `json:"settings"`
	System   string                     `json:"system"`
	Prompt   string                     `json:"prompt"`
	Task     *contract.Task             `json:"task,omitempty"`

	Branch string `json:"-"` // that the prompts and the settings are of
}

// SavedParts are a message's images and files that were written to files.
type SavedParts struct {
	contract.Where
	Message chatctx.ID  `json:"message"`
	Saved   []SavedFile `json:"saved"`
}

// SavedFile is a part that was written to a file.
type SavedFile struct {
	File      string `json:"file"`
	MediaType string `json:"media_type"`
	Size      int    `json:"size"`
	SHA256    string `json:"sha256"`
}

// ShownText is a message's text.
type ShownText struct {
	Text  string         `json:"text"`
	Entry *chatctx.Entry `json:"-"`
}

// ShownCode is a code block of a message.
type ShownCode struct {
	Block int    `json:"block"`
	Code  string `json:"code"`
}

func show(r *Request, in *Showing) (v Shown, err error) {
	c, snap, err := r.snapshot(in.Target)
	if err != nil {
		return v, err
	}
	if in.Message == "" {
		whole, err := r.wholeConversation(c, snap)
		return Shown{Whole: []ShownConversation{whole}}, err
	}
	if part, err := snap.Range(r.Ctx, in.Message); err != nil || part != nil {
		if err == nil {
			err = &RangeError{in.Message, true}
		}
		return v, err
	}
	e, err := snap.Find(r.Ctx, in.Message)
	if err != nil {
		return v, err
	}
	if in.Save != "" {
		saved, err := r.saveParts(e, in.Save)
		return Shown{Saved: []SavedParts{{contract.Where{Context: c.ID, Branch: snap.Info.Name}, e.ID, saved}}}, err
	}
	if in.Code {
		code, n, err := codeBlock(e.Text(), in.Block)
		return Shown{Code: []ShownCode{{n, code}}}, err
	}
	if in.Text {
		return Shown{Words: []ShownText{{e.Text(), e}}}, nil
	}
	marks, err := c.Marks(r.Ctx)
	if err != nil {
		return v, err
	}
	v = Shown{Entry: e, Mark: marks[e.ID]}
	if len(e.Calls) == 0 {
		return v, nil
	}
	tasks, err := subtask.List(r.Ctx, c, subtask.ListOptions{Ended: true})
	for _, i := range tasks {
		if i.Message == e.ID {
			v.Tasks = append(v.Tasks, i)
		}
	}
	return v, err
}

// wholeConversation returns a conversation, with the prompts and settings of a branch.
func (r *Request) wholeConversation(c *chatctx.ChatContext, snap *chatctx.Snapshot) (v ShownConversation, err error) {
	info, err := c.Info(r.Ctx)
	if err != nil {
		return v, err
	}
	branches, err := c.Branches(r.Ctx)
	if err != nil {
		return v, err
	}
	own, err := c.Effective(r.Ctx, snap.Info.Name)
	if err != nil && !errors.Is(err, chatctx.ErrNotFound) {
		return v, err
	}
	task, err := c.TaskInfo(r.Ctx)
	if err != nil && !errors.Is(err, chatctx.ErrInvalid) {
		return v, err
	}
	v = ShownConversation{info.ContextFacts, branches, settings.WithEnv(own, os.Getenv), snap.Info.System, snap.Info.Prompt, nil, snap.Info.Name}
	if task != nil {
		of := contract.TaskOf(task)
		v.Task = &of
	}
	return v, nil
}

// saveParts writes a message's images and files into a folder.
func (r *Request) saveParts(e *chatctx.Entry, dir string) ([]SavedFile, error) {
	parts := e.Content
	if e.Result != nil {
		parts = append(parts[:len(parts):len(parts)], e.Result.Parts...)
	}
	saved := []SavedFile{}
	for i := range parts {
		p := &parts[i]
		if p.SHA256 == (pool.Hash{}) {
			continue
		}
		b, kind, err := r.Store.Artifact(r.Ctx, p.SHA256)
		if err != nil {
			return nil, err
		}
		if p.MediaType != "" {
			kind = p.MediaType
		}
		path, err := r.Save(dir, p.Name, kind, i+1, b)
		if err != nil {
			return nil, err
		}
		saved = append(saved, SavedFile{path, kind, len(b), p.SHA256.String()})
	}
	return saved, nil
}
