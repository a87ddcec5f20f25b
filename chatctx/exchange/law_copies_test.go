package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/testkit"
)

// The law for what comes again in another state, in another file or in the same: what the second one says is in the store, or its report has a warning that
// the first one does not give.

// theEdit is in what a test adds to a file.
const theEdit = "THE EDIT"

// edits are the ways to change something in a value, by place: each returns the text that the value has afterwards.
type edits struct {
	rng        *rand.Rand
	structural func(key string) bool
	paths      []string
	list       []func() (was, now string)
}

func (e *edits) add(path string, f func() (was, now string)) {
	e.paths, e.list = append(e.paths, path), append(e.list, f)
}

// text notes a text that can be edited.
func (e *edits) text(path, was string, set func(any)) {
	if was == "" || uuid.Validate(was) == nil {
		return
	}
	e.add(path, func() (string, string) {
		now := []string{theEdit, was + " " + theEdit, theEdit + " " + was}[e.rng.IntN(3)]
		set(now)
		return was, now
	})
}

// object notes an object that can have one more member.
func (e *edits) object(path string, x map[string]any) {
	e.add(path+"{}", func() (string, string) {
		x["zz_new"] = theEdit
		return "", theEdit
	})
}

// find looks for what can be edited in a value.
func (e *edits) find(path string, v any, set func(any)) {
	switch x := v.(type) {
	case string:
		e.text(path, x, set)
	case []any:
		for i := range x {
			e.find(path, x[i], func(v any) { x[i] = v })
		}
	case map[string]any:
		e.object(path, x)
		for _, k := range slices.Sorted(maps.Keys(x)) {
			if !e.structural(k) {
				e.find(path+"."+k, x[k], func(v any) { x[k] = v })
			}
		}
	}
}

// twins looks for the objects in lists: each can stand there twice, one of them with one more member in it.
func (e *edits) twins(path string, list []any, set func([]any)) {
	for i, it := range list {
		if x, ok := it.(map[string]any); ok {
			e.add(path, func() (string, string) {
				raw, _ := json.Marshal(x)
				var twin map[string]any
				_ = json.Unmarshal(raw, &twin)
				inside := &edits{rng: e.rng, structural: e.structural}
				inside.objects("", twin)
				inside.list[e.rng.IntN(len(inside.list))]()
				set(slices.Insert(slices.Clone(list), i+e.rng.IntN(2), any(twin)))
				return "", theEdit
			})
			e.twinsIn(path, x)
		}
	}
}

func (e *edits) twinsIn(path string, x map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(x)) {
		switch y := x[k].(type) {
		case []any:
			e.twins(path+"."+k, y, func(v []any) { x[k] = v })
		case map[string]any:
			e.twinsIn(path+"."+k, y)
		}
	}
}

// objects notes all objects of a value.
func (e *edits) objects(path string, v any) {
	switch x := v.(type) {
	case []any:
		for i := range x {
			e.objects(path, x[i])
		}
	case map[string]any:
		e.object(path, x)
		for _, k := range slices.Sorted(maps.Keys(x)) {
			e.objects(path+"."+k, x[k])
		}
	}
}

// jsonRecords returns the values of a file of JSON or JSON Lines; nil if it is none.
func jsonRecords(text []byte) (values []any) {
	if changedEverywhere(text, func(v any) []byte { values = append(values, v); return []byte{} }) == nil {
		return nil
	}
	return values
}

// inFile writes values as a file of JSON Lines. Of the same name each time, since the id of a conversation may be that of its file.
func inFile(t testing.TB, values []any) string {
	t.Helper()
	var b bytes.Buffer
	for _, v := range values {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(raw, '\n'))
	}
	path := filepath.Join(t.TempDir(), "01a2f000-0000-7000-8000-000000000001.jsonl")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// nativeKeys are the keys of the store's own export that say how it hangs together.
