package view

import (
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/pool"
)

// BranchByID finds a branch by its id. It returns nil for a removed branch, or if there is none.
func BranchByID(tx kv.Tx, ctx, id pool.ID) (*branch.Branch, error) {
	b, err := branchstore.Get(tx, ctx, id)
	if b != nil && b.Removed != 0 {
		b = nil
	}
	return b, err
}
