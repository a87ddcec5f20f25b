package ui

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

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// serveModel answers as Chat Completions do: its name and the last words; slow says a paragraph and waits until nobody listens; "write it" makes it call a tool
// once.
func serveModel(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var body struct {
		Model    string
		Messages []struct {
			Role    string
			Content any
		}
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	last := body.Messages[len(body.Messages)-1]
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(delta string) {
		fmt.Fprintf(w, "data: {\"id\":\"c\",\"model\":%q,\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", body.Model, delta)
		w.(http.Flusher).Flush()
	}
	words := func(s string) { b, _ := json.Marshal(s); say(`{"role":"assistant","content":` + string(b) + `}`) }
	finish := "stop"
	switch {
	case body.Model == "broken":
		http.Error(w, `{"error":{"message":"no such thing"}}`, 400)
		return
	case body.Model == "cut":
		words("Half of")
		return
	case body.Model == "empty":
	case body.Model == "filtered":
		words("I had better")
		finish = "content_filter"
	case body.Model == "slow" || strings.HasPrefix(fmt.Sprint(last.Content), "Slowly"):
		words("One paragraph that is whole.\n\nAnd the beginning of")
		<-r.Context().Done()
		return
	case strings.Contains(fmt.Sprint(last.Content), "write it") && last.Role == "user":
		finish = "tool_calls"
		arguments, _ := json.Marshal(`{"path":"/nowhere/new.txt","content":"first line\nsecond \u202e line"}`)
		say(`{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"write_file","arguments":` + string(arguments) + `}}]}`)
	default:
		words(fmt.Sprintf("I am **%s** and was told %d things.", body.Model, len(body.Messages)))
	}
	fmt.Fprintf(w, "data: {\"id\":\"c\",\"model\":%q,\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\n", body.Model, finish)
	fmt.Fprintf(w, "data: {\"id\":\"c\",\"model\":%q,\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n", body.Model)
}

// talking returns the options of a program whose model is a server in the test.
func talking(t *testing.T, st *chatctx.Store, ran func(json.RawMessage)) Options {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(serveModel))
	t.Cleanup(server.Close)
	var mu sync.Mutex
	return Options{Store: st, Turn: func(c *chatctx.ChatContext, branch string, set map[string]json.RawMessage, _ func(string)) *turn.Turn {
		all := map[string]json.RawMessage{"model": quoted("gpt-test"), "provider": quoted("openai"), "base_url": quoted(server.URL + "/v1")}
		for key, v := range set {
			all[key] = v
		}
		e := &approval.Executor{Context: c, Functions: map[string]approval.Function{"write_file": func(_ context.Context, in approval.Invocation) (pool.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			ran(in.Arguments)
			return pool.Result{Text: "written"}, nil
		}}}
		return &turn.Turn{Context: c, Branch: branch, Settings: all, Calls: e.Calls, Getenv: func(name string) string {
			return map[string]string{"OPENAI_API_KEY": "sk-test"}[name]
		}}
	}}
}

