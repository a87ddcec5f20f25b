package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/provider/binding"
	"github.com/chatctx/chatctx/pool"
)

// A running reply checks every lookAfter whether it still has its claim. Every saveEvery times, so every two seconds, it renews the claim and stores what has
// arrived. The first words are stored at the first check after they arrived, so that an early interrupt loses only the last ones.
const (
	lookAfter = 500 * time.Millisecond
	saveEvery = 4
)

// ask sends a request and reads the reply. With an error the message is what arrived, or nil.
func (s *sending) ask(ctx context.Context, req *Request) (*chatctx.Message, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	k := &keeper{reply: s.reply, id: pool.NewID(), begun: pool.Now(), req: req}
	stopKeeping := k.keep(ctx, s.ticks, cancel)
	m, err := k.read(ctx, func(d wire.Delta) { s.show(Event{Delta: &d}) })
	stopKeeping()
	if cause := context.Cause(ctx); errors.Is(cause, chatctx.ErrStopped) {
		return nil, cause
	}
	if m != nil {
		k.complete(m)
	}
	return m, err
}

func (t *Turn) ticks() (<-chan time.Time, func()) {
	if t.tick != nil {
		return t.tick()
	}
	ticker := time.NewTicker(lookAfter)
	return ticker.C, ticker.Stop
}

// keeper keeps the claim while a reply arrives.
type keeper struct {
	reply  *chatctx.Reply
	req    *Request
	id     chatctx.ID // of the future message
	begun  pool.Time
	stream atomic.Pointer[wire.Stream]
	saved  bool // a part of it is stored
}

func (k *keeper) read(ctx context.Context, show func(wire.Delta)) (*chatctx.Message, error) {
	stream, err := k.req.client.Send(ctx, k.req.wire)
	if err != nil {
		return nil, err
	}
	k.stream.Store(stream)
	return stream.Read(show)
}

// keep starts to watch the claim, and returns a function that ends it.
func (k *keeper) keep(ctx context.Context, ticks func() (<-chan time.Time, func()), cancel context.CancelCauseFunc) func() {
	times, stopTimes := ticks()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 1; ; n++ {
			select {
			case <-end:
				return
			case <-times:
			}
			if err := k.look(ctx, n%saveEvery == 0); err != nil {
				cancel(err)
				return
			}
		}
	}()
	return func() {
		stopTimes()
		close(end)
		<-ended
	}
}

// look returns ErrStopped if the claim is gone, and chatctx.ErrClosed if the store is closed. It ignores other errors, for example of a file that is held for
// long, since they may pass.
func (k *keeper) look(ctx context.Context, renew bool) error {
	err := k.reply.Held(ctx)
	if err == nil && (renew || !k.saved) {
		if m := k.partial(); renew || m != nil {
			err = k.reply.Save(ctx, m)
			k.saved = m != nil && err == nil
		}
	}
	switch {
	case errors.Is(err, chatctx.ErrNotFound):
		return fmt.Errorf("%w: %w", chatctx.ErrStopped, err)
	case errors.Is(err, chatctx.ErrStopped), errors.Is(err, chatctx.ErrClosed):
		return err
	}
	return nil
}

// partial returns what has arrived, as the message that a crash would leave.
func (k *keeper) partial() *chatctx.Message {
	stream := k.stream.Load()
	if stream == nil {
		return nil
	}
	m := stream.Partial()
	if m != nil {
		k.complete(m)
		m.Unfinished = true
	}
	return m
}

// complete sets the fields of a reply that the stream does not have.
func (k *keeper) complete(m *chatctx.Message) {
	m.ID, m.Created, m.Meta.Completed = k.id, k.begun, pool.Now()
	m.Meta.Model = cmp.Or(m.Meta.Model, k.req.Model)
	binding.Bind(m, k.req.sum)
	for i := range m.Calls {
		if name, ok := k.req.names[m.Calls[i].Tool]; ok {
			m.Calls[i].Tool = name
		}
	}
}
