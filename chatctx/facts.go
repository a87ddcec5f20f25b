package chatctx

import (
	"context"
	"iter"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/view"
)

// Facts returns what is known of each message of the context, by id, including those that were rewound away or dropped, those of removed branches, and
// summaries. Messages are read in short transactions. A damaged message is nil with its error, and the others follow.
func (c *ChatContext) Facts(ctx context.Context) iter.Seq2[*record.Fact, error] {
	return view.Facts(ctx, c.at())
}
