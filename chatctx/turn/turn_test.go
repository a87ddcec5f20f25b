package turn

import (
	"context"
	"encoding/json"
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
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

// provider is a server that speaks Anthropic's wire. Each request is answered by the next of answers.
type provider struct {
	t       *testing.T
	url     string
	mu      sync.Mutex
	bodies  []string
	answers []func(w *writer, r *http.Request)
}

type writer struct{ http.ResponseWriter }

func newProvider(t *testing.T, answers ...func(*writer, *http.Request)) *provider {
	p := &provider{t: t, answers: answers}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/v1/messages/count_tokens" { // its own counter has no objection
		io.WriteString(w, `{"input_tokens":1}`)
		return
	}
	p.mu.Lock()
	n := len(p.bodies)
	p.bodies = append(p.bodies, string(body))
	p.mu.Unlock()
	if r.URL.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != "key" || r.Header.Get("Anthropic-Version") == "" {
		p.t.Errorf("asked for %s with %v", r.URL.Path, r.Header)
	}
	if n >= len(p.answers) {
		http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"no more answers"}}`, 400)
		return
	}
	p.answers[n](&writer{w}, r)
}

func (w *writer) event(format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: "+format+"\n\n", args...)
	w.ResponseWriter.(http.Flusher).Flush()
}

func (w *writer) begin() {
	w.event(`{"type":"message_start","message":{"model":"claude-sonnet-4-5","usage":{"input_tokens":7}}}`)
	w.event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
}

func (w *writer) words(text string) {
	w.event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`, jsontree.Quote(text))
}

func (w *writer) end(reason string) {
	w.event(`{"type":"content_block_stop","index":0}`)
	w.event(`{"type":"message_delta","delta":{"stop_reason":%s},"usage":{"output_tokens":3}}`, jsontree.Quote(reason))
	w.event(`{"type":"message_stop"}`)
}

func says(text string) func(*writer, *http.Request) {
	return func(w *writer, _ *http.Request) {
		w.begin()
		w.words(text)
		w.end("end_turn")
	}
}

// begins says a few words and then nothing until the client has gone; it calls said in between.
func begins(text string, said func()) func(*writer, *http.Request) {
	return func(w *writer, r *http.Request) {
		w.begin()
		w.words(text)
		if said != nil {
			said()
		}
		<-r.Context().Done()
	}
}

func calls(w *writer, _ *http.Request) {
	w.begin()
	w.words("Let me see.")
	w.event(`{"type":"content_block_stop","index":0}`)
	w.event(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"now","input":{}}}`)
	w.event(`{"type":"content_block_stop","index":1}`)
	w.event(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}`)
	w.event(`{"type":"message_stop"}`)
}

// newTurn returns a turn on a new context in memory, asking p.
func newTurn(t *testing.T, p *provider) *Turn {
	t.Helper()
	s := storetest.Open(t, "", chatctx.Options{Program: "test"})
	c, err := s.New(t.Context(), record.NewContext{Title: "T", Settings: map[string]json.RawMessage{
		"model": json.RawMessage(`"claude-sonnet-4-5"`), "retries": json.RawMessage("0")}})
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": p.url}
	return &Turn{Context: c, Getenv: func(name string) string { return env[name] }}
}

func user(text string) *chatctx.Message { return pool.NewText(pool.User, text) }

