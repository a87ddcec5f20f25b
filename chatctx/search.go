package chatctx

import (
	"context"
	"iter"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/find"
)

// Search returns the hits, reading in short transactions. It finds everything that was stored before it began: documents that are not in the index yet it
// reads. It returns ErrInvalid for a query without words and for a regular expression that does not compile.
func (s *Store) Search(ctx context.Context, o record.SearchOptions) iter.Seq2[*record.Hit, error] {
	return find.Search(ctx, s.at(), o)
}
