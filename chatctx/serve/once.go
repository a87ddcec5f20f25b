package serve

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/chatctx/chatctx/chatctx"
)

// keptAnswers is how many answers are kept for requests that come again.
const keptAnswers = 1000

// keys are answers to requests with an idempotency key: one that comes again gets the answer of the first, and waits for it. They hold as long as the server; those of
// messages.append are kept in the store besides, for a day.
type keys struct {
	mu    sync.Mutex
	all   map[[32]byte]*once
	order [][32]byte
}

// once is a request that is to be done once.
type once struct {
	key    [32]byte
	params [32]byte
	done   chan struct{}
	ok     bool
	tag    string
	raw    []byte
}

// begin finds what a request with a key gave before, or begins it: then the caller ends it. A request without a key is nil and never known.
func (k *keys) begin(ctx context.Context, m *method, who Caller, key string, params json.RawMessage) (o *once, known bool, err error) {
	if key == "" {
		return nil, false, nil
	}
	id, sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", m.name, who.Name, key)), sha256.Sum256(params)
	for {
		k.mu.Lock()
		was := k.all[id]
		if was == nil {
			o = &once{key: id, params: sum, done: make(chan struct{})}
			k.put(o)
			k.mu.Unlock()
			return o, false, nil
		}
		k.mu.Unlock()
		if was.params != sum {
			return nil, false, &chatctx.ConflictError{Text: "the idempotency key was used for another request"}
		}
		select {
		case <-was.done:
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
		if was.ok {
			return was, true, nil
		}
	}
}

func (k *keys) put(o *once) {
	if k.all == nil {
		k.all = map[[32]byte]*once{}
	}
	if len(k.order) >= keptAnswers {
		delete(k.all, k.order[0])
		k.order = k.order[1:]
	}
	k.all[o.key], k.order = o, append(k.order, o.key)
}

// end keeps the answer; one that failed is forgotten, so that it can be tried again.
func (k *keys) end(o *once, ok bool, tag string, raw []byte) {
	if o == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if o.ok, o.tag, o.raw = ok, tag, raw; !ok && k.all[o.key] == o {
		delete(k.all, o.key)
	}
	close(o.done)
}

// contextOf is a context that ends with either of two.
func contextOf(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(a)
	stop := context.AfterFunc(b, func() { cancel(context.Canceled) })
	return ctx, func() { stop(); cancel(nil) }
}
