package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/chatctx/chatctx/internal/jsontree"
)

// clock is a source of time, so that tests need not wait.
type clock interface {
	// Sleep returns after d, or earlier with the context's cause.
	Sleep(ctx context.Context, d time.Duration) error
	// AfterFunc calls f after d, unless the timer is stopped before.
	AfterFunc(d time.Duration, f func()) timer
}

// timer is the timer of AfterFunc, as a *time.Timer.
type timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

type systemClock struct{}

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (systemClock) AfterFunc(d time.Duration, f func()) timer { return time.AfterFunc(d, f) }

// Limits say how long to wait and how often to try. A zero field means its default, a negative one no limit (or no retry).
type Limits struct {
	Connect   time.Duration // to reach the provider; 10 s
	FirstByte time.Duration // from then until the answer begins; 10 min, since a local model may have to be loaded
	Stall     time.Duration // between two pieces of the answer; 5 min, since some models think in silence
	Retries   int           // after the first try; 2
	MaxWait   time.Duration // the longest wait between two tries; a provider that asks for more gets no retry. 60 s
}

func (l Limits) withDefaults() Limits {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&l.Connect, 10*time.Second)
	set(&l.FirstByte, 10*time.Minute)
	set(&l.Stall, 5*time.Minute)
	set(&l.MaxWait, time.Minute)
	l.Retries = cmp.Or(l.Retries, 2)
	return l
}

// Sender sends requests to one provider. Options.Sender makes it.
type Sender struct {
	Provider string
	Base     string // without a slash at its end
	Header   http.Header
	Key      string // kept to remove it from errors
	KeyName  string
	// Organisation is the one for which requests are made, "" for the account's own.
	Organisation string

	keyless string // the host that gets no key because nothing says that one goes there
	limits  Limits
	client  *http.Client
	clock   clock
	onRetry func(*Error, time.Duration)
}

// Ask is Stream with a body that Streaming completed.
func (s *Sender) Ask(ctx context.Context, path string, r Request, frames func(io.Reader) Frames, fold Fold, more json.RawMessage) (*Stream, error) {
	r, err := streaming(r, more)
	if err != nil {
		return nil, err
	}
	return s.Stream(ctx, path, r, frames, fold)
}

// Stream posts a body and returns its answer as a stream. frames reads a streamed answer, fold makes the message. It also accepts an answer in one piece, which
// a server may send even if a stream was requested.
func (s *Sender) Stream(ctx context.Context, path string, r Request, frames func(io.Reader) Frames, fold Fold) (*Stream, error) {
	resp, guard, err := s.do(ctx, http.MethodPost, path, r.Body, r.Header)
	if err != nil {
		return nil, err
	}
	body := &guarded{resp.Body, guard}
	kind := resp.Header.Get("Content-Type")
	if strings.HasPrefix(kind, "text/html") {
		body.Close()
		e := &Error{Kind: Network, Provider: s.Provider, Status: resp.StatusCode, RequestID: requestID(resp.Header), Message: s.host() + " answered with a web page"}
		return nil, e.without(s.Key)
	}
	st := &Stream{provider: s.Provider, key: s.Key, body: body, cause: guard.cause, fold: fold}
	if strings.HasPrefix(kind, "application/json") && (r.Whole || !lineFrames(frames)) {
		st.fold = wholeFold{fold}
		st.frames = &whole{body: body}
	} else {
		st.frames = frames(body)
	}
	return st, nil
}

// lineFrames reports whether frames reads JSON lines, which some servers label as JSON, and not server-sent events.
func lineFrames(frames func(io.Reader) Frames) bool {
	_, ok := frames(strings.NewReader("")).(*jsonLines)
	return ok
}

// JSON sends a request (GET if body is nil) and decodes the answer into v.
func (s *Sender) JSON(ctx context.Context, path string, h http.Header, body []byte, v any) error {
	method := http.MethodPost
	if body == nil {
		method = http.MethodGet
	}
	resp, guard, err := s.do(ctx, method, path, body, h)
	if err != nil {
		return err
	}
	b := &guarded{resp.Body, guard}
	defer b.Close()
	data, err := io.ReadAll(io.LimitReader(b, maxFrame))
	if err != nil {
		return s.unreachable(ctx, guard, err)
	}
	if err := Decode(data, v); err != nil {
		e := &Error{Kind: Network, Provider: s.Provider, Status: resp.StatusCode, Message: "the answer from " + s.host() + " is not JSON: " + plain(resp.StatusCode, data)}
		return e.without(s.Key)
	}
	return nil
}

// Count returns the number of input tokens of a body, from an endpoint that accepts only some of its members.
func (s *Sender) Count(ctx context.Context, path string, r Request, members ...string) (int64, error) {
	o, err := jsontree.ParseObject(r.Body)
	if err != nil {
		return 0, err
	}
	var v struct {
		Tokens int64 `json:"input_tokens"`
	}
	err = s.JSON(ctx, path, r.Header, o.Only(members...).Bytes(), &v)
	return v.Tokens, err
}

