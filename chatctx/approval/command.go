package approval

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/charset"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/pool"
)

// Limits of a command's output in bytes: up to TextOutput goes into the result's text, up to MostOutput into an artifact beside it. A command that writes
// more is ended.
const (
	TextOutput = 256 << 10
	MostOutput = 16 << 20
)

// ErrOutput ends a tool that writes more than MostOutput.
var ErrOutput = errors.New("ended: it wrote more than 16 MiB")

// pipeGrace is how long to wait for output after a command has ended, in case a process that it left behind holds the pipe.
const pipeGrace = time.Second

// noHelper is the exit code of a Helper that did not run its command.
const noHelper = 127

// runCommand runs a command without a shell, so each argument arrives unchanged. Standard input is empty, or has the arguments as JSON if the tool wants
// that. The environment is clean, and the whole group of processes ends with the command.
func (e *Executor) runCommand(ctx context.Context, t *record.Tool, in Invocation) (a record.CallAnswer, err error) {
	argv, err := expand(t, in.Arguments)
	if err != nil {
		return a, err
	}
	if err := folderOf(t); err != nil {
		return a, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = t.Dir, environment(t, in.Call)
	if t.Stdin {
		cmd.Stdin = bytes.NewReader(jsontree.Canonical(in.Arguments))
	}
	out := &sink{full: func() { cancel(ErrOutput) }}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, pipeGrace
	g := newGroup(cmd, e.Helper)
	cmd.Cancel = g.kill
	defer g.close()
	if err := cmd.Start(); err != nil {
		return a, err
	}
	if err := g.started(); err != nil {
		cancel(err)
	}
	err = cmd.Wait()
	_ = g.kill() // ends what the command left behind
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	a.Result.Text, a.Beside = out.texts()
	if a.Result.Text == "" && err == nil {
		a.Result.Text = "(no output)"
	}
	return a, err
}

// folderOf returns an error if the tool's folder does not exist; the system would report the command as missing.
func folderOf(t *record.Tool) error {
	if t.Dir == "" {
		return nil
	}
	if st, err := os.Stat(t.Dir); err != nil || !st.IsDir() {
		return fmt.Errorf("the folder %s, in which the tool %s runs, does not exist: make it, or add the tool again with another --cwd", t.Dir, t.Name)
	}
	return nil
}

// expand fills arguments into the template of a tool's command. In an element, {name} stands for the argument of that name, written as in conditions, and
// {} for all arguments as JSON. Strings arrive as they are, other values as JSON. A missing or null argument is an error; {name?} removes its element
// instead. An argument's text is not expanded again, so a brace in it stands for itself. A value that begins with a dash is refused if the command could
// take it for a flag: unless an element -- comes before it, or a = in its own element. Numbers are no flags, and a tool with Dashes accepts all values.
func expand(t *record.Tool, arguments json.RawMessage) ([]string, error) {
	args, err := jsontree.Arguments(arguments)
	if err != nil {
		return nil, fmt.Errorf("the arguments cannot be read: %w", err)
	}
	x := &expansion{args: args, dashes: t.Dashes}
	var argv []string
	for i, element := range t.Command {
		word, ok, err := x.element(element)
		switch {
		case err != nil:
			return nil, err
		case strings.ContainsRune(word, 0):
			return nil, errors.New("an argument holds a zero byte, which no command can take")
		case ok:
			argv = append(argv, word)
		case i == 0:
			return nil, fmt.Errorf("the command's own name comes from the argument %s, which is missing", element)
		}
		x.dashes = x.dashes || element == "--"
	}
	if len(argv) == 0 {
		return nil, errors.New("the tool has no command")
	}
	return argv, nil
}

// CommandTool returns the tool that this Executor runs for a call of its context if that is a command, with the folder that it or a setting names, else Dir; nil
// if it is none, not there, or a function of the program.
func (e *Executor) CommandTool(ctx context.Context, c *record.Call) (*record.Tool, error) {
	tools, err := e.tools(ctx, c.Branch)
	if t := tools[c.Tool]; err == nil && t != nil && e.Functions[c.Tool] == nil && !t.MCP && len(t.Command) > 0 {
		return t, nil
	}
	return nil, err
}

// CommandText says what a tool that is a command would run with arguments, for people: its words, in quotes where they need some, and its folder, or why it
// would not run.
func CommandText(t *record.Tool, arguments json.RawMessage) string {
	return planOf(record.RunsOf(t, ""), arguments).String()
}

// expansion is a command being made from its template.
type expansion struct {
	args   *jsontree.Value
	dashes bool // values may begin with a dash
}

// element expands one element; ok is false if it is left out.
func (x *expansion) element(element string) (word string, ok bool, err error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(element, "{")
		b.WriteString(before)
		if !found {
			return b.String(), true, nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || strings.ContainsAny(name, " \t\n\"':,{") {
			b.WriteByte('{')
			element = rest
			continue
		}
		element = after
		name, optional := strings.CutSuffix(name, "?")
		text, there, err := x.value(name)
		switch {
		case err != nil:
			return "", false, err
		case !there && optional:
			return "", false, nil
		case !there:
			return "", false, fmt.Errorf("the argument %s is missing: the command needs it", name)
		case strings.HasPrefix(text, "-") && !isNumber(text) && !x.dashes && !strings.Contains(b.String(), "="):
			return "", false, fmt.Errorf("the argument %s begins with a dash: the command could take it for a flag", name)
		}
		b.WriteString(text)
	}
}

// value returns the text of an argument.
func (x *expansion) value(name string) (text string, there bool, err error) {
	path, err := parsePath(name)
	if name == "" {
		path, err = nil, nil
	}
	if err != nil {
		return "", false, err
	}
	values, ok := sure(x.args, path)
	if !ok || len(values) != 1 || values[0].Kind == jsontree.Null {
		return "", false, nil
	}
	if v := values[0]; v.Kind == jsontree.String {
		if hasHalves(v.Text) {
			return "", false, fmt.Errorf("the argument %s is not text", name)
		}
		return v.Text, true, nil
	}
	return string(values[0].Append(nil)), true, nil
}

// environment returns the clean environment of a tool: what programs need to run at all, the name of the call, and the tool's own variables.
func environment(t *record.Tool, c *record.Call) []string {
	var env []string
	for _, name := range kept {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	if c != nil {
		env = append(env, "CHATCTX_CALL="+string(c.Ref()), "CHATCTX_CALL_ID="+c.ID)
	}
	for name, v := range t.Env {
		env = append(env, name+"="+v)
	}
	slices.Sort(env)
	return env
}

// kept lists the variables that a tool inherits.
var kept = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "TMP",
	"SystemRoot", "SYSTEMDRIVE", "PATHEXT", "COMSPEC", "USERPROFILE", "APPDATA", "LOCALAPPDATA"}

// sink takes in a command's output up to MostOutput.
type sink struct {
	mu   sync.Mutex
	buf  []byte
	full func()
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(p), MostOutput-len(s.buf))
	s.buf = append(s.buf, p[:n]...)
	if n < len(p) {
		s.full()
		return n, ErrOutput
	}
	return n, nil
}

