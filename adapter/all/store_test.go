package all_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/adaptertest"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// TestStore changes branches with the store's operations; each provider's body of each branch must stay valid.
func TestStore(t *testing.T) {
	steps, refused, bodies := map[string]int{}, map[string]int{}, map[string]int{}
	for seed := range testkit.Seeds(t, 8) {
		w := newWalk(t, seed)
		for range 10 {
			w.append("main")
		}
		for range 60 {
			w.step()
			w.judge()
		}
		w.sum(steps, refused, bodies)
	}
	t.Logf("bodies: %v; operations: %v; refused by the store: %v", bodies, steps, refused)
	for what, n := range steps {
		if refused[what] > n*3/4 {
			t.Errorf("%s was refused %d of %d times: this tries too little", what, refused[what], n)
		}
	}
}

// TestDecidedLater: a decision about a call after the branch went on changes nothing that was sent, also on the fork with another decision.
func TestDecidedLater(t *testing.T) {
	w := newWalk(t, 1)
	call := pool.Call{ID: "c1", Tool: "search", Arguments: json.RawMessage(`{}`)}
	if _, err := w.c.Append(t.Context(), "main", &chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{call}}, pool.NewText(pool.User, "go on")); err != nil {
		t.Fatal(err)
	}
	b := w.c.Begin("main")
	b.Fork("other", chatctx.ForkOptions{At: "@", Stay: true})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := map[string][]byte{}
	for _, s := range subjects {
		before[s.provider], _ = w.body("main", s.provider, s.models[0])
	}
	for _, name := range []string{"main", "other"} {
		calls, err := toolcall.OpenCalls(t.Context(), base.ContextOf(w.c.Store(), w.c.ID), name)
		if err != nil || len(calls) != 1 {
			t.Fatalf("%s: %v, %v", name, calls, err)
		}
		b := w.c.Begin(name)
		verdict := record.Verdict{Status: pool.Denied, Reason: "on " + name}
		if name == "other" {
			verdict = record.Verdict{Status: pool.Approved}
		}
		b.Decide(record.CallRef(fmt.Sprintf("%s:%d", calls[0].Message, calls[0].Index)), verdict)
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

// TestLateDenial: the words of a denial after the branch went on reach each provider unchanged, as a text at the place of the denial, and change nothing that
// was sent.
func TestLateDenial(t *testing.T) {
	w := newWalk(t, 1)
	call := pool.Call{ID: "c1", Tool: "search", Arguments: json.RawMessage(`{}`)}
	if _, err := w.c.Append(t.Context(), "main", &chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{call}}, pool.NewText(pool.User, "go on")); err != nil {
		t.Fatal(err)
	}
	before := map[string][]byte{}
	for _, s := range subjects {
		before[s.provider], _ = w.body("main", s.provider, s.models[0])
	}
	const reason = "denied: not on a Sunday, says Ann"
	denial := &chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c1", Text: reason, IsError: true}}
	if _, err := w.c.Append(t.Context(), "main", denial); err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects {
		after, err := w.body("main", s.provider, s.models[0])
		if err == nil {
			err = adaptertest.Validate(s.provider, s.models[0], after)
		}
		if err != nil {
			t.Fatal(err)
		}
		kept := bytes.TrimRight(before[s.provider], `"]}`) // if the last message goes on, so does its text
		if !bytes.HasPrefix(after, kept) || !bytes.Contains(after[len(kept):], []byte(reason)) {
			t.Errorf("%s:\n%s\nbecame\n%s", s.provider, before[s.provider], after)
		}
	}
}
