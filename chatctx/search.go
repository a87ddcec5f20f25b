package chatctx

import (
	"context"
	"iter"

	"github.com/chatctx/chatctx/chatctx/internal/find"
)

// SearchOptions is a query. A zero field does not narrow it.
type SearchOptions = find.SearchOptions

// Hit is a search result.
type Hit = find.Hit

// HitBranch is a branch that holds a message, with its position from 1, or a branch whose prompt was found, with position 0.
type HitBranch = find.HitBranch

// Search returns the hits, reading in short transactions. It finds everything that was stored before it began: documents that are not in the index yet it
// reads. It returns ErrInvalid for a query without words and for a regular expression that does not compile.
func (s *Store) Search(ctx context.Context, o SearchOptions) iter.Seq2[*Hit, error] {
	return find.Search(ctx, s.at, o)
}
