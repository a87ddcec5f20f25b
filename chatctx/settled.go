package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/kv"
)

// Settled is the context as Settle would leave it: what came of a reply on a branch ("" the active one) whose program has died stands at the end of the branch, unfinished. It is for reading: nothing is written, the branch's
// revision is the one that it has, and changes fail with ErrReadOnly.
func (c *ChatContext) Settled(branchName string) *ChatContext {
	at := *c.store.at
	at.DB = &settledDB{DB: at.DB, of: c, branch: branchName}
	return &ChatContext{ID: c.ID, store: &Store{&at}}
}

// settledDB is an engine whose Views see a branch settled.
type settledDB struct {
	kv.DB
	of     *ChatContext
	branch string
}

func (d *settledDB) Update(context.Context, func(kv.RwTx) error) error { return kv.ErrReadOnly }

func (d *settledDB) View(ctx context.Context, fn func(kv.Tx) error) error {
	return d.DB.View(ctx, func(tx kv.Tx) error {
		settled := kv.Overlay(tx)
		if err := d.settle(settled); err != nil {
			return err
		}
		return fn(settled)
	})
}

// settle is what Settle writes, but for the revision.
func (d *settledDB) settle(tx kv.RwTx) error {
	s := d.of.store.at
	t, err := journal.BeginAt(s, tx, d.of.ID)
	if err != nil {
		return err
	}
	if t.Target, err = t.Branch(d.branch); err != nil {
		return err
	}
	holder, err := view.ClaimOf(tx, t.ID, t.Target.ID)
	if err != nil || holder == nil || !holder.Dead(s.Now()) {
		return err
	}
	before := t.Target.Revision
	if _, _, err := settleReply(t, t.Target); err != nil {
		return err
	}
	if _, err := t.Finish(); err != nil {
		return err
	}
	t.Target.Revision = before
	return branch.Put(tx, t.ID, t.Target)
}
