package subtask

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// TestMain makes the test's program end a task, too, and die at it.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "+return" {
		os.Exit(returnAndDie(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// model is a server that speaks OpenAI's wire and answers each request by a function of its body.
type model struct {
	mu     sync.Mutex
	bodies []string
	url    string
}

func newModel(t *testing.T, answer func(body string) string) *model {
	m := &model{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		m.mu.Lock()
		m.bodies = append(m.bodies, string(raw))
		m.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		for _, chunk := range []string{answer(string(raw)), `{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10}}`, "[DONE]"} {
			fmt.Fprintf(w, "data: %s\n\n", chunk)
		}
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

func text(s string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"role":"assistant","content":%s},"finish_reason":"stop"}]}`, jsontree.Quote(s))
}

func calls(id, tool, args string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]},"finish_reason":"tool_calls"}]}`,
		id, tool, jsontree.Quote(args))
}

func newStore(t *testing.T, file string) *chatctx.Store {
	t.Helper()
	return storetest.Open(t, file, chatctx.Options{Create: true, Program: "test", By: "ann", Judge: approval.Rules{}})
}

func newParent(t *testing.T, s *chatctx.Store, m *model) *chatctx.ChatContext {
	t.Helper()
	n := record.NewContext{Title: "parent", Messages: []*chatctx.Message{pool.NewText(pool.User, "find it out")}, Settings: map[string]json.RawMessage{}}
	if m != nil {
		n.Settings = map[string]json.RawMessage{"model": jsontree.Quote("m"), "provider": jsontree.Quote("openai"), "base_url": jsontree.Quote(m.url)}
	}
	c, err := s.New(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func start(t *testing.T, parent *chatctx.ChatContext, o Options) *chatctx.ChatContext {
	t.Helper()
	child, err := Start(t.Context(), parent, "", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return child
}

func info(t *testing.T, c *chatctx.ChatContext) *record.TaskInfo {
	t.Helper()
	i, err := c.TaskInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func head(t *testing.T, c *chatctx.ChatContext) *chatctx.Message {
	t.Helper()
	snap, err := c.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	e, err := snap.Find(t.Context(), "@")
	if err != nil {
		t.Fatal(err)
	}
	return e.Message
}

func getenv(name string) string {
	if name == "OPENAI_API_KEY" {
		return "key"
	}
	return ""
}

func TestATaskReturnsItsSummary(t *testing.T) {
	m := newModel(t, func(string) string { return text("it is 42") })
	s := newStore(t, "")
	parent := newParent(t, s, m)
	b := parent.Begin("")
	b.PutTool(record.Tool{Name: "look"})
	b.AddRule(record.Rule{Effect: record.Allow, Tool: "look"}, record.RuleScope{})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	child := start(t, parent, Options{Goal: "find the number", Settings: map[string]json.RawMessage{"mode": jsontree.Quote("plan")}})
	if i := info(t, child); i.State != record.TaskRunning || i.Depth != 1 || i.Parent != parent.ID || i.BranchName != "main" {
		t.Errorf("the task is %+v", i)
	}
	if tools, err := view.OfferedTools(t.Context(), base.Of(s), child.ID); err != nil || len(tools) != 1 {
		t.Errorf("it has the tools %v, %v", tools, err)
	}
	if rules, err := s.Rules(t.Context(), child.ID); err != nil || len(rules) != 1 {
		t.Errorf("the rules %v hold for it, %v", rules, err)
	}
	r := &Runner{Turn: func(c *chatctx.ChatContext) *turn.Turn { return &turn.Turn{Context: c, Getenv: getenv} }}
	out, err := r.Run(t.Context(), child)
	if err != nil || out.State != record.TaskReturned || out.Summary != "it is 42" || out.Ended.Kept {
		t.Fatalf("%+v, %v", out, err)
	}
	h := head(t, parent)
	if h.Role != pool.User || h.Kind != "summary" || !strings.Contains(h.Text(), "find the number") || !strings.HasSuffix(h.Text(), "it is 42") {
		t.Errorf("the parent has %s %q", h.Role, h.Text())
	}
	if !strings.Contains(string(h.AppData["subtask"]), child.ID.String()) {
		t.Errorf("it links to %s", h.AppData["subtask"])
	}
	if i := info(t, child); i.State != record.TaskReturned || i.Summary != h.ID || i.Trashed == 0 {
		t.Errorf("the child is %s, %s, trashed %d", i.State, i.Summary, i.Trashed)
	}
	if _, err := r.Run(t.Context(), child); !errors.Is(err, chatctx.ErrConflict) {
		t.Errorf("running it again gives %v", err)
	}
	if _, err := Abandon(t.Context(), child, ""); !errors.Is(err, chatctx.ErrConflict) || !strings.Contains(err.Error(), "returned") {
		t.Errorf("abandoning it gives %v", err)
	}
}

// TestATaskElsewhereHasNoKeyOfItsParent: another address, or another provider, takes nothing along that belongs to the parent's.
func TestATaskElsewhereHasNoKeyOfItsParent(t *testing.T) {
	s := newStore(t, "")
	parent, err := s.New(t.Context(), record.NewContext{Title: "parent", Messages: []*chatctx.Message{pool.NewText(pool.User, "go")}, Settings: map[string]json.RawMessage{
		"provider": jsontree.Quote("openai"), "base_url": jsontree.Quote("http://127.0.0.1:1/v1"), "key_env": jsontree.Quote("MINE"), "model": jsontree.Quote("m"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ set, want map[string]string }{
		{nil, map[string]string{"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "key_env": "MINE", "model": "m"}},
		{map[string]string{"base_url": "http://127.0.0.1:2/v1"}, map[string]string{"provider": "openai", "base_url": "http://127.0.0.1:2/v1", "model": "m"}},
		{map[string]string{"base_url": "http://127.0.0.1:2/v1", "key_env": "ITS"}, map[string]string{"provider": "openai", "base_url": "http://127.0.0.1:2/v1", "key_env": "ITS", "model": "m"}},
		{map[string]string{"provider": "anthropic", "model": "c"}, map[string]string{"provider": "anthropic", "model": "c"}},
	} {
		set := map[string]json.RawMessage{}
		for k, v := range c.set {
			set[k] = jsontree.Quote(v)
		}
		child := start(t, parent, Options{Goal: "find out", Settings: set})
		have, err := child.Effective(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"provider", "base_url", "key_env", "model"} {
			if got := string(have[name]); got != string(jsontree.Quote(c.want[name])) && (got != "" && got != "null" || c.want[name] != "") {
				t.Errorf("with %v its %s is %s, want %q", c.set, name, got, c.want[name])
			}
		}
	}
	if _, err := Start(t.Context(), parent, "", Options{Goal: "x", Settings: map[string]json.RawMessage{"nosuch": jsontree.Quote("x")}}, nil); err == nil {
		t.Error("a setting that there is not is taken")
	}
}

func TestEndingsOfTasks(t *testing.T) {
	s := newStore(t, "")
	parent := newParent(t, s, nil)
	before := head(t, parent).ID
	a := start(t, parent, Options{Goal: "a", Keep: true})
	if _, err := Return(t.Context(), a, Given("done"), "", false); err != nil {
		t.Fatal(err)
	}
	if i := info(t, a); i.Trashed != 0 || i.State != record.TaskReturned {
		t.Errorf("a task that is to be kept is %s, trashed %d", i.State, i.Trashed)
	}
	b := start(t, parent, Options{Goal: "b"})
	if _, err := Abandon(t.Context(), b, "no longer needed"); err != nil {
		t.Fatal(err)
	}
	if i := info(t, b); i.State != record.TaskAbandoned || i.Reason != "no longer needed" || i.Trashed == 0 {
		t.Errorf("an abandoned task is %+v", i.Task)
	}
	if got := head(t, parent); got.ID == before || !strings.HasSuffix(got.Text(), "done") {
		t.Errorf("the parent ends with %q", got.Text())
	}
	c := start(t, parent, Options{Goal: "c"})
	if _, err := Return(t.Context(), c, Digest, "", true); err != nil {
		t.Fatal(err)
	}
	if got := head(t, parent).Text(); !strings.Contains(got, "asked: c") {
		t.Errorf("the digest is %q", got)
	}
	list, err := List(t.Context(), parent, ListOptions{Deep: true, Ended: true})
	if err != nil || len(list) != 3 {
		t.Errorf("%d tasks are listed, %v", len(list), err)
	}
	if _, err := Start(t.Context(), parent, "", Options{Goal: " "}, nil); !errors.Is(err, chatctx.ErrInvalid) {
		t.Errorf("a task without a goal gives %v", err)
	}
	if _, err := Start(t.Context(), parent, "nowhere", Options{Goal: "x"}, nil); !errors.Is(err, chatctx.ErrNotFound) {
		t.Errorf("a branch that is not there gives %v", err)
	}
}

func TestTasksWhoseParentIsGone(t *testing.T) {
	s := newStore(t, "")
	parent := newParent(t, s, nil)
	b := parent.Begin("")
	b.Fork("side", chatctx.ForkOptions{})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	child := start(t, parent, Options{Goal: "a"})
	b = parent.Begin("")
	b.Switch("main")
	b.RemoveBranch("side")
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if i := info(t, child); !i.BranchGone || i.ParentGone {
		t.Errorf("branch gone %t, parent gone %t", i.BranchGone, i.ParentGone)
	}
	if _, err := Return(t.Context(), child, Given("x"), "", false); !errors.Is(err, chatctx.ErrConflict) || !strings.Contains(err.Error(), "side") {
		t.Errorf("returning to a branch that is gone gives %v", err)
	}
	if i := info(t, child); i.State != record.TaskRunning {
		t.Errorf("the task is %s after that", i.State)
	}
	if _, err := Return(t.Context(), child, Given("x"), "main", false); err != nil {
		t.Errorf("returning to another branch: %v", err)
	}
	other := start(t, parent, Options{Goal: "b"})
	if _, err := s.Trash(t.Context(), parent.ID.String()); err != nil {
		t.Fatal(err)
	}
	if i := info(t, other); !i.ParentGone {
		t.Error("the parent lies in the trash, and the child does not say so")
	}
	if _, err := Return(t.Context(), other, Given("x"), "", false); !errors.Is(err, chatctx.ErrConflict) {
		t.Errorf("returning to a parent in the trash gives %v", err)
	}
	if _, err := Abandon(t.Context(), other, "its parent is gone"); err != nil {
		t.Errorf("abandoning it: %v", err)
	}
}

func TestLimitsOfTasks(t *testing.T) {
	m := newModel(t, func(string) string { return calls("c", "look", `{}`) }) // it never stops
	s := newStore(t, "")
	parent := newParent(t, s, m)
	run := func(o Options) *Outcome {
		t.Helper()
		child := start(t, parent, o)
		r := &Runner{Turn: func(c *chatctx.ChatContext) *turn.Turn {
			e := &approval.Executor{Context: c, Allowed: map[string]bool{"look": true}, Functions: map[string]approval.Function{
				"look": func(context.Context, approval.Invocation) (pool.Result, error) {
					return pool.Result{Text: "nothing"}, nil
				}}}
			return &turn.Turn{Context: c, Calls: e.Calls, Getenv: getenv}
		}}
		out, err := r.Run(t.Context(), child)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := run(Options{Goal: "a", MaxRounds: 3}); out.State != record.TaskFailed {
		t.Errorf("after 3 rounds it is %s", out.State)
	}
	m.mu.Lock()
	rounds := len(m.bodies)
	m.mu.Unlock()
	if rounds != 3 {
		t.Errorf("the model was asked %d times", rounds)
	}
	if out := run(Options{Goal: "b", MaxTokens: 250}); out.State != record.TaskFailed || !strings.Contains(out.Summary, "limit") {
		t.Errorf("after 250 tokens it is %s: %s", out.State, out.Summary)
	}
	c := start(t, parent, Options{Goal: "1", MaxDepth: 2})
	c = start(t, c, Options{Goal: "2"})
	if _, err := Start(t.Context(), c, "", Options{Goal: "3"}, nil); !errors.Is(err, chatctx.ErrConflict) {
		t.Errorf("a third level gives %v", err)
	}
}

// TestAModelSpawnsATask: the call runs while the child waits for a person, and is answered by the child's return; then the parent goes on.
func TestAModelSpawnsATask(t *testing.T) {
	m := newModel(t, func(body string) string {
		switch {
		case strings.Contains(body, "found by the child"):
			return text("the parent knows")
		case strings.Contains(body, "a secret was seen"):
			return text("found by the child")
		case strings.Contains(body, "child goal"):
			if strings.Contains(body, "find it out") {
				t.Error("the child was asked with the parent's words")
			}
			return calls("look1", "look", `{"at":"x"}`)
		}
		return calls("spawn1", Tool().Name, `{"goal":"child goal"}`)
	})
	s := newStore(t, "")
	parent := newParent(t, s, m)
	b := parent.Begin("")
	b.PutTool(record.Tool{Name: "look"})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := &Runner{}
	look := func(context.Context, approval.Invocation) (pool.Result, error) {
		return pool.Result{Text: "a secret was seen"}, nil
	}
	turnFor := func(c *chatctx.ChatContext) *turn.Turn {
		e := &approval.Executor{Context: c, Functions: map[string]approval.Function{"look": look, Tool().Name: r.Spawn(c, Options{})}, Allowed: map[string]bool{Tool().Name: true}}
		return &turn.Turn{Context: c, Calls: e.Calls, Getenv: getenv}
	}
	r.Turn = turnFor
	out, err := turnFor(parent).Send(t.Context(), pool.NewText(pool.User, "go"))
	if err != nil || out.Waiting != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	var waiting []string
	for c, err := range s.Calls(t.Context(), record.CallFilter{Context: parent.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, c.Tool+" "+c.State())
	}
	if strings.Join(waiting, ", ") != "spawn_task approved/running, look pending/none" {
		t.Fatalf("the queue of the parent is %v", waiting)
	}
	tasks, err := List(t.Context(), parent, ListOptions{Deep: true})
	if err != nil || len(tasks) != 1 || tasks[0].State != record.TaskWaiting {
		t.Fatalf("%+v, %v", tasks, err)
	}
	child, err := s.Context(t.Context(), tasks[0].ContextInfo.ID.String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ResolveCall(t.Context(), parent.ID.String(), "", "spawn1", record.CallAnswer{Result: pool.Result{Text: "x"}, Token: pool.NewID()}); !errors.Is(err, chatctx.ErrConflict) {
		t.Errorf("somebody else answers for the child: %v", err)
	}
	b = child.Begin("")
	b.Decide("look1", record.Verdict{Status: pool.Approved})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	done, err := r.Run(t.Context(), child)
	if err != nil || done.State != record.TaskReturned || done.Ended.CallState != "approved/done" {
		t.Fatalf("%+v, %v", done, err)
	}
	if h := head(t, parent); h.Role != pool.ToolRole || h.Result.RequestID != "spawn1" || h.Result.Text != "found by the child" {
		t.Errorf("the parent ends with %+v", h.Result)
	}
	out, err = turnFor(parent).Send(t.Context())
	if err != nil || out.Waiting != 0 || out.Reply().Text() != "the parent knows" {
		t.Fatalf("%+v, %v", out, err)
	}
}

// returnAndDie returns a task in a process of its own that is killed when step writes were made. The store's file is what a crash leaves.
func returnAndDie(file, id string) int {
	s, err := chatctx.Open(file, chatctx.Options{Program: "dying", Judge: approval.Rules{}})
	if err != nil {
		return 1
	}
	child, err := s.Context(context.Background(), id)
	if err != nil {
		return 1
	}
	fmt.Println("ready")
	if _, err := Return(context.Background(), child, Given("the summary"), "", false); err != nil {
		return 2
	}
	fmt.Println("returned")
	select {}
}

// TestAReturnThatIsKilled: at any point the parent has the summary once or not at all, and the child knows which.
func TestAReturnThatIsKilled(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "chats.db")
	parent := newParent(t, newStore(t, file), nil)
	tasks, returned := 0, 0
	for i := range testkit.Seeds(t, 20) {
		tasks++
		child := start(t, parent, Options{Goal: fmt.Sprint("task", i)})
		before := head(t, parent).ID
		cmd := exec.Command(exe, "+return", file, child.ID.String())
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		lines.Scan()              // it is about to return
		for range i % 20 * 2000 { // let it come a different way each time
			_ = before[0]
		}
		if i%3 == 2 {
			lines.Scan()
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		after := head(t, parent)
		state := info(t, child)
		switch {
		case after.ID == before:
			if state.State != record.TaskRunning {
				t.Errorf("the parent has nothing, and the child is %s", state.State)
			}
			if _, err := Return(t.Context(), child, Given("the summary"), "", false); err != nil {
				t.Errorf("returning it after the crash: %v", err)
			}
		default:
			returned++
			if state.State != record.TaskReturned || state.Summary != after.ID {
				t.Errorf("the parent has the summary, and the child is %s with %s", state.State, state.Summary)
			}
			if _, err := Return(t.Context(), child, Given("the summary"), "", false); !errors.Is(err, chatctx.ErrConflict) {
				t.Errorf("a second return gives %v", err)
			}
		}
	}
	b, err := parent.Branch(t.Context(), "")
	if err != nil || b.Messages != 1+tasks {
		t.Errorf("the parent has %d messages, want each summary once: %v", b.Messages, err)
	}
	t.Logf("%d of %d had returned when they were killed", returned, tasks)
}

// TestCarryOnLeavesWhatHasNotBegun: a task that nobody ran is not set going, and one whose calls are decided goes on to its end.
func TestCarryOnLeavesWhatHasNotBegun(t *testing.T) {
	m := newModel(t, func(body string) string {
		if strings.Contains(body, `"role":"tool"`) {
			return text("seven boats")
		}
		return calls("c1", "look", `{}`)
	})
	s := newStore(t, "")
	parent := newParent(t, s, m)
	tools := parent.Begin("")
	tools.PutTool(record.Tool{Name: "look"})
	if _, err := tools.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := &Runner{}
	child := start(t, parent, Options{Goal: "count"})
	if done, err := r.CarryOn(t.Context(), parent, ""); err != nil || len(done) != 0 {
		t.Fatalf("a task that has not begun goes on: %+v, %v", done, err)
	}
	if out, err := r.Run(t.Context(), child); err != nil || out.State != record.TaskWaiting {
		t.Fatalf("%+v, %v", out, err)
	}
	if done, err := r.CarryOn(t.Context(), parent, ""); err != nil || len(done) != 1 || done[0].Outcome.State != record.TaskWaiting {
		t.Fatalf("a task whose call waits: %+v, %v", done, err)
	}
	b := child.Begin("")
	b.Decide("c1", record.Verdict{Status: pool.Denied, Reason: "by eye"})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	done, err := r.CarryOn(t.Context(), parent, "")
	if err != nil || len(done) != 1 || done[0].Outcome == nil || done[0].Outcome.State != record.TaskReturned || !strings.Contains(head(t, parent).Text(), "seven boats") {
		t.Fatalf("a task whose call is decided: %+v, %v", done, err)
	}
	if done, err := r.CarryOn(t.Context(), parent, ""); err != nil || len(done) != 0 {
		t.Errorf("a task that has returned goes on: %+v, %v", done, err)
	}
}
