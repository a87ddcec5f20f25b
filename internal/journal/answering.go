package journal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// UnsettledError means that a program died while it wrote an answer on a branch. What it had written must go to the end of the branch before the branch can
// change otherwise. It is an ErrConflict.
type UnsettledError struct {
	Context, Branch pool.ID
	name, program   string
}

func (e *UnsettledError) Error() string {
	return fmt.Sprintf("%s died while it answered on branch %q: chatctx log --branch %q puts what had come there", e.program, e.name, e.name)
}

// Unwrap returns ErrConflict.
func (e *UnsettledError) Unwrap() error { return base.ErrConflict }

// stays refuses to change a branch on which an answer is being written. Until the answer ends, the history may only grow at its end, and the branch must
// stay. So an answer never lands under another turn.
func (t *Txn) stays(b *branch.Branch) error {
	claim, err := view.ClaimOf(t.Tx, t.ID, b.ID)
	if err != nil || claim == nil {
		return err
	}
	if base.Dead(claim, t.Now) {
		return &UnsettledError{t.ID, b.ID, b.Name, claim.Program}
	}
	return t.Answers(claim, b)
}

// Answers returns the ErrConflict for what must wait for the answer that is written on a branch.
func (t *Txn) Answers(claim *record.Claim, b *branch.Branch) error {
	stop := "chatctx interrupt"
	if active, err := t.IsActive(b); err == nil && !active {
		stop += fmt.Sprintf(" --branch %q", b.Name)
	}
	return base.Conflict("%s is writing an answer on branch %q: wait for it, or stop it with %s", claim.Who(), b.Name, stop)
}

// Unanswered refuses to put a context aside while somebody writes an answer in it.
func (t *Txn) Unanswered() error {
	return t.Tx.Scan(base.ClaimBucket, kv.Prefix(t.ID[:]), func(key, _ []byte) error {
		if len(key) != 2*len(pool.ID{}) {
			return nil // a call's
		}
		claim, err := view.ClaimOf(t.Tx, t.ID, pool.ID(key[len(t.ID):]))
		if err != nil || claim == nil || base.Dead(claim, t.Now) {
			return err
		}
		name := ""
		if l, err := t.Load(pool.ID(key[len(t.ID):])); err == nil && l != nil {
			name = l.Branch.Name
		}
		return base.Conflict("%s is writing an answer on branch %q of %q: wait for it, or stop it with chatctx interrupt --context %s --branch %q", claim.Who(), name, t.Rec.Title, t.ID, name)
	})
}

// grows reports whether a splice moves no entry: it appends, or replaces entries by as many others.
func grows(b *branch.Branch, at, removed int, insert []branch.Piece) bool {
	return removed == branchstore.Count(insert) || removed == 0 && at == branchstore.Len(b)
}

// undisturbed refuses to undo an operation that changed a history, or made a branch, on which an answer is being written. It returns an UnsettledError only
// if no program is writing.
func (t *Txn) undisturbed(op *base.Operation) error {
	var left error
	for _, on := range op.Chains {
		if !slices.ContainsFunc(op.Changes, func(c base.Change) bool { return disturbs(c, on.Branch) }) {
			continue
		}
		l, err := t.Load(on.Branch)
		if err != nil {
			return err
		}
		if l == nil || l.Removed != 0 {
			continue
		}
		err = t.stays(l.Branch)
		if dead := (*UnsettledError)(nil); err != nil && !errors.As(err, &dead) {
			return err
		}
		left = cmp.Or(left, err)
	}
	return left
}

// disturbs reports whether undoing a change moves the entries of a branch or removes the branch.
func disturbs(c base.Change, on pool.ID) bool {
	if !bytes.HasSuffix(c.Key, on[:]) {
		return false
	}
	if c.Kind == base.SpliceChange {
		return branchstore.Count(c.Inserted) != branchstore.Count(c.Removed)
	}
	_, removes := c.Fields[base.RemovedField]
	return c.Kind == base.FieldsChange && c.Bucket == branchstore.Bucket && removes
}

// Abandon drops what a dead program has left of an answer on a branch.
func (t *Txn) Abandon(b *branch.Branch) error {
	claim, err := view.ClaimOf(t.Tx, t.ID, b.ID)
	if err != nil || claim == nil || !base.Dead(claim, t.Now) {
		return err
	}
	return t.EndAnswer(b.ID)
}

// EndAnswer removes the claim on a branch's answer, and what was saved of the answer.
func (t *Txn) EndAnswer(branchID pool.ID) error {
	key := base.Under(t.ID, branchID[:]...)
	if err := t.Tx.Delete(base.PartialBucket, key); err != nil {
		return err
	}
	return t.Tx.Delete(base.ClaimBucket, key)
}
