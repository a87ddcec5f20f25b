package chatctx

import (
	"context"
	"errors"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/view"
)

// Asking is a question to a model apart from a conversation, for example for a summary, while the answer is awaited: what it takes is stored as it comes. Batch.PutLoose
// and Ending.Loose of a message under its id end it. If its program dies, SettleDead and the next reply of the conversation put what Save stored last into the pool.
// Several goroutines may use it at the same time.
type Asking struct {
	ID      ID
	context *ChatContext
}

// BeginAsking stores that a question is asked. took is the message that records what the answer takes, so far nothing but the model; it needs an id.
func (c *ChatContext) BeginAsking(ctx context.Context, took *Message) (*Asking, error) {
	a := &Asking{took.ID, c}
	return a, a.save(ctx, took, true)
}

// Save renews the claim and, unless it is nil, stores what the answer took so far, under the id of the question. After the end it does nothing.
func (a *Asking) Save(ctx context.Context, took *Message) error { return a.save(ctx, took, false) }

func (a *Asking) save(ctx context.Context, took *Message, begin bool) (err error) {
	var raw []byte
	if took != nil {
		m := *took
		m.ID = a.ID
		if raw, err = a.context.store.encodePartial(&m); err != nil {
			return err
		}
	}
	return a.change(ctx, func(t *journal.Txn) error { return t.KeepAsking(a.ID, raw, begin) })
}

// Drop ends a question that took nothing.
func (a *Asking) Drop(ctx context.Context) error {
	return a.change(ctx, func(t *journal.Txn) error { return t.EndAsking(a.ID) })
}

func (a *Asking) change(ctx context.Context, do func(*journal.Txn) error) error {
	c := a.context
	return c.store.at().Update(view.Lane(ctx, c.store.at(), c.ID), func(tx kv.RwTx) error {
		t, err := journal.BeginAt(c.store.at(), tx, c.ID)
		if errors.Is(err, ErrNotFound) {
			return nil // purged meanwhile
		}
		if err != nil {
			return err
		}
		return do(t)
	})
}

// settleAskings puts into the pool what questions of dead programs took.
func (c *ChatContext) settleAskings(ctx context.Context) error {
	var dead []ID
	err := view.At(ctx, c.at(), func(tx kv.Tx, _ *base.ContextRecord) (err error) {
		dead, err = journal.DeadAskings(tx, c.ID, c.store.at().Now())
		return err
	}, kv.In(base.ClaimBucket, kv.Prefix(c.ID[:])))
	if err != nil || len(dead) == 0 {
		return err
	}
	return (&Asking{context: c}).change(ctx, (*journal.Txn).SettleAskings)
}
