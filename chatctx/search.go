package chatctx

import (
	"context"
	"iter"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/find"
)

// Hit is a search result.
//
// Fields: What string; Context ID; Title string; Trashed bool; Message *Message; Branches []HitBranch; Field, Snippet string; Match struct{From, To int};
// Score float64. For more of each: go doc internal/find.Hit
type Hit = find.Hit

// Search returns the hits, reading in short transactions. It finds everything that was stored before it began: documents that are not in the index yet it
// reads. It returns ErrInvalid for a query without words and for a regular expression that does not compile.
func (s *Store) Search(ctx context.Context, o record.SearchOptions) iter.Seq2[*Hit, error] {
	return find.Search(ctx, s.at(), o)
}
