package exchange

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
)

// database makes a database of a file of SQL.
func database(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "logs.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(string(text)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLLM reads databases of three generations, alone and packed, and does not change them.
func TestLLM(t *testing.T) {
	files, err := filepath.Glob("testdata/llm/*.sql")
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			path := database(t, file)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all, rep := readAll(t, Options{}, path)
			golden(t, file+".golden", dump(all, rep))
			after, err := os.ReadFile(path)
			if err != nil || string(before) != string(after) {
				t.Error("the database is another now", err)
			}
			left, err := os.ReadDir(filepath.Dir(path))
			if err != nil || len(left) != 1 {
				t.Error("files were left beside it", left, err)
			}
			packed := path + ".gz"
			if err := os.WriteFile(packed, []byte(gzipOf(t, string(before))), 0o600); err != nil {
				t.Fatal(err)
			}
			again, _ := readAll(t, Options{}, packed)
			if dump(again, rep) != dump(all, rep) {
				t.Error("packed it reads otherwise")
			}
			s := memoryStore(t)
			first, second := importInto(t, s, path), importInto(t, s, path)
			if first.Messages == 0 || second.Messages != 0 || second.Duplicated != first.Messages {
				t.Errorf("%d messages, and %d the second time", first.Messages, second.Messages)
			}
		})
	}
}

// TestLLMDamaged reads databases that are cut off or hold something else.
func TestLLMDamaged(t *testing.T) {
	whole, err := os.ReadFile(database(t, "testdata/llm/responses.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{100, 4096, len(whole) / 2, len(whole) - 1000} {
		path := filepath.Join(t.TempDir(), "cut.db")
		if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(t.Context(), []string{path}, Options{}, func(in *chatctx.Incoming) error { checkIncoming(t, in); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(t.TempDir(), "other.sql")
	if err := os.WriteFile(other, []byte("CREATE TABLE songs (id INTEGER)"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, rep := readAll(t, Options{}, database(t, other))
	if rep.Outcome() != Nothing || !strings.Contains(rep.Warnings[0].Text, "no conversation log") {
		t.Errorf("%+v", rep.Warnings)
	}
}

// TestSharedLLM reads the case that lies beside the project.
func TestSharedLLM(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(shared(t, "cases"), "62-*"))
	if err != nil || len(folders) != 1 {
		t.Fatal(folders, err)
	}
	all, _ := readAll(t, Options{}, database(t, filepath.Join(folders[0], "input.sql")))
	want := "system Be brief | user hi | assistant Hello! | user 2+2? | assistant | tool | assistant It is 4."
	if len(all) != 2 || visible(all[1]) != want || all[1].Title != "hi" {
		t.Errorf("%d conversations, %s", len(all), visible(all[len(all)-1]))
	}
}

// FuzzLLM changes databases here and there: what can still be read is what a store takes.
func FuzzLLM(f *testing.F) {
	files, err := filepath.Glob("testdata/llm/*.sql")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	var seeds [][]byte
	for _, file := range files {
		b, err := os.ReadFile(database(f, file))
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, b)
	}
	f.Add(0, 100, []byte("x"))
	f.Add(1, 5000, []byte{0, 0, 255})
	f.Add(2, 9000, []byte("responses"))
	f.Fuzz(func(t *testing.T, which, at int, change []byte) {
		if which < 0 || at < len(sqliteMagic) {
			return
		}
		b := bytes.Clone(seeds[which%len(seeds)])
		copy(b[min(at%len(b), len(b)):], change)
		path := filepath.Join(t.TempDir(), "fuzz.db")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(t.Context(), []string{path}, Options{}, func(in *chatctx.Incoming) error { checkIncoming(t, in); return nil }); err != nil {
			t.Fatal(err)
		}
	})
}
