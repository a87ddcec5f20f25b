package chatctx

import (
	"context"
	"iter"
	"math"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
)

// Snapshot is a branch as it was at one moment. It holds no file, no lock and little memory: entries and messages never change, so the branch's pieces are
// enough. Writers neither change nor wait for it. What purge or gc removes meanwhile is ErrPurged for whoever reads it here, and the rest can still be read.
type Snapshot struct {
	Info *record.BranchInfo
	// Claim is the claim on the branch's reply, nil if there is none. A dead claim waits for Settle.
	Claim *record.Claim

	// These fields have values only in a snapshot of Look.

	Tail   []*Entry      // its last messages
	Left   *Entry        // what a dead program left of a reply, as Settle would put it at the end; nil: nothing
	Queued []*Entry      // messages that wait for their place after the running reply
	Marks  map[ID]string // of all messages of the context

	ctx    *ChatContext
	branch *branch.Branch
}

func (c *ChatContext) snapshot(b *view.BranchInfo) *Snapshot {
	return &Snapshot{Info: branchInfo(b), ctx: c, branch: &b.Branch}
}

// Snapshot returns a branch as it is now; "" means the active one.
func (c *ChatContext) Snapshot(ctx context.Context, branchName string) (*Snapshot, error) {
	var snap *Snapshot
	err := view.At(ctx, c.at(), func(tx kv.Tx, rec *base.ContextRecord) (err error) {
		snap, err = c.take(tx, rec, branchName, func(*branch.Branch) []kv.Key { return nil })
		return err
	}, view.BranchKeys(c.ID, branchName)...)
	return snap, err
}

// take is Snapshot in a transaction. It also fetches the keys that also returns.
func (c *ChatContext) take(tx kv.Tx, rec *base.ContextRecord, branchName string, also func(*branch.Branch) []kv.Key) (*Snapshot, error) {
	b, err := view.BranchOf(tx, c.ID, rec, branchName)
	if err != nil {
		return nil, err
	}
	keys := append(view.DescribedKeys(c.ID, b), kv.Key{Bucket: base.ClaimBucket, Key: base.Under(c.ID, b.ID[:]...)})
	if err := kv.Fetch(tx, append(keys, also(b)...)...); err != nil {
		return nil, err
	}
	info, err := view.DescribeBranch(tx, c.ID, rec, b)
	if err != nil {
		return nil, err
	}
	snap := c.snapshot(info)
	snap.Claim, err = view.ClaimOf(tx, c.ID, b.ID)
	return snap, err
}

// Look returns a snapshot of a branch ("" means the active one) that has the last messages and what belongs to its end. It writes nothing.
func (c *ChatContext) Look(ctx context.Context, branchName string, last int) (*Snapshot, error) {
	var out *Snapshot
	keys := append(view.BranchKeys(c.ID, branchName), view.TagsKey(c.ID), view.MarksKey(c.ID))
	err := view.At(ctx, c.at(), func(tx kv.Tx, rec *base.ContextRecord) error {
		from := 1
		snap, err := c.take(tx, rec, branchName, func(b *branch.Branch) []kv.Key {
			from = max(branchstore.Len(b)-last+1, 1)
			under := base.Under(c.ID, b.ID[:]...)
			return append(view.EntriesKeys(c.ID, b, from, branchstore.Len(b)), kv.Key{Bucket: base.PartialBucket, Key: under}, view.QueueKey(c.ID, b.ID))
		})
		if err != nil {
			return err
		}
		out = snap
		return out.readTail(tx, from)
	}, keys...)
	return out, err
}

// readTail reads what belongs to the end of the branch, with the messages from a position on.
func (s *Snapshot) readTail(tx kv.Tx, from int) error {
	id, b := s.ctx.ID, s.branch
	_, waiting, err := view.QueuedOn(tx, id, b.ID)
	if err != nil {
		return err
	}
	if s.Marks, err = view.Marks(tx, id); err != nil {
		return err
	}
	var ids []ID
	if from <= branchstore.Len(b) {
		if ids, err = view.IDsFrom(tx, id, b, from); err != nil {
			return err
		}
	}
	if err := kv.Fetch(tx, poolstore.MessageKeys(id, append(ids, waiting...))...); err != nil {
		return err
	}
	if len(ids) > 0 {
		if s.Tail, err = view.ReadEntries(tx, id, b, from, branchstore.Len(b)); err != nil {
			return err
		}
	}
	if s.Queued, err = view.QueueOf(tx, id, waiting); err != nil {
		return err
	}
	if s.Claim != nil && base.Dead(s.Claim, s.ctx.store.at().Now()) {
		s.Left, err = leftOn(tx, id, b)
	}
	return err
}

