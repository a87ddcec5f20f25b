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

	"github.com/chatctx/chatctx/internal/pgtest"
)

// TestRoundTrips counts how often commands wait for a server that is a millisecond away, without connecting: at most six times.
func TestRoundTrips(t *testing.T) {
	if pgtest.Server == nil {
		t.Skip(pgtest.ErrMissing)
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	proxy, err := pgtest.Server.NewProxy()
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	proxy.Delay = time.Millisecond
	var mu sync.Mutex
	var asked []string
	proxy.Judge = func(request []byte) pgtest.Fate {
		mu.Lock()
		defer mu.Unlock()
		if sql := statementsIn(request); waitedFor(sql) {
			asked = append(asked, sql)
		}
		return pgtest.Pass
	}
	t.Setenv("CHATCTX_STORE", proxy.URL(pgtest.Name()))
	run := func(args ...string) (string, []string) {
		mu.Lock()
		asked = nil
		mu.Unlock()
		var out, errOut bytes.Buffer
		if code := Main(args, strings.NewReader(""), &out, &errOut); code != 0 {
			t.Fatalf("%v ends with %d: %s", args, code, &errOut)
		}
		mu.Lock()
		defer mu.Unlock()
		return out.String(), asked
	}
	run("init")
	for n := range 60 {
		run("new", fmt.Sprint("Number ", n))
		if n%20 == 0 {
			run("add", "user", "the first words")
		}
	}
	lines := filepath.Join(t.TempDir(), "lines.jsonl")
	writeLines(t, lines, 300)
	run("append", lines)
	out, _ := run("status", "--json")
	_, id, _ := strings.Cut(out, `"context":"`)
	id, _, _ = strings.Cut(id, `"`)
	for _, test := range []struct {
		most int
		args []string
	}{
		{6, []string{"add", "user", "one more"}},
		{6, []string{"add", "user", "one more", "--context", id}},
		{6, []string{"ls", "-n", "50"}},
	} {
		if _, asked := run(test.args...); len(asked) > test.most {
			t.Errorf("%v asks the server %d times:\n%s", test.args, len(asked), strings.Join(asked, "\n"))
		}
	}
	run("check")
}

// waitedFor reports whether a command waits for the answer to a request once it is connected: not for the settings of a new connection, not for the end of a reading transaction, and
// not for what others are told after the commit.
func waitedFor(sql string) bool {
	return strings.TrimSpace(sql) != "" && !strings.Contains(sql, "set enable_seqscan") && !strings.Contains(sql, "notify") && !strings.HasPrefix(sql, "  prepare rollback")
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

func writeLines(t *testing.T, path string, n int) {
	t.Helper()
	var b []byte
	for i := range n {
		b = fmt.Appendf(b, "{\"role\":\"user\",\"content\":\"line %d\"}\n", i)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
