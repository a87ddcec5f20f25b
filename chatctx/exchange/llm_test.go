package exchange

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/sqlite"
	"github.com/chatctx/chatctx/internal/testkit"
)

// databaseOf returns a copy of the database that internal/sqlitecheck made from an SQL file beside it.
func databaseOf(t testing.TB, file string) string {
	t.Helper()
	whole, err := os.ReadFile(strings.TrimSuffix(file, ".sql") + ".db")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "logs.db")
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// databaseFrom makes a database from SQL elsewhere, with SQLite.
func databaseFrom(t testing.TB, file string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "logs.db")
	if out, err := exec.Command("go", "run", "-C", filepath.Join("..", "..", "internal", "sqlitecheck"), ".", file, path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestLLM reads databases of three generations, alone and in an archive, and does not change them.
func TestLLM(t *testing.T) {
	files, err := filepath.Glob("testdata/llm/*.sql")
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			path := databaseOf(t, file)
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

// TestLLMDamaged reads databases that are cut off or contain something else.
func TestLLMDamaged(t *testing.T) {
	whole, err := os.ReadFile(databaseOf(t, "testdata/llm/responses.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{100, 512, 4096, len(whole) / 2, len(whole) - 1000} {
		path := filepath.Join(t.TempDir(), "cut.db")
		if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(t.Context(), []string{path}, Options{}, func(in *record.Incoming) error { checkIncoming(t, in); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	_, rep := readAll(t, Options{}, filepath.Join("..", "..", "internal", "sqlite", "testdata", "logged.db"))
	if rep.Outcome() != Nothing || !strings.Contains(rep.Warnings[0].Text, "not a conversation log") {
		t.Errorf("%+v", rep.Warnings)
	}
}

// TestSharedLLM reads the case beside the project.
func TestSharedLLM(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(testkit.Shared(t, "cases"), "62-*"))
	if err != nil || len(folders) != 1 {
		t.Fatal(folders, err)
	}
	all, _ := readAll(t, Options{}, databaseFrom(t, filepath.Join(folders[0], "input.sql")))
	want := "system Be brief | user hi | assistant Hello! | user 2+2? | assistant | tool | assistant It is 4."
	if len(all) != 2 || visible(all[1]) != want || all[1].Title != "hi" {
		t.Errorf("%d conversations, %s", len(all), visible(all[len(all)-1]))
	}
}

// FuzzLLM changes databases here and there: the store accepts what can still be read.
func FuzzLLM(f *testing.F) {
	files, err := filepath.Glob("testdata/llm/*.sql")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	var seeds [][]byte
	for _, file := range files {
		b, err := os.ReadFile(databaseOf(f, file))
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, b)
	}
	f.Add(0, 100, []byte("x"))
	f.Add(1, 5000, []byte{0, 0, 255})
	f.Add(2, 9000, []byte("responses"))
	f.Fuzz(func(t *testing.T, which, at int, change []byte) {
		if which < 0 || at < len(sqlite.Magic) {
			return
		}
		b := bytes.Clone(seeds[which%len(seeds)])
		copy(b[min(at%len(b), len(b)):], change)
		path := filepath.Join(t.TempDir(), "fuzz.db")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(t.Context(), []string{path}, Options{}, func(in *record.Incoming) error { checkIncoming(t, in); return nil }); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDatabaseWithLog reads a database whose data is mostly in its log, in a folder and in a ZIP. It is read again each time, since neither its size nor its
// bytes show that the log has grown.
func TestDatabaseWithLog(t *testing.T) {
	dir := t.TempDir()
	contents := map[string]string{}
	var members []member
	for _, name := range []string{"logged.db", "logged.db-wal"} {
		b, err := os.ReadFile(filepath.Join("testdata", "llm", name))
		if err != nil {
			t.Fatal(err)
		}
		contents[name] = string(b)
		members = append(members, member{name: name, text: string(b)})
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const want = "user is it in the log? | assistant It is. | user all of it? | assistant To the last change."
	packed := filepath.Join(t.TempDir(), "both.zip")
	if err := os.WriteFile(packed, []byte(zipOf(t, members...)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "logged.db"), packed} {
		all, rep := readAll(t, Options{}, path)
		if len(all) != 1 || visible(all[0]) != want || rep.Outcome() != Complete || len(rep.Warnings) > 0 {
			t.Errorf("%s: %d conversations, %+v", path, len(all), rep)
		}
	}
	s := memoryStore(t)
	path := filepath.Join(dir, "logged.db")
	log := []byte(contents["logged.db-wal"])
	if err := os.WriteFile(path+"-wal", log[:len(log)-536], 0o600); err != nil { // before the second change
		t.Fatal(err)
	}
	first := importInto(t, s, path)
	if err := os.WriteFile(path+"-wal", log, 0o600); err != nil {
		t.Fatal(err)
	}
	if second := importInto(t, s, path); first.Messages != 2 || second.Messages != 2 || second.Duplicated != 2 {
		t.Errorf("%d messages, then %d and %d that were there", first.Messages, second.Messages, second.Duplicated)
	}
	if err := os.WriteFile(path+"-journal", []byte("\xd9\xd5"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, rep := readAll(t, Options{}, path); rep.Outcome() != Nothing || !strings.Contains(rep.Warnings[0].Text, "in the middle of a change") {
		t.Errorf("beside a journal: %+v", rep)
	}
}
