package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

func TestRunDecidesAndRuns(t *testing.T) {
	b := newBench(t)
	allow := b.rule(record.Allow, "read")
	deny := b.rule(record.Deny, "rm")
	batch := b.c.Begin("")
	ask := record.Rule{ID: pool.NewID(), Effect: record.Ask, Tool: "write", After: time.Hour}
	batch.AddRule(ask, record.RuleScope{})
	b.commit(batch)
	m := b.ask("read", `{"path":"a"}`, "rm", `{}`, "write", `{}`, "other", `{}`)
	e := &Executor{Context: b.c, Functions: map[string]Function{
		"read": func(_ context.Context, in Invocation) (pool.Result, error) {
			return pool.Result{Text: "read " + string(in.Arguments)}, nil
		},
		"write": func(context.Context, Invocation) (pool.Result, error) {
			t.Error("it ran without a decision")
			return pool.Result{}, nil
		},
	}}
	goOn, err := e.Calls(t.Context(), "main", m, nil)
	if err != nil || goOn {
		t.Fatalf("goOn %t, %v", goOn, err)
	}
	for id, state := range map[string]string{"c1": "approved/done", "c2": "denied/none", "c3": "pending/none", "c4": "pending/none"} {
		if got := b.call(id).State(); got != state {
			t.Errorf("%s is %s, want %s", id, got, state)
		}
	}
	if d := b.call("c1").Decisions[0]; d.Kind != record.ByRule || d.Name != allow.ID.String() || d.Program != "test" || d.ArgsSHA256 == (pool.Hash{}) {
		t.Errorf("decided by %+v", d)
	}
	if d := b.call("c2").Decisions[0]; d.Name != deny.ID.String() {
		t.Errorf("decided by %+v", d)
	}
	if b.call("c3").Expires == 0 || b.call("c4").Expires != 0 {
		t.Error("the ask gave no time to expire, or another call got one")
	}
	decide(t, b, "c3", pool.Denied)
	decide(t, b, "c4", pool.Approved) // nobody here has that tool
	report, err := e.Run(t.Context(), "")
	if err != nil || len(report.Ran) != 0 || len(report.Waiting) != 1 || !strings.Contains(report.Waiting[0].Why, "a program that has the tool other") {
		t.Fatalf("%+v, %v", report, err)
	}
	e.Functions["other"] = func(context.Context, Invocation) (pool.Result, error) { panic("oh") }
	if goOn, err := e.Calls(t.Context(), "main", m, nil); err != nil || !goOn {
		t.Fatalf("goOn %t, %v", goOn, err)
	}
	if got := b.call("c4").State(); got != "approved/failed" {
		t.Errorf("a tool that panics leaves %s", got)
	}
}

func decide(t *testing.T, b *bench, id string, status pool.Status) {
	t.Helper()
	batch := b.c.Begin("")
	batch.Decide(record.CallRef(id), record.Verdict{Status: status})
	b.commit(batch)
}

