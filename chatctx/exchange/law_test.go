package exchange

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/testkit"
)

// The law of every reader: each string of the input, unless its key is structural, is part of what was read, or the report names its record.

// lawOutput holds the strings that an export of what was read prints.
type lawOutput struct {
	said map[string]bool
	all  strings.Builder
	sums map[[32]byte]bool
}

// lawText returns the form in which strings are compared: normalized, without white space around.
func lawText(s string) string {
	return strings.TrimSpace(norm.NFC.String(strings.ToValidUTF8(s, "\uFFFD")))
}

func (o *lawOutput) text(s string) {
	s = lawText(s)
	if !o.said[s] {
		if strings.HasPrefix(s, "[") || strings.HasPrefix(s, "{") {
			o.raw([]byte(s))
		}
		o.said[s] = true
		o.all.WriteString(s)
		o.all.WriteByte(0)
	}
}

func (o *lawOutput) value(v any) {
	switch x := v.(type) {
	case string:
		o.text(x)
	case []any:
		for _, it := range x {
			o.value(it)
		}
	case map[string]any:
		for k, it := range x {
			o.text(k)
			o.value(it)
		}
	}
}

func (o *lawOutput) raw(b []byte) {
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		var v any
		if d.Decode(&v) != nil {
			return
		}
		o.value(v)
	}
}

func (o *lawOutput) message(t testing.TB, m *chatctx.Message) {
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	o.raw(b)
	if m.Source != nil {
		o.raw(m.Source.Raw)
		o.text(string(m.Source.Raw))
	}
	parts := m.Content
	if m.Result != nil {
		parts = append(parts[:len(parts):len(parts)], m.Result.Parts...)
	}
	for i := range parts {
		if data := parts[i].Data; len(data) > 0 {
			o.sums[sha256.Sum256(data)] = true
			o.text(string(data))
		}
	}
}

func newLawOutput(t testing.TB, all []*record.Incoming) *lawOutput {
	o := &lawOutput{said: map[string]bool{"": true}, sums: map[[32]byte]bool{}}
	for _, in := range all {
		o.text(in.Title)
		o.text(in.System)
		o.text(in.Prompt)
		o.text(in.Conversation)
		for _, raw := range in.AppData {
			o.raw(raw)
		}
		for i := range in.Nodes {
			o.text(in.Nodes[i].ID)
			o.message(t, in.Nodes[i].Message)
		}
		for _, m := range in.Loose {
			o.message(t, m)
		}
	}
	return o
}

// has reports whether a string of the input is part of the output: as it is, as the bytes that it encodes, or, if it is JSON, by its strings.
func (o *lawOutput) has(s string) bool {
	t := lawText(s)
	if o.said[t] || strings.Contains(o.all.String(), t) {
		return true
	}
	body := s
	if _, b, ok := strings.Cut(s, ";base64,"); ok {
		body = b
	}
	body = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "", " ", "").Replace(body), "=")
	if b, err := base64.RawStdEncoding.DecodeString(body); err == nil && o.sums[sha256.Sum256(b)] {
		return true
	}
	if prompt, ok := strings.CutPrefix(s, "Prompted "); ok { // the prefix in takeouts
		return o.has(prompt)
	}
	if rest, ok := strings.CutPrefix(s, "data:"); ok {
		_, body, _ := strings.Cut(rest, ",")
		return o.has(body)
	}
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return false
	}
	if _, isText := v.(string); isText {
		return false
	}
	whole := true
	lawStrings(v, func(string) bool { return false }, "", func(_, s string) { whole = whole && o.has(s) })
	return whole
}

// lawStrings calls f with the strings of a value that are not structural.
func lawStrings(v any, structural func(key string) bool, path string, f func(path, s string)) {
	switch x := v.(type) {
	case string:
		f(path, x)
	case []any:
		for i, it := range x {
			lawStrings(it, structural, fmt.Sprintf("%s[%d]", path, i), f)
		}
	case map[string]any:
		for k, it := range x {
			if structural(k) {
				switch y := it.(type) {
				case string:
					continue
				case []any:
					if len(y) > 0 {
						_, list := y[0].([]any)
						if _, object := y[0].(map[string]any); !list && !object {
							continue
						}
					}
				}
			}
			lawStrings(it, structural, path+"."+k, f)
		}
	}
}

// lawRecord is a record of a file with its place, as in reports.
type lawRecord struct {
	line, index int
	v           any
}

// lawRecords splits a file of JSON without using the readers: into its items, its lines, or all of it. It leaves out what is not JSON.
func lawRecords(text []byte) []lawRecord {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	var one any
	if json.Unmarshal(text, &one) == nil {
		list, ok := one.([]any)
		if !ok {
			return []lawRecord{{1, 1, one}}
		}
		var out []lawRecord
		for i, v := range list {
			out = append(out, lawRecord{i + 1, i + 1, v})
		}
		return out
	}
	var out []lawRecord
	n, bad := 0, 0
	for line := range bytes.Lines(text) {
		n++
		if line = bytes.Trim(line, " \t\r\n\x00"); len(line) == 0 {
			continue
		}
		var v map[string]any
		if json.Unmarshal(line, &v) == nil && v != nil {
			out = append(out, lawRecord{n, n, v})
		} else {
			bad++
		}
	}
	if bad > len(out) {
		return nil // one value over several lines, which is damaged
	}
	return out
}

