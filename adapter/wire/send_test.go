package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/pool"
)

// fakeClock does not wait: it records the sleeps, and its timers fire by hand.
type fakeClock struct {
	mu     sync.Mutex
	slept  []time.Duration
	timers []*fakeTimer
}

type fakeTimer struct {
	clock   *fakeClock
	d       time.Duration
	f       func()
	stopped bool
	resets  int
}

func (c *fakeClock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept = append(c.slept, d)
	return context.Cause(ctx)
}

func (c *fakeClock) AfterFunc(d time.Duration, f func()) wire.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &fakeTimer{clock: c, d: d, f: f}
	c.timers = append(c.timers, t)
	return t
}

func (t *fakeTimer) Reset(time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.resets++
	return true
}

func (t *fakeTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.stopped = true
	return true
}

// fire fires the newest timer.
func (c *fakeClock) fire(t *testing.T, want time.Duration) {
	t.Helper()
	c.mu.Lock()
	timer := c.timers[len(c.timers)-1]
	c.mu.Unlock()
	if timer.d != want || timer.stopped {
		t.Errorf("the timer that runs is for %s, stopped %t; want %s", timer.d, timer.stopped, want)
	}
	timer.f()
}

// words folds events of one word each, until "end".
type words struct {
	text  []byte
	ended bool
}

func (w *words) Event(e wire.Event, out func(wire.Delta)) error {
	switch word := string(e.Data); word {
	case "end":
		w.ended = true
		return io.EOF
	case "overloaded":
		return wire.Classify("test", 200, nil, []byte(`{"error":{"type":"overloaded_error","message":"busy, key-123456"}}`))
	default:
		w.text = append(w.text, word...)
		out(wire.Delta{Type: pool.TextPart, Text: word})
	}
	return nil
}

func (w *words) Whole(body []byte) error {
	w.text, w.ended = body, true
	return nil
}

func (w *words) Ended() bool { return w.ended }

func (w *words) Message() *pool.Message {
	m := &pool.Message{Role: pool.Assistant, Unfinished: !w.ended}
	if len(w.text) > 0 {
		m.Content = []pool.Part{{Type: pool.TextPart, Text: string(w.text)}}
	}
	return m
}

const key = "key-123456"

func newSender(t *testing.T, base string, clock wire.Clock) *wire.Sender {
	t.Helper()
	o := wire.Options{BaseURL: base, KeyEnv: "TEST_KEY", Getenv: func(name string) string { return map[string]string{"TEST_KEY": key}[name] }}
	wire.SetClock(&o, clock)
	s, err := o.Sender(wire.Place{Provider: "test", Base: base, KeyEnv: []string{"TEST_KEY"}},
		func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func send(ctx context.Context, s *wire.Sender) (*wire.Stream, error) {
	return s.Stream(ctx, "/chat", wire.Request{Body: []byte(`{}`)}, wire.SSE, &words{})
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func event(w http.ResponseWriter, word string) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: %s\n\n", word)
	w.(http.Flusher).Flush()
}

func TestRetries(t *testing.T) {
	tries := 0
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("headers %v", r.Header)
		}
		switch tries++; tries {
		case 1:
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
		case 2:
			w.WriteHeader(529)
		default:
			event(w, "hello")
			event(w, "end")
		}
	})
	clock := &fakeClock{}
	stream, err := send(t.Context(), newSender(t, url, clock))
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.Read(nil)
	if err != nil || m.Text() != "hello" || m.Unfinished {
		t.Errorf("%v, %v", m, err)
	}
	if len(clock.slept) != 2 || clock.slept[0] != 7*time.Second || clock.slept[1] < 750*time.Millisecond || clock.slept[1] > time.Second {
		t.Errorf("slept %v", clock.slept)
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name   string
		status int
		header [2]string
		body   string
		tries  int
		kind   wire.Kind
		wait   time.Duration
		says   string
	}{
		{"wrong key", 401, [2]string{}, `{"error":{"message":"Incorrect API key provided: ` + key + `","code":"invalid_api_key"}}`, 1, wire.Authentication, 0, "check the key in TEST_KEY"},
		{"masked key", 401, [2]string{}, `{"error":{"message":"Incorrect API key provided: sk-proj-****abcd"}}`, 1, wire.Authentication, 0, "[key]"},
		{"long wait", 429, [2]string{"Retry-After", "3600"}, `{"error":{"type":"rate_limit_error","message":"slow"}}`, 1, wire.RateLimit, time.Hour, "try again in 1h0m0s"},
		{"always busy", 529, [2]string{}, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, 3, wire.Overloaded, 0, "try again later"},
		{"wait in ms", 429, [2]string{"Retry-After-Ms", "1500"}, ``, 3, wire.RateLimit, 1500 * time.Millisecond, "try again in 2s"},
		{"no credit", 429, [2]string{}, `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota, please check your plan and billing details."}}`, 1, wire.Refused, 0, "account"},
		{"too long", 400, [2]string{}, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, 1, wire.TooLong, 0, "compact the branch"},
		{"a proxy's page", 502, [2]string{}, "<html><h1>Bad gateway</h1>", 3, wire.Overloaded, 0, "502 Bad Gateway"},
		{"a web page", 200, [2]string{"Content-Type", "text/html"}, "<html>Log in", 1, wire.Network, 0, "web page"},
		{"elsewhere", 307, [2]string{"Location", "http://127.0.0.1:1/"}, "", 1, wire.Invalid, 0, "307"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tries := 0
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				tries++
				w.Header().Set("X-Request-Id", "req_9")
				if test.header[0] != "" {
					w.Header().Set(test.header[0], test.header[1])
				}
				w.WriteHeader(test.status)
				io.WriteString(w, test.body)
			})
			_, err := send(t.Context(), newSender(t, url, &fakeClock{}))
			var e *wire.Error
			if !errors.As(err, &e) {
				t.Fatalf("%v", err)
			}
			if tries != test.tries || e.Kind != test.kind || e.RetryAfter != test.wait || e.Status != test.status || e.RequestID != "req_9" {
				t.Errorf("%d tries, %+v", tries, e)
			}
			if text := e.Error(); !strings.Contains(text, test.says) || strings.Contains(text, key) {
				t.Errorf("%s", text)
			}
		})
	}
}

