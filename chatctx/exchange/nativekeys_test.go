package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/testkit"
)

// everywhere adds a member to each object of a JSON value, and counts them.
func everywhere(v any, n *int) any {
	switch x := v.(type) {
	case []any:
		for i := range x {
			x[i] = everywhere(x[i], n)
		}
	case map[string]any:
		for k := range x {
			x[k] = everywhere(x[k], n)
		}
		*n++
		x["odd_member"] = fmt.Sprintf("odd text %d.", *n)
	}
	return v
}

// doubled returns a JSON value with one more member before each member of an object: with the same name and another text.
func doubled(v any, n *int) []byte {
	var b bytes.Buffer
	switch x := v.(type) {
	case []any:
		b.WriteByte('[')
		for i := range x {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(doubled(x[i], n))
		}
		b.WriteByte(']')
	case map[string]any:
		b.WriteByte('{')
		for i, k := range slices.Sorted(keysOf(x)) {
			if i > 0 {
				b.WriteByte(',')
			}
			key, _ := json.Marshal(k)
			*n++
			fmt.Fprintf(&b, "%s:%q,%s:%s", key, fmt.Sprintf("twin text %d.", *n), key, doubled(x[k], n))
		}
		b.WriteByte('}')
	default:
		raw, _ := json.Marshal(v)
		b.Write(raw)
	}
	return b.Bytes()
}

