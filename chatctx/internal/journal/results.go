package journal

import (
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/pool"
)

// Committed says what a batch did.
type Committed struct {
	Operation string // how op log and undo name it: a number; the store's begin with s. "" where nothing changed
	What      string
	Context   pool.ID
	Title     string
	Branch    string // the one that the steps left as theirs: after a fork, the new one
	Revision  uint64
}

// AppendOptions of Append. Expect, if not nil, is the revision that the branch must have (else ErrConflict). Key makes the append
// happen once: a second one with the same key within 24 hours gives what the first made. Copies gives a message whose id this context does not have an
// id of its own, and notes the other one as what it is a copy of.
type AppendOptions struct {
	Expect *uint64
	Key    string
	Copies bool
}

// Placement is where a message stands. Known: it stood there before.
type Placement struct {
	Message  pool.ID `cbor:"1,keyasint"`
	Position int     `cbor:"2,keyasint"`
	Known    bool    `cbor:"-"`
}

// Appended is what an append made.
type Appended struct {
	Context  pool.ID
	Branch   string // "" where the key was known and the branch is gone
	Placed   []Placement
	Revision uint64
	Again    bool // the idempotency key was known: nothing was added
}

// Moved counts what a change of a history did.
type Moved struct {
	Added    []Placement
	Removed  int
	Head     pool.ID
	Messages int // on the branch afterwards
}

// Forked is a new branch.
type Forked struct {
	Branch   string
	From     string
	At       pool.ID // the last message shared; zero for none
	Messages int
}

// goTo makes a branch the active one and the steps' own. A branch that was only made is looked for on the context's journal.
func (t *Txn) GoTo(b *branch.Branch, stay bool) {
	t.OnContext = t.OnContext || stay
	if !stay {
		t.Rec.Active, t.Target = b.ID, b
	}
}

// EditOptions of Edit. Name "" takes main.2, main.3 … ; KeepRest carries what followed along; Stay does not go on in the new branch.
type EditOptions struct {
	Name     string
	KeepRest bool
	Stay     bool
}
