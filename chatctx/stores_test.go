package chatctx

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/pgtest"
)

// The kept stores are in testdata/stores. Those of format 2 were written by the programs of their days, in a file (.db) and in PostgreSQL (.rows: bucket, key
// and value of each record), and never change: format-2-long by the last one with long keys of entries, format-2-short by the last of format 2.
// format-2.json has what both hold. Nor do those of format 3, in which operations do not list what they changed, and of format 4,
// in which no agent's hook has brought a call. The store of the present format is made anew with -update until the format is released.

const present = "format-5"

var keptStores = []struct {
	name   string
	format int
	holds  string
}{
	{"format-2-long", 2, "format-2.json"},
	{"format-2-short", 2, "format-2.json"},
	{"format-3", 3, "format-3.json"},
	{"format-4", 4, "format-4.json"},
	{present, FormatVersion, present + ".json"},
}

func keptFile(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "stores", name))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".gz") {
		return raw
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err == nil {
		raw, err = io.ReadAll(z)
	}
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// storeFile unpacks a kept file.
func storeFile(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.db")
	if err := os.WriteFile(path, keptFile(t, name+".db.gz"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fillRows puts the records of a kept store into an empty database.
func fillRows(t *testing.T, name string) func(kv.RwTx) error {
	rows := keptFile(t, name+".rows.gz")
	return func(tx kv.RwTx) error {
		lines := bufio.NewScanner(bytes.NewReader(rows))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			bucket, rest, _ := strings.Cut(lines.Text(), " ")
			key, value, _ := strings.Cut(rest, " ")
			k, err := hex.DecodeString(key)
			v, valueErr := hex.DecodeString(value)
			if err := errors.Join(err, valueErr, tx.Put(bucket, k, v)); err != nil {
				return err
			}
		}
		return lines.Err()
	}
}

// held returns the messages of each branch of each context, by titles and names, and the operations of the journals.
func held(t *testing.T, s *Store) map[string]map[string][]string {
	t.Helper()
	out := map[string]map[string][]string{}
	for info, err := range s.Contexts(t.Context(), record.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Context(t.Context(), info.ID.String())
		if err != nil {
			t.Fatal(err)
		}
		out[info.Title] = map[string][]string{}
		branches, err := c.Branches(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range branches {
			snap, err := c.Snapshot(t.Context(), b.Name)
			if err != nil {
				t.Fatal(err)
			}
			list := []string{}
			for m, err := range snap.Entries(t.Context(), 1, 0) {
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, string(m.Role)+": "+m.Text())
			}
			out[info.Title][b.Name] = list
		}
	}
	return out
}

func wanted(t *testing.T, name string) (want map[string]map[string][]string) {
	t.Helper()
	if err := json.Unmarshal(keptFile(t, name), &want); err != nil {
		t.Fatal(err)
	}
	return want
}

func compareHeld(t *testing.T, when string, got, want map[string]map[string][]string) {
	t.Helper()
	for title := range want {
		if !maps.EqualFunc(got[title], want[title], slices.Equal[[]string]) {
			t.Errorf("%s: %q holds\n%q\nand must hold\n%q", when, title, got[title], want[title])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d conversations, want %d", when, len(got), len(want))
	}
}

// longKeys counts the keys of entries in the form of before.
func longKeys(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := base.Of(s).Engine.View(t.Context(), func(tx kv.Tx) error {
		n = 0
		return tx.Scan("entry", kv.Range{}, func(key, _ []byte) error {
			if len(key) == 32 && key[16] == 0 {
				n++
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestKeptStores opens a store of each format, in a file, and the records that a store in PostgreSQL held: it is read as it is, nothing is written, and the first
// change brings it up, once.
func TestKeptStores(t *testing.T) {
	for _, k := range keptStores {
		t.Run(k.name+" file", func(t *testing.T) {
			path := storeFile(t, k.name)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			open := func() (*Store, error) { return Open(path, Options{Program: "test", Judge: byName{}}) }
			bringUp(t, open, k.format, k.holds, func() {
				if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
					t.Errorf("reading changed the file (%v)", err)
				}
			})
		})
		t.Run(k.name+" rows", func(t *testing.T) {
			db := kvtest.Twice{DB: memkv.New()}
			open := func() (*Store, error) { return OpenDB(db, Options{Program: "test", Judge: byName{}}) }
			if pgtest.Asked() {
				url := pgtest.Server.URL(pgtest.Name(), "pool_max_conns=4")
				if err := kv.Init(t.Context(), url, fillRows(t, k.name)); err != nil {
					t.Fatal(err)
				}
				open = func() (*Store, error) { return Open(url, Options{Program: "test", Judge: byName{}}) }
			} else if err := db.Update(t.Context(), fillRows(t, k.name)); err != nil {
				t.Fatal(err)
			}
			bringUp(t, open, k.format, k.holds, func() {})
		})
	}
}

// bringUp reads a store of a format, and then changes it.
func bringUp(t *testing.T, open func() (*Store, error), format int, holds string, unchanged func()) {
	t.Helper()
	want := wanted(t, holds)
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	compareHeld(t, "as it was", held(t, s), want)
	reads(t, s)
	if base.Of(s).Format.Number() != format || len(s.Warnings()) != 0 {
		t.Errorf("after reading it is of format %d, with warnings %q", base.Of(s).Format.Number(), s.Warnings())
	}
	unchanged()
	c, err := s.Context(t.Context(), slices.Sorted(maps.Keys(want))[0])
	if err != nil {
		t.Fatal(err)
	}
	if format < FormatVersion { // counts can be made again at any time, so they are no change
		if err := c.SetCounts(t.Context(), "o200k", []ID{{1}}, []int{1}); err != nil {
			t.Error(err)
		}
		unchanged()
	}
	done, err := c.Append(t.Context(), "", says("the first change")...)
	if err != nil {
		t.Fatal(err)
	}
	says := 0
	if format < FormatVersion {
		says = 1
	}
	if base.Of(s).Format.Number() != FormatVersion || len(s.Warnings()) != says || longKeys(t, s) != 0 {
		t.Errorf("after a change it is of format %d, with warnings %q and %d long keys", base.Of(s).Format.Number(), s.Warnings(), longKeys(t, s))
	}
	if _, err := s.Undo(t.Context(), c.ID.String(), done.Branch, ""); err != nil {
		t.Fatal(err)
	}
	compareHeld(t, "brought up", held(t, s), want)
	if len(s.Warnings()) != says {
		t.Errorf("said again: %q", s.Warnings())
	}
	reads(t, s)
}

// reads runs what reads the whole store.
func reads(t *testing.T, s *Store) {
	t.Helper()
	err := s.Maintenance().Check(t.Context(), CheckOptions{Full: true}, func(p record.Problem) {
		if p.Invariant != 10 { // the index has a version of its own
			t.Errorf("%s: %s", p.Where, p.Text)
		}
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := s.Maintenance().GC(t.Context(), record.GCOptions{DryRun: true}); err != nil {
		t.Error(err)
	}
	if _, err := s.Maintenance().Repair(t.Context(), record.RepairOptions{DryRun: true}); err != nil {
		t.Error(err)
	}
	err = s.Trial(func(trial *Store) error {
		for info, err := range trial.Contexts(t.Context(), record.ListOptions{}) {
			if err != nil {
				return err
			}
			c, err := trial.Context(t.Context(), info.ID.String())
			if err == nil {
				_, err = c.Append(t.Context(), "", says("tried")...)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", info.Title, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("a trial: %v", err)
	}
}

// TestCopyOfAnOlderStore: a copy has today's form, and so has the store that moved.
func TestCopyOfAnOlderStore(t *testing.T) {
	for _, keep := range []bool{true, false} {
		from := storeFile(t, "format-2-long")
		to := filepath.Join(t.TempDir(), "copy.db")
		if _, err := CopyStore(t.Context(), from, to, Options{}, record.CopyOptions{Keep: keep}); err != nil {
			t.Fatal(err)
		}
		s, err := Open(to, Options{Program: "test", Judge: byName{}})
		if err != nil {
			t.Fatal(err)
		}
		compareHeld(t, "the copy", held(t, s), wanted(t, "format-2.json"))
		if base.Of(s).Format.Number() != FormatVersion || longKeys(t, s) != 0 {
			t.Errorf("the copy is of format %d with %d long keys", base.Of(s).Format.Number(), longKeys(t, s))
		}
		closeChecked(t, s)
	}
	saved := filepath.Join(t.TempDir(), "saved.db")
	if _, err := Salvage(t.Context(), storeFile(t, "format-2-long"), saved, Options{Program: "test"}); err != nil {
		t.Fatal(err)
	}
	s := open(t, saved)
	for title, branches := range wanted(t, "format-2.json") {
		if got := held(t, s)[title]; !slices.Equal(got["main"], branches["main"]) {
			t.Errorf("salvage: %q holds %q", title, got)
		}
	}
}

// number sets the format of an open store, as another program would.
func number(t *testing.T, s *Store, to string) {
	t.Helper()
	err := base.Of(s).Engine.Update(t.Context(), func(tx kv.RwTx) error { return tx.Put(base.MetaBucket, base.MetaFormat, []byte(to)) })
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnOpenProgramStopsAtANewerFormat: a program that has the store open while another one raises the format writes nothing any more. There is no newer
// program, so the test puts the next number there.
func TestAnOpenProgramStopsAtANewerFormat(t *testing.T) {
	s := openAny(t, Options{Program: "test", Judge: byName{}})
	c := newContext(t, s, "a", ">b")
	number(t, s, fmt.Sprint(FormatVersion+1))
	writes := map[string]func() error{
		"append": func() error { _, err := c.Append(t.Context(), "", says("c")...); return err },
		"new":    func() error { _, err := s.New(t.Context(), record.NewContext{}); return err },
		"undo":   func() error { _, err := s.Undo(t.Context(), "", "", ""); return err },
		"settings": func() error {
			_, err := s.SetSettings(t.Context(), map[string]json.RawMessage{"a": []byte("1")})
			return err
		},
		"artifact": func() error { _, err := s.PutArtifact(t.Context(), []byte("x"), ""); return err },
		"counts":   func() error { return c.SetCounts(t.Context(), "e", []ID{{1}}, []int{1}) },
		"gc":       func() error { _, err := s.Maintenance().GC(t.Context(), record.GCOptions{}); return err },
		"reindex":  func() error { return find.Reindex(t.Context(), base.Of(s), nil) },
		"reply":    func() error { _, err := c.BeginReply(t.Context(), "", AppendOptions{}, says("q")...); return err },
		"purge": func() error {
			_, err := s.Maintenance().PurgeContext(t.Context(), c.ID.String(), PurgeOptions{})
			return err
		},
	}
	before := allRecords(t, s)
	for name, write := range writes {
		if err := write(); !errors.Is(err, ErrTooNew) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !maps.Equal(allRecords(t, s), before) {
		t.Error("something was written")
	}
	number(t, s, fmt.Sprint(FormatVersion))
	closeChecked(t, s)
}

func allRecords(t *testing.T, s *Store) map[string]string {
	t.Helper()
	var out map[string]string
	err := base.Of(s).Engine.View(t.Context(), func(tx kv.Tx) error {
		out = map[string]string{}
		for _, bucket := range care.AllBuckets {
			err := tx.Scan(bucket, kv.Range{}, func(key, value []byte) error {
				out[bucket+"/"+string(key)] = string(value)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAnOpenReaderGoesOn: a handle that was opened on format 2 reads right after another one brought the store up, and does not bring it up again.
func TestAnOpenReaderGoesOn(t *testing.T) {
	path := storeFile(t, "format-2-long")
	o := Options{Program: "test", Judge: byName{}}
	first, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	want := wanted(t, "format-2.json")
	for i, s := range []*Store{second, first} {
		compareHeld(t, "before the change", held(t, s), want)
		c, err := s.Context(t.Context(), "A call")
		if err == nil {
			_, err = c.Append(t.Context(), "", says("x")...)
		}
		if err != nil {
			t.Fatal(err)
		}
		want["A call"]["main"] = append(want["A call"]["main"], "user: x")
		if n := len(s.Warnings()); n != 1-i {
			t.Errorf("handle %d has %d warnings", i, n)
		}
	}
	compareHeld(t, "after both", held(t, first), want)
	closeChecked(t, first)
	closeChecked(t, second)
}

// TestPurgeOfAnOlderStoreIsFinished: a purge of a store of format 2 that was cut short is finished after the first change, not by opening, which changes nothing.
func TestPurgeOfAnOlderStoreIsFinished(t *testing.T) {
	path := storeFile(t, "format-2-long")
	db, err := boltkv.Open(path, boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(t.Context(), func(tx kv.RwTx) error { return tx.Put(base.MetaBucket, []byte("purging"), []byte{1}) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, Options{Program: "test", Judge: byName{}})
	if err != nil {
		t.Fatal(err)
	}
	due := func() bool {
		is, err := care.PurgeDue(t.Context(), base.Of(s))
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	if !due() || base.Of(s).Format.Number() != 2 {
		t.Errorf("opening finished it, or brought the store to format %d", base.Of(s).Format.Number())
	}
	c, err := s.Context(t.Context(), "Long")
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, c, "", says("x")...)
	if due() || base.Of(s).Format.Number() != FormatVersion {
		t.Errorf("after the first change it is due still, of format %d", base.Of(s).Format.Number())
	}
	closeChecked(t, s)
}
