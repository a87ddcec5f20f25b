package exchange

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
)

// TestLargeKeptTexts imports records of which a large part is no message: it is stored once, as artifacts, and all that looks at texts sees it.
func TestLargeKeptTexts(t *testing.T) {
	ctx := context.Background()
	long := strings.Repeat("unread ", 3000) + "planted-key zebra"
	session := func(id, said string) string {
		return `{"type":"user","uuid":"u","sessionId":"` + id + `","message":{"role":"user","content":"` + said + `"},"mystery":{"deep":["` + long + `"]}}
{"type":"assistant","uuid":"a","parentUuid":"u","sessionId":"` + id + `","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"hi"},{"type":"odd","load":"` + long + `"},` +
			`{"type":"tool_use","id":"t","name":"Bash","input":{},"novel":"` + long + `"}]}}
{"type":"progress","uuid":"p","parentUuid":"a","sessionId":"` + id + `","data":{"type":"hook_progress","output":"giraffe"}}
`
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"one.jsonl": session("s1", "hello"), "two.jsonl": session("s2", "good day"), "half.jsonl": session("s3", `half \ud800`)} {
		write(t, filepath.Join(dir, name), text)
	}
	s := memoryStore(t)
	stats := func() record.Stats {
		t.Helper()
		stats, err := s.Maintenance().Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return *stats
	}
	importInto(t, s, dir)
	if n := stats().Artifacts; n != 4 { // the members, the part, the call, and the record that is no valid Unicode
		t.Errorf("%d artifacts", n)
	}
	if again := importInto(t, s, dir); again.Messages != 0 || stats().Artifacts != 4 {
		t.Errorf("again: %+v, %d artifacts", again, stats().Artifacts)
	}
	whole := exported(t, s, ExportOptions{All: true})
	other := memoryStore(t)
	importInto(t, other, write(t, filepath.Join(t.TempDir(), "export.jsonl"), string(whole)))
	if !bytes.Equal(whole, exported(t, other, ExportOptions{All: true})) || bytes.Count(whole, []byte("zebra")) != 8 { // the record that is no valid Unicode is in base64
		t.Error("the export of the imported export has other bytes")
	}
	hits := func(word string) (n int) {
		t.Helper()
		for _, err := range s.Search(ctx, record.SearchOptions{Text: word}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	if n := hits("zebra"); n != 6 {
		t.Errorf("search finds %d messages", n)
	}
	if n := hits("giraffe"); n != 3 { // in a record beside the messages
		t.Errorf("search finds %d messages with a record's words", n)
	}
	if _, err := s.Maintenance().GC(ctx, record.GCOptions{}); err != nil || stats().Artifacts != 4 {
		t.Errorf("after gc: %d artifacts, %v", stats().Artifacts, err)
	}
	redactKept(t, s)
	storetest.Check(t, s)
	for info, err := range s.Contexts(ctx, record.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Maintenance().PurgeContext(ctx, info.ID.String(), chatctx.PurgeOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := stats().Artifacts; n != 0 || hits("zebra") != 0 {
		t.Errorf("after purge: %d artifacts", n)
	}
	storetest.Check(t, s)
}

// redactKept redacts the planted key, which the export then has only where the report says that it is left.
func redactKept(t *testing.T, s *chatctx.Store) {
	t.Helper()
	find := func(text string) (out []record.Secret, err error) {
		for _, at := range regexp.MustCompile("planted-key").FindAllStringIndex(text, -1) {
			out = append(out, record.Secret{From: at[0], To: at[1], What: "test"})
		}
		return out, nil
	}
	red, err := s.Maintenance().Redact(t.Context(), record.RedactOptions{Find: find})
	if err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, f := range red.Found {
		if f.Left != "" {
			left++
		}
	}
	if text := exported(t, s, ExportOptions{All: true}); len(red.Found) != 9 || bytes.Count(text, []byte("planted-key")) != left || bytes.Count(text, []byte("[redacted] zebra")) != 8-left {
		t.Errorf("redact finds %d, leaves %d; the export has %d", len(red.Found), left, bytes.Count(text, []byte("planted-key")))
	}
}
