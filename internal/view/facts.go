package view

import (
	"context"
	"iter"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// factBatch is how many messages one transaction reads.
const factBatch = 1000

// Facts returns what is known of each message of the context, by id, including those that were rewound away or dropped, those of removed branches, and
// summaries. Messages are read in short transactions. A damaged message is nil with its error, and the others follow.
func Facts(ctx context.Context, c *base.Conversation) iter.Seq2[*record.Fact, error] {
	return func(yield func(*record.Fact, error) bool) {
		of, err := writersOf(ctx, c)
		if err != nil {
			yield(nil, err)
			return
		}
		type line struct {
			fact *record.Fact
			err  error
		}
		var last pool.ID
		for more := true; more; {
			var batch []line
			err := At(ctx, c, func(tx kv.Tx, _ *base.ContextRecord) error {
				batch, more = batch[:0], false
				return poolstore.ScanFacts(tx, c.ID, last, func(id pool.ID, f *pool.Facts, err error) error {
					if len(batch) == factBatch {
						more = true
						return kv.ErrStop
					}
					last = id
					if f == nil {
						batch = append(batch, line{nil, err})
						return nil
					}
					batch = append(batch, line{of.fact(f), nil})
					return nil
				})
			})
			for _, l := range batch {
				if !yield(l.fact, l.err) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// writers maps segments to the branches that write them, and loose messages to the branches that have them.
type writers struct {
	segments map[uint64]*branch.Branch
	loose    map[pool.ID]*branch.Branch
}

func writersOf(ctx context.Context, c *base.Conversation) (*writers, error) {
	w := &writers{map[uint64]*branch.Branch{}, map[pool.ID]*branch.Branch{}}
	err := At(ctx, c, func(tx kv.Tx, _ *base.ContextRecord) error {
		return branchstore.All(tx, c.ID, func(b *branch.Branch) error {
			if b.Segment != 0 {
				w.segments[b.Segment] = b
			}
			for i := range b.Sessions {
				w.has(b, b.Sessions[i].Summary)
				for _, d := range b.Sessions[i].Digests {
					w.has(b, d.Message)
				}
			}
			return nil
		})
	})
	return w, err
}

// has records that a branch has a loose message. A fork has those of its origin: the older branch counts.
func (w *writers) has(b *branch.Branch, id pool.ID) {
	if was := w.loose[id]; id != (pool.ID{}) && (was == nil || b.Created < was.Created) {
		w.loose[id] = b
	}
}

func (w *writers) fact(f *pool.Facts) *record.Fact {
	out := &record.Fact{Facts: *f}
	b := w.loose[f.ID]
	if b == nil {
		b = w.segments[f.Home.Segment]
	}
	if b != nil {
		out.Branch, out.Removed = b.Name, b.Removed != 0
	}
	return out
}