// view runs fn in a short reading transaction. Where fn meets a gap that purge or gc made, the error is ErrPurged.
func (s *Snapshot) view(ctx context.Context, fn func(kv.Tx) error) error {
	return s.ctx.store.at().DB.View(ctx, func(tx kv.Tx) error { return view.Purged(tx, s.ctx.ID, s.branch, fn(tx)) })
}

// Len returns the number of messages.
func (s *Snapshot) Len() int { return s.Info.Messages }

// Entries returns the messages at positions from to to, both included and counted from 1, or backwards if from is after to. A to of 0 means the last.
// Messages are read in batches, each in a short transaction, and nothing is held between them, so the caller may take its time. It returns ErrPurged if a
// message was removed for good since the snapshot was taken, and ErrDamaged if one is missing.
func (s *Snapshot) Entries(ctx context.Context, from, to int) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		if to <= 0 || to > s.Len() && from <= to {
			to = s.Len()
		}
		back := from > to && to > 0
		lo, hi := max(min(from, to), 1), min(max(from, to), s.Len())
		if !back && from > s.Len() {
			return
		}
		for lo <= hi {
			a, b := lo, min(lo+view.EntryBatch-1, hi)
			if back {
				a, b = max(hi-view.EntryBatch+1, lo), hi
			}
			most := view.StreamBytes
			if back {
				most = math.MaxInt // it would end before the first that is wanted
			}
			page, err := s.read(ctx, a, b, most)
			if err != nil {
				yield(nil, err)
				return
			}
			if back {
				slices.Reverse(page)
				hi = a - 1
			} else {
				lo = a + len(page)
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// Page returns Entries as a slice.
func (s *Snapshot) Page(ctx context.Context, from, to int) ([]*Entry, error) {
	var out []*Entry
	for e, err := range s.Entries(ctx, from, to) {
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// Turns returns the number of turns on the branch.
func (s *Snapshot) Turns(ctx context.Context) (int, error) {
	n := 0
	err := s.view(ctx, func(tx kv.Tx) (err error) {
		n, err = branchstore.Turns(tx, s.ctx.ID, s.branch.Pieces, s.Len())
		return err
	})
	return n, err
}

func (s *Snapshot) read(ctx context.Context, from, to, most int) ([]*Entry, error) {
	var page []*Entry
	err := s.view(ctx, func(tx kv.Tx) (err error) {
		page, err = view.ReadSome(tx, s.ctx.ID, s.branch, from, to, most)
		return err
	})
	return page, err
}

// IDs returns the ids of the whole history, in order.
func (s *Snapshot) IDs(ctx context.Context) ([]ID, error) {
	var ids []ID
	err := s.view(ctx, func(tx kv.Tx) (err error) {
		ids, err = branchstore.IDs(tx, s.ctx.ID, s.branch.Pieces)
		return err
	})
	return ids, err
}

// Find resolves a reference on this branch. A message of the context that the branch does not hold has the Position 0.
func (s *Snapshot) Find(ctx context.Context, ref record.Ref) (*Entry, error) {
	var e *Entry
	err := s.view(ctx, func(tx kv.Tx) error {
		id, pos, err := (view.Reader{Tx: tx, ID: s.ctx.ID}).Find(s.branch, ref)
		if err != nil {
			return err
		}
		if pos > 0 {
			page, err := view.ReadEntries(tx, s.ctx.ID, s.branch, pos, pos)
			if err == nil {
				e = page[0]
			}
			return err
		}
		m, err := poolstore.Get(tx, s.ctx.ID, id)
		if err == nil && m == nil {
			err = base.Damaged("message %s is missing", id)
		}
		if err != nil {
			return err
		}
		tags, err := view.TagsOf(tx, s.ctx.ID)
		if err != nil {
			return err
		}
		e = &Entry{Message: m, Tags: tags[id]}
		return view.FillCalls(tx, s.ctx.ID, m)
	})
	return e, err
}

// Place is like Find for a message that the branch must hold. If it does not, the error is a *RefError that names a branch that does.
func (s *Snapshot) Place(ctx context.Context, ref record.Ref) (*Entry, error) {
	e, err := s.Find(ctx, ref)
	if err != nil || e.Position > 0 {
		return e, err
	}
	return nil, s.view(ctx, func(tx kv.Tx) error {
		return (view.Reader{Tx: tx, ID: s.ctx.ID}).Elsewhere(s.branch, ref)
	})
}

// Locate resolves a reference like Find, without reading the message. It returns the message's id, its position, 0 if the branch does not hold it, and
// about how many bytes of memory it takes.
func (s *Snapshot) Locate(ctx context.Context, ref record.Ref) (id ID, position, size int, err error) {
	err = s.view(ctx, func(tx kv.Tx) error {
		if id, position, err = (view.Reader{Tx: tx, ID: s.ctx.ID}).Find(s.branch, ref); err != nil {
			return err
		}
		return poolstore.Sizes(tx, s.ctx.ID, []ID{id}, func(_, n int) error {
			size = n
			return nil
		})
	})
	return id, position, size, err
}

// Within returns how far Entries may read from one position towards another so that the messages take about most bytes of memory: the last position, and
// the bytes. The first message always counts.
func (s *Snapshot) Within(ctx context.Context, from, to, most int) (last, size int, err error) {
	err = s.view(ctx, func(tx kv.Tx) error {
		lo, hi := max(min(from, to), 1), min(max(from, to), s.Len())
		ids, err := branchstore.IDs(tx, s.ctx.ID, branchstore.Slice(s.branch.Pieces, lo-1, hi))
		if err != nil {
			return err
		}
		step := 1
		if from > to {
			slices.Reverse(ids)
			step = -1
		}
		last, size = from-step, 0
		return poolstore.Sizes(tx, s.ctx.ID, ids, func(i, n int) error {
			if i > 0 && size+n > most {
				return kv.ErrStop
			}
			last, size = last+step, size+n
			return nil
		})
	})
	return last, size, err
}

// Stretch is the result of a range: the positions From to To of a branch. To is less than From if the range is empty.
type Stretch struct {
	Snapshot *Snapshot
	From, To int
}

// Range resolves A..B: the messages after A up to and including B, on B's branch. Either end may be missing: then it is the beginning of B's branch or the
// head of A's. A need not be on B's branch: if it is on another, the range begins where B's branch leaves A's history. It returns nil if the reference is no
// range.
func (s *Snapshot) Range(ctx context.Context, ref record.Ref) (*Stretch, error) {
	var out *Stretch
	err := view.At(ctx, s.ctx.at(), func(tx kv.Tx, rec *base.ContextRecord) error {
		on, from, to, ok, err := (view.Reader{Tx: tx, ID: s.ctx.ID}).Range(s.branch, ref)
		if err != nil || !ok {
			return view.Purged(tx, s.ctx.ID, s.branch, err)
		}
		out = &Stretch{s, from, to}
		if on.ID == s.branch.ID {
			return nil
		}
		info, err := view.DescribeBranch(tx, s.ctx.ID, rec, on)
		if err == nil {
			out.Snapshot = s.ctx.snapshot(info)
		}
		return err
	})
	return out, err
}

// TreeBranch shows how a branch relates to the others: it leaves the branch Leaves, a number of the list counted from 1, after Shared messages. Both are 0
// if it shares none.
type TreeBranch struct {
	record.BranchInfo
	Leaves int
	Shared int
}

// Tree returns the branches in an order in which each leaves an earlier one of the list: the one with which it shares most, or the earliest of several.
func (c *ChatContext) Tree(ctx context.Context) ([]*TreeBranch, error) {
	var out []*TreeBranch
	err := view.At(ctx, c.at(), func(tx kv.Tx, rec *base.ContextRecord) error {
		infos, err := view.BranchInfos(tx, c.ID, rec)
		if err != nil {
			return err
		}
		out = out[:0]
		sharer := branchstore.NewSharer(tx, c.ID)
		for i, info := range infos {
			tb := &TreeBranch{BranchInfo: *branchInfo(info)}
			for k, before := range infos[:i] {
				if min(branchstore.Len(&before.Branch), branchstore.Len(&info.Branch)) <= tb.Shared { // it cannot share more
					continue
				}
				n, err := sharer.Shared(before.Pieces, info.Pieces)
				if err != nil {
					return err
				}
				if n > tb.Shared {
					tb.Leaves, tb.Shared = k+1, n
				}
			}
			out = append(out, tb)
		}
		return nil
	})
	return out, err
}
