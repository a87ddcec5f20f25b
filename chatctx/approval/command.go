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

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/pool"
)

// The limits of a command's output: TextOutput goes into the result's text, MostOutput into an artifact beside it. A command that writes more is ended.
const (
	TextOutput = 256 << 10
	MostOutput = 16 << 20
)

// ErrOutput ends a tool that writes more than MostOutput.
var ErrOutput = errors.New("ended: it wrote more than 16 MiB")

// pipeGrace is how long output is waited for after a command has ended, where something that it left behind holds the pipe.
const pipeGrace = time.Second

// noHelper is what a Helper exits with that did not run its command.
const noHelper = 127

// runCommand runs a command without a shell: each argument arrives as it is. Standard input is empty, or the arguments as JSON where the tool wants them there; the environment is clean; the whole group of processes is ended with the command.
func (e *Executor) runCommand(ctx context.Context, t *chatctx.Tool, in Invocation) (a chatctx.Answer, err error) {
	argv, err := Expand(t, in.Arguments)
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
	_ = g.kill() // what it left behind
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

// folderOf says that the folder that a tool runs in is not there, which the system would say of the command.
func folderOf(t *chatctx.Tool) error {
	if t.Dir == "" {
		return nil
	}
	if st, err := os.Stat(t.Dir); err != nil || !st.IsDir() {
		return fmt.Errorf("the folder %s that the tool %s runs in is not there", t.Dir, t.Name)
	}
	return nil
}

// Expand puts arguments into the template of a tool's command. {name} in an element stands for the argument of that name, as conditions name one, {} for all of them as JSON; texts arrive as they are,
// anything else as JSON. A missing or null argument is an error; {name?} removes its element instead. An argument's text is not expanded again: a brace in it stands for
// itself. A value that begins with a dash is refused where the command could take it for a flag: where neither an element -- comes before it nor a = in its own element.
// Numbers are no flags; a tool with Dashes accepts all.
func Expand(t *chatctx.Tool, arguments json.RawMessage) ([]string, error) {
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
			return nil, errors.New("an argument holds a zero byte: no command takes that")
		case ok:
			argv = append(argv, word)
		case i == 0:
			return nil, fmt.Errorf("the command itself is %s, which is not among the arguments", element)
		}
		x.dashes = x.dashes || element == "--"
	}
	if len(argv) == 0 {
		return nil, errors.New("the tool has no command")
	}
	return argv, nil
}

// expansion is a command that is being made of its template.
type expansion struct {
	args   *jsontree.Value
	dashes bool // may begin a value
}

// element expands one element; ok is false where it is taken out.
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

// value is the text of an argument.
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
			return "", false, fmt.Errorf("the argument %s is no text", name)
		}
		return v.Text, true, nil
	}
	return string(values[0].Append(nil)), true, nil
}

// environment is the clean one: what programs need to run at all, the name of the call, and what the tool was given.
func environment(t *chatctx.Tool, c *chatctx.Call) []string {
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

// kept are the variables that a tool inherits.
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

// texts gives the text for the model, and the whole output where that is more or no text.
func (s *sink) texts() (string, []pool.Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	binary := !utf8.Valid(s.buf[:textEnd(s.buf, len(s.buf))]) || bytes.IndexByte(s.buf, 0) >= 0
	if len(s.buf) <= TextOutput && !binary {
		return string(s.buf), nil
	}
	part := pool.Part{Type: pool.DocumentPart, MediaType: "text/plain", Name: "output.txt", Data: s.buf}
	sum := sha256.Sum256(s.buf)
	if binary {
		part.MediaType, part.Name = "application/octet-stream", "output"
		return fmt.Sprintf("[%d bytes that are no text, in artifact %x]", len(s.buf), sum), []pool.Part{part}
	}
	end := textEnd(s.buf, TextOutput)
	return fmt.Sprintf("%s\n[%d more bytes; the whole output is artifact %x]", s.buf[:end], len(s.buf)-end, sum), []pool.Part{part}
}

// textEnd is the largest end up to n that cuts no character in two.
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