// TestSeveralExecutorsRunEachCallOnce: they share the work, and a limit holds.
func TestSeveralExecutorsRunEachCallOnce(t *testing.T) {
	b := newBench(t)
	b.rule(record.Allow, "*")
	const calls = 60
	for range calls / 6 {
		b.ask("t", `{}`, "t", `{}`, "t", `{}`, "t", `{}`, "t", `{}`, "t", `{}`)
	}
	var mu sync.Mutex
	ran := map[string]int{}
	var now, most atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var own atomic.Int32
			e := &Executor{Context: b.c, Limit: 3, Functions: map[string]Function{"t": func(_ context.Context, in Invocation) (pool.Result, error) {
				if own.Add(1) > 3 {
					t.Error("more than the limit run at a time")
				}
				defer own.Add(-1)
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				mu.Lock()
				defer mu.Unlock()
				ran[in.Call.ID]++
				return pool.Result{Text: "ok"}, nil
			}}}
			if _, err := e.Run(context.Background(), ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(ran) != calls {
		t.Errorf("%d calls ran, want %d", len(ran), calls)
	}
	for id, n := range ran {
		if n != 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
}

// execute is an executor in a process of its own, that ends itself at a step of its first call.
func execute(args []string) int {
	s, err := chatctx.Open(args[0], chatctx.Options{Program: "executor", Judge: Rules{}})
	if err != nil {
		return print1(err)
	}
	defer s.Close()
	c, err := s.Context(context.Background(), "")
	if err != nil {
		return print1(err)
	}
	limit, _ := strconv.Atoi(args[2])
	e := &Executor{Context: c, Limit: limit, Show: func(ev Event) {
		if ev.Step == args[1] {
			killSelf()
		}
	}}
	if args[1] == "tool" {
		e.Functions = map[string]Function{"append": func(ctx context.Context, in Invocation) (pool.Result, error) {
			killSelf()
			return pool.Result{}, nil
		}}
	}
	_, err = e.Run(context.Background(), "")
	return print1(err)
}

// TestKilledExecutors: an executor is killed at each of its steps with call after call. No call runs twice unasked, none is lost.
func TestKilledExecutors(t *testing.T) {
	const calls = 12
	for seed := range testkit.Seeds(t, 2) {
		repeatable := seed%2 == 0
		t.Run(fmt.Sprintf("%d/repeatable=%t", seed, repeatable), func(t *testing.T) {
			b := newBench(t)
			b.rule(record.Allow, "*")
			file := filepath.Join(t.TempDir(), "ran")
			b.tool(record.Tool{Name: "append", Command: self(t, "append", file, "{id}"), Repeatable: repeatable})
			for i := range calls {
				b.ask("append", fmt.Sprintf(`{"id":"id%d"}`, i))
			}
			steps := []string{StepClaimed, "tool", StepEnded, StepResolved, "none at all"}
			for i := 0; ; i++ {
				step, limit := steps[(uint64(i)+seed/2)%4], "1"
				if i%7 == 6 {
					limit = "3"
				}
				if i >= 2*calls+8 {
					step = steps[4]
				}
				argv := self(t, "execute", b.file, step, limit)
				out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
				var exit *exec.ExitError
				if errors.As(err, &exit) && exit.ExitCode() != killed {
					t.Fatalf("the executor failed: %s", out)
				}
				if err == nil && (!repeatable || step == steps[4]) {
					break
				}
				if i > 3*calls+50 {
					t.Fatal("the executors do not come to an end")
				}
			}
			b.tally(file, calls, repeatable)
		})
	}
}

// tally holds what ran against what the store says.
func (b *bench) tally(file string, calls int, repeatable bool) {
	raw, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	ran := map[string]int{}
	for _, id := range strings.Fields(string(raw)) {
		ran[id]++
	}
	listed := map[string]bool{}
	for c, err := range b.store.Calls(context.Background(), record.CallFilter{}) {
		if err != nil {
			b.t.Fatal(err)
		}
		if c.Execution != pool.Uncertain {
			b.t.Errorf("%s is %s", c.ID, c.State())
		}
		listed[c.ID] = true
	}
	done := 0
	for i := range calls {
		c := b.call(fmt.Sprint("c", i+1))
		id := fmt.Sprint("id", i)
		if ran[id] > 1 && !repeatable {
			b.t.Errorf("%s ran %d times", id, ran[id])
		}
		switch c.State() {
		case "approved/done":
			if done++; ran[id] == 0 {
				b.t.Errorf("%s is done and never ran", id)
			}
		case "approved/uncertain":
			if repeatable || !listed[c.ID] {
				b.t.Errorf("%s is uncertain; listed: %t", id, listed[c.ID])
			}
		default:
			b.t.Errorf("%s is %s: it was lost", id, c.State())
		}
	}
	b.t.Logf("%d calls: %d done, %d uncertain, %d runs", calls, done, len(listed), len(strings.Fields(string(raw))))
}

// decideAll decides calls in a process of its own and prints which it won.
func decideAll(args []string) int {
	s, err := chatctx.Open(args[0], chatctx.Options{Program: "decider", Wait: time.Minute, Judge: Rules{}})
	if err != nil {
		return print1(err)
	}
	defer s.Close()
	n, _ := strconv.Atoi(args[1])
	from, _ := strconv.Atoi(args[2])
	for i := range n {
		k := (i + from) % n
		b := s.Begin("", "")
		b.Decide(record.CallRef(fmt.Sprint("c", k+1)), record.Verdict{Status: []pool.Status{pool.Approved, pool.Denied}[from%2]})
		_, err := b.Commit(context.Background())
		switch {
		case err == nil:
			fmt.Println("won", k)
		case errors.Is(err, chatctx.ErrConflict):
			fmt.Println("lost", k)
		default:
			return print1(err)
		}
	}
	return 0
}

// TestProcessesDecideOnce: 8 processes decide the same 1,000 calls.
func TestProcessesDecideOnce(t *testing.T) {
	const calls, deciders = 1000, 8
	b := newBench(t)
	words := make([]string, 0, 200)
	for range calls {
		if words = append(words, "t", `{}`); len(words) == 200 {
			b.ask(words...)
			words = words[:0]
		}
	}
	outs := make([][]byte, deciders)
	var wg sync.WaitGroup
	for i := range deciders {
		wg.Go(func() {
			argv := self(t, "decide", b.file, fmt.Sprint(calls), fmt.Sprint(i*calls/deciders+i))
			out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
			if outs[i] = out; err != nil {
				t.Errorf("decider %d: %v: %s", i, err, tail(string(out)))
			}
		})
	}
	wg.Wait()
	won, lost := map[string]int{}, 0
	for _, out := range outs {
		for line := range strings.Lines(string(out)) {
			if id, ok := strings.CutPrefix(strings.TrimSpace(line), "won "); ok {
				won[id]++
			} else {
				lost++
			}
		}
	}
	if len(won) != calls || lost != calls*(deciders-1) {
		t.Errorf("%d calls were decided, %d times a decider lost; want %d and %d", len(won), lost, calls, calls*(deciders-1))
	}
	for id, n := range won {
		if n != 1 {
			t.Errorf("call %s was decided %d times", id, n)
		}
	}
}

func TestMCPServers(t *testing.T) {
	release := make(chan struct{})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return testServer(release) }, nil))
	defer web.Close()
	defer close(release)
	usual := pingWait
	defer func() { pingWait = usual }()
	pingWait = time.Minute // the server lives, and answers however slowly
	for name, tool := range map[string]record.Tool{
		"stdio": {Name: "srv", MCP: true, Command: self(t, "mcp")},
		"http":  {Name: "srv", MCP: true, URL: web.URL},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.rule(record.Allow, "srv__*")
			var err error
			if tool.Remotes, _, err = Discover(t.Context(), &tool); err != nil {
				t.Fatal(err)
			}
			if len(tool.Remotes) != 4 || tool.Remotes[0].Name != "echo" || !strings.Contains(string(tool.Remotes[0].Schema), "words") {
				t.Fatalf("it offers %+v", tool.Remotes)
			}
			b.tool(tool)
			d, err := b.c.Draft(t.Context(), "")
			if err != nil || len(d.Tools) != 4 || d.Tools[0].Name != "srv__echo" || !json.Valid(d.Tools[0].Schema) {
				t.Fatalf("the draft has the tools %+v, %v", d.Tools, err)
			}
			e := &Executor{}
			defer e.Close()
			if r := b.runOne(e, "srv__echo", `{"words":"hello; $(x)"}`); r.Text != "heard: hello; $(x)" || r.IsError {
				t.Errorf("it says %+v", r)
			}
			if r := b.runOne(e, "srv__echo", `{"words":"fail"}`); !r.IsError || !strings.Contains(r.Text, "told to fail") {
				t.Errorf("it says %+v", r)
			}
			if r := b.runOne(e, "srv__picture", `{}`); len(r.Parts) != 2 || r.Parts[1].Type != pool.ImagePart {
				t.Errorf("it says %+v", r)
			}
			who := b.runOne(e, "srv__who", `{}`).Text
			tool.Timeout = time.Second // it is the same server
			b.tool(tool)
			if r := b.runOne(e, "srv__sleep", `null`); !r.IsError || !strings.Contains(r.Text, "time limit") {
				t.Errorf("it says %+v", r)
			}
			tool.Timeout = 0
			b.tool(tool)
			if r := b.runOne(e, "srv__echo", `{"words":"still there"}`); r.Text != "heard: still there" {
				t.Errorf("after a call that was ended it says %+v", r)
			}
			if r := b.runOne(e, "srv__who", `{}`); r.Text != who {
				t.Errorf("one call's error ended the server: it was process %s and is %s", who, r.Text)
			}
		})
	}
}