// TestServersRepeatKeys: wherever a server repeats the key that it got, no error contains it.
func TestServersRepeatKeys(t *testing.T) {
	for name, answer := range map[string]struct {
		status     int
		kind, body string
	}{
		"a request's name":  {401, "application/json", `{"error":{"message":"no"}}`},
		"in the body":       {401, "application/json", `{"error":{"message":"no","type":"` + key + `"},"request_id":"` + key + `"}`},
		"no JSON":           {200, "application/json", "garbage " + key},
		"a web page":        {200, "text/html", "<html>" + key},
		"no JSON, an error": {500, "text/plain", "garbage " + key},
	} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", answer.kind)
			w.Header().Set("Request-Id", "req "+key)
			w.WriteHeader(answer.status)
			io.WriteString(w, answer.body)
		})
		s := newSender(t, url, &fakeClock{})
		var v map[string]any
		_, err := send(t.Context(), s)
		err = errors.Join(err, s.JSON(t.Context(), "/models", nil, nil, &v))
		if err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNoServer(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	clock := &fakeClock{}
	_, err := send(t.Context(), newSender(t, server.URL, clock))
	var e *wire.Error
	if !errors.As(err, &e) || e.Kind != wire.Network || len(clock.slept) != 2 || !strings.Contains(e.Message, "refused") {
		t.Errorf("%v after %v", err, clock.slept)
	}
}

// hang answers with a word, then nothing until the client has gone.
func hang(w http.ResponseWriter, r *http.Request) {
	event(w, "hello")
	<-r.Context().Done()
}

func TestStall(t *testing.T) {
	clock := &fakeClock{}
	stream, err := send(t.Context(), newSender(t, serve(t, hang), clock))
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.Read(func(wire.Delta) { clock.fire(t, 5*time.Minute) })
	if !errors.Is(err, wire.ErrIncomplete) || !strings.Contains(err.Error(), "stopped coming") {
		t.Errorf("%v", err)
	}
	if m.Text() != "hello" || !m.Unfinished || m.Meta.Error == "" {
		t.Errorf("%+v", m)
	}
	if r := clock.timers[len(clock.timers)-1]; r.resets == 0 || !r.stopped {
		t.Errorf("the stall timer was reset %d times, stopped %t", r.resets, r.stopped)
	}
}

func TestNoAnswer(t *testing.T) {
	clock := &fakeClock{}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		clock.fire(t, 10*time.Minute)
		<-r.Context().Done()
	})
	_, err := send(t.Context(), newSender(t, url, clock))
	var e *wire.Error
	if !errors.As(err, &e) || e.Kind != wire.Network || !strings.Contains(err.Error(), "no answer came in time") {
		t.Errorf("%v", err)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := send(ctx, newSender(t, serve(t, hang), &fakeClock{}))
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.Read(func(wire.Delta) { cancel() })
	if !errors.Is(err, wire.ErrIncomplete) || !errors.Is(err, context.Canceled) || m.Text() != "hello" || !m.Unfinished {
		t.Errorf("%v, %+v", err, m)
	}

	asked := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(asked)
		<-r.Context().Done()
	})
	ctx, cancel = context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := send(ctx, newSender(t, url, &fakeClock{})); !errors.Is(err, context.Canceled) {
		t.Errorf("before the answer: %v", err)
	}
}

func TestBrokenConnection(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		event(w, "hello")
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close() // in the middle of the chunked body
		}
	})
	stream, err := send(t.Context(), newSender(t, url, &fakeClock{}))
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.Read(nil)
	if !errors.Is(err, wire.ErrIncomplete) || m.Text() != "hello" || !m.Unfinished {
		t.Errorf("%v, %+v", err, m)
	}
}

