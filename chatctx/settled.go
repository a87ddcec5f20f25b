package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/view"
)

// Settled returns the context as SettleDead would leave it: what had arrived of a reply whose program has died is at the end of its branch, unfinished, and what
// a question took is in the pool.
// It is for reading: nothing is written, branches have their present revisions, and changes fail with ErrReadOnly. If no program died, it is c itself.
func (c *ChatContext) Settled(ctx context.Context) (*ChatContext, error) {
	var dead []ID
	err := view.At(ctx, c.at(), func(tx kv.Tx, _ *base.ContextRecord) (err error) {
		if dead, err = c.dead(tx); err == nil && len(dead) == 0 {
			dead, err = journal.DeadAskings(tx, c.ID, c.store.at().Now())
		}
		return err
	}, kv.In(base.ClaimBucket, kv.Prefix(c.ID[:])))
	if err != nil || len(dead) == 0 {
		return c, err
	}
	at := *c.store.at()
	at.DB = &settledDB{DB: at.DB, of: c}
	return &ChatContext{ID: c.ID, store: storeOf(&at)}, nil
}

// dead finds the branches with a reply whose program has died.
func (c *ChatContext) dead(tx kv.Tx) (dead []ID, err error) {
	now := c.store.at().Now()
	err = tx.Scan(base.ClaimBucket, kv.Prefix(c.ID[:]), func(key, _ []byte) error {
		if len(key) != 2*len(ID{}) {
			return nil // a call's
		}
		on := ID(key[len(c.ID):])
		claim, err := view.ClaimOf(tx, c.ID, on)
		if claim != nil && base.Dead(claim, now) {
			dead = append(dead, on)
		}
		return err
	})
	return dead, err
}

// settledDB is an engine whose Views see a context settled.
type settledDB struct {
	kv.DB
	of *ChatContext
}

func (d *settledDB) Update(context.Context, func(kv.RwTx) error) error { return kv.ErrReadOnly }

func (d *settledDB) View(ctx context.Context, fn func(kv.Tx) error) error {
	return d.DB.View(ctx, func(tx kv.Tx) error {
		settled := kv.Overlay(tx)
		dead, err := d.of.dead(tx)
		for _, on := range dead {
			if err == nil {
				err = d.settle(settled, on)
			}
		}
		if err == nil {
			err = d.settleAskings(settled)
		}
		if err != nil {
			return err
		}
		return fn(settled)
	})
}

// settle writes what Settle does, except the revision.
func (d *settledDB) settle(tx kv.RwTx, on ID) error {
	t, err := journal.BeginAt(d.of.store.at(), tx, d.of.ID)
	if err != nil {
		return err
	}
	l, err := t.Load(on)
	if err != nil || l == nil || l.Removed != 0 {
		return err
	}
	t.Target = l.Branch
	before := t.Target.Revision
	if _, _, err := settleReply(t, t.Target); err != nil {
		return err
	}
	if _, err := t.Finish(); err != nil {
		return err
	}
	t.Target.Revision = before
	return branchstore.Put(tx, t.ID, t.Target)
}

// settleAskings writes what SettleDead does about questions.
func (d *settledDB) settleAskings(tx kv.RwTx) error {
	t, err := journal.BeginAt(d.of.store.at(), tx, d.of.ID)
	if err == nil {
		err = t.SettleAskings()
	}
	return err
}
