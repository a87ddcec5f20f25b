package chatctx

import (
	"context"
	"iter"

	"github.com/chatctx/chatctx/chatctx/internal/find"
)

// SearchOptions is a query. A zero field does not narrow it.
//
// Fields: Text string; Beginnings, Parts bool; Regexp, Context string; Labels []string; Role pool.Role; Model, Tool string; Since, Until pool.Time; Trash,
// Unheld, Best, First bool; Limit int. For more of each: go doc chatctx/internal/find.SearchOptions
type SearchOptions = find.SearchOptions

// Hit is a search result.
//
// Fields: What string; Context ID; Title string; Trashed bool; Message *Message; Branches []HitBranch; Field, Snippet string; Match struct{From, To int};
// Score float64. For more of each: go doc chatctx/internal/find.Hit
type Hit = find.Hit

// HitBranch is a branch that holds a message, with its position from 1, or a branch whose prompt was found, with position 0.
//
// Fields: Name string; Position int. For more of each: go doc chatctx/internal/find.HitBranch
type HitBranch = find.HitBranch

// Search returns the hits, reading in short transactions. It finds everything that was stored before it began: documents that are not in the index yet it
// reads. It returns ErrInvalid for a query without words and for a regular expression that does not compile.
func (s *Store) Search(ctx context.Context, o SearchOptions) iter.Seq2[*Hit, error] {
	return find.Search(ctx, s.at, o)
}
