package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// safety ends a test that hangs. No test depends on its length.
const safety = 10 * time.Minute

// program is this test binary as chatctx, on a store.
func program(t *testing.T, store string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), safety)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self)
	cmd.Args = append([]string{"chatctx", "--store", store}, args...)
	cmd.Env = append(os.Environ(), "CHATCTX_CONTEXT=", "PAGER=", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// must runs the program and gives its output. It has to succeed.
func must(t *testing.T, store string, args ...string) string {
	t.Helper()
	cmd := program(t, store, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("chatctx %v: %v\n%s", args, err, errs.String())
	}
	return string(out)
}

// filledStore makes a store with a context of n messages of about 1 KB.
func filledStore(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chats.db")
	st, err := chatctx.Open(path, chatctx.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var msgs []*chatctx.Message
	for i := range n {
		msgs = append(msgs, pool.NewText(pool.User, fmt.Sprintf("message %d %s", i+1, strings.Repeat("x", 1000))))
	}
	if _, err := st.New(t.Context(), record.NewContext{Title: "Full", Messages: msgs}); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBesideAPausedIterator: another program holds the store open and an iterator of it stands still; the command line reads and
// writes at once.
func TestBesideAPausedIterator(t *testing.T) {
	t.Parallel()
	path := filledStore(t, 600)
	st, err := chatctx.Open(path, chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c, err := st.Context(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := c.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, err := range snap.Entries(t.Context(), 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 300 { // in the middle of a batch
			must(t, path, "add", "user", "from outside")
			if out := must(t, path, "log", "-n1"); !strings.Contains(out, "from outside") {
				t.Errorf("log does not show what was added: %q", out)
			}
			must(t, path, "ls")
		}
	}
	if seen != 600 {
		t.Errorf("the iterator gave %d messages, not the 600 of its snapshot", seen)
	}
}

// TestLogIntoAPipeThatNobodyReads: others add and list meanwhile, and the log is whole in the end.
func TestLogIntoAPipeThatNobodyReads(t *testing.T) {
	t.Parallel()
	path := filledStore(t, 2000)
	cmd := program(t, path, "log", "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(out, first); err != nil { // from now on it is printing
		t.Fatal(err)
	}
	for i := range 3 {
		must(t, path, "add", "user", fmt.Sprint("meanwhile ", i))
	}
	must(t, path, "ls")
	must(t, path, "fork", "aside")
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(rest, []byte("\n")); n != 2000 {
		t.Errorf("the log has %d messages, not the 2000 that were there when it began", n)
	}
}

// TestClosedPipe: a reader that goes away is no error and no message.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	path := filledStore(t, 2000)
	for _, args := range [][]string{{"log"}, {"log", "--json"}, {"export"}, {"ls", "--json"}, {"help"}} {
		cmd := program(t, path, args...)
		var errs strings.Builder
		cmd.Stderr = &errs
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout = w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		r.Close()
		if err := cmd.Wait(); err != nil || errs.String() != "" {
			t.Errorf("%v into a closed pipe: %v %q", args, err, errs.String())
		}
	}
}

// TestFullDevice: an output that cannot be written is an error.
func TestFullDevice(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there is no /dev/full there; Wine has one, with words of its own")
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full here")
	}
	defer full.Close()
	path := filledStore(t, 10)
	cmd := program(t, path, "log")
	var errs strings.Builder
	cmd.Stdout, cmd.Stderr = full, &errs
	err = cmd.Run()
	if exitCode(err) != exitFailed || !strings.Contains(errs.String(), "no space left") {
		t.Errorf("log into a full device: %v %q", err, errs.String())
	}
}

func exitCode(err error) int {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// feed is a running `append - --json`: a line goes in, its answer comes back once it is durable.
type feed struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	errs strings.Builder // to be read after Wait
}

func startFeed(t *testing.T, path string) *feed {
	t.Helper()
	f := &feed{cmd: program(t, path, "append", "-", "--json")}
	f.cmd.Stderr = &f.errs
	var err error
	if f.in, err = f.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	f.out = bufio.NewScanner(out)
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return f
}

// add appends a message and waits until it is stored.
func (f *feed) add(text string) error {
	if _, err := fmt.Fprintf(f.in, "{\"role\":\"user\",\"content\":%q}\n", text); err != nil {
		return err
	}
	if !f.out.Scan() {
		return fmt.Errorf("no answer for %q: %v", text, f.out.Err())
	}
	return nil
}

// texts are the texts of a branch, in order.
func texts(t *testing.T, path string) []string {
	t.Helper()
	var list []string
	for line := range strings.Lines(must(t, path, "log", "--json")) {
		var m struct{ Content []struct{ Text string } }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		list = append(list, m.Content[0].Text)
	}
	return list
}

// TestEightProcesses: 8 processes append 100 messages each to one branch while others read; all are there, each process's in its order.
func TestEightProcesses(t *testing.T) {
	t.Parallel()
	path := filledStore(t, 0)
	const writers, each = 8, 100
	var wg sync.WaitGroup
	errs := make(chan error, writers)
	for w := range writers {
		f := startFeed(t, path)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range each {
				if err := f.add(fmt.Sprintf("%d %d", w, i)); err != nil {
					errs <- err
					return
				}
			}
			f.in.Close()
			if err := f.cmd.Wait(); err != nil {
				errs <- fmt.Errorf("%w: %s", err, f.errs.String())
			}
		}()
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for reads := 0; ; reads++ {
		must(t, path, "log", "-n", "3")
		must(t, path, "ls")
		select {
		case <-done:
		default:
			continue
		}
		break
	}
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	next := make([]int, writers)
	list := texts(t, path)
	for _, text := range list {
		var w, i int
		fmt.Sscanf(text, "%d %d", &w, &i)
		if next[w] != i {
			t.Fatalf("process %d: message %d came where %d should", w, i, next[w])
		}
		next[w]++
	}
	if len(list) != writers*each {
		t.Errorf("%d messages, not %d", len(list), writers*each)
	}
	must(t, path, "check", "--full")
}

// TestAddFromManyProcesses: each add is a process of its own.
func TestAddFromManyProcesses(t *testing.T) {
	t.Parallel()
	path := filledStore(t, 0)
	const writers, each = 8, 10
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed []string
	for w := range writers {
		var cmds []*exec.Cmd
		for i := range each {
			cmds = append(cmds, program(t, path, "add", "user", fmt.Sprintf("%d %d", w, i)))
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			for _, cmd := range cmds {
				if out, err := cmd.CombinedOutput(); err != nil {
					mu.Lock()
					failed = append(failed, string(out))
					mu.Unlock()
				}
			}
		}()
	}
	wg.Wait()
	if len(failed) > 0 {
		t.Fatalf("%d of %d failed: %s", len(failed), writers*each, failed[0])
	}
	if list := texts(t, path); len(list) != writers*each {
		t.Errorf("%d messages, not %d", len(list), writers*each)
	}
}

// TestTheFirstMessagesAtOnce: eight programs add where no store is. One of them makes it, one makes the conversation, and all messages are there.
func TestTheFirstMessagesAtOnce(t *testing.T) {
	t.Parallel()
	for range 3 {
		path := filepath.Join(t.TempDir(), "chats.db")
		var all []string
		var begun []*exec.Cmd
		for i := range 8 {
			all = append(all, fmt.Sprint("message ", i))
			cmd := program(t, path, "add", "user", all[i])
			cmd.Stderr = &strings.Builder{}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			begun = append(begun, cmd)
		}
		for _, cmd := range begun {
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v: %s", err, cmd.Stderr)
			}
		}
		have := texts(t, path) // of the current conversation
		slices.Sort(have)
		if !slices.Equal(have, all) {
			t.Errorf("the conversation has %q", have)
		}
		if list := must(t, path, "ls", "--json"); strings.Count(list, `"updated_at"`) != 1 {
			t.Errorf("not one conversation: %s", list)
		}
		must(t, path, "check")
	}
}

// TestKilledWriters: what an append had answered for is there after a kill, and the store is whole.
func TestKilledWriters(t *testing.T) {
	t.Parallel()
	path := filledStore(t, 0)
	var promised []string
	kills := 0
	for seed := range testkit.Seeds(t, 10) {
		const writers = 3
		var wg sync.WaitGroup
		var mu sync.Mutex
		feeds := make([]*feed, writers)
		for w := range writers {
			feeds[w] = startFeed(t, path)
		}
		for w, f := range feeds {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := 0; ; i++ {
					text := fmt.Sprintf("%d/%d/%d", seed, w, i)
					if f.add(text) != nil {
						return
					}
					mu.Lock()
					promised = append(promised, text)
					mu.Unlock()
					if w == int(seed%writers) && i == int(seed%7) {
						for _, other := range feeds {
							other.cmd.Process.Kill()
						}
					}
				}
			}()
		}
		wg.Wait()
		for _, f := range feeds {
			f.cmd.Wait()
			kills++
		}
	}
	have := texts(t, path)
	for _, text := range promised {
		if !slices.Contains(have, text) {
			t.Errorf("%s was answered for and is gone", text)
		}
	}
	must(t, path, "check", "--full")
	t.Logf("%d messages promised, %d there, %d kills", len(promised), len(have), kills)
}

// TestBesideAnImport: an import that waits for more of its file holds nobody up.
func TestBesideAnImport(t *testing.T) {
	t.Parallel()
	path := filledStore(t, 3)
	cmd := program(t, path, "import", "-", "--json")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(in, "[")
	for i := range 12 { // more than an import keeps back
		if i > 0 {
			io.WriteString(in, ",")
		}
		io.WriteString(in, conversation(i, 1<<20))
	}
	must(t, path, "add", "user", "meanwhile", "--context", "Full")
	must(t, path, "log", "-n1", "--context", "Full")
	must(t, path, "ls")
	io.WriteString(in, "]")
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	var rep struct{ Contexts, Messages int }
	if err := json.Unmarshal([]byte(out.String()), &rep); err != nil || rep.Contexts != 12 || rep.Messages != 12 {
		t.Errorf("the import says %s (%v)", out.String(), err)
	}
}

// conversation is one of a ChatGPT export with a message of a size.
func conversation(i, size int) string {
	return fmt.Sprintf(`{"id":"c%d","title":"Big %d","current_node":"m","mapping":{"m":{"id":"m","parent":null,"children":[],"message":{"id":"m","author":{"role":"user"},"content":{"content_type":"text","parts":["%s"]}}}}}`,
		i, i, strings.Repeat("word ", size/5))
}

// TestInterruptedImport: an import that is stopped, of a file and of a folder, by Ctrl-C or a request to end, ends with 130 and says how much is stored, to
// persons and to programs; the same import again adds the rest.
func TestInterruptedImport(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no interrupt can be sent to one process there")
	}
	for _, c := range []struct {
		name   string
		args   []string
		signal os.Signal
		stored int // conversations before the signal
	}{
		{"nothing stored", nil, syscall.SIGINT, 0},
		{"some stored", nil, syscall.SIGINT, 12},
		{"some stored, for a program", []string{"--json"}, syscall.SIGTERM, 12},
		{"a trial", []string{"--dry-run"}, syscall.SIGTERM, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, dir := filledStore(t, 1), t.TempDir()
			var all strings.Builder
			for i := range 12 {
				all.WriteString(strings.Repeat(",", min(i, 1)) + conversation(i, 1<<20))
			}
			fifo := filepath.Join(dir, "conversations.json")
			if err := exec.Command("mkfifo", fifo).Run(); err != nil {
				t.Fatal(err)
			}
			cmd := program(t, path, append([]string{"import", fifo}, c.args...)...)
			var errs strings.Builder
			cmd.Stderr = &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			pipe, err := os.OpenFile(fifo, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer pipe.Close()
			io.WriteString(pipe, "[")
			if c.stored > 0 {
				io.WriteString(pipe, all.String())
			}
			stored := func() int {
				return strings.Count(must(t, path, "ls", "--json"), `"title":"Big`)
			}
			for c.stored > 0 && len(c.args) == 0 && stored() == 0 { // the batch that is full gets stored, the rest waits for the file's end
			}
			cmd.Process.Signal(c.signal)
			code := exitCode(cmd.Wait())
			n := stored()
			want := fmt.Sprintf("%s in %s are stored; the same import again adds the rest", count(n, "message"), count(n, "conversation"))
			switch {
			case slices.Contains(c.args, "--dry-run"):
				want = "interrupted"
			case n == 0:
				want = "nothing new is stored"
			}
			if code != exitInterrupted || !strings.Contains(errs.String(), want) {
				t.Errorf("%d: %q, not %q", code, errs.String(), want)
			}
			if c.stored > 0 && len(c.args) == 0 && (n == 0 || n == 12) {
				t.Errorf("%d of 12 conversations are stored", n)
			}
			whole := filepath.Join(t.TempDir(), "conversations.json")
			if err := os.WriteFile(whole, []byte("["+all.String()+"]"), 0o600); err != nil {
				t.Fatal(err)
			}
			must(t, path, "import", filepath.Dir(whole))
			if n := stored(); n != 12 {
				t.Errorf("the same again makes %d conversations of 12", n)
			}
		})
	}
}

// TestInterrupt: Ctrl-C ends a command that waits for input, or for somebody to read its output, with 130; what it had stored stays.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no interrupt can be sent to one process there")
	}
	path := filledStore(t, 2000)
	f := startFeed(t, path)
	if err := f.add("before"); err != nil {
		t.Fatal(err)
	}
	f.cmd.Process.Signal(syscall.SIGINT)
	if code := exitCode(f.cmd.Wait()); code != exitInterrupted || !strings.Contains(f.errs.String(), "1 message is stored") {
		t.Errorf("append ended with %d: %s", code, f.errs.String())
	}
	if out := must(t, path, "log", "-n1"); !strings.Contains(out, "before") {
		t.Errorf("what was stored before is gone: %q", out)
	}

	cmd := program(t, path, "log", "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	io.ReadFull(out, make([]byte, 1))
	cmd.Process.Signal(syscall.SIGINT)
	state, err := cmd.Process.Wait() // not Wait, which would close the pipe
	if err != nil || state.ExitCode() != exitInterrupted {
		t.Errorf("log into a full pipe ended with %v %v", state, err)
	}
}
