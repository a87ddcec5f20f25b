//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chatctx/chatctx/internal/pgtest"
)

// TestImportIsLinear imports files of 100 and of 300 conversations into PostgreSQL: new ones, and the same with more
// messages. The larger file costs some three times the round trips and the bytes asked.
func TestImportIsLinear(t *testing.T) {
	proxy := serverProxy(t)
	var trips, size atomic.Int64
	proxy.Judge = func(request []byte) pgtest.Fate {
		trips.Add(1)
		size.Add(int64(len(request)))
		return pgtest.Pass
	}
	cost := func(args ...string) (int64, int64) {
		trips.Store(0)
		size.Store(0)
		var out, errOut bytes.Buffer
		if code := Main(args, strings.NewReader(""), &out, &errOut); code != 0 {
			t.Fatalf("%v ends with %d: %s", args, code, &errOut)
		}
		return trips.Load(), size.Load()
	}
	type costs struct{ trips, size int64 }
	var few, many [2]costs
	for _, run := range []struct {
		n   int
		got *[2]costs
	}{{100, &few}, {300, &many}} {
		t.Setenv("CHATCTX_STORE", proxy.URL(pgtest.Name()))
		cost("init")
		for round := range run.got {
			run.got[round].trips, run.got[round].size = cost("import", exportOf(t, run.n, 2+2*round))
		}
	}
	for round, what := range []string{"new conversations", "known conversations with more messages"} {
		if f, m := few[round], many[round]; m.size > f.size*7/2 || m.trips > f.trips*7/2 {
			t.Errorf("%s: three times as many take %d round trips and ask for %d bytes, instead of %d and %d", what, m.trips, m.size, f.trips, f.size)
		}
	}
}

// exportOf writes a ChatGPT export of n conversations with some messages each.
func exportOf(t *testing.T, n, messages int) string {
	t.Helper()
	var all []any
	for c := range n {
		mapping := map[string]any{"r": map[string]any{"id": "r", "parent": nil, "children": []string{"m0"}, "message": nil}}
		parent := "r"
		for m := range messages {
			id := fmt.Sprint("m", m)
			mapping[id] = map[string]any{"id": id, "parent": parent, "children": []string{fmt.Sprint("m", m+1)}[:min(1, messages-1-m)], "message": map[string]any{"id": id,
				"author": map[string]any{"role": []string{"user", "assistant"}[m%2]}, "create_time": 1700000000 + m, "content": map[string]any{"content_type": "text",
					"parts": []string{fmt.Sprintf("text %d of %d", m, c)}}}}
			parent = id
		}
		all = append(all, map[string]any{"title": fmt.Sprint("T", c), "conversation_id": fmt.Sprint("cv", c), "id": fmt.Sprint("cv", c), "create_time": 1700000000, "update_time": 1700000000 + messages,
			"current_node": parent, "mapping": mapping})
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "conversations.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
