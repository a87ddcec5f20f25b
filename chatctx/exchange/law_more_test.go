package exchange

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/testkit"
)

// The law for files that were changed everywhere at once: a later version of a program adds members, a broken one writes some twice or in another order.

// changedEverywhere returns a file of JSON with f applied to each record, in the same shape; nil if it is not JSON.
func changedEverywhere(text []byte, f func(v any) []byte) []byte {
	one := func(text []byte) ([]byte, bool) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil || d.More() {
			return nil, false
		}
		return f(v), true
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if out, ok := one(text); ok {
		return out
	}
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		if line = bytes.Trim(line, " \t\r\n\x00"); len(line) == 0 {
			continue
		}
		out, ok := one(line)
		if !ok {
			return nil
		}
		b.Write(append(out, '\n'))
	}
	return b.Bytes()
}

// reversed returns a JSON value with the members of its objects in reverse order.
func reversed(v any) []byte {
	switch x := v.(type) {
	case []any:
		var parts [][]byte
		for i := range x {
			parts = append(parts, reversed(x[i]))
		}
		return slices.Concat([]byte{'['}, bytes.Join(parts, []byte{','}), []byte{']'})
	case map[string]any:
		var parts [][]byte
		for _, k := range slices.Backward(slices.Sorted(keysOf(x))) {
			key, _ := json.Marshal(k)
			parts = append(parts, slices.Concat(key, []byte{':'}, reversed(x[k])))
		}
		return slices.Concat([]byte{'{'}, bytes.Join(parts, []byte{','}), []byte{'}'})
	}
	raw, _ := json.Marshal(v)
	return raw
}

// TestLawOfChangedFiles checks the law for each file of the formats with one more member in every object, with every member twice, and with members and lines
// in another order.
func TestLawOfChangedFiles(t *testing.T) {
	held := map[string]int{}
	for folder, files := range mutantFiles(t) {
		for i, text := range files {
			if !testkit.Third(i) {
				continue
			}
			n := 0 // makes each text different
			for name, f := range map[string]func(any) []byte{
				"one more":  func(v any) []byte { b, _ := json.Marshal(everywhere(v, &n)); return b },
				"twice":     func(v any) []byte { return doubled(v, &n) },
				"backwards": reversed,
			} {
				out := changedEverywhere(text, f)
				if out == nil {
					continue
				}
				s := memoryStore(t)
				rep, err := imports(t, s, []string{"-"}, Options{Stdin: bytes.NewReader(out), Limits: fuzzLimits})
				if err != nil {
					t.Fatal(err)
				}
				if len(rep.Imported) == 0 || rep.Imported[0].Format == nativeName {
					continue
				}
				held[name]++
				storetest.Check(t, s)
				for j, m := range lostIn(out, lawOfExport(t, exported(t, s, ExportOptions{All: true})), rep.Imported[0].Format, rep) {
					if j < 3 {
						t.Errorf("%s %d, %s: %s", folder, i, name, m)
					}
				}
			}
		}
	}
	for _, name := range []string{"one more", "twice", "backwards"} {
		if held[name] < testkit.Fewer(100) {
			t.Errorf("%s: %d files", name, held[name])
		}
	}
}

// doubledOnce writes a JSON value with the first member of its object number at, counted down to 0, twice: before it stands another text under its name.
func doubledOnce(v any, at *int, twin string) []byte {
	switch x := v.(type) {
	case []any:
		var parts [][]byte
		for i := range x {
			parts = append(parts, doubledOnce(x[i], at, twin))
		}
		return slices.Concat([]byte{'['}, bytes.Join(parts, []byte{','}), []byte{']'})
	case map[string]any:
		var parts [][]byte
		here := *at == 0
		*at--
		for _, k := range slices.Sorted(keysOf(x)) {
			key, _ := json.Marshal(k)
			if here {
				parts, here = append(parts, slices.Concat(key, []byte{':'}, []byte(twin))), false
			}
			parts = append(parts, slices.Concat(key, []byte{':'}, doubledOnce(x[k], at, twin)))
		}
		return slices.Concat([]byte{'{'}, bytes.Join(parts, []byte{','}), []byte{'}'})
	}
	raw, _ := json.Marshal(v)
	return raw
}

