package record

import (
	"encoding/json"

	"github.com/chatctx/chatctx/pool"
)

// NewContext describes a new context.
type NewContext struct {
	Title          string
	System, Prompt string
	Settings       map[string]json.RawMessage
	Parent         pool.ID         // the parent, if it is a sub-context
	Messages       []*pool.Message // its first messages
	Stay           bool            // do not make it the store's current context
	IfNone         bool            // make it only if no context is current yet, else return that one; so several programs that are the first make one
}

// Placement is the place of a message on a branch. Known: it was there before.
type Placement struct {
	Message  pool.ID
	Position int
	Known    bool
}

// EditOptions are options of Edit. Name "" means main.2, main.3 …; KeepRest also takes the messages that followed; Stay leaves the active branch as it is.
type EditOptions struct {
	Name     string
	KeepRest bool
	Stay     bool
}

// TakeOptions are options of TakeAnswer. KeepRest keeps the messages after the answer that is replaced.
type TakeOptions struct{ KeepRest bool }

// SummaryChange says that a change concerns messages of which a branch's summary tells.
type SummaryChange struct {
	Branch string `json:"branch"`
	From   int    `json:"from"` // the positions, before the change, of the messages for which the summary stands
	To     int    `json:"to"`
	Stands bool   `json:"stands"` // it goes on telling of them; otherwise the messages are sent themselves again
	// Provider made the summary for itself alone; "" is one of ours.
	Provider string `json:"provider,omitempty"`
}