var nativeKeys = []string{"chatctx", "active", "from", "to", "state", "approval_status", "execution", "by_kind", "by_name", "sha256", "media_type", "data", "created_at", "updated_at", "since",
	"expires", "at", "ended_at", "completed_at", "of", "arguments_sha256", "role", "type", "kind", "again", "call_id", "id", "mark", "exact", "tool_call_id", "request_id", "format", "conversation",
	"node", "branch_name", "raw", "claimed", "program", "user", "url"}

func copyKeys(format string) func(string) bool {
	if format == nativeName {
		return func(k string) bool { return slices.Contains(nativeKeys, k) }
	}
	return lawKeys(format)
}

// formatOf returns the format of a file, "" if it has no conversation.
func formatOf(t *testing.T, path string) (format string) {
	t.Helper()
	if _, err := Read(context.Background(), []string{path}, Options{}, func(in *record.Incoming) error { format = in.Format; return nil }); err != nil {
		t.Fatal(err)
	}
	return format
}

// says reports whether a store prints a text.
func says(t *testing.T, s *chatctx.Store, text string) bool {
	t.Helper()
	return lawOfExport(t, exported(t, s, ExportOptions{All: true})).has(text)
}

// newWarnings reports whether a report has a warning that another one does not have, or has less often.
func newWarnings(rep, than *Report) bool {
	n := map[string]int{}
	for _, w := range than.Warnings {
		n[w.Text]++
	}
	return slices.ContainsFunc(rep.Warnings, func(w Warning) bool { n[w.Text]--; return n[w.Text] < 0 })
}

// holdCopies imports a file and a copy in which one thing differs, and the other way round.
func holdCopies(t *testing.T, rng *rand.Rand, text []byte, folder string) (held bool) {
	t.Helper()
	values := jsonRecords(text)
	first := inFile(t, values)
	format := formatOf(t, first)
	if format == "" || format == nativeName != (folder == nativeName) {
		return false
	}
	e := &edits{rng: rng, structural: copyKeys(format)}
	e.find("", any(values), nil)
	n := rng.IntN(len(e.list))
	was, now := e.list[n]()
	second := inFile(t, values)
	for _, order := range []struct {
		files [2]string
		said  string
	}{{[2]string{first, second}, now}, {[2]string{second, first}, was}} {
		only, s := memoryStore(t), memoryStore(t)
		alone := importInto(t, only, order.files[1])
		if !says(t, only, order.said) {
			continue // left out, and named
		}
		importInto(t, s, order.files[0])
		if rep := importInto(t, s, order.files[1]); !says(t, s, order.said) && !newWarnings(rep, alone) {
			t.Errorf("%s%s: %q is lost, after the other state came: %v", folder, e.paths[n], order.said, rep.Warnings)
		}
	}
	return true
}

// copiedFiles are the files of each format, with an export of a store that has one of everything.
func copiedFiles(t *testing.T) map[string][][]byte {
	files := mutantFiles(t)
	files[nativeName] = [][]byte{exported(t, richStore(t), ExportOptions{All: true})}
	return files
}

// TestLawOfEditedCopies edits something in a file that was imported.
func TestLawOfEditedCopies(t *testing.T) { holdForEachFormat(t, 3, copiedFiles(t), holdCopies) }

// TestLawOfTwins lets something stand twice in a file, one of them with one more member.
func TestLawOfTwins(t *testing.T) { holdForEachFormat(t, 4, mutantFiles(t), holdTwins) }

// holdForEachFormat holds a law for a file of each format by chance. Of a file that has nothing for it hold returns false; at least 15 files a round have something.
func holdForEachFormat(t *testing.T, stream uint64, files map[string][][]byte, hold func(t *testing.T, rng *rand.Rand, text []byte, folder string) bool) {
	t.Helper()
	held, least := 0, 0
	for seed := range testkit.Seeds(t, testkit.Fewer(4)) {
		least += 15
		for _, folder := range slices.Sorted(maps.Keys(files)) {
			rng, of := rand.New(rand.NewPCG(seed, stream)), files[folder]
			if hold(t, rng, of[rng.IntN(len(of))], folder) {
				held++
			}
		}
	}
	if held < least {
		t.Errorf("%d files, not %d", held, least)
	}
}

