package journal

import (
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/pool"
)

// NewStep returns a Step of that kind.
func NewStep(what string) *record.Step { return &record.Step{What: what} }

// On sets the branch of a step.
func (t *Txn) On(s *record.Step, b *branch.Branch) {
	if s.Branch = b.Name; t.on == nil {
		t.on = map[*record.Step]pool.ID{}
	}
	t.on[s] = b.ID
}

// Stands records a branch's state after a step.
func (t *Txn) Stands(s *record.Step, b *branch.Branch) (err error) {
	t.On(s, b)
	s.Messages = branchstore.Len(b)
	s.Head, err = branchstore.Head(t.Tx, t.ID, b.Pieces)
	return err
}

// finishStep sets the final name and revision of the step's branch.
func finishStep(s *record.Step, t *Txn) {
	if l := t.Branches[t.on[s]]; l != nil {
		s.Branch, s.Revision = l.Name, l.Revision
	}
}

// Switch makes a branch the active one. If the store keeps the active branch, this is an operation on the context.
func (t *Txn) Switch(to *branch.Branch) {
	t.OnContext = t.OnContext || t.Store.Place == nil && to.ID != t.Rec.Active
	t.goOn(to)
}

// IsActive reports whether a branch is active for this person or in the context.
func (t *Txn) IsActive(b *branch.Branch) (bool, error) {
	active, err := t.active()
	return b.ID == active || b.ID == t.Rec.Active, err
}

// GoTo makes a branch the active one and the target of the next steps, unless stay is set. With stay the operation is one on the context, so that undo
// finds the new branch there.
func (t *Txn) GoTo(b *branch.Branch, stay bool) {
	t.OnContext = t.OnContext || stay
	if !stay {
		t.goOn(b)
	}
}
