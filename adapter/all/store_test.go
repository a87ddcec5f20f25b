package all_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/adaptertest"
	"github.com/chatctx/chatctx/adapter/all"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// walk does random things to a context by the store's own operations.
type walk struct {
	*rand.Rand
	t     *testing.T
	store *chatctx.Store
	c     *chatctx.ChatContext
	seed  uint64
	n     int

	refused, bodies int
}

// TestStore drives branches by the store's operations; whatever they leave, each provider's body of each branch is valid.
func TestStore(t *testing.T) {
	bodies, refused, steps := 0, 0, 0
	for seed := range adaptertest.Drafts() / 40 {
		w := newWalk(t, seed)
		for range 10 {
			w.append("main")
		}
		for range 40 {
			w.step()
			w.judge()
		}
		bodies, refused, steps = bodies+w.bodies, refused+w.refused, steps+w.n
	}
	t.Logf("%d bodies after %d operations, %d more refused by the store", bodies, steps-refused, refused)
	if refused > steps/2 {
		t.Error("most operations were refused: this tries too little")
	}
}

func newWalk(t *testing.T, seed uint64) *walk {
	store, err := chatctx.OpenMemory(chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	c, err := store.New(t.Context(), chatctx.NewContext{Title: "walk", Messages: []*chatctx.Message{pool.NewText(pool.User, "begin")}})
	if err != nil {
		t.Fatal(err)
	}
	return &walk{Rand: rand.New(rand.NewPCG(seed, 3)), t: t, store: store, c: c, seed: seed}
}

func (w *walk) branches() []string {
	list, err := w.c.Branches(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, b := range list {
		names = append(names, b.Name)
	}
	return names
}

// step does one thing. What the store refuses (an empty branch, a call that was decided) has not happened.
func (w *walk) step() {
	ctx := w.t.Context()
	w.n++
	names := w.branches()
	name := names[w.IntN(len(names))]
	b := w.c.Begin(name)
	ref := chatctx.Ref(fmt.Sprint("@-", w.IntN(8)))
	switch w.IntN(16) {
	default:
		w.append(name)
		return
	case 6:
		b.Fork(fmt.Sprint("f", w.n), ref, false)
	case 7:
		b.Edit(ref, "edited", chatctx.EditOptions{KeepRest: w.IntN(2) == 0})
	case 8:
		b.Rewind(ref)
	case 9:
		b.Drop(ref)
	case 10:
		b.Pick(names[w.IntN(len(names))], ref)
	case 11:
		b.Interrupt(w.IntN(2) == 0)
	case 12:
		w.decide(b, name)
	case 13:
		b.Insert(ref, w.messages()[:1])
	case 14:
		b.Mark(ref, []string{"excluded", "pinned", ""}[w.IntN(3)])
	case 15:
		_, _ = w.store.Undo(ctx, w.c.ID.String(), name, "")
		_, _ = w.store.Restore(ctx, w.c.ID.String()) // what was undone may be its beginning
		return
	}
	w.commit(b)
}

func (w *walk) commit(b *chatctx.Batch) {
	if _, err := b.Commit(w.t.Context()); err != nil {
		w.refused++
	}
}

// append adds some messages, each by itself: the store takes no text that is not UTF-8, no call without a name …
func (w *walk) append(name string) {
	for _, m := range w.messages() {
		w.n++
		b := w.c.Begin(name)
		b.Append([]*chatctx.Message{m}, chatctx.AppendOptions{})
		w.commit(b)
	}
}

// messages are some of a random draft's.
func (w *walk) messages() []*chatctx.Message {
	var list []*chatctx.Message
	for _, m := range adaptertest.Random(w.seed*1000+uint64(w.n), adapter.Anthropic, "claude-opus-4-6").Messages {
		if m.Message.ID = pool.NewID(); m.Role == "" {
			m.Role = pool.User
		}
		for i := range m.Content { // what the store refuses alone would take all with it
			if p := &m.Content[i]; p.SHA256 != (pool.Hash{}) {
				*p = pool.Part{Type: pool.TextPart, Text: "was an artifact"}
			}
		}
		list = append(list, m.Message)
	}
	return list[:1+w.IntN(min(len(list), 4))]
}

// decide approves or denies an open call.
func (w *walk) decide(b *chatctx.Batch, name string) {
	calls, err := w.c.OpenCalls(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(calls) == 0 {
		return
	}
	c := calls[w.IntN(len(calls))]
	verdict := chatctx.Verdict{Status: []pool.Status{pool.Approved, pool.Denied}[w.IntN(2)], Reason: "so"}
	if verdict.Status == pool.Approved {
		verdict.Reason = ""
	}
	b.Decide(chatctx.CallRef(fmt.Sprintf("%s:%d", c.Message, c.Index)), verdict)
}

// judge makes and judges a body of each branch at each provider.
func (w *walk) judge() {
	for _, name := range w.branches() {
		for _, s := range subjects {
			model := s.models[(w.n)%len(s.models)]
			raw, err := w.body(name, s.provider, model)
			if errors.Is(err, chatctx.ErrEmpty) {
				continue
			}
			w.bodies++
			if err == nil {
				err = adaptertest.Validate(s.provider, model, raw)
			}
			if err != nil {
				w.t.Fatalf("seed %d, step %d, branch %s, %s: %v\n%s", w.seed, w.n, name, s.provider, err, raw)
			}
		}
	}
}

func (w *walk) body(branch, provider, model string) ([]byte, error) {
	d, err := w.c.Draft(context.WithoutCancel(w.t.Context()), branch)
	if err != nil {
		return nil, err
	}
	d.Settings = map[string]json.RawMessage{"model": json.RawMessage(`"` + model + `"`)}
	return all.Body(provider, d)
}

// TestDecidedLater: what is decided about a call after the branch went on changes nothing of what was sent; on the fork that
// was decided differently neither.
func TestDecidedLater(t *testing.T) {
	w := newWalk(t, 1)
	call := pool.Call{ID: "c1", Tool: "search", Arguments: json.RawMessage(`{}`)}
	if _, err := w.c.Append(t.Context(), "main", &chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{call}}, pool.NewText(pool.User, "go on")); err != nil {
		t.Fatal(err)
	}
	b := w.c.Begin("main")
	b.Fork("other", "@", true)
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := map[string][]byte{}
	for _, s := range subjects {
		before[s.provider], _ = w.body("main", s.provider, s.models[0])
	}
	for _, name := range []string{"main", "other"} {
		calls, err := w.c.OpenCalls(t.Context(), name)
		if err != nil || len(calls) != 1 {
			t.Fatalf("%s: %v, %v", name, calls, err)
		}
		b := w.c.Begin(name)
		verdict := chatctx.Verdict{Status: pool.Denied, Reason: "on " + name}
		if name == "other" {
			verdict = chatctx.Verdict{Status: pool.Approved}
		}
		b.Decide(chatctx.CallRef(fmt.Sprintf("%s:%d", calls[0].Message, calls[0].Index)), verdict)
		if _, err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range subjects {
		for _, name := range []string{"main", "other"} {
			after, err := w.body(name, s.provider, s.models[0])
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(after, bytes.TrimRight(before[s.provider], "]}")) || !strings.Contains(string(after), adapter.NoResult) {
				t.Errorf("%s, %s:\n%s\nbecame\n%s", s.provider, name, before[s.provider], after)
			}
		}
	}
}
