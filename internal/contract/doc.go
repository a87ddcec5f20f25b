// Package contract is the JSON that the command line and the API promise: contexts, branches, calls, errors and so on. docs/cli.md describes the fields.
//
// It owns the shapes, and the codes and kinds of errors. It opens no store and prints nothing.
package contract

import (
	"encoding/json"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Time returns a time for JSON, nil (null) if it is not known.
func Time(t pool.Time) *time.Time {
	if t == 0 {
		return nil
	}
	u := t.Time()
	return &u
}

// Values returns settings for JSON, {} for none.
func Values(m map[string]json.RawMessage) map[string]json.RawMessage {
	if m == nil {
		return map[string]json.RawMessage{}
	}
	return m
}

// ID returns an id for JSON, nil (null) for the zero id.
func ID(id chatctx.ID) *chatctx.ID {
	if id == (chatctx.ID{}) {
		return nil
	}
	return &id
}

// String returns a string for JSON, nil (null) for "".
func String(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Raw returns raw JSON, or null if it is empty.
func Raw(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// Entries returns a list that is never null in JSON.
func Entries(list []*chatctx.Entry) []*chatctx.Entry {
	if list == nil {
		return []*chatctx.Entry{}
	}
	return list
}

// Where begins the JSON of every change.
type Where struct {
	Operation string     `json:"operation,omitempty"`
	Context   chatctx.ID `json:"context"`
	Branch    string     `json:"branch,omitempty"`
	// Affected has the summaries that tell of messages that the change concerns.
	Affected []record.SummaryChange `json:"affected_summaries,omitempty"`
	Title    string                 `json:"-"` // the conversation's
}

// WhereOf returns where a change was made.
func WhereOf(c *record.Committed) Where {
	return Where{c.Operation, c.Context, c.Branch, c.Summaries, c.Title}
}