// lost returns the strings of a file that are neither in what was read nor in a record that the report names.
func lost(t testing.TB, text []byte, all []*record.Incoming, rep *Report) []string {
	if len(all) == 0 && len(rep.Warnings) > 0 {
		return nil // the report says why nothing was read
	}
	format := ""
	if len(all) > 0 {
		format = all[0].Format
	}
	if format == nativeName {
		return nil // exports of stores have their own tests
	}
	return lostIn(text, newLawOutput(t, all), format, rep)
}

// lawKeys returns a function that reports whether a key is structural in a format.
func lawKeys(format string) func(key string) bool {
	return func(key string) bool { return structuralKeys[""][key] || structuralKeys[format][key] }
}

// lostIn returns the strings of a file of JSON that are not part of an output, and whose record the report does not name.
func lostIn(text []byte, out *lawOutput, format string, rep *Report) []string {
	structural, named := lawKeys(format), map[int]bool{}
	for _, w := range rep.Warnings {
		if w.Line+w.Index > 0 {
			named[w.Line+w.Index] = true
		}
		if _, items, ok := strings.Cut(w.Text, "these items are no conversations and are left out: "); ok {
			for _, it := range strings.Split(items, ", ") {
				n, _ := strconv.Atoi(it)
				named[n] = true
			}
		}
	}
	var missing []string
	for _, rec := range lawRecords(text) {
		if named[rec.line] || named[rec.index] {
			continue
		}
		lawStrings(rec.v, structural, "", func(path, s string) {
			if !out.has(s) && !leftOut(rep, path) && !inNamed(named, path) {
				missing = append(missing, fmt.Sprintf("record %d%s: %.80q", rec.line, path, s))
			}
		})
	}
	return missing
}

// inNamed reports whether a path leads into an item of a list in the file's object that the report names by its index.
func inNamed(named map[int]bool, path string) bool {
	m := lawItem.FindStringSubmatch(path)
	if m == nil {
		return false
	}
	n, _ := strconv.Atoi(m[1])
	return named[n+1]
}

var lawItem = regexp.MustCompile(`^\.(?:conversations|loglines)\[(\d+)\]`)

// leftOut reports whether the report says that a member of a file's object, or rows of a database's table, are left out.
func leftOut(rep *Report, path string) bool {
	key, _, _ := strings.Cut(strings.TrimPrefix(path, "."), ".")
	key, _, _ = strings.Cut(key, "[")
	column := ""
	if m := lawColumn.FindStringSubmatch(path); m != nil {
		column = "column " + m[2] + " of the table " + m[1]
	}
	for _, w := range rep.Warnings {
		if _, list, ok := strings.Cut(w.Text, "left out: "); ok && slices.Contains(strings.Split(list, ", "), key) || strings.Contains(w.Text, "rows of the table "+key+" that belong to nothing are left out") {
			return true
		}
		if list, ok := strings.CutPrefix(w.Text, "tables or columns that this program does not know are left out: "); ok && (slices.Contains(strings.Split(list, ", "), column) || slices.Contains(strings.Split(list, ", "), "the table "+key)) {
			return true
		}
	}
	return false
}

// lawColumn matches the path of a text in a database.
var lawColumn = regexp.MustCompile(`^\.(\w+)\[\d+\]\.(\w+)`)

// lawFiles returns the inputs for the law: the project's own, and the samples and cases beside it.
func lawFiles(t testing.TB) []string {
	var files []string
	for _, pattern := range []string{"testdata/formats/*/*.json", "testdata/formats/*/*.jsonl", "testdata/formats/*/*/*.json*", "testdata/formats/*/*/*/*.json", "testdata/chatgpt/*.json"} {
		list, err := filepath.Glob(pattern)
		if err != nil || len(list) == 0 {
			t.Fatal(pattern, err)
		}
		files = append(files, list...)
	}
	return files
}

func holdLaw(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, rep := readAll(t, Options{}, path)
	if len(all) == 0 || all[0].Format == nativeName {
		return // read with another file, or with tests of its own
	}
	for i, m := range lost(t, text, all, rep) {
		if i == 10 {
			t.Error("and more")
			break
		}
		t.Error(m)
	}
}

// TestLaw checks the law for the project's inputs.
func TestLaw(t *testing.T) {
	for _, path := range lawFiles(t) {
		t.Run(strings.TrimPrefix(path, "testdata/"), func(t *testing.T) { holdLaw(t, path) })
	}
}

