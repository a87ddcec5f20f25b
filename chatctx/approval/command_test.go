package approval

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

func TestExpand(t *testing.T) {
	args := `{"path":"a b; rm","n":-3,"text":"-3.5","deep":{"x":"y"},"list":[1,"{path}"],"none":null,"brace":"{n}","big":12345678901234567890,"dash":"-rf","lone":"-"}`
	for _, c := range []struct {
		template []string
		want     []string
	}{
		{[]string{"cat", "{path}"}, []string{"cat", "a b; rm"}},
		{[]string{"x", "--file={path}:{n}"}, []string{"x", "--file=a b; rm:-3"}},
		{[]string{"x", "{deep.x}", "{list}", "{list[1]}"}, []string{"x", "y", `[1,"{path}"]`, "{path}"}},
		{[]string{"x", "{missing?}", "--k={missing?}", "{none?}", "end"}, []string{"x", "end"}},
		{[]string{"x", "{brace}"}, []string{"x", "{n}"}},
		{[]string{"x", "{}"}, []string{"x", args}},
		{[]string{"x", `{"a": 1}`, "{", "}", "{ x }", "a{b"}, []string{"x", `{"a": 1}`, "{", "}", "{ x }", "a{b"}},
		{[]string{"x", "{big}", "{n}", "{text}"}, []string{"x", "12345678901234567890", "-3", "-3.5"}},
		{[]string{"x", "--", "{dash}"}, []string{"x", "--", "-rf"}},
		{[]string{"x", "--k={dash}"}, []string{"x", "--k=-rf"}},
	} {
		got, err := expand(&record.Tool{Command: c.template}, json.RawMessage(args))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q gives %q, %v, want %q", c.template, got, err, c.want)
		}
	}
	if got, err := expand(&record.Tool{Command: []string{"x", "{dash}"}, Dashes: true}, json.RawMessage(args)); err != nil || got[1] != "-rf" {
		t.Errorf("a tool with dashes gives %q, %v", got, err)
	}
	for _, c := range []struct {
		template []string
		args     string
		says     string
	}{
		{nil, `{}`, "no command"}, {[]string{"{cmd}"}, `{}`, "cmd is missing"}, {[]string{"{cmd?}"}, `{}`, "command's own name"}, {[]string{"x", "{a}"}, `{"a":"\u0000"}`, "zero byte"},
		{[]string{"x"}, `{`, "cannot be read"}, {[]string{"x", "{a}"}, `{"a":1,"a":2}`, "twice"}, {[]string{"x", "{a}"}, `{"a":"\ud800"}`, "is not text"},
		{[]string{"grep", "{pattern}", "--", "{path}"}, `{"pattern":"key"}`, "path is missing"}, {[]string{"x", "{a}"}, `{"a":null}`, "a is missing"},
		{[]string{"x", "{dash}"}, args, "dash"}, {[]string{"x", "{lone}"}, args, "dash"}, {[]string{"x", "-{dash}"}, args, "dash"}, {[]string{"x", "{dash}", "--"}, args, "dash"},
		{[]string{"x", "a{dash}=1"}, args, "dash"}, {[]string{"x", "{deep.z}"}, args, "deep.z is missing"}, {[]string{"x", "{Path}"}, args, "Path is missing"},
	} {
		if got, err := expand(&record.Tool{Command: c.template}, json.RawMessage(c.args)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q with %s gives %q, %v", c.template, c.args, got, err)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("--x={a}", `{"a":"{b}"}`)
	f.Add("{", `{}`)
	f.Fuzz(func(t *testing.T, element, value string) {
		raw, err := json.Marshal(map[string]string{"a": value})
		if err != nil {
			t.Skip()
		}
		argv, err := expand(&record.Tool{Command: []string{"x", "--", "{a}", element}}, raw)
		if err != nil {
			return
		}
		var back map[string]string
		if err := json.Unmarshal(raw, &back); err != nil || argv[2] != back["a"] {
			t.Errorf("%q arrives as %q", back["a"], argv[2])
		}
	})
}

// TestArgumentsArriveAsTheyAre: there is no shell that could read them.
func TestArgumentsArriveAsTheyAre(t *testing.T) {
	b := newBench(t)
	b.rule(record.Allow, "*")
	b.tool(record.Tool{Name: "say", Command: self(t, "args", "x={b}", "--", "{a}")})
	e := &Executor{}
	for _, v := range []string{"a;b", "$(touch /nowhere/x)", "`id`", "one\ntwo", "-rf", "--", "*", "~", "%PATH% $HOME ${HOME}", "'\"\\", "", " ", "&& true | cat > x", "ünï", "{b}"} {
		raw, err := json.Marshal(map[string]string{"a": v, "b": v})
		if err != nil {
			t.Fatal(err)
		}
		r := b.runOne(e, "say", string(raw))
		var got []string
		if err := json.Unmarshal([]byte(r.Text), &got); err != nil || !slices.Equal(got, []string{"x=" + v, "--", v}) {
			t.Errorf("%q arrives as %q, %v", v, got, err)
		}
	}
}

func TestTheEnvironmentIsClean(t *testing.T) {
	t.Setenv("SECRET_KEY", "hunter2")
	b := newBench(t)
	b.rule(record.Allow, "*")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b.tool(record.Tool{Name: "env", Command: self(t, "env"), Env: map[string]string{"MINE": "1"}})
	b.tool(record.Tool{Name: "pwd", Command: self(t, "pwd"), Dir: dir})
	env := b.runOne(&Executor{}, "env", `{}`).Text
	if strings.Contains(env, "hunter2") || !strings.Contains(env, `"MINE=1"`) || !strings.Contains(env, "CHATCTX_CALL=") || !strings.Contains(env, "PATH=") {
		t.Errorf("the environment is %s", env)
	}
	if got := strings.TrimSpace(b.runOne(&Executor{}, "pwd", `{}`).Text); got != dir {
		t.Errorf("it runs in %s, want %s", got, dir)
	}

	b.tool(record.Tool{Name: "here", Command: self(t, "pwd")})
	t.Setenv("CHATCTX_CALLS_FOLDER", dir)
	if got := strings.TrimSpace(b.runOne(&Executor{}, "here", `{}`).Text); got != dir {
		t.Errorf("a tool without a folder runs in %s, want that of the environment, %s", got, dir)
	}
}

func TestHostileTools(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	b := newBench(t)
	b.rule(record.Allow, "*")
	b.tool(record.Tool{Name: "nowhere", Command: []string{filepath.Join(t.TempDir(), "not there")}})
	b.tool(record.Tool{Name: "leave", Command: self(t, "leave", pidFile)})
	for _, name := range []string{"stdin", "fail", "quiet", "flood", "lines", "binary"} {
		b.tool(record.Tool{Name: name, Command: self(t, name)})
	}
	for _, c := range []struct {
		tool    string
		isError bool
		says    string
	}{
		{"stdin", false, "read 0 bytes"}, {"fail", true, "before it failed\n\n[exit status 3]"}, {"quiet", false, "(no output)"}, {"binary", false, "5 bytes that are not text"},
		{"flood", true, ErrOutput.Error()}, {"nowhere", true, "not there"}, {"lines", false, "more bytes; the whole output is artifact"}, {"leave", false, "started"},
	} {
		begin := time.Now()
		r := b.runOne(&Executor{}, c.tool, `{}`)
		if r.IsError != c.isError || !strings.Contains(r.Text, c.says) {
			t.Errorf("%s: error %t, %q", c.tool, r.IsError, tail(r.Text))
		}
		if len(r.Text) > TextOutput+1000 {
			t.Errorf("%s: its text has %d bytes", c.tool, len(r.Text))
		}
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("%s took %s", c.tool, took)
		}
		if c.tool == "leave" {
			gone(t, pidFile)
		}
	}
	b.hangs(&Executor{}, pidFile)
}

