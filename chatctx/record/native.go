package record

import (
	"encoding/json"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/pool"
)

// Native describes a context on its way between stores.
type Native struct {
	ID       pool.ID                    `json:"id"`
	Title    string                     `json:"title"`
	Derived  bool                       `json:"derived,omitempty"`
	Renamed  bool                       `json:"renamed,omitempty"` // a person gave the title, not a file
	Parent   pool.ID                    `json:"parent,omitzero"`
	Settings map[string]json.RawMessage `json:"settings,omitempty"`
	AppData  map[string]json.RawMessage `json:"app_data,omitempty"`
	Labels   []string                   `json:"labels,omitempty"`
	Active   string                     `json:"active"`
	Created  pool.Time                  `json:"created_at,omitempty"`
	Updated  pool.Time                  `json:"updated_at,omitempty"`
	Task     *Task                      `json:"task,omitempty"`
}

// NativeBranch describes a branch of it. Its history is what it shares with another branch, and then what Append and Again add.
type NativeBranch struct {
	ID         pool.ID `json:"id"`
	Name       string  `json:"name"`
	NativeLike `json:"like,omitzero"`
	System     string                     `json:"system,omitempty"`
	Prompt     string                     `json:"prompt,omitempty"`
	Settings   map[string]json.RawMessage `json:"settings,omitempty"`
	Sessions   []branch.Session           `json:"sessions,omitempty"`
	AppData    map[string]json.RawMessage `json:"app_data,omitempty"`
	From       string                     `json:"from,omitempty"`
	At         pool.ID                    `json:"at,omitzero"`
	Created    pool.Time                  `json:"created_at,omitempty"`
	Tokens     *branch.Tokens             `json:"tokens,omitempty"`
}

// NativeLike says that a history begins with the first Shared messages of a branch that was begun before it.
type NativeLike struct {
	Like   string `json:"branch"`
	Shared int    `json:"messages"`
}

// NativeCall is the state of a call, with the decisions about it.
type NativeCall struct {
	Message pool.ID `json:"message"`
	Index   int     `json:"index"` // of the call in the message, from 0
	CallRecord
}
