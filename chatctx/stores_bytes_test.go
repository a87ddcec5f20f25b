package chatctx

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

var update = flag.Bool("update", false, "write the bytes of the fixed store anew")

// fixedClock stands still.
func fixedClock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC) }

func fixedOptions() Options {
	return Options{Create: true, Program: "golden", By: "ann", Judge: byName{}, Clock: fixedClock}
}

// fillFixed makes a store with records of every kind, the same each time but for its ids.
func fillFixed(t *testing.T, s *Store) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.SetSettings(t.Context(), map[string]json.RawMessage{"model": []byte(`"m-1"`)})
	must(err)
	_, err = s.PutTool(t.Context(), record.Tool{Name: "read", Description: "d", Schema: []byte(`{"type":"object"}`), Command: []string{"cat", "{path}"}, Env: map[string]string{"A": "b"},
		Timeout: time.Second, Repeatable: true, Prune: "keep", Stdin: true, Dashes: true, Dir: "/d"})
	must(err)
	_, err = s.AddRule(t.Context(), record.Rule{Effect: "ask", Tool: "w*", Reason: "r", Mode: "m"})
	must(err)
	c, err := s.New(t.Context(), record.NewContext{Title: "First", System: "be short", Prompt: "p", Messages: says("one", ">two", "three", ">four")})
	must(err)
	b := c.Begin("")
	b.Tag("good", "@2")
	b.Mark("@1", "pinned")
	b.Label("work")
	b.SetSettings(map[string]json.RawMessage{"temperature": []byte("0.5")})
	b.SetContextSettings(map[string]json.RawMessage{"provider": []byte(`"openai"`)})
	b.SetBranchData("app.x", []byte(`{"y":1}`))
	b.SetContextData("app.x", []byte(`[1]`))
	b.SetTokens(branch.Tokens{Input: 10, Output: 20})
	b.SetSessions([]branch.Session{{ID: pool.NewID(), Start: 3, Created: 1, PrunedTo: 2, Digests: []branch.Digest{{From: 1, To: 2, Text: "before", Kept: true}}}})
	commit(t, b)
	b = c.Begin("")
	b.Fork("side", ForkOptions{At: "@2"})
	commit(t, b)
	appendTo(t, c, "side", says("another way")...)
	b = c.Begin("main")
	b.Rewind("@2")
	commit(t, b)
	_, err = s.Undo(t.Context(), c.ID.String(), "main", "")
	must(err)
	_, err = s.Redo(t.Context(), c.ID.String(), "main")
	must(err)
	b = c.Begin("main")
	b.AppendWith(AppendOptions{Key: "once"}, says(strings.Repeat("long ", 4000))...)
	commit(t, b)
	calls := []pool.Call{{ID: "c1", Tool: "read", Arguments: []byte(`{"path":"a"}`)}, {ID: "c2", Tool: "wipe"}}
	appendTo(t, c, "main", &Message{Role: pool.Assistant, Calls: calls, Meta: pool.Metadata{Model: "m-1", Provider: "openai"}})
	b = c.Begin("main")
	b.Decide("c1", record.Verdict{Status: pool.Approved, Reason: "fine"})
	b.Decide("c2", record.Verdict{Status: pool.Denied, Reason: "no"})
	commit(t, b)
	appendTo(t, c, "main", &Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c1", Text: strings.Repeat("r", 9000)}})
	_, err = s.PutArtifact(t.Context(), []byte("loose"), "text/plain")
	must(err)
	must(c.SetCounts(t.Context(), "o200k", []ID{c.ID}, []int{7}))
	must(view.SetModelWindow(t.Context(), base.Of(s), "server", "m-1", view.ModelWindow{Tokens: 1000}))
	_, err = s.Import(t.Context(), []*record.Incoming{{Format: "f", Conversation: "there", Title: "Imported", Updated: 1000,
		Branches: []record.IncomingBranch{{Name: "main", Leaf: 1}}, Nodes: []record.Node{{ID: "n", Message: says("from elsewhere")[0]}}}})
	must(err)
	c, err = s.New(t.Context(), record.NewContext{Title: "Fields"})
	must(err)
	appendTo(t, c, "", someMessages()...)
	_, err = s.PutTool(t.Context(), someTool)
	must(err)
	_, err = s.AddRule(t.Context(), someRule)
	must(err)
	asked := &toolcall.Asked{Gate: someGate, Mode: record.GateRecord, CallID: "toolu_1", Tool: "Bash", Arguments: []byte(`{"command":"ls"}`)}
	_, err = toolcall.Ensure(t.Context(), s.at(), asked)
	must(err)
	_, err = toolcall.Close(t.Context(), s.at(), asked, toolcall.Outcome{Text: "a"})
	must(err)
}

// someGate has all that an agent's hook says of a call.
var someGate = record.Gate{Agent: "claude-code", Version: "2.1", Session: "session", SubAgent: "sub", Turn: "turn", Permissions: "default", Folder: "/p", Head: "0a", Level: record.LevelOwn}

