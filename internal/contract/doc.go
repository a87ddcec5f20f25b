// Package contract is the JSON that the command line and the API promise: how a context, a branch, a call and an error look. docs/cli.md has the fields.
//
// It owns shapes and the words for errors. It opens no store and prints nothing.
package contract

import (
	"encoding/json"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// Time is a time in JSON, null for one that is not known.
func Time(t pool.Time) *time.Time {
	if t == 0 {
		return nil
	}
	u := t.Time()
	return &u
}

// Values are settings in JSON, {} for none.
func Values(m map[string]json.RawMessage) map[string]json.RawMessage {
	if m == nil {
		return map[string]json.RawMessage{}
	}
	return m
}

// ID is an id in JSON, null for none.
func ID(id chatctx.ID) *chatctx.ID {
	if id == (chatctx.ID{}) {
		return nil
	}
	return &id
}

// String is a string in JSON, null for none.
func String(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Raw is JSON in JSON, null for none.
func Raw(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// Entries is a list that is never null in JSON.
func Entries(list []*chatctx.Entry) []*chatctx.Entry {
	if list == nil {
		return []*chatctx.Entry{}
	}
	return list
}

// Where is what the JSON of every change begins with.
type Where struct {
	Operation string     `json:"operation,omitempty"`
	Context   chatctx.ID `json:"context"`
	Branch    string     `json:"branch,omitempty"`
}

// WhereOf is where a change was made.
func WhereOf(c *chatctx.Committed) Where { return Where{c.Operation, c.Context, c.Branch} }
