package enhancer

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// Step is a pipeline's record of one enhancer.
type Step struct {
	Name          string
	Before, After int            // tokens
	Skipped       bool           // the draft fitted already
	Notes         []chatctx.Note // what was dropped or replaced, and why
}

// Report is the result of a pipeline.
type Report struct {
	Steps []Step
	// Messages are all messages that the draft had before, in order. State and Step of each say what became of it, even if the draft no longer has it.
	Messages      []*chatctx.DraftMessage
	Before, After int // tokens
	Limit         int // the budget less the headroom; 0 without a budget
	// Rules are the figures of each rule that did anything, in the order of its first use.
	Rules []RuleFigures
	// Paid are the messages that record what a model's digests cost, unless Window.Keep took them. Store them in the pool, on no branch, together with the draft's
	// Session, which names them.
	Paid []*pool.Message
}

// The states of a message in a draft.
const (
	In         = "in"
	Pruned     = "pruned"     // its content is shortened, put aside or replaced by a line
	Digested   = "digested"   // a digest stands for it
	Summarised = "summarised" // the session's summary stands for it
	Pinned     = "pinned"     // in, in any case
	Excluded   = "excluded"   // left out on demand
	Trimmed    = "trimmed"    // left out for lack of room
)

// RuleFigures say what a rule did for a request. "put aside" and "compact summary" are among the rules.
type RuleFigures struct {
	Name          string
	Times         int // the number of messages that it made shorter
	Before, After int // the tokens of those messages
}
