package view

import (
	"context"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/pool"
)

// between reads two branches and how many messages both begin with.
func between(ctx context.Context, c *base.Conversation, a, b string, fn func(tx kv.Tx, left, right *branch.Branch, n int) error) error {
	return At(ctx, c, func(tx kv.Tx, rec *base.ContextRecord) error {
		left, err := BranchOf(tx, c.ID, rec, a)
		if err != nil {
			return err
		}
		right, err := BranchOf(tx, c.ID, rec, b)
		if err != nil {
			return err
		}
		n, err := branchstore.Shared(tx, c.ID, left.Pieces, right.Pieces)
		if err != nil {
			return err
		}
		return fn(tx, left, right, n)
	})
}

// DiffSize is about how many bytes of memory the messages take that Diff reads.
func DiffSize(ctx context.Context, c *base.Conversation, a, b string) (size int, err error) {
	err = between(ctx, c, a, b, func(tx kv.Tx, left, right *branch.Branch, n int) error {
		size = 0
		err := addSizes(tx, c.ID, left, n, branchstore.Len(left), &size)
		if err == nil {
			err = addSizes(tx, c.ID, right, n, branchstore.Len(right), &size)
		}
		return err
	})
	return size, err
}

// Diff compares the histories of two branches.
func Diff(ctx context.Context, c *base.Conversation, a, b string) (*record.Difference, error) {
	var d *record.Difference
	err := between(ctx, c, a, b, func(tx kv.Tx, left, right *branch.Branch, n int) (err error) {
		d = &record.Difference{A: left.Name, B: right.Name}
		if n > 0 {
			page, err := ReadEntries(tx, c.ID, left, n, n)
			if err != nil {
				return err
			}
			d.Ancestor = page[0]
		}
		if d.OnlyA, err = ReadEntries(tx, c.ID, left, n+1, branchstore.Len(left)); err != nil {
			return err
		}
		if d.OnlyB, err = ReadEntries(tx, c.ID, right, n+1, branchstore.Len(right)); err != nil {
			return err
		}
		d.OnlyA, d.OnlyB = without(d.OnlyA, d.OnlyB), without(d.OnlyB, d.OnlyA)
		return nil
	})
	return d, err
}

// without returns the entries whose messages are not among others: a merge may have brought one further on.
func without(entries, others []*pool.Entry) []*pool.Entry {
	there := make(map[pool.ID]bool, len(others))
	for _, e := range others {
		there[e.ID] = true
	}
	var own []*pool.Entry
	for _, e := range entries {
		if !there[e.ID] {
			own = append(own, e)
		}
	}
	return own
}
