package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/internal/view"
)

// MaxCompared is the largest number of histories in one comparison.
const MaxCompared = view.MaxCompared

// SecondAnswer is the Kind of the RefError that Compare returns if a branch has no second answer to compare with.
const SecondAnswer = view.SecondAnswer

// Comparison is how several histories continue after what all of them share.
//
// Fields: Ancestor *pool.Entry; Columns []*ComparedHistory; Turns []*ComparedTurn. For more of each: go doc chatctx/internal/view.Comparison
type Comparison = view.Comparison

// ComparedHistory is one of the histories: a branch up to a message.
//
// Fields: Ref Ref; Branch string; Len int. For more of each: go doc chatctx/internal/view.ComparedHistory
type ComparedHistory = view.ComparedHistory

// ComparedTurn is a turn of each history: the messages of each column after the ancestor. A column without such a turn has no messages.
//
// Fields: Turn int; Cells [][]*pool.Entry. For more of each: go doc chatctx/internal/view.ComparedTurn
type ComparedTurn = view.ComparedTurn

// Compare compares histories turn by turn from their common ancestor: the branches up to the messages that refs name. References are read on the branch
// branchName ("" means the active one). With one ref it compares that branch with it. Without any, or with the branch itself as the only one, it compares
// the answers to the branch's last user message, the branch's own first, each once; it returns ErrNotFound if there are not two.
func (c *ChatContext) Compare(ctx context.Context, branchName string, refs ...Ref) (*Comparison, error) {
	return view.Compare(ctx, c.at(), branchName, refs...)
}

// CompareSize is about how many bytes of memory the messages take that Compare reads.
func (c *ChatContext) CompareSize(ctx context.Context, branchName string, refs ...Ref) (int, error) {
	return view.CompareSize(ctx, c.at(), branchName, refs...)
}

// Difference is what two branches do not share.
//
// Fields: A, B string; Ancestor *pool.Entry; OnlyA, OnlyB []*pool.Entry. For more of each: go doc chatctx/internal/view.Difference
type Difference = view.Difference

// Diff compares the histories of two branches.
func (c *ChatContext) Diff(ctx context.Context, a, b string) (*Difference, error) {
	return view.Diff(ctx, c.at(), a, b)
}

// DiffSize is about how many bytes of memory the messages take that Diff reads.
func (c *ChatContext) DiffSize(ctx context.Context, a, b string) (size int, err error) {
	return view.DiffSize(ctx, c.at(), a, b)
}