// ids finds the ids in stored bytes: UUIDs of version 7 that were made between two moments, in bytes or as text.
type ids struct {
	from, to time.Time
	found    map[pool.ID]bool
}

func (f *ids) is(b []byte) bool {
	at := time.UnixMilli(int64(binary.BigEndian.Uint64(append([]byte{0, 0}, b[:6]...))))
	return b[6]>>4 == 7 && b[8]>>6 == 2 && !at.Before(f.from) && !at.After(f.to)
}

func (f *ids) each(b []byte, fn func(at []byte)) {
	for i := 0; i+16 <= len(b); i++ {
		if f.is(b[i : i+16]) {
			fn(b[i : i+16])
			i += 15
		}
	}
}

// plain returns stored bytes with ids by their order instead, and without checksums, which depend on them.
func (f *ids) plain(bucket string, b []byte, order []pool.ID) []byte {
	b = bytes.Clone(b)
	switch {
	case stored.CheckRecord(b, nil) == nil:
		clear(b[len(b)-4:])
	case bucket == poolstore.Bucket:
		clear(b[len(b)-4:])
	}
	f.each(b, func(at []byte) {
		i, _ := slices.BinarySearchFunc(order, pool.ID(at), func(a, b pool.ID) int { return bytes.Compare(a[:], b[:]) })
		copy(at, fmt.Sprintf("id%014d", i+1))
	})
	return b
}

// notFixed are records that have versions of their own, or are not the same twice: the search index, and the store's making.
func notFixed(bucket, key string) bool {
	return bucket == index.WaitingBucket || bucket == index.DocBucket || bucket == index.TermBucket || bucket == base.MetaBucket && (key == "index" || key == "created" || key == "store")
}

// TestFixedStoreKeepsItsBytes writes a store with records of every kind and compares their bytes with those that are kept. If this fails, the form of a record
// has changed.
func TestFixedStoreKeepsItsBytes(t *testing.T) {
	f := &ids{from: time.Now().Add(-time.Second), found: map[pool.ID]bool{}}
	s, err := OpenMemory(fixedOptions())
	if err != nil {
		t.Fatal(err)
	}
	fillFixed(t, s)
	f.to = time.Now().Add(time.Second)
	all := map[string]string{}
	for name, value := range allRecords(t, s) {
		if bucket, key, _ := strings.Cut(name, "/"); !notFixed(bucket, key) {
			all[name] = value
			f.each([]byte(key), func(at []byte) { f.found[pool.ID(at)] = true })
			f.each([]byte(value), func(at []byte) { f.found[pool.ID(at)] = true })
		}
	}
	closeChecked(t, s)
	order := slices.SortedFunc(maps.Keys(f.found), func(a, b pool.ID) int { return bytes.Compare(a[:], b[:]) })
	var lines []string
	buckets := map[string]bool{}
	for name, value := range all {
		bucket, key, _ := strings.Cut(name, "/")
		buckets[bucket] = true
		if bucket == poolstore.ArtifactBucket && len(value) > 256 {
			value = value[:256]
		}
		lines = append(lines, fmt.Sprintf("%s %x %x", bucket, f.plain("", []byte(key), order), f.plain(bucket, []byte(value), order)))
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", "stores", present+".records")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		keepPresent(t)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	reportChanged(t, strings.Split(string(want), "\n"), lines)
	t.Errorf("The stored bytes have changed. Until format %d is released: describe the change in docs/format.md and make the kept store anew, go test ./chatctx -run FixedStore -update. "+
		"Afterwards: raise base.FormatVersion, read and bring up the older form (base.BringUp), and keep its store", FormatVersion)
}

func reportChanged(t *testing.T, want, got []string) {
	t.Helper()
	for _, side := range []struct {
		what      string
		all, than []string
	}{{"no longer written", want, got}, {"written now", got, want}} {
		for _, line := range side.all {
			if bucket, rest, is := strings.Cut(line, " "); is && !slices.Contains(side.than, line) {
				key, value, _ := strings.Cut(rest, " ")
				raw, _ := hex.DecodeString(key)
				t.Errorf("%s: bucket %s, key %.60q: %.400s", side.what, bucket, raw, value)
			}
		}
	}
}

// keepPresent writes the kept store of the present format.
func keepPresent(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := Open(path, fixedOptions())
	if err != nil {
		t.Fatal(err)
	}
	fillFixed(t, s)
	holds, err := json.MarshalIndent(held(t, s), "", "")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for name, value := range allRecords(t, s) {
		bucket, key, _ := strings.Cut(name, "/")
		rows = append(rows, fmt.Sprintf("%s %x %x\n", bucket, key, value))
	}
	slices.Sort(rows)
	closeChecked(t, s)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{".db.gz": zipped(t, raw), ".rows.gz": zipped(t, []byte(strings.Join(rows, ""))), ".json": append(holds, '\n')} {
		if err := os.WriteFile(filepath.Join("testdata", "stores", present+name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(data)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