// texts returns the text for the model, and the whole output as a part if it is longer or is not text.
func (s *sink) texts() (string, []pool.Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	binary := !utf8.Valid(s.buf[:textEnd(s.buf, len(s.buf))]) || bytes.IndexByte(s.buf, 0) >= 0
	if text, ok := charset.Decode(s.buf, ""); ok && binary { // a text of another encoding, as programs of Windows write it
		s.buf, binary = []byte(text.Text), false
	}
	if len(s.buf) <= TextOutput && !binary {
		return string(s.buf), nil
	}
	part := pool.Part{Type: pool.DocumentPart, MediaType: "text/plain", Name: "output.txt", Data: s.buf}
	sum := sha256.Sum256(s.buf)
	if binary {
		part.MediaType, part.Name = "application/octet-stream", "output"
		return fmt.Sprintf("[%d bytes that are not text, in artifact %x]", len(s.buf), sum), []pool.Part{part}
	}
	end := textEnd(s.buf, TextOutput)
	return fmt.Sprintf("%s\n[%d more bytes; the whole output is artifact %x]", s.buf[:end], len(s.buf)-end, sum), []pool.Part{part}
}

// textEnd returns the largest end up to n that does not split a character.
func textEnd(b []byte, n int) int {
	for i := 0; i < utf8.UTFMax && n > 0 && n < len(b)+1; i++ {
		r, size := utf8.DecodeLastRune(b[:n])
		if r != utf8.RuneError || size > 1 {
			return n
		}
		n--
	}
	return n
}
