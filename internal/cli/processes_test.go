//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/pgtest"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// TestProcessesDecideOnce: 8 processes of 4 goroutines each decide the same calls on a server: each call is decided once.
func TestProcessesDecideOnce(t *testing.T) {
	if pgtest.Server == nil {
		t.Skip(pgtest.ErrMissing)
	}
	calls := 20
	if testkit.Long() {
		calls = 1000
	}
	url := pgtest.Server.URL(pgtest.Name(), "pool_max_conns=4")
	st, err := chatctx.Open(url, chatctx.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var asks []*chatctx.Message
	for i := range calls {
		asks = append(asks, &chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: fmt.Sprint("c", i), Tool: "look", Arguments: json.RawMessage(`{"at":1}`)}}})
	}
	if _, err := st.New(t.Context(), record.NewContext{Title: "One", Messages: asks}); err != nil {
		t.Fatal(err)
	}
	out := make([]bytes.Buffer, 8)
	var group sync.WaitGroup
	for p := range out {
		cmd := program(t, url)
		cmd.Args = []string{"decider", url, strconv.Itoa(calls), strconv.Itoa(p)}
		cmd.Stdout, cmd.Stderr = &out[p], &out[p]
		group.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("process %d: %v", p, err)
			}
		})
	}
	group.Wait()
	won := map[string]int{}
	for p := range out {
		for line := range strings.Lines(out[p].String()) {
			call, is := strings.CutPrefix(strings.TrimSpace(line), "decided ")
			if !is {
				t.Fatalf("process %d says %q", p, line)
			}
			won[call]++
		}
	}
	for i := range calls {
		if n := won[fmt.Sprint("c", i)]; n != 1 {
			t.Errorf("call %d was decided %d times", i, n)
		}
	}
	storetest.Check(t, st)
}

// TestAKilledCopyGoesOn: if the program is killed in the middle of a copy to a server, the same command goes on with the copy and checks it at the end.
func TestAKilledCopyGoesOn(t *testing.T) {
	proxy := serverProxy(t)
	from, schema := filledStore(t, 3000), pgtest.Name()
	var mu sync.Mutex
	var copying *exec.Cmd
	commits := 0
	proxy.Judge = func(request []byte) pgtest.Fate {
		mu.Lock()
		defer mu.Unlock()
		if bytes.Contains(request, []byte("commit\x00")) && bytes.Contains(request, []byte("pool")) && copying != nil {
			if commits++; commits == 2 {
				_ = copying.Process.Kill()
				return pgtest.DropRequest
			}
		}
		return pgtest.Pass
	}
	cmd := program(t, "", "copy", from, proxy.URL(schema))
	cmd.Args = append(cmd.Args[:1:1], cmd.Args[3:]...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	mu.Lock()
	err := cmd.Start()
	copying = cmd
	mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	mu.Lock()
	n := commits
	copying = nil
	mu.Unlock()
	if err == nil || n < 2 {
		t.Fatalf("the copy was not killed (%d commits): %s", n, &said)
	}
	to := pgtest.Server.URL(schema)
	cmd = program(t, to, "ls")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "not whole") {
		t.Errorf("half a copy opens: %v, %s", err, out)
	}
	cmd = program(t, "", "copy", from, to)
	cmd.Args = append(cmd.Args[:1:1], cmd.Args[3:]...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the copy does not go on: %v, %s", err, out)
	}
	if out := must(t, to, "log", "-n1", "--context", "Full"); !strings.Contains(out, "message 3000 ") {
		t.Errorf("the last message is not there: %s", out)
	}
	must(t, to, "check", "--full")
}
