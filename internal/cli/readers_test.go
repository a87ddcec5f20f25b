//go:build unix

package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/pgtest"
	"github.com/chatctx/chatctx/pool"
)

// readerLines are command lines that read. CALL stands for a call, MSG for a message.
var readerLines = []string{
	"ls", "ls --json -n 5", "show", "show @", "show MSG --json", "label", "label ls", "status", "status --json", "log", "log -n 2 --json", "search words", "request", "explain", "tree", "branch", "branch ls",
	"calls", "calls ls --json", "calls show CALL", "calls log", "calls log CALL", "calls watch --existing -n 1", "rules", "rules ls", "rules test CALL", "rules diff deny read", "tools", "tools ls", "sub", "sub ls",
	"tokens", "compact --dry-run --digest --keep-tokens 1", "prune --dry-run", "pin", "sessions", "artifact", "artifact ls", "cost", "compare main side", "diff main side", "tag", "system", "prompt", "config", "config model", "op", "op log",
	"export", "mcp", "gate", "gate status", "gate uninstall codex --dry-run", "serve token", "serve token ls", "check", "check --full", "stats", "rewind MSG --dry-run", "gc --dry-run", "send --dry-run more", "completion bash", "__complete show ", "help", "version",
}

// writers are the commands that read on no account, and why one writes that one may take for a reader: calls wait lets the rules decide, search and those that count tokens keep what they found out in a file,
// though never on a server.
var writers = strings.Fields("new use rename title rm restore add append ask retry chat models fork switch edit take replay bisect ui drop clear interrupt pick merge undo redo import purge redact vacuum " +
	"serve web init grant copy backup restore-from repair resume template unpin include exclude shorten")

// TestReadersWriteNothing: what reads changes nothing, also where time and crashes have brought calls and an answer into another state than is on record. That is shown.
func TestReadersWriteNothing(t *testing.T) {
	known := map[string]bool{}
	for _, line := range readerLines {
		known[strings.Fields(line)[0]] = true
	}
	for _, name := range writers {
		known[name] = true
	}
	for _, c := range allCommands() {
		if !known[c.name] {
			t.Errorf("nobody said whether %s reads", c.name)
		}
	}
	eachEngine(t, func(t *testing.T, at string, state func() string) {
		var but map[string]bool
		if !strings.Contains(at, "://") {
			but = map[string]bool{"tokens": true, "compact": true, "prune": true, "sessions": true, "send": true}
		}
		readersOf(t, at, but, state)
	})
}

// eachEngine runs a test on a file and on a server, with a function that tells whether anything was written: by the file's bytes, and by how many Updates the server saw.
func eachEngine(t *testing.T, test func(t *testing.T, at string, state func() string)) {
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "chats.db")
		test(t, path, func() string {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%x", sha256.Sum256(b))
		})
	})
	t.Run("server", func(t *testing.T) {
		proxy := serverProxy(t)
		var changes atomic.Int64
		proxy.Judge = func(request []byte) pgtest.Fate {
			if bytes.Contains(request, []byte("begin isolation level serializable")) {
				changes.Add(1)
			}
			return pgtest.Pass
		}
		test(t, proxy.URL(pgtest.Name()), func() string { return fmt.Sprint(changes.Load(), " Updates") })
	})
}

// readersOf runs what reads, all but some commands, on a store at a path or URL whose state is told by a function.
func readersOf(t *testing.T, at string, but map[string]bool, state func() string) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("CHATCTX_STORE", at)
	run := func(line string) string {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := Main(strings.Fields(line), strings.NewReader(""), &out, &errOut); code != 0 {
			t.Fatalf("%s ends with %d: %s%s", line, code, &out, &errOut)
		}
		return out.String()
	}
	if strings.Contains(at, "://") {
		run("init")
	}
	message := leftBehind(t, at)
	run("use One")
	replace := strings.NewReplacer("CALL", message+":1", "MSG", message)
	var shown strings.Builder
	before := state()
	for _, line := range readerLines {
		if but[strings.Fields(line)[0]] {
			continue
		}
		out := run(replace.Replace(line))
		if after := state(); after != before {
			t.Errorf("%s wrote: %s, before it %s", line, after, before)
			before = after
		}
		if line == "show @" || line == "log -n 2 --json" || line == "calls log" {
			shown.WriteString(out)
		}
	}
	for _, want := range []string{"by expiry", "approved/uncertain"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("nothing says %q: %s", want, shown.String())
		}
	}
	if n := strings.Count(shown.String(), "as far as it came"); n != 2 {
		t.Errorf("the answer that was left stands there %d times, want 2: %s", n, shown.String())
	}
	run("check --full")
}

// leftBehind makes a store some time ago, with a call whose time is over, one that somebody ran, and half an answer. It gives the message of the calls.
func leftBehind(t *testing.T, at string) string {
	t.Helper()
	past := time.Now().Add(-10 * time.Minute)
	st, err := chatctx.Open(at, chatctx.Options{Create: true, Program: "test", Clock: func() time.Time { past = past.Add(time.Millisecond); return past }})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	calls := &chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "c1", Tool: "read", Arguments: []byte("{}")}, {ID: "c2", Tool: "read", Arguments: []byte("{}")}}}
	c, err := st.New(t.Context(), record.NewContext{Title: "One", Settings: map[string]json.RawMessage{"model": json.RawMessage(`"gpt-4o"`)}, Messages: []*chatctx.Message{words("words to begin with " + strings.Repeat("and more of them ", 400)), calls}})
	if err != nil {
		t.Fatal(err)
	}
	message := calls.ID.String()
	b := c.Begin("")
	b.ExpireCall(record.CallRef(message+":1"), pool.TimeOf(past.Add(time.Minute)))
	b.Decide(record.CallRef(message+":2"), record.Verdict{Status: pool.Approved})
	if _, err = b.Commit(t.Context()); err == nil {
		_, err = st.ClaimCall(t.Context(), c.ID.String(), "", record.CallRef(message+":2"), record.ClaimOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	b = c.Begin("")
	b.Fork("side", chatctx.ForkOptions{Stay: true})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	begun, err := c.BeginReply(t.Context(), "", chatctx.AppendOptions{}, words("and then"))
	if err != nil {
		t.Fatal(err)
	}
	if err := begun.Reply.Save(t.Context(), &chatctx.Message{Role: pool.Assistant, Content: []pool.Part{{Type: pool.TextPart, Text: "as far as it came"}}}); err != nil {
		t.Fatal(err)
	}
	return message
}
