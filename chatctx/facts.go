package chatctx

import (
	"context"
	"iter"

	"github.com/chatctx/chatctx/chatctx/internal/view"
)

// Fact is what is known about a message, without its text.
//
// Fields: pool.Facts (embedded); Branch string; Removed bool. For more of each: go doc chatctx/internal/view.Fact
type Fact = view.Fact

// Facts returns what is known of each message of the context, by id, including those that were rewound away or dropped, those of removed branches, and
// summaries. Messages are read in short transactions. A damaged message is nil with its error, and the others follow.
func (c *ChatContext) Facts(ctx context.Context) iter.Seq2[*Fact, error] {
	return view.Facts(ctx, c.at())
}
