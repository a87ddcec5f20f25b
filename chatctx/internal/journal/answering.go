package journal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// UnsettledError says that an answer belongs at the end of a branch, of a program that died while it was writing it, before the branch can change otherwise.
type UnsettledError struct {
	Context, Branch pool.ID
	name, program   string
}

func (e *UnsettledError) Error() string {
	return fmt.Sprintf("%s died while it answered on branch %q: chatctx log --branch %q puts what had come there", e.program, e.name, e.name)
}

// Unwrap gives ErrConflict.
func (e *UnsettledError) Unwrap() error { return record.ErrConflict }

// stays refuses to change what an answer that is being written stands on: until it has ended, a history grows at its end and does nothing else, and the branch stays. So an answer never lands
// under another turn.
func (t *Txn) stays(b *branch.Branch) error {
	claim, err := view.ClaimOf(t.Tx, t.ID, b.ID)
	if err != nil || claim == nil {
		return err
	}
	if claim.Dead(t.Now) {
		return &UnsettledError{t.ID, b.ID, b.Name, claim.Program}
	}
	stop := "chatctx interrupt"
	if active, err := t.IsActive(b); err == nil && !active {
		stop += fmt.Sprintf(" --branch %q", b.Name)
	}
	return record.Conflict("%s is writing an answer on branch %q: wait for it, or stop it with %s", claim.Who(), b.Name, stop)
}

// grows reports whether a splice leaves everything where it is: it adds at the end, or puts as many messages in the place of others.
func grows(b *branch.Branch, at, removed int, insert []branch.Piece) bool {
	return removed == branch.Count(insert) || removed == 0 && at == b.Len()
}

// undisturbed refuses to take an operation back that changed a history, or made a branch, on which an answer is being written. One that is left of a program that died is named only where none is being written.
func (t *Txn) undisturbed(op *record.Operation) error {
	var left error
	for _, on := range op.Chains {
		if !slices.ContainsFunc(op.Changes, func(c record.Change) bool { return disturbs(c, on.Branch) }) {
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

// disturbs reports whether taking back a change moves what stands on a branch, or takes the branch away.
func disturbs(c record.Change, on pool.ID) bool {
	if !bytes.HasSuffix(c.Key, on[:]) {
		return false
	}
	if c.Kind == record.SpliceChange {
		return branch.Count(c.Inserted) != branch.Count(c.Removed)
	}
	_, removes := c.Fields[record.RemovedField]
	return c.Kind == record.FieldsChange && c.Bucket == branch.Bucket && removes
}

// Abandon forgets what a program that died has left of an answer on a branch.
func (t *Txn) Abandon(b *branch.Branch) error {
	claim, err := view.ClaimOf(t.Tx, t.ID, b.ID)
	if err != nil || claim == nil || !claim.Dead(t.Now) {
		return err
	}
	return t.EndAnswer(b.ID)
}

// EndAnswer takes away who answers on a branch, and what was saved of the answer.
func (t *Txn) EndAnswer(branchID pool.ID) error {
	key := record.Under(t.ID, branchID[:]...)
	if err := t.Tx.Delete(record.PartialBucket, key); err != nil {
		return err
	}
	return t.Tx.Delete(record.ClaimBucket, key)
}