func want(t *testing.T, c *chatctx.ChatContext, want ...string) []*chatctx.Entry {
	t.Helper()
	snap, err := c.Snapshot(context.Background(), "main")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := snap.Page(context.Background(), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		text := string(e.Role) + ": " + e.Text()
		if e.Result != nil {
			text += e.Result.Text
		}
		if e.Unfinished {
			text += "*"
		}
		got = append(got, text)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("on the branch:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return entries
}

func TestSend(t *testing.T) {
	p := newProvider(t, says("Hello!"), says("Fine."))
	turn := newTurn(t, p)
	shown := ""
	var placed []int
	turn.Show = func(e Event) {
		switch {
		case e.Delta != nil:
			shown += e.Delta.Text
		case e.Request != nil:
			want(t, turn.Context, "user: Hi") // stored before anything is sent
		case e.Message != nil:
			placed = append(placed, e.Place.Position)
		}
	}
	out, err := turn.Send(t.Context(), user("Hi"))
	if err != nil {
		t.Fatal(err)
	}
	entries := want(t, turn.Context, "user: Hi", "assistant: Hello!")
	m := entries[1].Message
	if m.Meta.Provider != "anthropic" || m.Meta.FinishReason != "end_turn" || *m.Meta.InputTokens != 7 || *m.Meta.OutputTokens != 3 ||
		m.Meta.Completed == 0 || m.ID != out.Reply().ID || out.Places[0].Position != 2 || out.Waiting != 0 || out.Operation == "" {
		t.Errorf("%+v\n%+v", m.Meta, out)
	}
	if shown != "Hello!" || len(placed) != 1 || placed[0] != 2 {
		t.Errorf("shown %q at %v", shown, placed)
	}
	turn.Show = nil
	if out, err = turn.Send(t.Context(), user("How are you?")); err != nil {
		t.Fatal(err)
	}
	if window.Of(out.Request).First || window.Of(out.Request).Prefix.BrokenBy != "" || window.Of(out.Request).Prefix.Bytes == 0 {
		t.Errorf("the second request does not go on from the first: %+v", window.Of(out.Request).Prefix)
	}
	want(t, turn.Context, "user: Hi", "assistant: Hello!", "user: How are you?", "assistant: Fine.")
	if !strings.Contains(p.bodies[1], `"stream":true`) || !strings.Contains(p.bodies[1], "Hello!") {
		t.Errorf("%s", p.bodies[1])
	}
	if claim, err := view.Running(t.Context(), base.ContextOf(turn.Context.Store(), turn.Context.ID), ""); claim != nil || err != nil {
		t.Errorf("the claim stays: %+v, %v", claim, err)
	}
}

func TestProviderErrors(t *testing.T) {
	refuse := func(status int, body string) func(*writer, *http.Request) {
		return func(w *writer, _ *http.Request) { http.Error(w, body, status) }
	}
	cutOff := func(w *writer, _ *http.Request) {
		w.begin()
		w.words("As I was ")
	}
	inside := func(w *writer, _ *http.Request) {
		w.begin()
		w.words("As I was ")
		w.event(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	}
	tests := []struct {
		name   string
		answer func(*writer, *http.Request)
		kind   wire.Kind
		branch []string
	}{
		{"refused", refuse(401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`), wire.Authentication, []string{"user: Hi"}},
		{"busy", refuse(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), wire.Overloaded, []string{"user: Hi"}},
		{"cut off", cutOff, wire.Incomplete, []string{"user: Hi", "assistant: As I was *"}},
		{"busy inside", inside, wire.Overloaded, []string{"user: Hi", "assistant: As I was *"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			turn := newTurn(t, newProvider(t, test.answer, says("Again.")))
			_, err := turn.Send(t.Context(), user("Hi"))
			var e *wire.Error
			if !errors.As(err, &e) || e.Kind != test.kind {
				t.Fatalf("%v", err)
			}
			entries := want(t, turn.Context, test.branch...)
			if len(entries) > 1 && entries[1].Meta.Error == "" {
				t.Error("the unfinished message does not say why")
			}
			if claim, err := view.Running(t.Context(), base.ContextOf(turn.Context.Store(), turn.Context.ID), ""); claim != nil || err != nil {
				t.Errorf("the claim stays: %+v, %v", claim, err)
			}
			// The turn can be undone, and asked again.
			batch := turn.Context.Begin("main")
			batch.Interrupt(chatctx.InterruptOptions{})
			if _, err := batch.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := turn.Send(t.Context()); err != nil {
				t.Fatal(err)
			}
			want(t, turn.Context, "user: Hi", "assistant: Again.")
		})
	}
}

func TestNothingToSend(t *testing.T) {
	turn := newTurn(t, newProvider(t))
	if _, err := turn.Send(t.Context()); !errors.Is(err, chatctx.ErrEmpty) {
		t.Errorf("an empty branch: %v", err)
	}
	turn.Settings = map[string]json.RawMessage{"model": json.RawMessage(`"who-knows"`)}
	if _, err := turn.Send(t.Context(), user("Hi")); !errors.Is(err, ErrNoProvider) {
		t.Errorf("an unknown model: %v", err)
	}
	turn.Settings = map[string]json.RawMessage{"frobnicate": json.RawMessage(`1`)}
	if _, err := turn.Send(t.Context()); err == nil || !strings.Contains(err.Error(), "frobnicate") {
		t.Errorf("an unknown setting: %v", err)
	}
	turn.Settings = nil
	turn.Getenv = func(string) string { return "" }
	var e *wire.Error
	if _, err := turn.Send(t.Context()); !errors.As(err, &e) || e.Kind != wire.Authentication {
		t.Errorf("without a key: %v", err)
	}
	want(t, turn.Context, "user: Hi") // kept, but the claim is not
	if claim, err := view.Running(t.Context(), base.ContextOf(turn.Context.Store(), turn.Context.ID), ""); claim != nil || err != nil {
		t.Errorf("the claim stays: %+v, %v", claim, err)
	}
}

func TestCancelKeepsWhatCame(t *testing.T) {
	turn := newTurn(t, newProvider(t, begins("Once upon", nil)))
	ctx, cancel := context.WithCancel(t.Context())
	turn.Show = func(e Event) {
		if e.Delta != nil {
			cancel()
		}
	}
	out, err := turn.Send(ctx, user("Tell"))
	if !errors.Is(err, context.Canceled) || out.Reply() == nil || !out.Reply().Unfinished {
		t.Fatalf("%v, %+v", err, out)
	}
	want(t, turn.Context, "user: Tell", "assistant: Once upon*")
}

// TestPanicInShow: after a recovered panic the branch is free.
func TestPanicInShow(t *testing.T) {
	turn := newTurn(t, newProvider(t, says("Once upon"), says("Once more")))
	turn.Show = func(e Event) {
		if e.Delta != nil {
			panic("show")
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = turn.Send(t.Context(), user("Tell"))
	}()
	turn.Show = nil
	if out, err := turn.Send(t.Context(), user("Again")); err != nil || out.Queued || len(out.Replies) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
}

// TestCloseEndsReplies: closing the store ends its replies.
func TestCloseEndsReplies(t *testing.T) {
	store, err := chatctx.OpenMemory(chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	turn := newTurn(t, newProvider(t, func(w *writer, r *http.Request) {
		w.begin()
		w.words("Once upon")
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
	}))
	if turn.Context, err = store.New(t.Context(), record.NewContext{Settings: map[string]json.RawMessage{"model": json.RawMessage(`"claude-sonnet-4-5"`)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := turn.Send(t.Context(), user("Tell")); !errors.Is(err, chatctx.ErrClosed) {
		t.Fatal(err)
	}
}

// TestQueue: a message that comes during a reply waits, is in no request, and is answered after it.
func TestQueue(t *testing.T) {
	var turn *Turn
	p := newProvider(t, func(w *writer, r *http.Request) {
		w.begin()
		w.words("First.")
		out, err := (&Turn{Context: turn.Context, Getenv: turn.Getenv}).Send(r.Context(), user("Second?"))
		if err != nil || !out.Queued || out.Holder == nil {
			t.Errorf("%+v, %v", out, err)
		}
		w.end("end_turn")
	}, says("Second."))
	turn = newTurn(t, p)
	out, err := turn.Send(t.Context(), user("First?"))
	if err != nil || len(out.Replies) != 2 || len(out.Asked) != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	want(t, turn.Context, "user: First?", "assistant: First.", "user: Second?", "assistant: Second.")
	if len(p.bodies) != 2 || strings.Contains(p.bodies[0], "Second") {
		t.Errorf("%q", p.bodies)
	}
}

// ticks makes the keeper's times come from the test.
func ticks(turn *Turn) chan time.Time {
	times := make(chan time.Time)
	turn.tick = func() (<-chan time.Time, func()) { return times, func() {} }
	return times
}

// TestPartialIsStored: the words that arrived are stored at the first look after the first words, and at every fourth look; after a crash they are there for
// the next program.
func TestPartialIsStored(t *testing.T) {
	t.Run("the first words", func(t *testing.T) { partialIsStored(t, "Once upon", 2) })
	t.Run("later words", func(t *testing.T) { partialIsStored(t, "Once upon a time", 2, saveEvery-1) })
}

// partialIsStored lets so many looks pass after each two words of the reply. It sends the last one when the one before is done.
func partialIsStored(t *testing.T, text string, looks ...int) {
	words := strings.SplitAfterN(text, "upon", len(looks))
	stored, more := make(chan struct{}), make(chan struct{}, len(looks))
	p := newProvider(t, func(w *writer, r *http.Request) {
		w.begin()
		for _, piece := range words {
			w.words(piece)
			<-more
		}
		<-r.Context().Done()
	}, says("The end."))
	turn := newTurn(t, p)
	times := ticks(turn)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	came := 0
	turn.Show = func(e Event) {
		if e.Delta == nil {
			return
		}
		came++
		go func(n int) {
			for range looks[n-1] {
				times <- time.Time{}
			}
			if more <- struct{}{}; n == len(looks) {
				close(stored)
			}
		}(came)
	}
	done := make(chan error, 1)
	go func() {
		_, err := turn.Send(ctx, user("Tell"))
		done <- err
	}()
	<-stored
	want(t, turn.Context, "user: Tell")
	m, err := turn.Context.Settle(t.Context(), "main", chatctx.SettleOptions{Force: true}) // as if this program had died
	if err != nil || m.Text() != text || !m.Unfinished || m.Meta.Provider != "anthropic" {
		t.Fatalf("%+v, %v", m, err)
	}
	select { // this look or the next finds that the claim is gone
	case times <- time.Time{}:
		err = <-done
	case err = <-done:
	}
	if !errors.Is(err, chatctx.ErrStopped) {
		t.Fatalf("%v", err)
	}
	want(t, turn.Context, "user: Tell", "assistant: "+text+"*")
	turn.Show, turn.tick = nil, nil
	if _, err := turn.Send(t.Context(), user("Go on")); err != nil {
		t.Fatal(err)
	}
	want(t, turn.Context, "user: Tell", "assistant: "+text+"*", "user: Go on", "assistant: The end.")
}

func TestInterrupt(t *testing.T) {
	turn := newTurn(t, newProvider(t, begins("Once upon", nil)))
	times := ticks(turn)
	turn.Show = func(e Event) {
		if e.Delta == nil {
			return
		}
		batch := turn.Context.Begin("main")
		batch.Interrupt(chatctx.InterruptOptions{})
		if _, err := batch.Commit(t.Context()); err != nil {
			t.Error(err)
		}
		times <- time.Time{}
	}
	if _, err := turn.Send(t.Context(), user("Tell")); !errors.Is(err, chatctx.ErrStopped) {
		t.Fatalf("%v", err)
	}
	want(t, turn.Context, "user: Tell")
}

func TestCalls(t *testing.T) {
	p := newProvider(t, calls, says("It is noon."))
	turn := newTurn(t, p)
	out, err := turn.Send(t.Context(), user("What time is it?"))
	if err != nil || out.Waiting != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	entries := want(t, turn.Context, "user: What time is it?", "assistant: Let me see.")
	if c := entries[1].Calls[0]; c.Status != pool.Pending || c.ID != "toolu_1" || c.Tool != "now" {
		t.Errorf("%+v", c)
	}
	result := &chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "toolu_1", Text: "12:00"}}
	if _, err := turn.Context.Append(t.Context(), "main", result); err != nil {
		t.Fatal(err)
	}
	if out, err = turn.Send(t.Context()); err != nil || out.Waiting != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	want(t, turn.Context, "user: What time is it?", "assistant: Let me see.", "tool: 12:00", "assistant: It is noon.")
}

func TestCallsInTheLoop(t *testing.T) {
	answers := []func(*writer, *http.Request){calls, calls, says("Noon.")}
	turn := newTurn(t, newProvider(t, answers...))
	turn.Calls = func(ctx context.Context, branch string, m *chatctx.Message, _ []string) (bool, error) {
		_, err := turn.Context.Append(ctx, branch, &chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: m.Calls[0].ID, Text: "12"}})
		return true, err
	}
	out, err := turn.Send(t.Context(), user("Time?"))
	if err != nil || len(out.Replies) != 3 || out.Waiting != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	want(t, turn.Context, "user: Time?", "assistant: Let me see.", "tool: 12", "assistant: Let me see.", "tool: 12", "assistant: Noon.")

	turn = newTurn(t, newProvider(t, calls, calls, calls))
	turn.Rounds = 2
	turn.Calls = func(context.Context, string, *chatctx.Message, []string) (bool, error) { return true, nil }
	if _, err := turn.Send(t.Context(), user("Time?")); !errors.Is(err, ErrRounds) {
		t.Errorf("%v", err)
	}
	turn = newTurn(t, newProvider(t, calls))
	turn.Calls = func(context.Context, string, *chatctx.Message, []string) (bool, error) { return false, nil }
	if out, err := turn.Send(t.Context(), user("Time?")); err != nil || out.Waiting != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	if claim, err := view.Running(t.Context(), base.ContextOf(turn.Context.Store(), turn.Context.ID), ""); claim != nil || err != nil {
		t.Errorf("the claim stays: %+v, %v", claim, err)
	}
}

// TestInterruptWhileToolsRun: while tools run the claim is kept and renewed; whoever takes it away stops them.
func TestInterruptWhileToolsRun(t *testing.T) {
	turn := newTurn(t, newProvider(t, calls))
	times := ticks(turn)
	turn.Calls = func(ctx context.Context, branch string, m *chatctx.Message, _ []string) (bool, error) {
		for range saveEvery + 1 {
			times <- time.Time{}
		}
		if claim, err := view.Running(t.Context(), base.ContextOf(turn.Context.Store(), turn.Context.ID), branch); err != nil || claim == nil || claim.Renewed < claim.Since {
			t.Errorf("%+v, %v", claim, err)
		}
		batch := turn.Context.Begin("main")
		batch.Interrupt(chatctx.InterruptOptions{})
		if _, err := batch.Commit(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case times <- time.Time{}:
			<-ctx.Done()
		case <-ctx.Done(): // the look before it already saw the interrupt
		}
		return true, ctx.Err()
	}
	if _, err := turn.Send(t.Context(), user("Time?")); !errors.Is(err, chatctx.ErrStopped) {
		t.Fatalf("%v", err)
	}
	want(t, turn.Context, "user: Time?")
}

func TestCompleter(t *testing.T) {
	p := newProvider(t, says("Short."))
	turn := newTurn(t, p)
	c, err := turn.Completer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Complete(t.Context(), enhancer.Prompt{System: "You shorten.", Text: "A long text", Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	if text := answer.Text(); text != "Short." || answer.Meta.Model == "" || answer.Meta.InputTokens == nil || !strings.Contains(p.bodies[0], "You shorten.") {
		t.Errorf("%+v, %v, %s", answer, err, p.bodies)
	}
	want(t, turn.Context)
}

func TestBetasAreAHeader(t *testing.T) {
	var got string
	p := newProvider(t, func(w *writer, r *http.Request) {
		got = r.Header.Get("Anthropic-Beta")
		says("Yes.")(w, r)
	})
	turn := newTurn(t, p)
	turn.Settings = map[string]json.RawMessage{"anthropic.betas": json.RawMessage(`["a-2026","b-2026"]`)}
	if _, err := turn.Send(t.Context(), user("Hi")); err != nil || got != "a-2026,b-2026" || strings.Contains(p.bodies[0], "betas") {
		t.Errorf("%v, %q, %s", err, got, p.bodies)
	}
}

// TestAReplyThatCannotBeStoredKeepsNoClaim: every error ends the claim, also one of the store.
func TestAReplyThatCannotBeStoredKeepsNoClaim(t *testing.T) {
	no := errors.New("no such words here")
	s, err := chatctx.OpenMemory(chatctx.Options{Program: "test", BeforeStore: func(m *chatctx.Message) error {
		if strings.Contains(m.Text(), "rude") {
			return no
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	turn := newTurn(t, newProvider(t, says("rude"), calls, says("Fine.")))
	if turn.Context, err = s.New(t.Context(), record.NewContext{Settings: map[string]json.RawMessage{"model": json.RawMessage(`"claude-sonnet-4-5"`)}}); err != nil {
		t.Fatal(err)
	}
	free := func() {
		t.Helper()
		if claim, err := view.Running(t.Context(), base.ContextOf(turn.Context.Store(), turn.Context.ID), ""); claim != nil || err != nil {
			t.Errorf("the claim stays: %+v, %v", claim, err)
		}
	}
	if _, err := turn.Send(t.Context(), user("Hi")); !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
	want(t, turn.Context, "user: Hi")
	free()
	bad := errors.New("the tool is out of order")
	turn.Calls = func(context.Context, string, *chatctx.Message, []string) (bool, error) { return false, bad }
	if _, err := turn.Send(t.Context()); !errors.Is(err, bad) {
		t.Errorf("%v", err)
	}
	free()
}