// TestLawOfSamples checks it for the samples and cases beside the project.
func TestLawOfSamples(t *testing.T) {
	n := 0
	for _, folder := range []string{"samples", "cases", "findings"} {
		err := filepath.WalkDir(testkit.Shared(t, folder), func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || strings.Contains(path, "/imported-file/") || filepath.Ext(path) != ".json" && filepath.Ext(path) != ".jsonl" {
				return err
			}
			n++
			t.Run(strings.TrimPrefix(path, testkit.Shared(t)), func(t *testing.T) { holdLaw(t, path) })
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < 100 {
		t.Errorf("%d files", n)
	}
}

var lawful = flag.Bool("lawful", false, "hold damaged files of any seed to the law")

// TestMutants reads damaged files of each format: no panic, no hang, and the store accepts what is read. The law holds for those of the first seeds, which are
// the same every day.
func TestMutants(t *testing.T) {
	files := mutantFiles(t)
	for seed := range testkit.Seeds(t, 60) {
		for _, folder := range slices.Sorted(maps.Keys(files)) {
			rng, of := rand.New(rand.NewPCG(seed, 1)), files[folder]
			text := mutate(rng, of[seed%uint64(len(of))], of[rng.IntN(len(of))])
			if !readMutant(t, text, seed <= 300 || *lawful) {
				t.Fatalf("the mutant of %s, seed %d:\n%.2000s", folder, seed, text)
			}
		}
	}
}

// mutantFiles returns the files of each format that are damaged.
func mutantFiles(t *testing.T) map[string][][]byte {
	t.Helper()
	files := map[string][][]byte{}
	err := filepath.WalkDir("testdata/formats", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) == ".golden" {
			return err
		}
		b, err := os.ReadFile(path)
		if folder, _, inside := strings.Cut(strings.TrimPrefix(filepath.ToSlash(path), "testdata/formats/"), "/"); inside && len(b) < 100_000 {
			files[folder] = append(files[folder], b)
		}
		return err
	})
	if err != nil || len(files) < 17 {
		t.Fatal(len(files), err)
	}
	return files
}

// readMutant reads a damaged file from memory. It returns false after an error.
func readMutant(t *testing.T, text []byte, law bool) bool {
	var all []*record.Incoming
	rep, err := Read(context.Background(), []string{"-"}, Options{Stdin: bytes.NewReader(text), Limits: fuzzLimits}, func(in *record.Incoming) error {
		checkIncoming(t, in)
		all = append(all, in)
		return nil
	})
	if err != nil {
		t.Error(err)
		return false
	}
	if law {
		for _, m := range lost(t, text, all, rep) {
			t.Error(m)
		}
	}
	return !t.Failed()
}

// mutate damages a file in one to three ways, with pieces of another.
func mutate(rng *rand.Rand, text, other []byte) []byte {
	text = bytes.Clone(text)
	for range 1 + rng.IntN(3) {
		if len(text) == 0 {
			return text
		}
		i := rng.IntN(len(text))
		j := min(len(text), i+1+rng.IntN(60))
		switch rng.IntN(8) {
		case 0: // another byte
			text[i] = byte(rng.IntN(256))
		case 1: // cut off
			text = text[:i]
		case 2: // a piece is missing
			text = append(text[:i:i], text[j:]...)
		case 3: // a piece twice
			text = append(text[:j:j], text[i:]...)
		case 4: // a value of another kind
			text = swapValue(rng, text, []byte([]string{"null", "7", "-1.5e3", `"odd text"`, "true", `["odd item",null]`, `{"odd key":"odd value"}`, `""`}[rng.IntN(8)]))
		case 5: // a value from the other file
			if v := someValue(rng, other); v != nil {
				text = swapValue(rng, text, v)
			}
		case 6: // lines in another order
			lines := bytes.SplitAfter(text, []byte("\n"))
			rng.Shuffle(len(lines), func(a, b int) { lines[a], lines[b] = lines[b], lines[a] })
			text = bytes.Join(lines, nil)
		case 7: // bytes from the other file
			k := rng.IntN(len(other) + 1)
			text = append(append(text[:i:i], other[k:min(len(other), k+rng.IntN(40))]...), text[i:]...)
		}
	}
	return text
}

// someValue returns a value of a JSON text, nil if there is none.
func someValue(rng *rand.Rand, text []byte) []byte {
	v, _, err := new(document).parse(text, true)
	if err != nil {
		return nil
	}
	return value{v.d, uint32(rng.IntN(len(v.d.tokens)))}.raw()
}

// swapValue replaces one value with another.
func swapValue(rng *rand.Rand, text, by []byte) []byte {
	d := new(document)
	start := bytes.LastIndexByte(text[:rng.IntN(len(text))], '\n') + 1
	if _, _, err := d.parse(text[start:], true); err != nil {
		return text
	}
	tok := d.tokens[rng.IntN(len(d.tokens))]
	return append(append(text[:start+int(tok.start):start+int(tok.start)], by...), text[start+int(tok.end):]...)
}