// TestABrokenSchemaIsLeftOut and named; the server's other tools stay.
func TestABrokenSchemaIsLeftOut(t *testing.T) {
	b := newBench(t)
	b.rule(record.Allow, "srv__*")
	server := record.Tool{Name: "srv", MCP: true, Command: self(t, "mcp-broken")}
	remotes, leftOut, err := Discover(t.Context(), &server)
	if err != nil {
		t.Fatal(err)
	}
	if len(remotes) != 1 || remotes[0].Name != "good" || len(leftOut) != 1 || leftOut[0].Name != "broken" || leftOut[0].Why == "" {
		t.Fatalf("it offers %+v and leaves out %+v", remotes, leftOut)
	}
	server.Remotes = remotes
	b.tool(server)
	e := &Executor{}
	defer e.Close()
	if r := b.runOne(e, "srv__good", `{"a":"x"}`); r.Text != "good" || r.IsError {
		t.Errorf("it says %+v", r)
	}
}

// TestHeadersGoToTheServerAlone, with values that are in the environment and nowhere else.
func TestHeadersGoToTheServerAlone(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		elsewhere.Add(1)
		if r.Header.Get("X-Key") != "" {
			t.Error("a header went to a host that the server sent to")
		}
	}))
	defer other.Close()
	release := make(chan struct{})
	defer close(release)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return testServer(release) }, nil)
	astray := false
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case astray:
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case r.Header.Get("X-Key") != "sesame-17":
			http.Error(w, "who are you?", http.StatusUnauthorized)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	defer web.Close()
	server := record.Tool{Name: "srv", MCP: true, URL: web.URL, Headers: map[string]string{"X-Key": "TEST_MCP_KEY"}}
	if _, _, err := Discover(t.Context(), &server); err == nil || !strings.Contains(err.Error(), "TEST_MCP_KEY") {
		t.Errorf("without the variable: %v", err)
	}
	t.Setenv("TEST_MCP_KEY", "wrong-18")
	if _, _, err := Discover(t.Context(), &server); err == nil || strings.Contains(err.Error(), "wrong-18") {
		t.Errorf("with a wrong value: %v", err)
	}
	t.Setenv("TEST_MCP_KEY", "sesame-17")
	remotes, _, err := Discover(t.Context(), &server)
	if err != nil || len(remotes) == 0 {
		t.Fatalf("with its header it offers %v, %v", remotes, err)
	}
	b := newBench(t)
	server.Remotes = remotes
	b.tool(server)
	if raw, err := os.ReadFile(b.file); err != nil || bytes.Contains(raw, []byte("sesame-17")) {
		t.Errorf("the value is in the store, %v", err)
	}
	astray = true
	if _, _, err := Discover(t.Context(), &server); err == nil {
		t.Error("a server that sends elsewhere is one")
	}
	if elsewhere.Load() == 0 {
		t.Error("nothing was sent elsewhere")
	}
}