func keysOf(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// mutantLines applies f to each line of an export.
func mutantLines(t testing.TB, export []byte, f func(v any) []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for line := range bytes.Lines(export) {
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		out.Write(append(f(v), '\n'))
	}
	return out.Bytes()
}

var (
	nativeGone    = regexp.MustCompile(`^the conversation (".*") is damaged or incomplete`)
	nativeOutside = regexp.MustCompile(`^the lines from here to (\d+) `)
)

// nativeNamed returns the lines of an export that a report names: single ones, lines outside of contexts, or all lines of a context that is left out.
func nativeNamed(text []byte, rep *Report) map[int]bool {
	named, gone := map[int]bool{}, map[int]bool{}
	for _, w := range rep.Warnings {
		named[w.Line], gone[w.Line] = true, gone[w.Line] || nativeGone.MatchString(w.Text)
		if m := nativeOutside.FindStringSubmatch(w.Text); m != nil {
			to, _ := strconv.Atoi(m[1])
			for n := w.Line; n <= to; n++ {
				named[n] = true
			}
		}
	}
	n, left := 0, false
	for line := range bytes.Lines(text) {
		if n++; bytes.HasPrefix(line, []byte(`{"context"`)) {
			left = gone[n]
		}
		named[n] = named[n] || left
	}
	return named
}

// lostOfNative returns the strings of an export in our own format that a store does not print after importing it, on lines that the report does not name.
func lostOfNative(t testing.TB, text []byte, s *chatctx.Store, rep *Report) (missing []string) {
	t.Helper()
	out := lawOfExport(t, exported(t, s, ExportOptions{All: true}))
	named := nativeNamed(text, rep)
	structural := func(key string) bool { return false }
	for _, rec := range lawRecords(text) {
		if named[rec.line] {
			continue
		}
		lawStrings(rec.v, structural, "", func(path, x string) {
			if !out.has(x) {
				missing = append(missing, fmt.Sprintf("line %d%s: %.80q", rec.line, path, x))
			}
		})
	}
	return missing
}

// TestLawOfNativeExports: the contents of a file in our own format are in the store that imports it, or reported: with one more member in each object, each
// member twice, lines in another order, missing lines, and a file that is cut off anywhere.
func TestLawOfNativeExports(t *testing.T) {
	whole := exported(t, richStore(t), ExportOptions{All: true})
	lines := bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
	lines[len(lines)-1] = append(bytes.Clone(lines[len(lines)-1]), '\n')
	hold := func(name string, text []byte) {
		t.Helper()
		s, rep := imported(t, text)
		storetest.Check(t, s)
		if rep.Files == 0 {
			return // the report says why nothing was read
		}
		for i, m := range lostOfNative(t, text, s, rep) {
			if i < 5 {
				t.Errorf("%s: %s", name, m)
			}
		}
		if t.Failed() {
			t.Fatalf("the report: %+v", rep)
		}
	}
	n := 0
	odd := mutantLines(t, whole, func(v any) []byte { b, _ := json.Marshal(everywhere(v, &n)); return b })
	hold("one more member everywhere", odd)
	if s, rep := imported(t, odd); rep.SkippedContexts > 0 || rep.Contexts != 2 {
		t.Errorf("one more member: %+v", rep)
	} else if again, err := imports(t, s, []string{"-"}, Options{Stdin: bytes.NewReader(odd)}); err != nil || again.Messages+again.Branches > 0 {
		t.Errorf("one more member, again: %v %+v", err, again)
	}
	twice := mutantLines(t, whole, func(v any) []byte { return doubled(v, &n) })
	hold("each member twice", twice)
	if _, rep := imported(t, twice); rep.SkippedContexts > 0 || rep.Contexts != 2 {
		t.Errorf("each member twice: %+v", rep)
	}
	for i := range lines {
		cut := bytes.Join(lines[:i], nil)
		hold(fmt.Sprintf("cut before line %d", i+1), cut)
		if s, rep := imported(t, cut); i > 0 && rep.Outcome() == Complete {
			t.Errorf("cut before line %d: complete, %v", i+1, s)
		}
		hold(fmt.Sprintf("cut in line %d", i+1), append(cut, lines[i][:len(lines[i])/2]...))
		hold(fmt.Sprintf("without line %d", i+1), bytes.Join(slices.Delete(slices.Clone(lines), i, i+1), nil))
		if i > 0 {
			swapped := slices.Clone(lines)
			swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
			hold(fmt.Sprintf("line %d before the one before it", i+1), bytes.Join(swapped, nil))
		}
	}
	for seed := range testkit.Seeds(t, 5) {
		mixed, rng := slices.Clone(lines), rand.New(rand.NewPCG(seed, 11))
		rng.Shuffle(len(mixed)-1, func(a, b int) { mixed[a+1], mixed[b+1] = mixed[b+1], mixed[a+1] })
		hold(fmt.Sprintf("mixed, seed %d", seed), bytes.Join(mixed, nil))
	}
}

// TestAChildBeforeItsParent: contexts of one file have the same result in any order.
func TestAChildBeforeItsParent(t *testing.T) {
	ctx := context.Background()
	s := memoryStore(t)
	top, err := s.New(ctx, record.NewContext{Title: "top"})
	if err != nil {
		t.Fatal(err)
	}
	middle, err := top.StartTask(ctx, "", record.NewTask{NewContext: record.NewContext{Title: "middle"}, Task: record.Task{MaxDepth: 3}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := middle.StartTask(ctx, "", record.NewTask{NewContext: record.NewContext{Title: "low"}}); err != nil {
		t.Fatal(err)
	}
	export := exported(t, s, ExportOptions{All: true})
	head, rest, _ := strings.Cut(string(export), "\n")
	blocks := strings.SplitAfter(rest, "}}\n{\"context\"")
	for i := range blocks { // each from its context line on
		blocks[i] = strings.TrimSuffix(blocks[i], `{"context"`)
		if i > 0 {
			blocks[i] = `{"context"` + blocks[i]
		}
	}
	if len(blocks) != 3 {
		t.Fatal(len(blocks))
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		text := head + "\n"
		for _, i := range order {
			text += blocks[i]
		}
		to, rep := imported(t, []byte(text))
		storetest.Check(t, to)
		if len(rep.Warnings) > 0 || rep.Contexts != 3 {
			t.Errorf("%v: %+v", order, rep)
		}
		again, err := imports(t, to, []string{"-"}, Options{Stdin: strings.NewReader(text)})
		if err != nil || again.Contexts != 0 || len(again.Warnings) > 0 {
			t.Errorf("%v, again: %v %+v", order, err, again)
		}
		compareLines(t, exported(t, to, ExportOptions{All: true}), export)
		if _, err := to.Undo(ctx, "", "", ""); err != nil {
			t.Error(err)
		}
		storetest.Check(t, to)
	}
	// Contexts that name each other, or themselves, stay at their place.
	ids := regexp.MustCompile(`"id":"([^"]*)"`)
	low := ids.FindStringSubmatch(blocks[2])[1]
	loop := strings.Replace(blocks[0], `,"active"`, `,"parent":"`+low+`","active"`, 1)
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		text := head + "\n"
		for _, i := range order {
			text += []string{loop, blocks[1], blocks[2]}[i]
		}
		to, rep := imported(t, []byte(text))
		storetest.Check(t, to)
		if rep.Contexts != 3 {
			t.Errorf("a circle: %+v", rep)
		}
	}
}

// TestSettingsUnderBothNames: the settings that a file holds back are kept completely beside those in force.
func TestSettingsUnderBothNames(t *testing.T) {
	text := `{"chatctx":1,"contexts":1}
{"context":{"id":"01a22021-63f6-7ad6-9c13-ff9dd353865f","title":"p","settings":{"base_url":"http://one","held.base_url":"http://two"},"active":"main"}}
{"branch":{"id":"01a22021-63f8-756b-84f8-284ac451d6a4","name":"main","settings":{"held.held.key_env":"A","held.key_env":"B","key_env":"C"}}}
{"end":{"context":"01a22021-63f6-7ad6-9c13-ff9dd353865f","messages":0,"branches":1}}
`
	for range 5 { // maps have no order
		s, rep := imported(t, []byte(text))
		if rep.Outcome() != Complete {
			t.Fatalf("%+v", rep)
		}
		out := string(exported(t, s, ExportOptions{Context: "p"}))
		for _, want := range []string{`"base_url":"http://one"`, `"held.base_url":"http://two"`, `"held.held.key_env":"A"`, `"held.key_env":"B"`, `"key_env":"C"`} {
			if !strings.Contains(out, want) {
				t.Errorf("%s is not in\n%s", want, out)
			}
		}
		other, _ := imported(t, []byte(out))
		compareLines(t, exported(t, other, ExportOptions{Context: "p"}), []byte(out))
		storetest.Check(t, s)
	}
}

// TestABadMessageLine: of a message with a member that is not valid the rest stays in its place, and the report names the line.
func TestABadMessageLine(t *testing.T) {
	for bad, want := range map[string]string{
		`"created_at":"no time"`:                            "created_at",
		`"role":"bard"`:                                     "role",
		`"content":{"odd":"THE TEXT"}`:                      "content",
		`"content":{"odd":"THE TEXT"},"created_at":"never"`: "everything but the id",
	} {
		s := memoryStore(t)
		whole := `{"id":"01a223bc-d760-7595-90cd-b8973cb5c502","role":"assistant","content":[{"type":"text","text":"in the middle"}],"created_at":"2026-11-28T19:58:28Z"}`
		damaged := whole
		for _, member := range strings.SplitAfter(bad, `},`) {
			key, value, _ := strings.Cut(strings.TrimSuffix(member, ","), ":")
			v, _, err := new(document).parse([]byte(damaged), true)
			if err != nil {
				t.Fatal(err)
			}
			damaged = strings.Replace(damaged, key+":"+string(v.get(strings.Trim(key, `"`)).raw()), key+":"+value, 1)
		}
		message := func(id, role, text string) string {
			return `{"message":{"id":"01a223bc-d760-7595-90cd-b8973cb5c5` + id + `","role":"` + role + `","content":[{"type":"text","text":"` + text + `"}]}}` + "\n"
		}
		text := `{"chatctx":1,"contexts":1}` + "\n" + `{"context":{"id":"01a223bc-d71d-780b-aa8c-ebcba22c1b01","title":"Mini","active":"main"}}` + "\n" +
			`{"branch":{"id":"01a223bc-d71d-780b-aa8c-ebcba22c1b02","name":"main"}}` + "\n" + message("01", "user", "before") +
			`{"message":` + damaged + "}\n" + message("03", "user", "after") + `{"end":{"context":"01a223bc-d71d-780b-aa8c-ebcba22c1b01","messages":3,"branches":1}}` + "\n"
		for i := range 2 {
			rep := importInto(t, s, write(t, filepath.Join(t.TempDir(), "x.jsonl"), text))
			named := slices.ContainsFunc(rep.Warnings, func(w Warning) bool {
				return w.Line == 5 && strings.Contains(w.Text, want+" of the message cannot be read")
			})
			if rep.Messages != 3-3*i || rep.Repaired != 1 || !named {
				t.Errorf("%s: %+v", bad, rep)
			}
		}
		out := string(exported(t, s, ExportOptions{All: true}))
		if got := saidOn(t, s, "Mini"); strings.Count(got, " ") < 3 || !strings.HasSuffix(got, " after\n") || strings.Contains(bad, "THE TEXT") != strings.Contains(out, "THE TEXT") {
			t.Errorf("%s: %q\n%s", bad, got, out)
		}
	}
}
