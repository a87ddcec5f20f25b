//go:build unix

package cli

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/pgtest"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// tripsCounter is a store behind a proxy that notes what a program waits for.
type tripsCounter struct {
	proxy *pgtest.Proxy
	mu    sync.Mutex
	asked []string
}

// serverProxy begins a proxy in front of the server of the tests. Without a server the test is skipped.
func serverProxy(t *testing.T) *pgtest.Proxy {
	if pgtest.Server == nil {
		t.Skip(pgtest.ErrMissing)
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	proxy, err := pgtest.Server.NewProxy()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return proxy
}

// newTripsCounter begins a server's store that is a millisecond away.
func newTripsCounter(t *testing.T) (c *tripsCounter, direct, through string) {
	proxy := serverProxy(t)
	proxy.Delay = time.Millisecond
	c = &tripsCounter{proxy: proxy}
	proxy.Judge = func(request []byte) pgtest.Fate {
		c.mu.Lock()
		defer c.mu.Unlock()
		if sql := statementsIn(request); waitedFor(sql) {
			c.asked = append(c.asked, sql)
		}
		return pgtest.Pass
	}
	schema := pgtest.Name()
	return c, pgtest.Server.URL(schema), proxy.URL(schema)
}

// take gives what was asked since the last call.
func (c *tripsCounter) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = nil
	return asked
}

// TestRoundTrips counts how often commands wait for a server that is a millisecond away, without connecting: at most six times, however much there is (CHATCTX_LONG: 10,000 conversations, and one
// of 1,000,000 messages).
func TestRoundTrips(t *testing.T) {
	contexts, messages := 200, 1000
	if testkit.Long() {
		contexts, messages = 10_000, 1_000_000
	}
	c, direct, through := newTripsCounter(t)
	t.Setenv("CHATCTX_STORE", through)
	run := func(args ...string) (string, []string) {
		c.take()
		var out, errOut bytes.Buffer
		if code := Main(args, strings.NewReader(""), &out, &errOut); code != 0 {
			t.Fatalf("%v ends with %d: %s", args, code, &errOut)
		}
		return out.String(), c.take()
	}
	run("init")
	run("new", "The long one")
	contextsMade(t, direct, contexts)
	lines := filepath.Join(t.TempDir(), "lines.jsonl")
	writeLines(t, lines, 400)
	filledUp(t, direct, "The long one", messages)
	run("append", lines)
	out, _ := run("status", "--json")
	_, id, _ := strings.Cut(out, `"context":"`)
	id, _, _ = strings.Cut(id, `"`)
	run("fork", "here")
	run("switch", "main")
	run("tag", "mine", "@")
	run("pin", "@-3")
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"add", "user", "one more"}, "added"},
		{[]string{"add", "user", "one more", "--context", id}, "added"},
		{[]string{"ls", "-n", "50"}, fmt.Sprint("Number ", contexts-1)},
		{[]string{"log", "-n", "20"}, "line 398"},
		{[]string{"log", "-n", "20", "--branch", "here"}, "line 398"},
		{[]string{"log", "-n", "20", "--context", id, "--json"}, strings.Repeat("y", 20_000)},
	} {
		out, asked := run(test.args...)
		if len(asked) > 6 {
			t.Errorf("%v asks the server %d times:\n%s", test.args, len(asked), strings.Join(asked, "\n"))
		}
		if !strings.Contains(out, test.says) {
			t.Errorf("%v does not say %.40q: %s", test.args, test.says, out)
		}
	}
	run("config", "model=gpt-4o")
	for _, test := range []struct {
		args []string
		most int
	}{{[]string{"status"}, 36}, {[]string{"op", "log", "-n", "10"}, 34}, {[]string{"check"}, 6*contexts + 200}} {
		if testkit.Long() && test.args[0] == "check" {
			continue // a million messages are read in parts
		}
		if _, asked := run(test.args...); len(asked) > test.most {
			t.Errorf("%v asks the server %d times, want at most %d:\n%s", test.args, len(asked), test.most, strings.Join(asked[:min(len(asked), 60)], "\n"))
		} else {
			t.Logf("%v asks the server %d times", test.args, len(asked))
		}
	}
	t.Setenv("CHATCTX_STORE", direct)
	run("check")
}

