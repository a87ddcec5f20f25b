//go:build unix

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/pgtest"
)

// TestUpdatesDoNotScan counts the scans in Updates on a server: there are none, but in those of the commands that go over everything by nature, which say what they do (engine.IsLong). The
// scripts are held to it too.
func TestUpdatesDoNotScan(t *testing.T) {
	proxy := serverProxy(t)
	var scans scanned
	proxy.Scanned = scans.note
	url := proxy.URL(pgtest.Name())
	t.Setenv("CHATCTX_STORE", url)
	lines := filepath.Join(t.TempDir(), "lines.jsonl")
	err := os.WriteFile(lines, []byte(`{"role":"user","content":"read both"}
{"role":"assistant","content":"","tool_calls":[{"id":"c1","tool_name":"read","arguments":{}},{"id":"c2","tool_name":"read","arguments":{}}]}
{"role":"tool","tool_result":{"request_id":"c1","text":"what it says"}}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	run := func(line string) []string {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := Main(strings.Fields(line), strings.NewReader(""), &out, &errOut); code != 0 {
			t.Fatalf("%s ends with %d: %s", line, code, &errOut)
		}
		return scans.take()
	}
	for _, line := range []string{
		"init", "new One", "add user first", "add assistant answer", "append " + lines, "calls deny c2", "fork other", "add user more", "switch main",
		"edit u1 changed", "switch main", "rewind u1", "undo", "redo", "tag mine @", "pin @", "unpin @", "tag rm mine", "branch mv other else", "branch rm else", "undo",
		"rules add allow read", "rules add deny rm --store", "undo", "rename One Another", "rm Another", "restore Another", "fork third", "switch main", "pick third u1", "merge third", "interrupt",
		"new Two", "import " + lines, "label add kept Two", "rm Two", "undo", "serve token add reader", "serve token rm reader", "check --full",
	} {
		if all := run(line); len(all) > 0 {
			t.Errorf("%s scans in an Update: %v", line, all)
		}
	}
	if all := run("gc"); len(all) > 0 {
		t.Errorf("gc scans in an Update that does not say so: %v", all)
	}
	db, err := kv.Open(t.Context(), url, kv.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(t.Context(), func(tx kv.RwTx) error {
		return tx.Scan("context", kv.Range{}, func(_, _ []byte) error { return kv.ErrStop })
	})
	if all := scans.take(); err != nil || !slices.Equal(all, []string{"context"}) {
		t.Errorf("an Update without a guard that scans is seen to scan %v: %v", all, err)
	}
}
