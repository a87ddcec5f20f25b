package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/exchangetest"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/testkit"
)

// importInto imports files and checks the store.
func importInto(t testing.TB, s *chatctx.Store, paths ...string) *Report {
	t.Helper()
	rep, err := imports(t, s, paths, Options{})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Check(t, s)
	return rep
}

// imports imports after a dry run, whose report is the same, except that it names no context that is new.
func imports(t testing.TB, s *chatctx.Store, paths []string, o Options) (*Report, error) {
	t.Helper()
	ctx := context.Background()
	var text []byte
	if o.Stdin != nil {
		var err error
		if text, err = io.ReadAll(o.Stdin); err != nil {
			t.Fatal(err)
		}
	}
	there := map[string]bool{"": true}
	for _, trash := range []bool{false, true} {
		for info := range s.Contexts(ctx, record.ListOptions{Trash: trash}) {
			there[info.ID.String()] = true
		}
	}
	o.DryRun, o.Stdin = true, bytes.NewReader(text)
	dry, err := Import(ctx, s, paths, o)
	if err != nil {
		t.Error("the dry run:", err)
	}
	o.DryRun, o.Stdin = false, bytes.NewReader(text)
	rep, err := Import(ctx, s, paths, o)
	said := *rep
	said.Imported = slices.Clone(rep.Imported)
	for i := range said.Imported {
		if !there[said.Imported[i].Context] {
			said.Imported[i].Context = ""
		}
	}
	want, err1 := json.Marshal(said)
	got, err2 := json.Marshal(dry)
	if err := errors.Join(err1, err2); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the dry run says\n%s\nand the import\n%s, %v", got, want, err)
	}
	return rep, err
}

// TestImportAddsUp imports everything in testdata: the contents of the files are in the store, and in the report.
func TestImportAddsUp(t *testing.T) {
	s := memoryStore(t)
	first := importInto(t, s, "testdata/chatgpt", filepath.Join("..", "..", "testdata"))
	_, read := readAll(t, Options{}, "testdata/chatgpt", filepath.Join("..", "..", "testdata"))
	if first.Messages+first.Duplicated != read.Messages || first.Structural != read.Structural || first.Skipped != read.Skipped {
		t.Errorf("imported %+v, read %+v", first, read)
	}
	stored := 0
	for info, err := range s.Contexts(context.Background(), record.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		stored += info.Messages
	}
	if stored != first.Messages {
		t.Errorf("%d messages are in the store, %d on the report", stored, first.Messages)
	}
	again := importInto(t, s, "testdata/chatgpt", filepath.Join("..", "..", "testdata"))
	if again.Messages != 0 || again.Branches != 0 || again.Contexts != 0 || again.Duplicated != read.Messages || len(again.Imported) != len(first.Imported) {
		t.Errorf("a second time: %+v", again)
	}
}

// TestImportOfALongerVersion adds only what is new, and keeps changes made in the store meanwhile.
func TestImportOfALongerVersion(t *testing.T) {
	ctx := context.Background()
	node := func(id, parent, role string) string {
		return `"` + id + `":{"id":"` + id + `","parent":"` + parent + `","message":{"author":{"role":"` + role + `"},"content":{"content_type":"text","parts":["` + id + `"]}}}`
	}
	version := func(current string, nodes ...string) string {
		return `[{"conversation_id":"grow","title":"Grows","current_node":"` + current + `","mapping":{` + strings.Join(nodes, ",") + `}}]`
	}
	dir := t.TempDir()
	q, a := node("q", "", "user"), node("a", "q", "assistant")
	short := write(t, filepath.Join(dir, "short.json"), version("a", q, a))
	long := write(t, filepath.Join(dir, "long.json"), version("a2", q, a, node("q2", "a", "user"), node("a2", "q2", "assistant"), node("b", "q", "assistant")))
	s := memoryStore(t)
	importInto(t, s, short)
	c, err := s.Context(ctx, "Grows")
	if err != nil {
		t.Fatal(err)
	}
	commit(t, c, "main", func(b *chatctx.Batch) { b.Fork("mine", chatctx.ForkOptions{At: "@1", Stay: true}) })
	rep := importInto(t, s, long)
	if rep.Messages != 3 || rep.Duplicated != 2 || rep.Branches != 1 || rep.Contexts != 1 {
		t.Errorf("%+v", rep)
	}
	for name, want := range map[string]int{"main": 4, "answer 2 of u1": 2, "mine": 1} {
		b, err := c.Branch(ctx, name)
		if err != nil || b.Messages != want {
			t.Errorf("branch %s: %+v, %v; want %d messages", name, b, err, want)
		}
	}
	if rep = importInto(t, s, short); rep.Messages != 0 || rep.Duplicated != 2 || rep.Branches != 0 {
		t.Errorf("the shorter one again: %+v", rep)
	}
}

