package exchange

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/testkit"
)

// writeTemp writes a temporary file.
func writeTemp(t testing.TB, name string, parts ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(parts, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ccText returns a line of Claude Code.
func ccText(role, id, parent, text string) string {
	up := "null"
	if parent != "" {
		up = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"sessionId":"s","message":{"role":%q,"content":%q}}`+"\n", role, id, up, role, text)
}

// TestDamagedLines puts each kind of damaged line between two good ones, for each format of lines.
func TestDamagedLines(t *testing.T) {
	damage := []string{"\x00\x00\x00\n", "not json\n", "[1,2]\n", "42\n", `"text"` + "\n", "null\n", `{"type":` + "\n", `{"a":1}{"b":2}` + "\n",
		`{"type":null,"uuid":7,"parentUuid":{},"message":[]}` + "\n",
		`{"type":"message","id":3,"parentId":[],"message":"x","payload":1}` + "\n", "\xff\xfe\n", `{"x":"` + "\xed\xa0\xbd\xed\xb8\x82" + `"}` + "\n", strings.Repeat("[", 100_000) + "\n", `{"a":` + strings.Repeat(`{"a":`, 100_000) + "\n", "\r\n", " \n",
		strings.Repeat("x", 3<<20) + "\n"}
	for name, ends := range map[string][2]string{
		claudeCodeName: {ccText("user", "a", "", "first") + `{"type":"user","uuid":"w","parentUuid":"w","message":{"role":5,"content":{"a":[]}}}` + "\n", ccText("assistant", "b", "a", "last")},
		codexName: {`{"type":"session_meta","payload":{"id":"c"}}` + "\n" + `{"type":"response_item","payload":{"type":"message","role":"user","content":"first"}}` + "\n" + `{"type":"response_item","payload":{"type":"message","role":{},"content":7}}` + "\n",
			`{"type":"response_item","payload":{"type":"message","role":"assistant","content":"last"}}` + "\n"},
		piName: {`{"type":"session","id":"p","cwd":"/"}` + "\n" + `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"first"}}` + "\n",
			`{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":"last"}}` + "\n"},
		llamaName: {`{"type":"session","harness":"l","id":"l","currNode":"b"}` + "\n" + `{"type":"message","message":{"convId":"l","id":"a","role":"user","content":"first"}}` + "\n",
			`{"type":"message","message":{"convId":"l","id":"b","parent":"a","role":"assistant","content":"last"}}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeTemp(t, "in.jsonl", ends[0], strings.Join(damage, ""), ends[1])
			all, rep := readAll(t, Options{Limits: Limits{Line: 2 << 20}}, path)
			texts := ""
			for _, in := range all {
				for _, n := range in.Nodes {
					texts += n.Message.Text() + "\n"
				}
			}
			if len(all) == 0 || all[0].Format != name || !strings.Contains(texts, "first") || !strings.Contains(texts, "last") {
				t.Errorf("%d conversations with %q", len(all), texts)
			}
			if rep.Skipped < 10 || rep.Outcome() != Partial || rep.Failed != 0 {
				t.Errorf("%d skipped, %d failed", rep.Skipped, rep.Failed)
			}
			long := false
			for _, w := range rep.Warnings {
				long = long || strings.Contains(w.Text, "the limit") && w.Line > 0
			}
			if !long {
				t.Error("the long line is not reported with its number")
			}
		})
	}
}

// TestLargeShapes reads shapes that recursion or comparing pairs would not survive: a chain, a fan, a circle, many copies, results without calls.
func TestLargeShapes(t *testing.T) {
	n := 4_000
	if testkit.Long() {
		n = 20_000
	}
	id := func(i int) string { return fmt.Sprintf("%06d", i) }
	shapes := map[string]func(i int) string{
		"chain":         func(i int) string { return ccText("user", id(i), id(i-1), "x") },
		"chain of ends": func(i int) string { return ccText("user", id(n-i), id(n-i-1), "x") },
		"fan":           func(i int) string { return ccText("user", id(i), id(0), "x") },
		"circle":        func(i int) string { return ccText("user", id(i), id((i+1)%n), "x") },
		"one id":        func(i int) string { return ccText("user", "same", id(i), "x") },
		"copies":        func(i int) string { return ccText("user", "same", "", "x") },
		"links": func(i int) string {
			return fmt.Sprintf(`{"type":"progress","uuid":%q,"parentUuid":%q,"sessionId":"s"}`+"\n", id(i), id(i-1))
		},
		"results": func(i int) string {
			return fmt.Sprintf(`{"type":"user","uuid":%q,"parentUuid":%q,"sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}}`+"\n", id(i), id(i-1))
		},
		"one reply": func(i int) string {
			return fmt.Sprintf(`{"type":"assistant","uuid":%q,"parentUuid":%q,"sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"x","input":{}}]}}`+"\n", id(i), id(i-1), i%1000)
		},
	}
	for name, line := range shapes {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString(ccText("user", id(0), "", "root"))
			for i := 1; i < n; i++ {
				b.WriteString(line(i))
			}
			all, rep := readAll(t, Options{}, writeTemp(t, "in.jsonl", b.String()))
			if len(all) == 0 || rep.Messages+rep.Duplicated+rep.Structural+rep.Skipped != n {
				t.Errorf("%d messages + %d duplicated + %d structural + %d skipped of %d", rep.Messages, rep.Duplicated, rep.Structural, rep.Skipped, n)
			}
		})
	}
}

// TestRereadIsTheSame reads each input twice: ids depend only on the file.
func TestRereadIsTheSame(t *testing.T) {
	names, err := filepath.Glob("testdata/formats/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		first, _ := readAll(t, Options{}, name)
		second, _ := readAll(t, Options{}, name)
		if len(first) != len(second) {
			t.Fatalf("%s: %d and %d conversations", name, len(first), len(second))
		}
		for i := range first {
			if first[i].Conversation != second[i].Conversation || nodeIDs(first[i]) != nodeIDs(second[i]) {
				t.Errorf("%s: another id the second time", name)
			}
		}
	}
}

func nodeIDs(in *record.Incoming) string {
	var b strings.Builder
	for _, n := range in.Nodes {
		b.WriteString(n.ID + "\n")
	}
	return b.String()
}
