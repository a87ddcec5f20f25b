package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/pgtest"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// exit ends a command. With -cover a program without GOCOVERDIR, as a tool is, prints a warning at its end, which would be a part of what the tool answers.
func exit(code int) {
	if testing.CoverMode() != "" && os.Getenv("GOCOVERDIR") == "" {
		syscall.Exit(code)
	}
	os.Exit(code)
}

// TestMain lets the test binary be the program, for scripts and for tests of several processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == reapWord { // a command line that runs in this process has a tool's processes held
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	operation.Observed = func(o *operation.Operation, err error) {
		if fault := o.Unlisted(err); fault != nil {
			fmt.Fprintln(os.Stderr, fault)
			os.Exit(99)
		}
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else each program that a test starts sleeps for a second at its end
	os.Setenv("TZ", "UTC")                   // before anything asks for the local time: TestRecordedLines runs command lines in this process
	testscript.Main(withServer{m}, map[string]func(){
		"chatctx": func() {
			if isTerminal(os.Stdout) { // a program on a terminal has to see it
				os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
			}
			out := &strictLines{out: os.Stdout}
			code := Main(os.Args[1:], os.Stdin, out, os.Stderr)
			if out.fault != nil {
				fmt.Fprintln(os.Stderr, "a line that strict readers refuse:", out.fault)
				code = 99
			}
			exit(code)
		},
		"decider": func() { os.Exit(decides(os.Args[1:])) },
	})
}

// strictLines is standard output that looks for an object with a name twice in each line of JSON.
type strictLines struct {
	out   io.Writer
	line  []byte // what came of the line that has not ended
	fault error
}

func (s *strictLines) Write(b []byte) (int, error) {
	for part := range bytes.Lines(b) {
		if s.line = append(s.line, part...); !bytes.HasSuffix(part, []byte("\n")) {
			break
		}
		if json.Valid(s.line) && s.fault == nil {
			if err := testkit.UniqueNames(s.line); err != nil {
				s.fault = fmt.Errorf("%w: %s", err, s.line)
			}
		}
		s.line = s.line[:0]
	}
	return s.out.Write(b)
}

// decides is a process of that test: it tries to decide each call, and says which it decided.
func decides(args []string) int {
	st, err := chatctx.Open(args[0], chatctx.Options{Program: "decider"})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer st.Close()
	calls, _ := strconv.Atoi(args[1])
	process, _ := strconv.Atoi(args[2])
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range calls {
				call := fmt.Sprint("c", (i+(4*process+g)*calls/32)%calls)
				b := st.Begin("", "")
				b.Decide(record.CallRef(call), record.Verdict{Status: []pool.Status{pool.Approved, pool.Denied}[g%2]})
				switch _, err := b.Commit(context.Background()); {
				case err == nil:
					fmt.Println("decided", call)
				case !errors.Is(err, chatctx.ErrConflict):
					fmt.Println(err)
				}
			}
		})
	}
	group.Wait()
	return 0
}

// withServer runs the tests with a PostgreSQL server, where there is one.
type withServer struct{ m *testing.M }

func (w withServer) Run() int { return pgtest.Main(w.m.Run) }

// TestScripts runs testdata/script: command lines as a person types them, half of them refusals. Every script that makes a
// store ends with a check.
func TestScripts(t *testing.T) {
	scripts(t, "testdata/script", func(e *testscript.Env) error {
		name := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
		if !pgtest.Asked() || aboutFiles[name] {
			return nil
		}
		text, err := os.ReadFile(filepath.Join("testdata", "script", name+".txtar"))
		if err != nil {
			return err
		}
		return onServer(e, !strings.Contains(string(text), "[server] chatctx init"))
	})
}

// aboutFiles are the scripts about what is true of a store in a file alone.
var aboutFiles = map[string]bool{"badstore": true, "file": true, "first": true, "leftovers": true, "links": true, "repair": true, "space": true, "terminal": true}

