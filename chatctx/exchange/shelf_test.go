package exchange

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/testkit"
)

// Large conversations are read with the contents of their messages in a file. Nothing else is different.

var (
	lawID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	madeNow = regexp.MustCompile(`"(created_at|updated_at)":"[^"]*"`)
)

// plainExport returns an export of a store without what differs between two imports of the same files: ids, and when contexts and branches were made.
func plainExport(t testing.TB, s *chatctx.Store) string {
	t.Helper()
	var ids map[string]string
	var out []string
	for line := range bytes.Lines(exported(t, s, ExportOptions{All: true})) {
		if bytes.HasPrefix(line, []byte(`{"context"`)) || len(out) == 0 {
			ids, out = map[string]string{}, append(out, "")
		}
		line = lawID.ReplaceAllFunc(line, func(id []byte) []byte {
			if ids[string(id)] == "" {
				ids[string(id)] = fmt.Sprintf("id%d", len(ids))
			}
			return []byte(ids[string(id)])
		})
		if !bytes.HasPrefix(line, []byte(`{"message"`)) {
			line = madeNow.ReplaceAll(line, nil)
		}
		out[len(out)-1] += string(line)
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// TestShelfChangesNothing imports each format's files with all messages on the shelf, and without the shelf.
func TestShelfChangesNothing(t *testing.T) {
	paths, err := filepath.Glob("testdata/formats/*/*")
	if err != nil || len(paths) < 50 {
		t.Fatal(len(paths), err)
	}
	paths = append(paths, "testdata/chatgpt")
	for _, path := range paths {
		if strings.HasSuffix(path, ".golden") {
			continue
		}
		t.Run(strings.TrimPrefix(path, "testdata/"), func(t *testing.T) { sameOnShelf(t, path) })
	}
}

func sameOnShelf(t *testing.T, path string) {
	t.Helper()
	plain, large := memoryStore(t), memoryStore(t)
	want := importInto(t, plain, path)
	for n := range 2 {
		rep, err := Import(context.Background(), large, []string{path}, Options{Limits: Limits{Memory: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 && (rep.Messages+rep.Duplicated != want.Messages+want.Duplicated || rep.Branches != want.Branches || rep.Skipped != want.Skipped || rep.Structural != want.Structural) {
			t.Errorf("put away %+v\nas it is %+v", rep, want)
		}
		if n > 0 && rep.Messages+rep.Branches > 0 {
			t.Errorf("a second time: %+v", rep)
		}
	}
	storetest.Check(t, large)
	compareLines(t, []byte(plainExport(t, large)), []byte(plainExport(t, plain)))
}

// TestShelfOfSamples does the same for the samples beside the project.
func TestShelfOfSamples(t *testing.T) {
	folders, err := os.ReadDir(testkit.Shared(t, "samples"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range folders {
		if f.IsDir() && testkit.Third(i) {
			t.Run(f.Name(), func(t *testing.T) { sameOnShelf(t, testkit.Shared(t, "samples", f.Name())) })
		}
	}
}

// largeSession writes a session of n exchanges of about 30 KB each.
func largeSession(n int, begin, line, end string) []byte {
	var b strings.Builder
	b.WriteString(begin)
	for i := range n {
		fmt.Fprintf(&b, line, i, strings.Repeat(fmt.Sprintf("word%d ", i), 4000))
	}
	b.WriteString(end)
	return []byte(b.String())
}

// TestLargeSessionsAreNotInMemory reads sessions of 12 MB with 1 MB for their messages: after reading, little more is in memory.
func TestLargeSessionsAreNotInMemory(t *testing.T) {
	const n = 400
	for name, text := range map[string][]byte{
		"claude-code.jsonl": largeSession(n, "", `{"type":"user","uuid":"u%[1]d","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":%[2]q}}`+"\n", ""),
		"codex.jsonl": largeSession(n, `{"type":"session_meta","timestamp":"2026-01-01T00:00:00Z","payload":{"id":"s"}}`+"\n",
			`{"type":"response_item","timestamp":"2026-01-01T00:00:00Z","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":%[2]q}]}}`+"\n", ""),
		"chatgpt.json": largeSession(n, `[{"conversation_id":"s","title":"large","mapping":{"r":{"id":"r","message":null,"parent":null}`,
			`,"n%[1]d":{"id":"n%[1]d","parent":"r","message":{"id":"n%[1]d","author":{"role":"user"},"content":{"content_type":"text","parts":[%[2]q]}}}`, `},"current_node":"n0"}]`),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			size := int64(len(text))
			text = nil
			var before, now runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			rep, err := Look(context.Background(), []string{path}, Options{Limits: Limits{Memory: 1 << 20}}, func(in *record.Incoming) error {
				runtime.GC()
				runtime.ReadMemStats(&now)
				if w := weight(&intake.Incoming{Incoming: *in}); len(in.Nodes) != n || w > 2<<20 {
					t.Errorf("%d messages of %d bytes are in memory", len(in.Nodes), w)
				}
				if live := int64(now.HeapAlloc) - int64(before.HeapAlloc); live > size/2 {
					t.Errorf("%d of %d bytes are in memory", live, size)
				}
				for i := range in.Nodes {
					m, err := in.Contents.Get(in.Nodes[i].Message)
					if err != nil || len(m.Text()) < 20_000 || m.Text() == "" {
						t.Fatalf("message %d: %d bytes, %v", i, len(m.Text()), err)
					}
				}
				return nil
			})
			if err != nil || rep.Messages != n || len(rep.Warnings) > 2 {
				t.Errorf("%v %+v", err, rep)
			}
		})
	}
}

// TestLargeSessionIsStoredWhole imports a large session into a file, twice, and again after it was continued.
func TestLargeSessionIsStoredWhole(t *testing.T) {
	line := `{"type":"user","uuid":"u%[1]d","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":%[2]q}}` + "\n"
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s, err := chatctx.Open(filepath.Join(t.TempDir(), "store"), chatctx.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at := 0
	for _, n := range []int{300, 300, 310} {
		if err := os.WriteFile(path, largeSession(n, "", line, ""), 0o600); err != nil {
			t.Fatal(err)
		}
		rep, err := imports(t, s, []string{path}, Options{Limits: Limits{Memory: 1 << 20}})
		if err != nil || rep.Messages != n-at || rep.Outcome() != Complete {
			t.Errorf("%d messages: %v %+v", n, err, rep)
		}
		at = n
		storetest.Check(t, s)
	}
}
