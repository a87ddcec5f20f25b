package exchange

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
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
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/chatctx/chatctx/internal/sqlite"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/testkit"
)

// The law holds for what a store prints: files are imported, the store is exported, and the export is searched for the strings of the files.

// lawOfExport returns the strings of an export in our own format.
func lawOfExport(t testing.TB, export []byte) *lawOutput {
	t.Helper()
	o := &lawOutput{said: map[string]bool{"": true}, sums: map[[32]byte]bool{}}
	for line := range bytes.Lines(export) {
		var v map[string]any
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		o.value(v)
		if a, ok := v["artifact"].(map[string]any); ok {
			data, err := base64.StdEncoding.DecodeString(fmt.Sprint(a["data"]))
			if err != nil {
				t.Fatal(err)
			}
			o.sums[sha256.Sum256(data)] = true
			o.text(string(data))
		}
		if m, ok := v["message"].(map[string]any); ok {
			if src, ok := m["source"].(map[string]any); ok {
				o.raw([]byte(fmt.Sprint(src["raw"])))
			}
		}
	}
	return o
}

// lawColumns calls f with the texts of a database: of each row of each table, JSON by its strings.
func lawColumns(t testing.TB, path string, structural func(string) bool, rep *Report, f func(path, s string)) {
	t.Helper()
	db, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	unpack, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range db.Tables() {
		if strings.HasPrefix(table.Name, "sqlite_") {
			continue // SQLite's own
		}
		for row, err := range table.Rows() {
			if err != nil {
				t.Fatal(err)
			}
			if rowNamed(rep, row) {
				continue
			}
			for i, v := range row.Values {
				text, _ := v.(string)
				if b, ok := v.([]byte); ok {
					if plain, err := unpack.DecodeAll(b, nil); err == nil {
						b = plain
					}
					if text = string(b); !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' }) {
						continue // not a text
					}
				}
				if b, err := hex.DecodeString(text); err == nil && json.Valid(b) {
					text = string(b)
				}
				where := fmt.Sprintf(".%s[%d].%s", table.Name, row.ID, table.Columns[i])
				var inside any
				if json.Unmarshal([]byte(text), &inside) == nil {
					lawStrings(inside, structural, where, f)
				} else if text != "" && !structural(table.Columns[i]) {
					f(where, text)
				}
			}
		}
	}
}

// rowNamed reports whether the report names a row, by its number or its id.
func rowNamed(rep *Report, row sqlite.Row) bool {
	for _, w := range rep.Warnings {
		if strings.HasPrefix(w.Text, fmt.Sprintf("row %d:", row.ID)) {
			return true
		}
		for _, v := range row.Values {
			if id, ok := v.(string); ok && id != "" && len(id) < 100 && strings.Contains(w.Text, " "+id+":") {
				return true
			}
		}
	}
	return false
}

var (
	aiderPrefix = regexp.MustCompile("^(#### ?|> ?|# aider chat started at .*|```\\w*)+")
	yamlPrefix  = regexp.MustCompile(`^(- *)*(role: \w+$|[a-z_]+:( \|[-+]?$)?)?`)
)

// lawLines calls f with the lines of a text format without their prefixes; in YAML, with the text after a key.
func lawLines(ext string, text []byte, f func(s string)) {
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if ext == ".md" {
			f(strings.TrimSpace(aiderPrefix.ReplaceAllString(line, "")))
			continue
		}
		line = strings.TrimSpace(yamlPrefix.ReplaceAllString(line, ""))
		if s, quoted := strings.CutPrefix(line, "'"); quoted {
			line = strings.ReplaceAll(strings.TrimSuffix(s, "'"), "''", "'")
		} else if s, err := strconv.Unquote(line); err == nil {
			line = s
		}
		f(line)
	}
}