// onServer gives a script a place on the server, and makes a store there unless the script does that itself.
func onServer(e *testscript.Env, make bool) error {
	if pgtest.Server == nil {
		return pgtest.ErrMissing
	}
	proxy, err := pgtest.Server.NewProxy()
	if err != nil {
		return err
	}
	var scans scanned
	proxy.Scanned = scans.note
	e.Defer(func() {
		proxy.Close()
		if all := scans.take(); len(all) > 0 {
			e.T().Fatal("Updates scanned: ", all)
		}
	})
	e.Setenv("CHATCTX_STORE", proxy.URL(pgtest.Name()))
	if !make {
		return nil
	}
	if code := Main([]string{"init", "--store", e.Getenv("CHATCTX_STORE")}, nil, io.Discard, os.Stderr); code != 0 {
		return fmt.Errorf("init ends with %d", code)
	}
	return nil
}

// scripts runs those of a folder.
func scripts(t *testing.T, dir string, setup func(*testscript.Env) error) {
	data, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("USERPROFILE", filepath.Join(e.WorkDir, "home")) // on Windows
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "data"))
			e.Setenv("DATA", data)
			e.Setenv("TZ", "UTC")
			e.Setenv("TERM", "xterm")
			e.Setenv("COLUMNS", "80")
			e.Setenv("GORACE", "atexit_sleep_ms=0") // else each program sleeps for a second at its end
			return setup(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scriptExits, "remember": scriptRemember, "unchanged": scriptUnchanged, "make": scriptMake,
			"replace": scriptReplace, "keep": scriptKeep, "cutfile": scriptCut, "files": scriptFiles, "setlast": scriptSetLast, "shorten": scriptShorten,
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "root":
				return os.Geteuid() == 0, nil
			case "server":
				return pgtest.Asked(), nil
			case "file":
				return !pgtest.Asked(), nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

// TestScriptsEndWithCheck holds the scripts to the rule.
func TestScriptsEndWithCheck(t *testing.T) {
	scripts, _ := filepath.Glob("testdata/script/*.txtar")
	if len(scripts) < 10 {
		t.Fatalf("only %d scripts", len(scripts))
	}
	refused, done := 0, 0
	for _, name := range scripts {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		script, _, _ := strings.Cut(string(b), "\n-- ")
		last, opens := "", false
		for line := range strings.Lines(script) {
			f := strings.Fields(line)
			switch {
			case len(f) > 1 && f[0] == "chatctx", len(f) > 2 && f[0] == "exits" && f[1] == "0":
				done++
				last = line
				opens = opens || len(f) > 1 && (f[1] == "new" || f[1] == "add" || f[1] == "import" || f[1] == "append")
			case len(f) > 2 && f[0] == "exits":
				refused++
				last = line
			}
		}
		if opens && !strings.Contains(last, "check") {
			t.Errorf("%s opens a store and does not end with chatctx check", name)
		}
	}
	if refused < done*9/10 {
		t.Errorf("%d of the command lines are refused, %d done: half should be refusals", refused, done)
	}
	t.Logf("%d refused, %d done", refused, done)
}

// exits CODE COMMAND ARGS…: the command ends with that code, and no goroutine's end is in its output.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE command args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	stderr := ts.ReadFile("stderr")
	if code != want {
		ts.Fatalf("exit code %d, not %d\n%s", code, want, stderr)
	}
	if strings.Contains(stderr, "panic") || strings.Contains(stderr, "goroutine ") {
		ts.Fatalf("a panic:\n%s", stderr)
	}
	if want != 0 && stderr == "" {
		ts.Fatalf("exit code %d without a word", want)
	}
	if twice := doubled(stderr); twice != "" {
		ts.Fatalf("%q stands twice:\n%s", twice, stderr)
	}
}

// quotedWords matches what messages quote: names and texts of others.
var quotedWords = lazily(`"(?:[^"\\]|\\.)*"|“[^”]*”`)

// doubled returns the words that an error has twice in a row, as in "open x: open x: no such file"; "" if there are none.
func doubled(messages string) string {
	for line := range strings.Lines(messages) {
		text, ok := strings.CutPrefix(line, "chatctx: ")
		if !ok {
			continue // a hint, which may have a command twice
		}
		words := strings.Fields(quotedWords().ReplaceAllString(text, "…"))
		for i := range words {
			words[i] = strings.TrimRight(words[i], ":;,.")
		}
		for n := 1; n <= 4; n++ {
			for i := range len(words) - 2*n + 1 {
				if first := words[i : i+n]; slices.Equal(first, words[i+n:i+2*n]) && !slices.Contains(first, "…") {
					return strings.Join(first, " ")
				}
			}
		}
	}
	return ""
}

