package turn

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// callsTool answers with a call of a tool.
func callsTool(id, tool, arguments string) func(*writer, *http.Request) {
	return func(w *writer, _ *http.Request) {
		w.begin()
		w.words("Let me see.")
		w.event(`{"type":"content_block_stop","index":0}`)
		w.event(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":%s,"name":%s,"input":{}}}`, jsontree.Quote(id), jsontree.Quote(tool))
		w.event(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":%s}}`, jsontree.Quote(arguments))
		w.event(`{"type":"content_block_stop","index":1}`)
		w.event(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}`)
		w.event(`{"type":"message_stop"}`)
	}
}

// recordedTalk appends a conversation with two questions to main; the first was answered with two calls of one kind.
func recordedTalk(t *testing.T, turn *Turn) *chatctx.Snapshot {
	t.Helper()
	call := func(id, args string) *chatctx.Message {
		return &chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: id, Tool: "look", Arguments: json.RawMessage(args), Status: pool.Approved, Execution: pool.Done}}}
	}
	result := func(id, text string) *chatctx.Message {
		return &chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: id, Text: text}}
	}
	if _, err := turn.Context.Append(t.Context(), "", user("one"), call("c1", `{"a": 1, "b": 2}`), result("c1", "first"), call("c2", `{"a":1,"b":2}`), result("c2", "second"),
		pool.NewText(pool.Assistant, "old"), user("two"), pool.NewText(pool.Assistant, "older")); err != nil {
		t.Fatal(err)
	}
	snap, err := turn.Context.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func branchTexts(t *testing.T, c *chatctx.ChatContext, name string) string {
	t.Helper()
	snap, err := c.Snapshot(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := snap.Page(t.Context(), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		text := e.Text()
		if e.Result != nil {
			text = "=" + e.Result.Text + " " + e.Kind
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestReplayUsesRecordedResults(t *testing.T) {
	p := newProvider(t, callsTool("n1", "look", `{"a":1,"b":2}`), callsTool("n2", "look", `{ "a" : 1, "b":2 }`), says("new"), says("newer"))
	turn := newTurn(t, p)
	snap := recordedTalk(t, turn)
	replay, err := ReadReplay(t.Context(), snap, 1)
	if err != nil {
		t.Fatal(err)
	}
	turn.Branch = "again"
	system := "Be brief."
	outcomes, err := replay.Run(t.Context(), turn, &system)
	if err != nil || len(outcomes) != 2 {
		t.Fatalf("%d outcomes and %v, want 2", len(outcomes), err)
	}
	if got, want := branchTexts(t, turn.Context, "again"), "one; Let me see.; =first replayed; Let me see.; =second replayed; new; two; newer"; got != want {
		t.Errorf("the branch is %q, want %q", got, want)
	}
	if !strings.Contains(p.bodies[0], system) {
		t.Errorf("the system prompt was not sent: %s", p.bodies[0])
	}
	if got := branchTexts(t, turn.Context, "main"); !strings.HasSuffix(got, "two; older") {
		t.Errorf("main is %q by now", got)
	}
	if _, err := turn.Context.Store().Undo(t.Context(), turn.Context.ID.String(), "again", ""); err != nil {
		t.Fatal(err)
	}
	if list, err := turn.Context.Branches(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%d branches after undo (%v), want main alone", len(list), err)
	}
}

func TestReplayWaitsAtTheFirstOtherCall(t *testing.T) {
	for _, test := range []struct {
		what string
		call func(*writer, *http.Request)
	}{
		{"other arguments", callsTool("n2", "look", `{"a":1,"b":3}`)},
		{"another tool", callsTool("n2", "hook", `{"a":1,"b":2}`)},
	} {
		t.Run(test.what, func(t *testing.T) {
			p := newProvider(t, callsTool("n1", "look", `{"a":1,"b":2}`), test.call)
			turn := newTurn(t, p)
			snap := recordedTalk(t, turn)
			replay, err := ReadReplay(t.Context(), snap, 1)
			if err != nil {
				t.Fatal(err)
			}
			turn.Branch = "again"
			outcomes, err := replay.Run(t.Context(), turn, nil)
			if err != nil || len(outcomes) != 1 || outcomes[0].Waiting != 1 {
				t.Fatalf("outcomes %+v and %v, want one that waits", outcomes, err)
			}
			if got, want := branchTexts(t, turn.Context, "again"), "one; Let me see.; =first replayed; Let me see."; got != want {
				t.Errorf("the branch is %q, want %q", got, want)
			}
			open, err := toolcall.OpenCalls(t.Context(), base.ContextOf(turn.Context.Store(), turn.Context.ID), "again")
			if err != nil || len(open) != 1 || open[0].Status != pool.Pending {
				t.Errorf("open are %v (%v), want one call that nobody has decided", open, err)
			}
		})
	}
}

// TestReplayFromLater begins at the second question: each result counts once, and the messages before are shared.
func TestReplayFromLater(t *testing.T) {
	p := newProvider(t, says("new"))
	turn := newTurn(t, p)
	snap := recordedTalk(t, turn)
	replay, err := ReadReplay(t.Context(), snap, 6)
	if err != nil || replay.Questions() != 1 {
		t.Fatal(replay, err)
	}
	turn.Branch = "again"
	if _, err := replay.Run(t.Context(), turn, nil); err != nil {
		t.Fatal(err)
	}
	if got := branchTexts(t, turn.Context, "again"); !strings.HasSuffix(got, "old; two; new") {
		t.Errorf("the branch is %q", got)
	}
	if _, err := ReadReplay(t.Context(), snap, 8); !errors.Is(err, chatctx.ErrEmpty) {
		t.Errorf("a replay without a question gives %v, want ErrEmpty", err)
	}
}
