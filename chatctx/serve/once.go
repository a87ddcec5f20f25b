package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"sync"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/codec"
	"github.com/chatctx/chatctx/internal/operation"
)

// The limits of the answers that are kept for repeated requests.
const (
	keptAnswers = 1000
	keptBytes   = 16 << 20
)

// keys has the answers to requests with an idempotency key: a repeated request waits for the first one and gets its answer. The newest answers are kept as long
// as the server runs; those of messages.append are also in the store, for a day.
type keys struct {
	mu    sync.Mutex
	all   map[[32]byte]*once
	order []*once // those that ended, oldest first
	size  int
}

// once is a request that must happen only once.
type once struct {
	key    [32]byte
	params [32]byte
	body   hash.Hash // of the request's bytes
	done   chan struct{}
	ok     bool // there is an answer for a repeated request
	outcome
}

// outcome is the result of a request.
type outcome struct {
	revision *uint64 // of the data in the answer
	raw      encoded // the answer's JSON
	err      error   // instead of an answer
	begun    bool    // events were sent before
}

// begin returns the earlier outcome for a key, or begins the request; then the caller must call end. For a request without a key it returns nil.
func (k *keys) begin(ctx context.Context, m *method, who Caller, key string, params []byte) (o *once, known bool, err error) {
	if key == "" {
		return nil, false, nil
	}
	if len(key) > chatctx.MostKey || !utf8.ValidString(key) {
		return nil, false, base.Invalid("a key has at most %d bytes, of UTF-8", chatctx.MostKey)
	}
	id, sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", m.Name, who.Name, key)), sha256.Sum256(params)
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

var errOtherRequest = &record.ConflictError{Text: "the idempotency key was used for another request"}

func (k *keys) put(o *once) {
	if k.all == nil {
		k.all = map[[32]byte]*once{}
	}
	k.all[o.key] = o
}

// trim removes the oldest answers if there are too many. Running requests are not among them and stay.
func (k *keys) trim() {
	for len(k.order) > 1 && (len(k.order) > keptAnswers || k.size > keptBytes) {
		k.size -= len(k.order[0].raw)
		delete(k.all, k.order[0].key)
		k.order = k.order[1:]
	}
}

// end keeps the outcome of a request; one that did nothing is forgotten, so that it can be tried again.
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

// same returns an error if a repeated request has other bytes than the first.
func (o *once) same(m *method, body io.Reader) error {
	if !m.Upload {
		return nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, body); err != nil {
		return err
	}
	if string(h.Sum(nil)) != string(o.body.Sum(nil)) {
		return errOtherRequest
	}
	return nil
}

// do runs a request, once for its key; again reports that it ran before.
func (s *Server) do(r *request, m *method, in any) (done outcome, again bool) {
	key := ""
	if k, ok := in.(interface{ OnlyOnce() string }); ok {
		key = k.OnlyOnce()
	}
	o, known, err := s.keys.begin(r.Ctx, m, r.who, key, fmt.Appendf(nil, "%v %s", r.match, r.params))
	if known {
		err = o.same(m, r.body)
	}
	if err != nil {
		return outcome{err: err}, false
	}
	if known {
		return o.outcome, true
	}
	if o != nil {
		r.body = io.TeeReader(r.body, o.body)
		defer func() { s.keys.end(o, done.err == nil || m.Shape == operation.Events && !m.Goes, done) }() // what a stream did stays done, even if it failed in the end
	}
	done = s.run(r, m, in)
	done.begun = r.begun
	return done, false
}

// run runs a request and returns its answer as JSON. Before it reads anything it reserves room for what it may read.
func (s *Server) run(r *request, m *method, in any) outcome {
	err := r.lease.want(r.Ctx, m.pages()*s.limits.page)
	if err == nil {
		err = r.expect(in)
	}
	if err == nil && m.brief() {
		err = context.Cause(r.Ctx)
	}
	if err == nil && m.brief() {
		r.Ctx = context.WithoutCancel(r.Ctx)
	}
	var v any
	if err == nil {
		v, err = m.run(r, in)
	}
	if errors.Is(context.Cause(r.Ctx), ErrNoAccess) {
		err = ErrNoAccess
	}
	if err != nil {
		return outcome{err: err}
	}
	raw, err := encode(v, r.Size)
	if err == nil {
		err = r.lease.is(len(raw), m.Verb == http.MethodPost)
	}
	return outcome{revision: r.Revision, raw: raw, err: err}
}

// pages returns the room that a request reserves before it runs, in pages of answers. Only methods that read have large answers; those that write bytes hold
// some of them at a time.
func (m *method) pages() int {
	switch {
	case m.Verb != http.MethodGet || m.Shape == operation.Events:
		return 0
	case m.Shape == operation.Content:
		return 2
	}
	return 1
}

// contextOf returns a context that ends with either of two.
func contextOf(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(a)
	stop := context.AfterFunc(b, func() { cancel(context.Canceled) })
	return ctx, func() { stop(); cancel(nil) }
}

// encoded is JSON that this package has written.
type encoded []byte

// encode returns an answer's JSON, in a buffer for about size bytes.
func encode(v any, size int) (encoded, error) {
	return codec.AppendAnswer(make([]byte, 0, size+size/16+1024), v)
}
