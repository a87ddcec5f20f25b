package chatctx

import (
	"context"
	"iter"

	"github.com/chatctx/chatctx/chatctx/internal/find"
)

// SearchOptions say what to look for. A zero field does not narrow.
type SearchOptions = find.SearchOptions

// Hit is something that was found.
type Hit = find.Hit

// HitBranch is a branch that holds a message, at a position from 1, or whose prompt was found, at 0.
type HitBranch = find.HitBranch

// Search gives what fits, in short transactions. It finds everything that was stored before it began: what the index does not have yet it reads. ErrInvalid for a query
// without words and an expression that cannot be read.
func (s *Store) Search(ctx context.Context, o SearchOptions) iter.Seq2[*Hit, error] {
	return find.Search(ctx, s.at, o)
}