// contextsMade makes conversations.
func contextsMade(t *testing.T, url string, n int) {
	t.Helper()
	st, err := chatctx.Open(url, chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for i := range n {
		if _, err := st.New(t.Context(), record.NewContext{Title: fmt.Sprint("Number ", i)}); err != nil {
			t.Fatal(err)
		}
	}
}

// filledUp puts messages into a conversation.
func filledUp(t *testing.T, url, title string, n int) {
	t.Helper()
	st, err := chatctx.Open(url, chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c, err := st.Context(t.Context(), title)
	for n > 0 && err == nil {
		var some []*chatctx.Message
		for range min(n, 2000) {
			some = append(some, words("words"))
		}
		n -= len(some)
		_, err = c.Append(t.Context(), "", some...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAppendTrips: an append to a context and a branch by their ids waits three times for the server, one to the current context five times, and those
// that follow in a program less often, with keys and
// expected revisions too.
func TestAppendTrips(t *testing.T) {
	c, direct, through := newTripsCounter(t)
	st, err := chatctx.Open(direct, chatctx.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	made, err := st.New(t.Context(), record.NewContext{Title: "One", Messages: []*chatctx.Message{words("the first")}})
	if err != nil {
		t.Fatal(err)
	}
	on, err := made.Branch(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		context, branch string
		first, most     int // of the first append of a program, and of those that follow
	}{{made.ID.String(), on.ID.String(), 3, 2}, {made.ID.String(), "", 4, 2}, {"", "", 5, 3}} {
		far, err := chatctx.Open(through, chatctx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		revision := uint64(0)
		for i := range 6 {
			c.take()
			b := far.Begin(test.context, test.branch)
			if i%2 == 1 {
				b.Expect(revision)
			}
			b.AppendWith(chatctx.AppendOptions{Key: []string{"", fmt.Sprint(test, i)}[i%2]}, words(fmt.Sprint("words ", i)))
			done, err := b.Commit(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			revision = done.Revision
			most := test.most
			if i == 0 {
				most = test.first
			}
			if i%2 == 1 && revision%8 == 0 { // it looks for old keys
				most++
			}
			asked := c.take()
			for part := range strings.SplitSeq(strings.Join(asked, "; "), "; ") { // of what is not there, others put records beside it: each would have the other run again
				if strings.HasPrefix(part, "run many") && (strings.Contains(part, `\x03key`) || test.branch != "" && strings.Contains(part, "branchname")) {
					t.Errorf("append %d to %q %q reads by key what is not there: %s", i, test.context, test.branch, part)
				}
			}
			if len(asked) > most {
				t.Errorf("append %d to %q %q asks the server %d times, want %d:\n%s", i, test.context, test.branch, len(asked), most, strings.Join(asked, "\n"))
			}
		}
		if err := far.Close(); err != nil {
			t.Error(err)
		}
	}
}

func words(text string) *chatctx.Message {
	return &chatctx.Message{Role: pool.User, Content: []pool.Part{{Type: pool.TextPart, Text: text}}}
}

// waitedFor reports whether a command waits for the answer to a request once it is connected: not for the settings of a new connection, not for the end of a reading transaction,
// not for what others are told after the commit, and not for the look at what waits for the search index, which one of 256 messages begins beside.
func waitedFor(sql string) bool {
	for _, beside := range []string{"set enable_seqscan", "notify", `\x04meta\x00\x00\x00\x05index`} {
		if strings.Contains(sql, beside) {
			return false
		}
	}
	indexing := strings.Contains(sql, "run scan") && strings.Contains(sql, `\awaiting`)
	return strings.TrimSpace(sql) != "" && !indexing && !strings.HasPrefix(sql, "  prepare rollback")
}

// statementsIn tells the SQL and the names of the statements in a request.
func statementsIn(request []byte) string {
	var words []string
	for len(request) >= 5 {
		length := int(binary.BigEndian.Uint32(request[1:]))
		body := request[5:min(1+length, len(request))]
		texts := strings.SplitN(string(body), "\x00", 3)
		switch request[0] {
		case 'P':
			words = append(words, "prepare "+texts[0]+texts[1][:min(len(texts[1]), 60)])
		case 'B':
			words = append(words, "run "+texts[1]+" "+strconv.QuoteToASCII(texts[2][:min(len(texts[2]), 40)]))
		case 'Q':
			words = append(words, texts[0])
		}
		request = request[min(1+length, len(request)):]
	}
	return "  " + strings.Join(words, "; ")
}

// writeLines writes messages, among the last of them calls whose results are long.
func writeLines(t *testing.T, path string, n int) {
	t.Helper()
	var b []byte
	for i := range n {
		if i%5 == 0 && i > n-20 {
			b = fmt.Appendf(b, "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"c%d\",\"tool_name\":\"read\",\"arguments\":{}}]}\n", i)
			b = fmt.Appendf(b, "{\"role\":\"tool\",\"tool_result\":{\"request_id\":\"c%d\",\"text\":%q}}\n", i, strings.Repeat("y", 20_000+i))
		}
		b = fmt.Appendf(b, "{\"role\":\"user\",\"content\":\"line %d\"}\n", i)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestWatchReadsWhatItIsToldOf: after a change by another program, a watcher reads the conversation that the notice names, not the list of what changed last.
func TestWatchReadsWhatItIsToldOf(t *testing.T) {
	c, direct, through := newTripsCounter(t)
	st, err := chatctx.Open(direct, chatctx.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	contextsMade(t, direct, 30)
	here, err := st.Context(t.Context(), "Number 7")
	if err != nil {
		t.Fatal(err)
	}
	far, err := chatctx.Open(through, chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	changes, err := far.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tell := func() {
		b := here.Begin("")
		b.Append(words("news"))
		if _, err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if change := <-changes; change.Context != here.ID || change.Kind != "append" {
			t.Errorf("told of %+v", change)
		}
	}
	tell()        // the notices from while the watch began have been read
	for range 5 { // the look at all that a program takes half a minute after the last notice may fall into one
		c.take()
		tell()
		asked := strings.Join(c.take(), "\n")
		if !strings.Contains(asked, `\x06recent`) {
			return
		}
		t.Logf("asked for what changed last:\n%s", asked)
	}
	t.Error("a watcher that is told what changed asks for what changed last each time")
}