// holdExportLaw imports a file and finds the strings that the store does not print.
func holdExportLaw(t *testing.T, path string) {
	t.Helper()
	s := memoryStore(t)
	rep, err := imports(t, s, []string{path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Imported) == 0 || rep.Imported[0].Format == nativeName {
		return
	}
	storetest.Check(t, s)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	format := rep.Imported[0].Format
	out := lawOfExport(t, exported(t, s, ExportOptions{All: true}))
	var missing []string
	if structural := lawKeys(format); bytes.HasPrefix(text, []byte(sqlite.Magic)) {
		lawColumns(t, path, structural, rep, func(path, s string) {
			if !out.has(s) && !leftOut(rep, path) {
				missing = append(missing, fmt.Sprintf("%s: %.80q", path, s))
			}
		})
	} else if ext := filepath.Ext(path); ext == ".md" || ext == ".yaml" {
		lawLines(ext, text, func(s string) {
			if !out.has(s) {
				missing = append(missing, fmt.Sprintf("%.80q", s))
			}
		})
	} else {
		missing = lostIn(text, out, format, rep)
	}
	for i, m := range missing {
		if i == 10 {
			t.Error("and more")
			break
		}
		t.Error(m)
	}
}

// TestLawOfExports checks the law for the output of a store, with the project's files.
func TestLawOfExports(t *testing.T) {
	if n := holdExportsLaw(t, "testdata/formats") + holdExportsLaw(t, "testdata/chatgpt"); n < 150 {
		t.Errorf("%d files", n)
	}
}

// TestLawOfExportedSamples does the same with the samples and cases beside the project.
func TestLawOfExportedSamples(t *testing.T) {
	n := 0
	for _, folder := range []string{"samples", "cases", "findings"} {
		n += holdExportsLaw(t, testkit.Shared(t, folder))
	}
	if n < 100 {
		t.Errorf("%d files", n)
	}
}

// TestExportedMutants checks damaged files: what was read of them, and what the report names.
func TestExportedMutants(t *testing.T) {
	files := mutantFiles(t)
	for seed := range testkit.Seeds(t, 8) {
		for _, folder := range slices.Sorted(maps.Keys(files)) {
			rng, of := rand.New(rand.NewPCG(seed, 2)), files[folder]
			text := mutate(rng, of[seed%uint64(len(of))], of[rng.IntN(len(of))])
			if !exportMutant(t, text) {
				t.Fatalf("the mutant of %s, seed %d:\n%.2000s", folder, seed, text)
			}
		}
	}
}

// TestLawOfOddRecords checks records that are odd in one place each: content under keys that only connect records, and stubs that come twice.
func TestLawOfOddRecords(t *testing.T) {
	for name, text := range map[string]string{
		"pi's header": `{"type":"session","id":"s","timestamp":{"odd key":"odd value"},"cwd":"/srv"}
			{"type":"message","id":"a","message":{"role":"user","content":"hello"}}`,
		"a path of vscode": `{"kind":0,"v":{"version":3,"sessionId":"v","requests":[{"requestId":"r","message":{"text":"hello"},"response":[{"value":"yes"}]}]}}
			{"kind":3,"k":[["odd item",null]]}`,
		"a stub of claude code": `{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":"hel"}
			{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":"hel","odd":"odd value"}
			{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"hello"}}`,
		"a stub that stays one": `{"type":"user","uuid":"b","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"hello"}}
			{"type":"user","uuid":"a","parentUuid":"b","sessionId":"s","message":"hel"}
			{"type":"user","uuid":"a","parentUuid":"b","sessionId":"s","message":"hel","odd":"odd value"}`,
	} {
		t.Run(name, func(t *testing.T) { exportMutant(t, []byte(text)) })
	}
}

func exportMutant(t *testing.T, text []byte) bool {
	t.Helper()
	s := memoryStore(t)
	rep, err := imports(t, s, []string{"-"}, Options{Stdin: bytes.NewReader(text), Limits: fuzzLimits})
	if err != nil {
		t.Error(err)
		return false
	}
	if len(rep.Imported) == 0 || rep.Imported[0].Format == nativeName {
		return true
	}
	storetest.Check(t, s)
	for _, m := range lostIn(text, lawOfExport(t, exported(t, s, ExportOptions{All: true})), rep.Imported[0].Format, rep) {
		t.Error(m)
	}
	return !t.Failed()
}

// holdExportsLaw checks the law for all files of a folder and counts them.
func holdExportsLaw(t *testing.T, folder string) (n int) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(path, "/imported-file/") {
			return err
		}
		switch filepath.Ext(path) {
		case ".json", ".jsonl", ".md", ".yaml", ".db":
			if n++; !testkit.Third(n) {
				return nil
			}
			t.Run(filepath.Join(filepath.Base(folder), strings.TrimPrefix(path, folder)), func(t *testing.T) { holdExportLaw(t, path) })
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