func TestImportIsUndoneAtOnce(t *testing.T) {
	ctx := context.Background()
	s := memoryStore(t)
	dir := t.TempDir()
	importInto(t, s, write(t, filepath.Join(dir, "a.json"), one("a")), write(t, filepath.Join(dir, "b.json"), one("b")))
	if _, err := s.Undo(ctx, "", "", "s1"); err != nil {
		t.Fatal(err)
	}
	for info, err := range s.Contexts(ctx, record.ListOptions{}) {
		t.Error("still there:", info.Title, err)
	}
	if rep := importInto(t, s, dir); rep.Messages != 2 {
		t.Errorf("after the undo: %+v", rep)
	}
}

func TestDryRunStoresNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s := memoryStore(t)
	rep, err := Import(context.Background(), s, []string{"testdata/chatgpt"}, Options{DryRun: true})
	if err != nil || rep.Messages == 0 || rep.Contexts == 0 {
		t.Errorf("%v %+v", err, rep)
	}
	for range s.Contexts(context.Background(), record.ListOptions{}) {
		t.Fatal("something is stored")
	}
	importInto(t, s, "testdata/chatgpt")
	again, err := Import(context.Background(), s, []string{"testdata/chatgpt"}, Options{DryRun: true})
	if err != nil || again.Messages != 0 || again.Contexts != 0 || again.Duplicated != rep.Messages {
		t.Errorf("of what is there already: %v %+v", err, again)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// TestImportKeepsWhatWasStored: an interrupted import has stored whole conversations, and reports which.
func TestImportKeepsWhatWasStored(t *testing.T) {
	s := memoryStore(t)
	ctx, cancel := context.WithCancel(context.Background())
	large := strings.Repeat("lorem ", batchBytes/6+1000)
	text := "[" + strings.Trim(strings.Replace(one("a"), "words", large, 1), "[]") + "," + strings.Trim(strings.Replace(one("b"), "words", large, 1), "[]") + "," + one("c")[1:]
	path := write(t, filepath.Join(t.TempDir(), "x.json"), text)
	rep, err := Import(ctx, s, []string{path}, Options{Progress: func(p Progress) {
		if p.Conversations >= 2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	n := 0
	for range s.Contexts(context.Background(), record.ListOptions{}) {
		n++
	}
	if n != rep.Contexts || n == 3 {
		t.Errorf("%d conversations are stored, the report says %d", n, rep.Contexts)
	}
	storetest.Check(t, s)
}

func TestReportJSON(t *testing.T) {
	_, rep := readAll(t, Options{}, "testdata/chatgpt/bad.json")
	text, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"files", "contexts", "messages", "branches", "skipped", "duplicated", "repaired", "structural", "skipped_contexts", "warnings", "imported"} {
		if _, ok := got[key]; !ok {
			t.Errorf("the report has no %q", key)
		}
	}
	if w := got["warnings"].([]any)[0].(map[string]any); w["index"] != 2.0 || w["text"] == "" || w["file"] == "" {
		t.Errorf("a warning is %v", w)
	}
	empty, err := json.Marshal(func() *Report {
		_, r := readAll(t, Options{}, write(t, filepath.Join(t.TempDir(), "e.json"), "[]"))
		return r
	}())
	if err != nil || !strings.Contains(string(empty), `"warnings":[],"imported":[]`) {
		t.Errorf("an empty report is %s, %v", empty, err)
	}
}

func TestWarningsAreLimited(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "x.json"), "["+strings.Repeat(`{"mapping":1},`, 50)+one("a")[1:])
	_, rep := readAll(t, Options{Limits: Limits{Warnings: 7}}, path)
	if len(rep.Warnings) != 7 || rep.MoreWarnings != 43 || rep.SkippedContexts != 50 {
		t.Errorf("%d warnings and %d more, %d skipped", len(rep.Warnings), rep.MoreWarnings, rep.SkippedContexts)
	}
}

func TestSharedSamplesAddUp(t *testing.T) {
	dir := testkit.Shared(t, "samples", "chatgpt")
	s := memoryStore(t)
	rep := importInto(t, s, dir)
	want := 0
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		want += countNodes(v)
	}
	if got := rep.Messages + rep.Skipped + rep.Duplicated + rep.Structural; got != want || rep.Skipped != 0 || rep.Failed != 0 {
		t.Errorf("the files hold %d nodes, the report has %d: %+v", want, got, rep)
	}
}