// asked returns a store with one conversation, in which a question was answered.
func asked(t *testing.T) *chatctx.Store {
	t.Helper()
	st := newStore(t)
	c, err := st.New(t.Context(), record.NewContext{Title: "Boats"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.PutTool(t.Context(), record.Tool{Name: "write_file", Schema: json.RawMessage(`{"type":"object"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, "A name for a boat?"), pool.NewText(pool.Assistant, "Petrel.")); err != nil {
		t.Fatal(err)
	}
	return st
}

func TestTalk(t *testing.T) {
	o := talking(t, asked(t), nil)
	made := o.Turn
	o.Turn = func(c *chatctx.ChatContext, branch string, set map[string]json.RawMessage, told func(string)) *turn.Turn {
		if branch == "main" {
			told("a call ran with another tool")
		}
		return made(c, branch, set, told)
	}
	x := start(t, o, 130, 30)
	x.until("a1 assistant: Petrel.", "? keys")
	x.press("i")
	x.until("to the model on main")
	x.press("And another?", "enter")
	x.until("a2 assistant: I am **gpt-test**", "a call ran with another tool; answered on main: 7 tokens in, 3 out", "│I am gpt-test and was told 3 things.")
	x.press("r")
	x.until("retry with the model")
	x.press("\x15", "gpt-other", "enter")
	x.until("I am **gpt-other**", "‹main.2› active", "answered on main.2")
	x.press("A")
	x.until("ask several")
	x.press("\x15", "gpt-a, gpt-b", "enter")
	x.until("the message to gpt-a, gpt-b")
	x.press("Which one?", "enter")
	x.until("‹gpt-a›", "‹gpt-b›", "‹main.2› active u3 user: Which one?", "answered on gpt-", "not answering on")
	x.press("u")
	x.until("took back", "not ‹gpt-a›", "not Which one?")
}

// TestFailedAnswers: an empty or failed answer leaves no branch, whether it was asked for with r or A; a refused one is kept and marked.
func TestFailedAnswers(t *testing.T) {
	x := start(t, talking(t, asked(t), nil), 130, 24)
	x.until("a1 assistant: Petrel.", "? keys")
	for model, says := range map[string]string{"broken": "no such thing", "cut": "what came of the answer is unfinished", "empty": "the answer is empty"} {
		x.press("r")
		x.until("retry with the model")
		x.press("\x15", model, "enter")
		x.until(says, "1 branch, 2 messages", "‹main›", "not answering on")
	}
	x.press("r")
	x.until("retry with the model")
	x.press("\x15", "filtered", "enter")
	x.until("the answer on main.2 is kept back by the provider's filter (content_filter)", "‹main.2› active a1 assistant (refused): I had better", "kept back by the provider's filter)", "not answering on")
	x.press("u")
	x.until("took back", "1 branch, 2 messages")
	x.press("A")
	x.until("ask several")
	x.press("\x15", "broken, cut, empty, filtered, good", "enter")
	x.until("the message to broken")
	x.press("Which?", "enter")
	x.until("answered on good; refused on filtered; failed: broken, cut, empty (", "takes it back", "3 branches, 5 messages", "not answering on")
}

// TestModelOfConversation: o sets the model of the conversation, takes that of the active branch alone away, and is taken back by u.
func TestModelOfConversation(t *testing.T) {
	st := asked(t)
	c, err := st.Context(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	b := c.Begin("")
	b.Fork("other", chatctx.ForkOptions{Stay: true})
	b.SetSettings(map[string]json.RawMessage{"model": quoted("of-the-branch")})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := drive(t, talking(t, st, nil), 80, 24)
	model := func(want ...string) {
		t.Helper()
		for i, branch := range []string{"main", "other"} {
			all, err := c.Effective(t.Context(), branch)
			if got := word(all["model"]); err != nil || got != want[i] {
				t.Errorf("%s has the model %q, not %q (%v)", branch, got, want[i], err)
			}
		}
		if got := plain(d.model); want[0] != "" && !strings.Contains(got, "‹main›  "+want[0]) {
			t.Errorf("%s is not in the status:\n%s", want[0], got)
		}
	}
	d.press("o", "enter")
	model("of-the-branch", "")
	d.press("o", "x", "enter")
	model("of-the-branchx", "of-the-branchx")
	d.press("o", "ctrl+u", "enter")
	model("", "")
	d.press("u", "u")
	model("of-the-branch", "")
}

// TestAnsweredElsewhere: an answer that ends after another conversation was opened says where it is, and not that u takes it back there.
func TestAnsweredElsewhere(t *testing.T) {
	st := asked(t)
	if _, err := st.New(t.Context(), record.NewContext{Title: "Another"}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Use(t.Context(), "Boats"); err != nil {
		t.Fatal(err)
	}
	x := start(t, talking(t, st, nil), 130, 24)
	x.until("a1 assistant: Petrel.", "? keys")
	x.press("i")
	x.until("to the model on main")
	x.press("Slowly, please", "enter")
	x.until("│And the beginning of")
	x.press("esc", "/another", "enter")
	x.until("“Another”", "(beginning)", "answering on main, x stops", "not conversations")
	x.press("x")
	x.until("stopped; what came is kept, unfinished, in “Boats”")
}

// TestStop stops an answer; what arrived of it is kept.
func TestStop(t *testing.T) {
	st := asked(t)
	c, err := st.Context(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	o := talking(t, st, nil)
	x := start(t, o, 130, 30)
	x.until("a1 assistant: Petrel.", "? keys")
	x.press("r")
	x.until("retry with the model")
	x.press("\x15", "slow", "enter")
	x.until("│One paragraph that is whole.", "│And the beginning of", "answering on main.2, x stops")
	x.press("u")
	x.until("is writing an answer on branch \"main.2\"", "stop it with x")
	x.press("esc", "x") // in the list too
	x.until("stopped; what came is kept, unfinished", "not answering on")
	x.press("enter")
	x.until("‹main.2› active a1 assistant: One paragraph")
	snap, err := c.Snapshot(t.Context(), "main.2")
	if err != nil {
		t.Fatal(err)
	}
	if last, err := snap.Page(t.Context(), snap.Len(), snap.Len()); err != nil || !last[0].Unfinished || !strings.HasSuffix(last[0].Text(), "And the beginning of") {
		t.Errorf("%v %v", last, err)
	}
}

// leave types q twice, waits for the program's end, and returns the last message of a branch, nil if there is no such branch. No reply is running there any
// more.
func leave(t *testing.T, x *terminal, st *chatctx.Store, branch string) *chatctx.Entry {
	t.Helper()
	x.press("q")
	x.until("an answer still comes: q again stops it, keeps what came, and leaves")
	x.press("q")
	if err := <-x.ended; err != nil {
		t.Error(err)
	}
	x.ended <- nil
	c, err := st.Context(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := c.Snapshot(t.Context(), branch)
	if errors.Is(err, chatctx.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if claim, err := view.Running(t.Context(), base.ContextOf(c.Store(), c.ID), branch); err != nil || claim != nil {
		t.Errorf("somebody still answers: %v %v", claim, err)
	}
	last, err := snap.Page(t.Context(), snap.Len(), snap.Len())
	if err != nil {
		t.Fatal(err)
	}
	return last[0]
}

// TestLeaveWhileAnswering: the program ends, and what arrived is on the branch.
func TestLeaveWhileAnswering(t *testing.T) {
	st := asked(t)
	x := start(t, talking(t, st, nil), 130, 24)
	x.until("a1 assistant: Petrel.", "? keys")
	x.press("r")
	x.until("retry with the model")
	x.press("\x15", "slow", "enter")
	x.until("answering on main.2", "│And the beginning of")
	if last := leave(t, x, st, "main.2"); last == nil || !last.Unfinished || !strings.HasSuffix(last.Text(), "And the beginning of") {
		t.Errorf("the branch ends with %v", last)
	}
}

// TestLeaveAtOnce: leaving while the branch for an answer is created, or before words arrive, leaves no branch; if the program was just faster, it leaves the
// words that arrived.
func TestLeaveAtOnce(t *testing.T) {
	st := asked(t)
	x := start(t, talking(t, st, nil), 130, 24)
	x.until("a1 assistant: Petrel.", "? keys")
	x.press("r")
	x.until("retry with the model")
	x.press("\x15", "slow", "enter")
	if last := leave(t, x, st, "main.2"); last != nil && (!last.Unfinished || last.Role != pool.Assistant || last.Text() == "") {
		t.Errorf("the branch ends with %v", last)
	}
}

// TestStopAtOnce stops an answer before anything arrived: the typed text is kept.
func TestStopAtOnce(t *testing.T) {
	x := start(t, talking(t, asked(t), nil), 130, 24)
	x.until("a1 assistant: Petrel.", "? keys")
	x.press("r")
	x.until("retry with the model")
	x.press("\x15", "slow", "enter", "x")
	x.until("stopped", "not answering on")
}

// TestCalls decides a call after its arguments were changed, runs it, and goes on.
func TestCalls(t *testing.T) {
	ran := make(chan json.RawMessage, 1)
	x := start(t, talking(t, asked(t), func(raw json.RawMessage) { ran <- raw }), 130, 30)
	x.until("a1 assistant: Petrel.", "? keys")
	x.press("i")
	x.until("to the model on main")
	x.press("write it", "enter")
	x.until("1 call waits for your decision: a")
	x.press("a")
	x.until("1 call waits for a decision", `"path": "/nowhere/new.txt"`, `second \x202e line`, "+ first line", "ask: no rule decides")
	x.press("r")
	x.until("the reason")
	x.press("looks right", "enter")
	x.until("reason: looks right")
	x.press("e")
	x.until("the arguments of write_file")
	x.press("x", "enter") // no longer valid JSON
	x.until("that is not JSON", "the arguments of write_file", "}x")
	for range 3 { // over the lines, to delete all
		x.press("\x15\x7f")
	}
	x.press(strings.Repeat("\x15\x7f", 6), `{"path":"/nowhere/other.txt"}`, "enter")
	x.until("to be run with:", "/nowhere/other.txt", "y runs it")
	x.press("y")
	x.until("no call waits for a decision", "write_file is approved")
	x.press("q", "i")
	x.until("to the model on main")
	x.press("enter") // empty: go on
	x.until("a2 assistant: I am **gpt-test**", "tool: ← Run with other arguments")
	if got := string(<-ran); got != `{"path":"/nowhere/other.txt"}` {
		t.Errorf("ran with %s", got)
	}
}

// TestGoesOnElsewhere: a call of a conversation that is not open is approved, and g opens that one and goes on there.
func TestGoesOnElsewhere(t *testing.T) {
	x := start(t, talking(t, asked(t), func(json.RawMessage) {}), 130, 30)
	x.until("a1 assistant: Petrel.", "? keys")
	x.press("i")
	x.until("to the model on main")
	x.press("write it", "enter")
	x.until("1 call waits for your decision: a")
	x.press("esc")
	x.until("enter open")
	x.press("c")
	x.until("a new conversation: its title")
	x.press("Other", "enter")
	x.until("“Other”", "0 messages")
	x.press("a")
	x.until("1 call waits for a decision")
	x.press("y")
	x.until("no call waits for a decision", "g runs what was approved")
	x.press("g")
	x.until("a2 assistant: I am **gpt-test**", "a2 tool: ← written")
}

// TestAlways makes a rule from a waiting call.
func TestAlways(t *testing.T) {
	st := asked(t)
	x := start(t, talking(t, st, func(json.RawMessage) {}), 130, 30)
	x.until("a1 assistant: Petrel.", "? keys")
	x.press("i")
	x.until("to the model on main")
	x.press("write it", "enter")
	x.until("1 call waits for your decision: a")
	x.press("a")
	x.until("1 call waits for a decision")
	x.press("A")
	x.until("Allow from now on")
	x.press("G", "enter")
	x.until("no call waits for a decision", "g runs what was approved")
	x.press("g")
	x.until("a2 assistant: I am **gpt-test**", "not answering on")
	c, err := st.Context(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := st.Rules(t.Context(), c.ID)
	if err != nil || len(rules) != 1 || rules[0].Effect != record.Allow {
		t.Errorf("%v %v", rules, err)
	}
}

// TestBudgetOfTheServer: the window that Ollama reports for a model is the budget on the screen, as it is the budget of a request.
func TestBudgetOfTheServer(t *testing.T) {
	st := asked(t)
	const server = "http://127.0.0.1:9"
	if _, err := st.SetSettings(t.Context(), map[string]json.RawMessage{"model": quoted("m"), "provider": quoted("ollama"), "base_url": quoted(server)}); err != nil {
		t.Fatal(err)
	}
	if err := view.SetModelWindow(t.Context(), base.Of(st), server, "m", view.ModelWindow{Tokens: 8192, Sure: true}); err != nil {
		t.Fatal(err)
	}
	d := drive(t, Options{Store: st}, 80, 24)
	if d.conv == nil || d.conv.budget != 8192*3/4 {
		t.Errorf("the conversation that is open: %+v", d.conv)
	}
}
