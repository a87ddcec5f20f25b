package journal

import (
	"slices"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// removesOne reports whether the operation removes a branch that it did not make itself.
func (t *Txn) removesOne() bool {
	return slices.ContainsFunc(t.read(), func(l *Loaded) bool { return l.Removed != 0 && !l.created && l.was.Removed == 0 })
}

// passOver lets Undo pass over the command of an operation that was just written, if nothing is left of the command: it changed only branches that it made, and
// all of them are removed, as after an answer that failed. Nobody saw it, so whoever asks for an undo means what came before it. Its operations name themselves
// as what undid them, and the context's newest operation in force is the one before the command.
func (t *Txn) passOver() error {
	all, err := groupOf(t.Tx, t.ID, t.group, false)
	if err != nil {
		return err
	}
	ops, made := make([]*base.Operation, len(all)), map[pool.ID]bool{}
	for i, n := range slices.Backward(all) {
		if ops[i], err = base.GetOperation(t.Tx, t.ID, n); err != nil || !onlyMade(ops[i], made) {
			return err
		}
	}
	for id := range made {
		if l, err := t.Load(id); err != nil || l == nil || l.Removed == 0 {
			return err
		}
	}
	for i, n := range all {
		for _, c := range ops[i].Chains {
			if c.Branch == (pool.ID{}) && t.Rec.Last == n {
				t.Rec.Last = c.Prev
			}
		}
		ops[i].Undone = n
		if err := base.PutRecord(t.Tx, base.OperationBucket, base.OperationKey(t.ID, n), ops[i]); err != nil {
			return err
		}
	}
	return t.writeContextAgain()
}

// onlyMade reports whether an operation changed only branches of a command that made them, apart from new messages and their calls, which nobody sees
// without a branch. It adds the branches that the operation made.
func onlyMade(op *base.Operation, made map[pool.ID]bool) bool {
	for _, c := range op.Changes {
		if c.Kind == base.FieldsChange && c.Bucket == branchstore.Bucket && wasRemoved(c) {
			made[pool.ID(c.Key[16:])] = true
		}
	}
	foreign := func(c base.Change) bool {
		switch {
		case c.Kind == base.SpliceChange:
			return !made[pool.ID(c.Key)]
		case c.Kind == base.FieldsChange:
			return c.Bucket != branchstore.Bucket || !made[pool.ID(c.Key[16:])]
		}
		return c.Old != nil || c.Bucket != poolstore.Bucket && c.Bucket != base.CallBucket
	}
	return !slices.ContainsFunc(op.Changes, foreign) && !slices.ContainsFunc(op.Chains, func(c base.Chain) bool {
		return c.Branch != pool.ID{} && !made[c.Branch]
	})
}

// wasRemoved reports whether a branch counted as removed before a change: the change made it.
func wasRemoved(c base.Change) bool {
	var at pool.Time
	return stored.Unmarshal(c.Fields[base.RemovedField], &at) == nil && at != 0
}