// countNodes counts the nodes of all mappings in decoded JSON.
func countNodes(v any) int {
	n := 0
	switch x := v.(type) {
	case []any:
		for _, it := range x {
			n += countNodes(it)
		}
	case map[string]any:
		if m, ok := x["mapping"].(map[string]any); ok {
			return len(m)
		}
		for _, it := range x {
			n += countNodes(it)
		}
	}
	return n
}

// TestMarkdown writes the branches of the example.
func TestMarkdown(t *testing.T) {
	s := memoryStore(t)
	importInto(t, s, filepath.Join("..", "..", "testdata", "chatgpt-export.json"))
	id := onlyContext(t, s).ID.String()
	golden(t, "testdata/example.md", string(exported(t, s, ExportOptions{Format: "markdown", Context: id})))
	other := string(exported(t, s, ExportOptions{Format: "markdown", Context: id, Branch: "edit 1 of u2", Hidden: true}))
	if !strings.Contains(other, "How much flour do I need?") || strings.Contains(other, "timetable") || !strings.Contains(other, "## System") {
		t.Errorf("the other branch is\n%s", other)
	}
}

func TestMarkdownFences(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "```\nplain\n```\n", "": "```\n```\n", "a ``` b\n": "````\na ``` b\n````\n", "`````": "``````\n`````\n``````\n",
	} {
		if got := fenced(text, ""); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"x\n```go\ncode": "x\n```go\ncode\n```", "```\na\n```\nb\n": "```\na\n```\nb", "~~~~\n```\n~~~": "~~~~\n```\n~~~\n~~~~", "``` inline ``` x": "``` inline ``` x",
		"````\n```\n": "````\n```\n````", "    ```\nindented": "    ```\nindented",
	} {
		if got := closed(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestHostileMarkdown(t *testing.T) {
	text := string(exported(t, exchangetest.HostileStore(t), ExportOptions{Format: "markdown"}))
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "## ") && !strings.HasPrefix(line, "## User") && !strings.HasPrefix(line, "## Assistant") && !strings.HasPrefix(line, "## Tool") {
			t.Errorf("a heading %q", line)
		}
	}
}

// TestStoreErrorsEndAnImport: an error of the store is not blamed on a file.
func TestStoreErrorsEndAnImport(t *testing.T) {
	export := string(exported(t, richStore(t), ExportOptions{All: true}))
	for name, text := range map[string]string{"chatgpt": one("a"), "chatctx": export} {
		s := memoryStore(t)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		rep, err := Import(context.Background(), s, []string{"-"}, Options{Stdin: strings.NewReader(text)})
		if err == nil || rep.Messages != 0 {
			t.Errorf("%s into a closed store: %v, %+v", name, err, rep)
		}
	}
}

// TestARefusedConversationIsLeftOut: a conversation that the store refuses does not affect the others of its batch.
func TestARefusedConversationIsLeftOut(t *testing.T) {
	parts := strings.Repeat(`"x",`, 100_001) + `"x"`
	text := strings.Replace(one("much"), `"words of much"`, parts, 1)
	s := memoryStore(t)
	rep := importInto(t, s, write(t, filepath.Join(t.TempDir(), "x.json"), strings.TrimSuffix(text, "]")+","+one("good")[1:]))
	if rep.Messages != 1 || rep.Skipped != 1 || rep.SkippedContexts != 1 || rep.Outcome() != Partial {
		t.Errorf("%+v", rep)
	}
}