// TestLawOfARepeatedKey: the report names a key that one object of a file has twice, wherever the object stands, unless the first value is kept.
func TestLawOfARepeatedKey(t *testing.T) {
	held := 0
	for folder, files := range mutantFiles(t) {
		for i, text := range files {
			objects := 0
			changedEverywhere(text, func(v any) []byte { doubledOnce(v, &objects, ""); return nil })
			objects = -objects
			for _, nth := range []int{0, objects / 3, objects * 2 / 3, objects - 1} {
				at := nth
				out := changedEverywhere(text, func(v any) []byte { return doubledOnce(v, &at, `"the twin"`) })
				if !bytes.Contains(out, []byte("the twin")) {
					continue // the object is empty
				}
				kept := false
				rep, err := Read(context.Background(), []string{"-"}, Options{Stdin: bytes.NewReader(out), Limits: fuzzLimits}, func(in *record.Incoming) error {
					raw, err := json.Marshal(in)
					kept = kept || bytes.Contains(raw, []byte("the twin"))
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				if rep.Files == 0 {
					continue
				}
				held++
				named := slices.ContainsFunc(rep.Warnings, func(w Warning) bool {
					return strings.Contains(w.Text, "occurs more than once; the last one") || strings.Contains(w.Text, "occur more than once, and the last of each counts") || strings.Contains(w.Text, "keys beside the conversations are left out")
				})
				if !named && !kept {
					t.Errorf("%s %d, object %d of %d: the report does not name the key: %v\n%.1500s", folder, i, nth, objects, rep.Warnings, out)
				}
			}
		}
	}
	if held < 300 {
		t.Errorf("%d files", held)
	}
}

// TestLawOfLaterDatabases checks it for databases of a later version: testdata/later.zip has those of the formats with one more column of text in each table,
// and a unique text there in each row.
func TestLawOfLaterDatabases(t *testing.T) {
	z, err := zip.OpenReader("testdata/later.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		t.Run(f.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), filepath.Base(f.Name))
			in, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			b, err := io.ReadAll(in)
			if err != nil || os.WriteFile(path, b, 0o600) != nil || !bytes.Contains(b, []byte("later ")) {
				t.Fatal(err)
			}
			s := memoryStore(t)
			rep, err := imports(t, s, []string{path}, Options{})
			if err != nil || len(rep.Imported) == 0 {
				t.Fatalf("%v %+v", err, rep)
			}
			before := exported(t, s, ExportOptions{All: true})
			again := filepath.Join(t.TempDir(), "again.db")
			if err := os.WriteFile(again, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if rep := importInto(t, s, again); rep.Messages != 0 || !bytes.Equal(before, exported(t, s, ExportOptions{All: true})) {
				t.Errorf("again: %d messages, or another export", rep.Messages)
			}
			out := lawOfExport(t, before)
			lawColumns(t, path, func(string) bool { return false }, rep, func(at, text string) {
				if strings.HasPrefix(text, "later ") && !out.has(text) && !leftOut(rep, at) {
					t.Errorf("%s: %s, of %v", at, text, rep.Warnings)
				}
			})
		})
	}
	if len(z.File) < 18 {
		t.Errorf("%d databases", len(z.File))
	}
}

// TestMembersOfOneName: two members of a ZIP with the same name are both read.
func TestMembersOfOneName(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, text := range []string{"first", "second", "third"} {
		w, err := z.Create("a.jsonl")
		if err == nil {
			_, err = io.WriteString(w, `{"messages":[{"role":"user","content":"`+text+` twin"}]}`+"\n")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	s := memoryStore(t)
	rep, err := imports(t, s, []string{"-"}, Options{Stdin: bytes.NewReader(b.Bytes())})
	if err != nil || rep.Contexts != 3 || rep.Outcome() != Complete || len(rep.Warnings) != 1 || !strings.Contains(rep.Warnings[0].Text, "several members have one name") {
		t.Errorf("%v %+v", err, rep)
	}
	storetest.Check(t, s)
}

// TestAStreamThatIsCut: a message whose stream broke off is unfinished, and the report says so.
func TestAStreamThatIsCut(t *testing.T) {
	whole := `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":5}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Half a sentence"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}

data: {"type":"message_stop"}
`
	for at := range len(whole) + 1 {
		all := []*record.Incoming{}
		rep, err := Read(context.Background(), []string{"-"}, Options{Stdin: strings.NewReader(whole[:at])}, func(in *record.Incoming) error { all = append(all, in); return nil })
		if err != nil {
			t.Fatal(err)
		}
		ended := at >= len(whole)-1
		if len(all) == 0 {
			if len(rep.Warnings) == 0 && strings.Contains(whole[:at], `data: {"`) {
				t.Errorf("cut at %d: nothing came, and nothing is said: %+v", at, rep)
			}
			continue
		}
		if m := all[0].Nodes[0].Message; m.Unfinished == ended || (len(rep.Warnings) == 0) != ended || len(m.Meta.ProviderData) > 0 {
			t.Errorf("cut at %d: unfinished %v, %v, %v", at, m.Unfinished, rep.Warnings, m.Meta.ProviderData)
		}
	}
}
