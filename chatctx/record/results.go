package record

import "github.com/chatctx/chatctx/pool"

// Committed is the result of a change, as a whole and step by step.
type Committed struct {
	Operation string // the operation's name for op log and undo: a number, after an s for the store's; "" if nothing changed, or nothing takes it back
	What      string
	Context   pool.ID
	Title     string
	Branch    string // the target branch after the last step: after a fork, the new one
	Revision  uint64 // of that branch, to be expected by its next change
	Again     bool   // the keys of its appends were all known: nothing was done
	Steps     []*Step
	Summaries []SummaryChange // what became of summaries that tell of messages that it concerns
}

// Last returns the last step, which is the only one of most changes. It is never nil.
func (c *Committed) Last() *Step {
	if len(c.Steps) == 0 {
		return &Step{}
	}
	return c.Steps[len(c.Steps)-1]
}

// Step is the result of one step of a batch. Fields that do not concern the kind of step are zero.
type Step struct {
	What     string      // append, fork, edit, drop, approve …
	Branch   string      // the branch whose history it changed or made, by its name after the whole batch
	Revision uint64      // of that branch after the whole batch
	Placed   []Placement // the messages that it put on the branch or found there
	Removed  int         // number of messages that it took off the branch
	From     string      // fork, edit: the branch from which it started
	At       pool.ID     // fork, edit: the last message that both branches share; zero: none
	Beside   string      // take: the branch that now has the messages that stood here before; "": none
	Head     pool.ID     // of the branch after the step; zero if it is empty
	Messages int         // on the branch after the step
	Again    bool        // the key was known: nothing was done, and Placed says where the messages are
	Call     *Call
	Rule     *Rule
	Broken   []Broken // rules add: examples that the rule breaks
}

// AppendOptions are options of AppendWith. Expect, if not nil, is the revision that the branch must have, else the append fails with ErrConflict. Key makes
// the append happen once: a second one with the same key within 24 hours returns what the first made. It fails with ErrConflict if it has other messages or
// another branch, or if one of the messages has left the branch. Copies gives a message whose id this context does not have an id of its own, and records
// the original as CopiedFrom. System, if not empty, becomes the branch's system prompt together with the messages.
type AppendOptions struct {
	Expect *uint64
	Key    string
	Copies bool
	System string
}