// hashOf is that of a file's bytes, and where the store is on a server that of all its records.
func hashOf(ts *testscript.TestScript, file string) string {
	if url := ts.Getenv("CHATCTX_STORE"); url != "" && filepath.Base(file) == "chats.db" {
		hash, err := recordsHash(url)
		ts.Check(err)
		return hash
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(ts.ReadFile(file))))
}

// remember FILE, unchanged FILE: the file is the same, byte for byte.
func scriptRemember(ts *testscript.TestScript, _ bool, args []string) {
	for _, f := range args {
		ts.Setenv("HASH_"+f, hashOf(ts, f))
	}
}

// keep VARIABLE FIELD: the value of a field of the JSON that the last command printed.
func scriptKeep(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile(`"` + args[1] + `":"([^"]*)"`).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("the last output has no field %s", args[1])
	}
	ts.Setenv(args[0], found[1])
}

func scriptUnchanged(ts *testscript.TestScript, _ bool, args []string) {
	for _, f := range args {
		if ts.Getenv("HASH_"+f) != hashOf(ts, f) {
			ts.Fatalf("%s has changed", f)
		}
	}
}

// make KIND FILE [N]: files that are awkward to write in a script.
func scriptMake(ts *testscript.TestScript, _ bool, args []string) {
	n := 0
	if len(args) > 2 {
		n, _ = strconv.Atoi(args[2])
	}
	var b []byte
	switch args[0] {
	case "binary":
		for i := range max(n, 4096) {
			b = append(b, byte(i*i*7+i>>3))
		}
	case "sqlite":
		b = append([]byte("SQLite format 3\x00"), make([]byte, 4080)...)
	case "badutf8":
		b = []byte("caf\xe9 au lait")
	case "crlf":
		b = []byte("hello\r\n")
	case "longline":
		b = bytes.Repeat([]byte("x"), n)
	case "jsonlines":
		for i := range n {
			b = fmt.Appendf(b, "{\"role\":\"user\",\"content\":\"line %d\"}\n", i+1)
		}
	case "png":
		b = []byte("\x89PNG\r\n\x1a\nnot really a picture, but it begins like one")
	default:
		ts.Fatalf("make what?")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o644))
}

// replace FILE OLD NEW: in place, of the same length.
func scriptReplace(ts *testscript.TestScript, _ bool, args []string) {
	b := []byte(ts.ReadFile(args[0]))
	if len(args[1]) != len(args[2]) || !bytes.Contains(b, []byte(args[1])) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bytes.ReplaceAll(b, []byte(args[1]), []byte(args[2])), 0o600))
}

// cutfile FILE N: leaves the first N bytes.
func scriptCut(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), n))
}

// files DIR NAME…: the folder holds these and nothing else (but for lock files).
func scriptFiles(ts *testscript.TestScript, _ bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	var have []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			have = append(have, e.Name())
		}
	}
	if got, want := strings.Join(have, " "), strings.Join(args[1:], " "); got != want {
		ts.Fatalf("%s holds %q, not %q", args[0], got, want)
	}
}

// setlast NAME WORDS: the environment variable NAME becomes the word of stdout after WORDS.
func scriptSetLast(ts *testscript.TestScript, _ bool, args []string) {
	_, after, found := strings.Cut(ts.ReadFile("stdout"), args[1])
	if !found {
		ts.Fatalf("stdout has no %q", args[1])
	}
	ts.Setenv(args[0], strings.Trim(strings.FieldsFunc(after, func(r rune) bool { return strings.ContainsRune(" \n\t,;:}", r) })[0], `"`))
}

// shorten NAME N: the environment variable keeps its first N characters.
func scriptShorten(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Setenv(args[0], ts.Getenv(args[0])[:n])
}

// scanned are the buckets that were scanned within transactions that may write.
type scanned struct {
	mu      sync.Mutex
	buckets []string
}

func (s *scanned) note(bucket string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets = append(s.buckets, bucket)
}

func (s *scanned) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.buckets
	s.buckets = nil
	slices.Sort(all)
	return slices.Compact(all)
}