func TestErrorInside(t *testing.T) {
	tries := 0
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		tries++
		event(w, "hello")
		event(w, "overloaded")
	})
	stream, err := send(t.Context(), newSender(t, url, &fakeClock{}))
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.Read(nil)
	var e *wire.Error
	if !errors.As(err, &e) || e.Kind != wire.Overloaded || e.Status != 200 || strings.Contains(err.Error(), key) || tries != 1 {
		t.Errorf("%v after %d tries", err, tries)
	}
	if m.Text() != "hello" || !m.Unfinished {
		t.Errorf("%+v", m)
	}
}

func TestOnePiece(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		io.WriteString(w, "all of it")
	})
	stream, err := send(t.Context(), newSender(t, url, &fakeClock{}))
	if err != nil {
		t.Fatal(err)
	}
	shown := ""
	m, err := stream.Read(func(d wire.Delta) { shown += d.Text })
	if err != nil || m.Text() != "all of it" || shown != "all of it" {
		t.Errorf("%v, %v, shown %q", m, err, shown)
	}
}

// TestPartial: another goroutine may look at what has arrived while the stream is read.
func TestPartial(t *testing.T) {
	goOn := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		event(w, "one ")
		<-goOn
		event(w, "two")
		event(w, "end")
	})
	stream, err := send(t.Context(), newSender(t, url, &fakeClock{}))
	if err != nil {
		t.Fatal(err)
	}
	if m := stream.Partial(); m != nil {
		t.Errorf("before reading: %v", m)
	}
	ask, got := make(chan struct{}), make(chan *pool.Message)
	go func() { <-ask; got <- stream.Partial() }()
	first := true
	m, err := stream.Read(func(wire.Delta) {
		if first {
			first = false
			close(ask)
			if p := <-got; p.Text() != "one " || !p.Unfinished {
				t.Errorf("partial %+v", p)
			}
			close(goOn)
		}
	})
	if err != nil || m.Text() != "one two" || m.Unfinished {
		t.Errorf("%v, %v", m, err)
	}
}

func TestKeyGoesOnlyWhereItBelongs(t *testing.T) {
	env := map[string]string{"OPENAI_API_KEY": "sk-own", "MISTRAL_API_KEY": "mistral", "MINE": "mine"}
	place := wire.Place{Provider: "openai", Base: "https://api.openai.com/v1", BaseEnv: []string{"OPENAI_BASE_URL"}, KeyEnv: []string{"OPENAI_API_KEY"}}
	tests := []struct {
		name, envBase string
		o             wire.Options
		want          string
	}{
		{"its own host", "", wire.Options{}, "sk-own"},
		{"an address from the environment", "https://proxy.example", wire.Options{}, "sk-own"},
		{"an address from settings", "", wire.Options{BaseURL: "https://evil.example/v1"}, ""},
		{"…that only looks like it", "", wire.Options{BaseURL: "https://openai.com.evil.example"}, ""},
		{"…without TLS", "", wire.Options{BaseURL: "http://api.openai.com"}, ""},
		{"…of the provider", "", wire.Options{BaseURL: "https://eu.api.openai.com/v1"}, "sk-own"},
		{"…of another that is known", "", wire.Options{BaseURL: "https://api.mistral.ai/v1"}, "mistral"},
		{"…of this machine", "", wire.Options{BaseURL: "http://127.0.0.1:1234/v1"}, ""},
		{"…of this machine, from the environment", "http://127.0.0.1:1234/v1", wire.Options{}, "sk-own"},
		{"…of this machine, from settings, beside one from the environment", "http://127.0.0.1:1234/v1", wire.Options{BaseURL: "http://127.0.0.1:9/v1"}, ""},
		{"…with its own variable", "", wire.Options{BaseURL: "https://llm.example/v1", KeyEnv: "MINE"}, "mine"},
		{"a key from the program", "", wire.Options{BaseURL: "https://llm.example/v1", Key: "given"}, "given"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.o.Getenv = func(name string) string {
				if name == "OPENAI_BASE_URL" {
					return test.envBase
				}
				return env[name]
			}
			s, err := test.o.Sender(place, func(h http.Header, key string) { h.Set("X-Key", key) })
			if err != nil || s.Key != test.want || s.Header.Get("X-Key") != test.want {
				t.Errorf("%v, %+v", err, s)
			}
		})
	}
	for _, o := range []wire.Options{{BaseURL: "api.example/v1"}, {BaseURL: "ftp://x"}, {BaseURL: "http://%zz"}} {
		o.Getenv = func(string) string { return "" }
		if _, err := o.Sender(place, nil); err == nil {
			t.Errorf("%s was taken", o.BaseURL)
		}
	}
	_, err := wire.Options{Getenv: func(string) string { return "" }}.Sender(place, nil)
	var e *wire.Error
	if !errors.As(err, &e) || e.Kind != wire.Authentication || !strings.Contains(err.Error(), "OPENAI_API_KEY") {
		t.Errorf("without a key: %v", err)
	}
}