// TestAnExecutorThatSlept finds its claim taken when it wakes, and records nothing.
func TestAnExecutorThatSlept(t *testing.T) {
	for _, taken := range []bool{false, true} {
		var ahead atomic.Int64
		s, err := chatctx.OpenMemory(chatctx.Options{Program: "test", Judge: Rules{}, Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.New(t.Context(), record.NewContext{Messages: []*chatctx.Message{pool.NewText(pool.User, "go"),
			{Role: pool.Assistant, Calls: []pool.Call{{ID: "c1", Tool: "long", Arguments: json.RawMessage(`{}`)}}}}})
		if err != nil {
			t.Fatal(err)
		}
		begun := make(chan struct{})
		e := &Executor{Context: c, Allowed: map[string]bool{"long": true}, Functions: map[string]Function{"long": func(ctx context.Context, _ Invocation) (pool.Result, error) {
			close(begun)
			<-ctx.Done()
			return pool.Result{}, ctx.Err()
		}}}
		done := make(chan error)
		go func() {
			_, err := e.Run(context.Background(), "")
			done <- err
		}()
		<-begun
		ahead.Store(int64(2 * chatctx.ClaimLife)) // as if the machine had slept; somebody else looks first
		want := "approved/uncertain"
		if taken {
			want = "approved/running"
			if _, err := s.ClaimCall(t.Context(), "", "", "c1", record.ClaimOptions{Again: true}); err != nil {
				t.Fatal(err)
			}
		} else if err := toolcall.SettleBranch(t.Context(), base.ContextOf(c.Store(), c.ID), ""); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("the executor fails: %v", err)
		}
		call, err := s.Call(t.Context(), "", "", "c1")
		if err != nil || call.State() != want {
			t.Errorf("the call is %s, want %s; %v", call.State(), want, err)
		}
		if info, err := c.Branch(t.Context(), ""); err != nil || info.Messages != 2 {
			t.Errorf("the branch has %d messages, %v", info.Messages, err)
		}
		s.Close()
	}
}