// do sends a request until a successful answer begins, as often as the limits allow. It tries again only what failed before the first byte of an answer.
func (s *Sender) do(ctx context.Context, method, path string, body []byte, h http.Header) (*http.Response, *guard, error) {
	for try := 0; ; try++ {
		resp, g, err := s.once(ctx, method, path, body, h)
		if err == nil {
			return resp, g, nil
		}
		var e *Error
		if !errors.As(err, &e) || !e.Temporary() || try >= s.limits.Retries {
			return nil, nil, err
		}
		wait := e.RetryAfter
		if wait == 0 {
			wait = backoff(try)
		}
		if s.limits.MaxWait >= 0 && wait > s.limits.MaxWait {
			return nil, nil, err
		}
		if s.onRetry != nil {
			s.onRetry(e, wait)
		}
		if err := s.clock.Sleep(ctx, wait); err != nil {
			return nil, nil, err
		}
	}
}

// backoff returns half a second, doubled with each try up to 8 s, less up to a quarter, so that many clients do not return at once.
func backoff(try int) time.Duration {
	d := min(500*time.Millisecond<<min(try, 10), 8*time.Second)
	return d - rand.N(d/4+1)
}

func (s *Sender) once(ctx context.Context, method, path string, body []byte, h http.Header) (*http.Response, *guard, error) {
	g := newGuard(ctx, s)
	req, err := http.NewRequestWithContext(g.ctx, method, s.Base+path, bytes.NewReader(body))
	if err != nil {
		g.stop()
		return nil, nil, &Error{Kind: Invalid, Provider: s.Provider, Message: "the base_url is not an address"}
	}
	for _, from := range []http.Header{s.Header, h} {
		for name, values := range from {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		defer g.stop()
		return nil, nil, s.unreachable(ctx, g, err)
	}
	if resp.StatusCode/100 == 2 {
		g.answered()
		return resp, g, nil
	}
	defer g.stop()
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	e := Classify(s.Provider, resp.StatusCode, resp.Header, text).without(s.Key)
	e.KeyName, e.Keyless = s.KeyName, s.keyless
	return nil, nil, e
}

// unreachable returns the error of a request without an answer. If ctx was cancelled, it is the context's cause.
func (s *Sender) unreachable(ctx context.Context, g *guard, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	e := &Error{Kind: Network, Provider: s.Provider, Err: err}
	var op *net.OpError
	var dns *net.DNSError
	switch cause := g.cause(); {
	case cause != nil:
		e.Err, e.Message = cause, fmt.Sprintf("%s: %v", s.host(), cause)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Message = s.host() + " closed the connection before the answer's end"
	case errors.As(err, &dns):
		e.Message = "there is no host " + dns.Name
	case errors.As(err, &op):
		e.Message = fmt.Sprintf("%s: %v", s.host(), op.Err)
	default:
		e.Message = redact(fmt.Sprintf("%s: %v", s.host(), unwrapURL(err)), s.Key)
	}
	return e
}

// guard ends a request whose answer does not begin, or does not go on, in time.
type guard struct {
	ctx    context.Context
	parent context.Context
	cancel context.CancelCauseFunc
	clock  clock
	timer  timer
	stall  time.Duration
}

var (
	errNoAnswer = errors.New("no answer came in time")
	errStalled  = errors.New("the answer stopped coming")
)

func newGuard(parent context.Context, s *Sender) *guard {
	g := &guard{parent: parent, clock: s.clock, stall: s.limits.Stall}
	g.ctx, g.cancel = context.WithCancelCause(parent)
	if s.limits.FirstByte >= 0 {
		g.timer = s.clock.AfterFunc(s.limits.FirstByte, func() { g.cancel(errNoAnswer) })
	}
	return g
}

// answered begins to watch an answer that has begun.
func (g *guard) answered() {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.timer = nil
	if g.stall >= 0 {
		g.timer = g.clock.AfterFunc(g.stall, func() { g.cancel(errStalled) })
	}
}

// more is called for each piece that arrives.
func (g *guard) more() {
	if g.timer != nil {
		g.timer.Reset(g.stall)
	}
}

func (g *guard) stop() {
	if g.timer != nil {
		g.timer.Stop()
	}
	g.cancel(nil)
}

// cause returns why this side ended the request: the caller's cause, or a limit; nil if it did not.
func (g *guard) cause() error {
	if err := context.Cause(g.parent); err != nil {
		return err
	}
	if err := context.Cause(g.ctx); err == errNoAnswer || err == errStalled {
		return err
	}
	return nil
}

// guarded is an answer's body under a guard.
type guarded struct {
	io.ReadCloser
	guard *guard
}

func (b *guarded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.guard.more()
	}
	return n, err
}

func (b *guarded) Close() error {
	b.guard.stop()
	return b.ReadCloser.Close()
}
