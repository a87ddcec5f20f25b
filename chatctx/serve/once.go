package serve

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"net/http"
	"sync"

	"github.com/chatctx/chatctx/chatctx"
)

// Limits of the answers that are kept for requests that come again.
const (
	keptAnswers = 1000
	keptBytes   = 64 << 20
)

// keys are answers to requests with an idempotency key: one that comes again gets the answer of the first, and waits for it. The last of them hold as long as the server; those of
// messages.append are kept in the store besides, for a day.
type keys struct {
	mu    sync.Mutex
	all   map[[32]byte]*once
	order []*once // those that ended, oldest first
	size  int
}

// once is a request that is to be done once.
type once struct {
	key    [32]byte
	params [32]byte
	body   hash.Hash // of the bytes that it brought
	done   chan struct{}
	ok     bool // there is something to give to one that comes again
	outcome
}

// outcome is what came of a request.
type outcome struct {
	tag   string // of what the answer shows
	event string // the last event of a stream; "": there was none
	raw   []byte // the JSON of the answer, or of that event
	err   error  // in place of all
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
			o = &once{key: id, params: sum, body: sha256.New(), done: make(chan struct{})}
			k.put(o)
			k.mu.Unlock()
			return o, false, nil
		}
		k.mu.Unlock()
		if was.params != sum {
			return nil, false, errOtherRequest
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

var errOtherRequest = &chatctx.ConflictError{Text: "the idempotency key was used for another request"}

func (k *keys) put(o *once) {
	if k.all == nil {
		k.all = map[[32]byte]*once{}
	}
	k.all[o.key] = o
}

// trim forgets the oldest answers where there are too many. Requests that run are not among them: they are never forgotten.
func (k *keys) trim() {
	for len(k.order) > 1 && (len(k.order) > keptAnswers || k.size > keptBytes) {
		k.size -= len(k.order[0].raw)
		delete(k.all, k.order[0].key)
		k.order = k.order[1:]
	}
}

// end keeps what came of a request; one that did nothing is forgotten, so that it can be tried again.
func (k *keys) end(o *once, ok bool, out outcome) {
	if o == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if o.ok = ok; ok {
		o.outcome = out
		k.order = append(k.order, o)
		k.size += len(out.raw)
		k.trim()
	} else {
		delete(k.all, o.key)
	}
	close(o.done)
}

// again answers a request that came before. Bytes that it brings have to be those of the first time.
func (o *once) again(w http.ResponseWriter, m *method, body io.Reader) error {
	if m.upload {
		h := sha256.New()
		if _, err := io.Copy(h, body); err != nil {
			return err
		}
		if string(h.Sum(nil)) != string(o.body.Sum(nil)) {
			return errOtherRequest
		}
	}
	w.Header().Set("Idempotency-Replayed", "true")
	switch {
	case o.err != nil:
		return o.err
	case o.event != "":
		return (&reply{w: w, m: m}).tell(o.event, json.RawMessage(o.raw))
	}
	sendJSON(w, o.tag, o.raw)
	return nil
}

// contextOf is a context that ends with either of two.
func contextOf(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(a)
	stop := context.AfterFunc(b, func() { cancel(context.Canceled) })
	return ctx, func() { stop(); cancel(nil) }
}
