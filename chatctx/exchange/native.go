package exchange

import (
	"encoding/json"
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// The store's own export is JSON Lines. Each line is an object with one member, whose name says what the line is:
//
//	chatctx   comes first: the format's version, and the number of contexts; with it the store's settings if the whole store is exported
//	context   begins a context
//	branch    begins one of its branches; its history begins with the first messages of another one, as many as like says, and goes on with
//	message   a message that is new in this context, with everything that chatctx knows of it, or
//	again     earlier messages, by their ids
//	loose     a message on no branch: a session's summary, or a tagged message
//	call      the state of a call, with its decisions, after its message
//	artifact  the bytes of an image or a document, before the first message that names them
//	tag, mark  a message's second name; pinned or excluded
//	end       ends the context and counts its contents: a context without it was cut off
//
// Rules and tools are not exported: they say what may run on a machine, and a conversation must not bring them along.

const (
	nativeName    = chatctx.NativeFormat
	nativeVersion = 1
)

type nativeHeader struct {
	Version  int                        `json:"chatctx"`
	Contexts int                        `json:"contexts,omitempty"` // the number in the file
	Settings map[string]json.RawMessage `json:"settings,omitempty"`
}

// checkCall refuses the states that no call has.
func checkCall(c *record.NativeCall) error {
	switch c.Status {
	case pool.Pending, pool.Approved, pool.Denied, pool.Left, pool.Withdrawn:
	default:
		return fmt.Errorf("approval_status %q is none of pending, approved, denied, left, withdrawn", c.Status)
	}
	switch c.Execution {
	case pool.NotRun, pool.Running, pool.Done, pool.Failed, pool.Uncertain:
	default:
		return fmt.Errorf("execution %q is none of none, running, done, failed, uncertain", c.Execution)
	}
	return nil
}