// hangs checks that a tool that hangs ends at its time limit, with the grandchild whose id it writes to a file. It gets more time if it had not begun by then,
// as where programs start slowly.
func (b *bench) hangs(e *Executor, pidFile string, args ...string) {
	b.t.Helper()
	for limit := 2 * time.Second; ; limit *= 4 {
		b.tool(record.Tool{Name: "hang", Command: self(b.t, append([]string{"hang", pidFile}, args...)...), Timeout: limit})
		if r := b.runOne(e, "hang", `{}`); !r.IsError || !strings.Contains(r.Text, "time limit of "+limit.String()) {
			b.t.Errorf("hang: error %t, %q", r.IsError, tail(r.Text))
		}
		if raw, err := os.ReadFile(pidFile); err == nil && len(raw) > 0 || limit > time.Minute {
			gone(b.t, pidFile)
			return
		}
	}
}

func tail(s string) string { return s[max(0, len(s)-200):] }

// gone waits until the process whose id is in a file has ended.
func gone(t testing.TB, pidFile string) {
	t.Helper()
	raw, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the grandchild", func() bool { return !running(pid) })
	if err := os.Remove(pidFile); err != nil {
		t.Fatal(err)
	}
}

// TestTheWholeOutputIsKept: what does not fit into the text lies beside it.
func TestTheWholeOutputIsKept(t *testing.T) {
	b := newBench(t)
	b.rule(record.Allow, "*")
	b.tool(record.Tool{Name: "lines", Command: self(t, "lines")})
	b.runOne(&Executor{}, "lines", `{}`)
	info, err := b.c.Branch(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	m, err := b.c.Message(t.Context(), info.Head)
	if err != nil || len(m.Content) != 1 || m.Content[0].Type != pool.DocumentPart {
		t.Fatalf("beside the result lies %+v, %v", m.Content, err)
	}
	data, media, err := b.store.Artifact(t.Context(), m.Content[0].SHA256)
	if err != nil || len(data) != 512<<10 || media != "text/plain" {
		t.Errorf("the artifact has %d bytes of %s, %v", len(data), media, err)
	}
}

func TestAnInterruptEndsTheTool(t *testing.T) {
	b := newBench(t)
	b.rule(record.Allow, "*")
	pidFile := filepath.Join(t.TempDir(), "pid")
	b.tool(record.Tool{Name: "hang", Command: self(t, "hang", pidFile)})
	b.ask("hang", `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := (&Executor{Context: b.c}).Run(ctx, "")
		done <- err
	}()
	eventually(t, "the tool's start", func() bool { raw, err := os.ReadFile(pidFile); return err == nil && len(raw) > 0 })
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	gone(t, pidFile)
	if got := b.call("c1").State(); got != "approved/failed" {
		t.Errorf("the call is %s", got)
	}
	info, _ := b.c.Branch(t.Context(), "")
	if m, err := b.c.Message(t.Context(), info.Head); err != nil || m.Kind != "interrupted" || !strings.Contains(m.Result.Text, "interrupted") {
		t.Errorf("its result is %+v, %v", m.Result, err)
	}
}

// TestAnInterruptOfTheTurnEndsTheTool: somebody takes the turn off the branch while its tool runs. What ran has run, and its result lies in the pool.
func TestAnInterruptOfTheTurnEndsTheTool(t *testing.T) {
	b := newBench(t)
	b.rule(record.Allow, "*")
	pidFile := filepath.Join(t.TempDir(), "pid")
	b.tool(record.Tool{Name: "hang", Command: self(t, "hang", pidFile)})
	ref := string(record.RefTo(b.ask("hang", `{}`).ID)) + ":1"
	done := make(chan error)
	go func() {
		_, err := (&Executor{Context: b.c}).Run(context.Background(), "")
		done <- err
	}()
	eventually(t, "the tool's start", func() bool { raw, err := os.ReadFile(pidFile); return err == nil && len(raw) > 0 })
	batch := b.c.Begin("")
	batch.Interrupt(chatctx.InterruptOptions{})
	b.commit(batch)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	gone(t, pidFile)
	if got := b.call(ref).State(); got != "approved/failed" {
		t.Errorf("the call is %s", got)
	}
	if info, err := b.c.Branch(t.Context(), ""); err != nil || info.Messages != 1 {
		t.Errorf("the branch has %d messages, %v", info.Messages, err)
	}
}

// TestFlagsOfTime: shells read what follows the keyword time in different ways, so that a flag there leaves what runs untold.
func TestFlagsOfTime(t *testing.T) {
	for _, text := range []string{"time -- rm x", "time -p -- rm x", "! time -- rm x", "time time -- rm x", "time -v rm x", "time -f x rm y", "time -o f rm y", `sh -c "time -- rm x"`, `bash -c 'time -v rm x'`} {
		if s := readScript(text, setting{shells: bash, env: []string{}}); s.untold == "" {
			t.Errorf("%s: %d commands, and nothing untold", text, len(s.commands))
		}
	}
	for _, text := range []string{"time rm x", "time -p rm x", "! time rm x"} {
		if s := readScript(text, setting{shells: bash, env: []string{}}); s.untold != "" {
			t.Errorf("%s: %s", text, s.untold)
		}
	}
}

// TestCommandTool: what a person is shown is what the Executor would run, and where.
func TestCommandTool(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	b.tool(record.Tool{Name: "say", Command: []string{"echo", "{a}"}})
	b.tool(record.Tool{Name: "here", Command: []string{"pwd"}, Dir: filepath.Join(dir, "own")})
	b.tool(record.Tool{Name: "srv", MCP: true, Command: []string{"server"}, Remotes: []record.Remote{{Name: "look"}}})
	e := &Executor{Context: b.c, Functions: map[string]Function{"own": func(context.Context, Invocation) (pool.Result, error) { return pool.Result{}, nil }}}
	b.tool(record.Tool{Name: "own", Command: []string{"echo", "not this"}})
	shown := func(name string) string {
		t.Helper()
		tool, err := e.CommandTool(t.Context(), &record.Call{Context: b.c.ID, Branch: "main", Call: pool.Call{Tool: name}})
		if err != nil {
			t.Fatal(err)
		}
		if tool == nil {
			return ""
		}
		return CommandText(tool, json.RawMessage(`{"a":"x\u202e y"}`))
	}
	said := `runs: echo "x\u202e y"`
	for name, want := range map[string]string{"say": said, "here": "runs: pwd   in " + filepath.Join(dir, "own"), "srv": "", "srv__look": "", "nothing": "", "own": ""} {
		if got := shown(name); got != want {
			t.Errorf("%s is shown as %q, want %q", name, got, want)
		}
	}
	t.Setenv("CHATCTX_CALLS_FOLDER", dir)
	if got, want := shown("say"), said+"   in "+dir; got != want {
		t.Errorf("in a folder of the settings it is %q, want %q", got, want)
	}
	t.Setenv("CHATCTX_CALLS_FOLDER", "")
	e.Dir = filepath.Join(dir, "program")
	if got, want := shown("say"), said+"   in "+e.Dir; got != want {
		t.Errorf("in the program's folder it is %q, want %q", got, want)
	}
}
