package journal

import (
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/pool"
)

// Committed says what a change did: as a whole, and step by step.
type Committed struct {
	Operation string // how op log and undo name it: a number; the store's begin with s. "" where nothing changed
	What      string
	Context   pool.ID
	Title     string
	Branch    string // the one that the steps left as theirs: after a fork, the new one
	Revision  uint64 // of that branch, of which its next change can be expected to find it
	Again     bool   // the keys of its appends were all known: nothing was done
	Steps     []*Step
}

// Last is the last step: the only one of most changes. It is never nil.
func (c *Committed) Last() *Step {
	if len(c.Steps) == 0 {
		return &Step{}
	}
	return c.Steps[len(c.Steps)-1]
}

// Step is what one step of a batch did. A field that has nothing to do with the kind of step is zero.
type Step struct {
	What     string      // append, fork, edit, drop, approve …
	Branch   string      // whose history it changed or made, under the name that it has after the whole batch
	Revision uint64      // of that branch after the whole batch
	Placed   []Placement // the messages that it put on the branch, or found there
	Removed  int         // messages that it took off the branch
	From     string      // fork, edit: the branch that it began from
	At       pool.ID     // fork, edit: the last message that both share; zero for none
	Beside   string      // take: the branch that has what stood here before, "" for none
	Head     pool.ID     // of the branch after the step; zero where it is empty
	Messages int         // on the branch after the step
	Again    bool        // the key was known: nothing was done, and Placed says where the messages went then
	Call     *record.Call
	Rule     *record.Rule
	Broken   []record.Broken // rules add: the examples that the rule breaks
	on       pool.ID         // the branch
}

// Placement is where a message stands. Known: it stood there before.
type Placement struct {
	Message  pool.ID
	Position int
	Known    bool
}

// AppendOptions of AppendWith. Expect, if not nil, is the revision that the branch must have (else ErrConflict). Key makes the append
// happen once: a second one with the same key within 24 hours gives what the first made, and is an ErrConflict for other messages, on another branch, or where one of them has left the branch. Copies gives a message whose id this context does not have an
// id of its own, and notes the other one as what it is a copy of.
type AppendOptions struct {
	Expect *uint64
	Key    string
	Copies bool
}

// EditOptions of Edit. Name "" takes main.2, main.3 … ; KeepRest carries what followed along; Stay does not go on in the new branch.
type EditOptions struct {
	Name     string
	KeepRest bool
	Stay     bool
}

// TakeOptions of TakeAnswer. KeepRest carries what came after the answer that gives way.
type TakeOptions struct{ KeepRest bool }

// NewStep begins what a step says.
func NewStep(what string) *Step { return &Step{What: what} }

// On says which branch a step is about.
func (s *Step) On(b *branch.Branch) { s.Branch, s.on = b.Name, b.ID }

// Stands notes how a step leaves a branch.
func (s *Step) Stands(t *Txn, b *branch.Branch) (err error) {
	s.On(b)
	s.Messages = b.Len()
	s.Head, err = branch.Head(t.Tx, t.ID, b.Pieces)
	return err
}

// finish gives a step the name and the revision that its branch has in the end.
func (s *Step) finish(t *Txn) {
	if l := t.Branches[s.on]; l != nil {
		s.Branch, s.Revision = l.Name, l.Revision
	}
}

// Switch makes a branch the active one, as an operation on the context where the store keeps which that is.
func (t *Txn) Switch(to *branch.Branch) {
	t.OnContext = t.OnContext || t.Store.Place == nil && to.ID != t.Rec.Active
	t.goOn(to)
}

// IsActive reports whether a branch is the active one of this person or of the context.
func (t *Txn) IsActive(b *branch.Branch) (bool, error) {
	active, err := t.active()
	return b.ID == active || b.ID == t.Rec.Active, err
}

// GoTo makes a branch the active one and the steps' own. A branch that was only made is looked for on the context's journal.
func (t *Txn) GoTo(b *branch.Branch, stay bool) {
	t.OnContext = t.OnContext || stay
	if !stay {
		t.goOn(b)
	}
}
