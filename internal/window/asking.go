package window

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

// renewAfter is how often the claim of a question is renewed, well within its life of a minute.
const renewAfter = 20 * time.Second

// asking stores what the answer to a question takes while it comes.
type asking struct {
	ctx  context.Context // without an interrupt
	c    *chatctx.ChatContext
	kind string

	mu     sync.Mutex
	stored *chatctx.Asking // nil before the first call of keep
	took   *pool.Message   // what is stored
	stop   func()
}

// keep is the Took of the question's prompt.
func (k *asking) keep(reply *pool.Message) (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.took = receipt(reply, k.kind)
	if k.stored != nil {
		k.took.ID = k.stored.ID
		return k.stored.Save(k.ctx, k.took)
	}
	if k.stored, err = k.c.BeginAsking(k.ctx, k.took); err != nil {
		return err
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go k.renew(k.stored, end, ended)
	k.stop = func() {
		close(end)
		<-ended
	}
	return nil
}

// renew keeps the claim until end is closed.
func (k *asking) renew(stored *chatctx.Asking, end, ended chan struct{}) {
	defer close(ended)
	ticker := time.NewTicker(renewAfter)
	defer ticker.Stop()
	for {
		select {
		case <-end:
			return
		case <-ticker.C:
			_ = stored.Save(k.ctx, nil) // the store may be held for long; the next time may do
		}
	}
}

// complete asks a model. It returns the reply and what it took, which is stored then, for the caller to put into the pool; both are nil if nothing came.
func complete(ctx context.Context, c *chatctx.ChatContext, m enhancer.Completer, q Question) (reply, paid *pool.Message, err error) {
	k := &asking{ctx: context.WithoutCancel(ctx), c: c, kind: q.Kind}
	p := enhancer.Prompt{System: q.System, Text: q.Prompt, Limit: q.Limit}
	if c != nil {
		p.Took = k.keep
	}
	if reply, err = m.Complete(ctx, p); reply != nil {
		paid = receipt(reply, q.Kind)
	}
	if c != nil {
		if failed := k.end(paid, ctx.Err() != nil); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return reply, paid, err
}

// end stores what an answer took, or ends a question without one; whether one that was stopped was paid nobody knows, so it is counted without figures.
func (k *asking) end(paid *pool.Message, stopped bool) error {
	if k.stored != nil {
		k.stop()
	}
	switch {
	case paid != nil && k.stored != nil && k.stored.ID == paid.ID:
		return k.stored.Save(k.ctx, paid)
	case paid != nil:
		_, err := k.c.BeginAsking(k.ctx, paid)
		return errors.Join(err, k.drop())
	case stopped && k.stored != nil:
		return putLoose(k.ctx, k.c, k.took)
	}
	return k.drop()
}

func (k *asking) drop() error {
	if k.stored == nil {
		return nil
	}
	return k.stored.Drop(k.ctx)
}