func holdTwins(t *testing.T, rng *rand.Rand, text []byte, folder string) (held bool) {
	t.Helper()
	values := jsonRecords(text)
	first := inFile(t, values)
	format := formatOf(t, first)
	if format == "" || format == nativeName {
		return false
	}
	e := &edits{rng: rng, structural: copyKeys(format)}
	if len(values) > 1 {
		e.twins("", values, func(v []any) { values = v })
	} else if list, ok := values[0].([]any); ok {
		e.twins("", list, func(v []any) { values[0] = v })
	} else if x, ok := values[0].(map[string]any); ok {
		e.twinsIn("", x)
	}
	if len(e.list) == 0 {
		return false
	}
	n := rng.IntN(len(e.list))
	_, now := e.list[n]()
	second := inFile(t, values)
	s := memoryStore(t)
	alone := importInto(t, memoryStore(t), first)
	rep := importInto(t, s, second)
	lines, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	lost := slices.ContainsFunc(lostIn(lines, lawOfExport(t, exported(t, s, ExportOptions{All: true})), format, rep), func(m string) bool { return strings.Contains(m, now) })
	if lost && !newWarnings(rep, alone) {
		t.Errorf("%s%s: %q is lost with its twin: %v", folder, e.paths[n], now, rep.Warnings)
	}
	return true
}

// TestAnEditedExport: of an export that was edited, the title is taken, and the report names by their lines a prompt, a summary, a model and a setting.
func TestAnEditedExport(t *testing.T) {
	s := richStore(t)
	was := exported(t, s, ExportOptions{All: true})
	text := string(was)
	lines := map[int]bool{}
	title := ""
	for i, line := range strings.Split(text, "\n") {
		now := line
		switch {
		case strings.HasPrefix(line, `{"context":`) && title == "":
			var c struct{ Context record.Native }
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Fatal(err)
			}
			title = c.Context.ID.String()
			now = strings.Replace(line, `"title":"`, `"title":"`+theEdit+" ", 1)
			text = strings.Replace(text, line, now, 1)
			continue
		case strings.HasPrefix(line, `{"branch":`):
			now = strings.Replace(line, `"system":"`, `"system":"`+theEdit, 1)
		case strings.HasPrefix(line, `{"loose":`) && strings.Contains(line, `"kind":"summary"`):
			now = strings.Replace(line, `"text":"`, `"text":"`+theEdit, 1)
		case strings.HasPrefix(line, `{"message":`):
			now = strings.Replace(line, `"model_id":"`, `"model_id":"`+theEdit, 1)
		}
		if now != line {
			lines[i+1] = true
			text = strings.Replace(text, line, now, 1)
		}
	}
	if len(lines) < 3 {
		t.Fatalf("%d lines", len(lines))
	}
	rep := importInto(t, s, write(t, filepath.Join(t.TempDir(), "x.jsonl"), text))
	for _, w := range rep.Warnings {
		if strings.Contains(w.Text, "otherwise") {
			delete(lines, w.Line)
		}
	}
	c, err := s.Context(context.Background(), title)
	if err != nil {
		t.Fatal(err)
	}
	info, err := c.Info(context.Background())
	if err != nil || !strings.HasPrefix(info.Title, theEdit) || len(lines) > 0 || rep.Messages != 0 {
		t.Errorf("%v, title %q, lines that are not named %v, %+v", err, info.Title, lines, rep)
	}
	for range 2 { // the earlier file is older now
		rep = importInto(t, s, write(t, filepath.Join(t.TempDir(), "x.jsonl"), string(was)))
		if info, err = c.Info(context.Background()); err != nil || !strings.HasPrefix(info.Title, theEdit) || !strings.Contains(fmt.Sprint(rep.Warnings), "otherwise is not taken: title") {
			t.Errorf("%v, title %q, %v", err, info.Title, rep.Warnings)
		}
	}
}
