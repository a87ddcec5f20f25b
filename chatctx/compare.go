package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/view"
)

// MaxCompared is the largest number of histories in one comparison.
const MaxCompared = view.MaxCompared

// SecondAnswer is the Kind of the RefError that Compare returns if a branch has no second answer to compare with.
const SecondAnswer = view.SecondAnswer

// Compare compares histories turn by turn from their common ancestor: the branches up to the messages that refs name. References are read on the branch
// branchName ("" means the active one). With one ref it compares that branch with it. Without any, or with the branch itself as the only one, it compares
// the answers to the branch's last user message, the branch's own first, each once; it returns ErrNotFound if there are not two.
func (c *ChatContext) Compare(ctx context.Context, branchName string, refs ...record.Ref) (*record.Comparison, error) {
	return view.Compare(ctx, c.at(), branchName, refs...)
}

// Diff compares the histories of two branches.
func (c *ChatContext) Diff(ctx context.Context, a, b string) (*record.Difference, error) {
	return view.Diff(ctx, c.at(), a, b)
}
