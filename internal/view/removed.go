package view

import (
	"cmp"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/pool"
)

// RemovedBranch is a branch that somebody removed and that can come back, with the operation that did.
type RemovedBranch struct {
	*BranchInfo
	Operation uint64
}

// RemovedBranches returns the removed branches of a context that can come back, the last removed one first. A branch whose making was undone is none of them: redo
// brings it back.
func RemovedBranches(tx kv.Tx, id pool.ID, rec *base.ContextRecord) (out []RemovedBranch, err error) {
	var all []*branch.Branch
	err = branchstore.All(tx, id, func(b *branch.Branch) error {
		if b.Removed != 0 && b.Last != 0 {
			all = append(all, b)
		}
		return nil
	})
	for _, b := range all {
		if err != nil {
			break
		}
		var op *base.Operation
		if op, err = base.GetOperation(tx, id, b.Last); err != nil || op == nil || op.Undone != 0 {
			continue
		}
		one := RemovedBranch{Operation: b.Last}
		one.BranchInfo, err = DescribeBranch(tx, id, rec, b)
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b RemovedBranch) int {
		return cmp.Or(cmp.Compare(b.Operation, a.Operation), cmp.Compare(a.Name, b.Name))
	})
	return out, err
}
