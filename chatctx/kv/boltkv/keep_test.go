package boltkv_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
)

// dump is all that a database holds.
func dump(t testing.TB, db kv.DB) (all []string) {
	t.Helper()
	err := db.View(ctx, func(tx kv.Tx) error {
		for _, bucket := range []string{"meta", "log", "index", "large", "count", "b"} {
			err := tx.Scan(bucket, kv.Range{}, func(key, value []byte) error {
				all = append(all, fmt.Sprintf("%s %q %x", bucket, key, sha256.Sum256(value)))
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
	return all
}

func filledDB(t *testing.T, records int) (kv.DB, kv.Keeper, string) {
	t.Helper()
	path := newPath(t)
	write(t, path, filled(t, records))
	db := open(t, path, boltkv.Options{Sequential: []string{"log"}})
	t.Cleanup(func() { closeDB(t, db) })
	return db, db.(kv.Keeper), path
}

func TestBackup(t *testing.T) {
	db, keep, path := filledDB(t, 300)
	want := dump(t, db)
	var buffer bytes.Buffer
	if err := keep.Backup(ctx, &buffer); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	f, err := os.Create(copied)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(keep.Backup(ctx, f), f.Close()); err != nil {
		t.Fatal(err)
	}
	direct, err := os.ReadFile(copied)
	if err != nil || !bytes.Equal(direct, buffer.Bytes()) {
		t.Errorf("a copy into a file and one into a buffer differ: %v", err)
	}
	checkBolt(t, copied)
	other := open(t, copied, boltkv.Options{})
	defer closeDB(t, other)
	if !slices.Equal(want, dump(t, other)) {
		t.Error("the copy holds something else")
	}
	if names := listing(t, filepath.Dir(path)); !slices.Equal(names, []string{"s.db", "s.db.lock"}) {
		t.Errorf("left %v", names)
	}
}

// slowWriter does not go on until somebody has written to the store.
type slowWriter struct {
	once  sync.Once
	write func()
}

func (s *slowWriter) Write(p []byte) (int, error) {
	s.once.Do(s.write)
	return len(p), nil
}

// TestBackupToPipe: a reader of the copy that does not read holds up nobody.
func TestBackupToPipe(t *testing.T) {
	db, keep, path := filledDB(t, 300)
	other := start(t, "count", path)
	err := keep.Backup(ctx, &slowWriter{write: func() {
		put(t, db, "b", "k", "while it is copied")
		other.line(t)
		other.end(t)
	}})
	if err != nil {
		t.Error(err)
	}
	failed := errors.New("failed")
	if err := keep.Backup(ctx, writerFunc(func([]byte) (int, error) { return 0, failed })); !errors.Is(err, failed) {
		t.Errorf("Backup into a writer that fails: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

var _ io.Writer = writerFunc(nil)

func TestRewrite(t *testing.T) {
	db, keep, path := filledDB(t, 3000)
	before := space(t, keep)
	if before.Used+before.Free != before.File || before.Free <= 0 || before.RewriteDue {
		t.Errorf("space before: %+v", before)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	want := dump(t, db)
	if err := keep.Rewrite(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(want, dump(t, db)) {
		t.Error("the new file holds something else")
	}
	after := space(t, keep)
	if after.Used >= before.Used+1<<16 || after.File >= before.File {
		t.Errorf("space before %+v, after %+v", before, after)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 && runtime.GOOS != "windows" {
		t.Errorf("rights after: %v, %v", info.Mode(), err)
	}
	if data := contents(path); data[24:28] != "\x00\x40\x00\x00" {
		t.Errorf("page size %x", data[24:28])
	}
	put(t, db, "b", "k", "after")
	if got := get(t, db, "b", "k"); got != "after" {
		t.Errorf("read %q", got)
	}
	if names := listing(t, filepath.Dir(path)); !slices.Equal(names, []string{"s.db", "s.db.lock"}) {
		t.Errorf("left %v", names)
	}
}

func space(t *testing.T, keep kv.Keeper) kv.Space {
	t.Helper()
	s, err := keep.Space(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRewriteEdit: what the edit does is in the new file, and not a byte of what it deleted; a failing one changes nothing.
func TestRewriteEdit(t *testing.T) {
	db, keep, path := filledDB(t, 300)
	const secret = "the planted string"
	for i := range 300 {
		put(t, db, "b", fmt.Sprint(i), secret)
	}
	before := dump(t, db)
	failed := errors.New("failed")
	edit := func(result error) func(tx kv.RwTx) error {
		return func(tx kv.RwTx) error {
			for i := range 300 {
				if err := tx.Delete("b", fmt.Append(nil, i)); err != nil {
					return err
				}
			}
			return errors.Join(tx.Put("b", []byte("new"), []byte("by the edit")), tx.Put("fresh", []byte("k"), nil), result)
		}
	}
	if err := keep.Rewrite(ctx, edit(failed)); !errors.Is(err, failed) {
		t.Errorf("Rewrite with an edit that fails: %v", err)
	}
	if !slices.Equal(before, dump(t, db)) {
		t.Error("the edit that failed changed something")
	}
	if err := keep.Rewrite(ctx, edit(nil)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(contents(path), secret) {
		t.Error("what was deleted is still in the file")
	}
	if got := get(t, db, "b", "new"); got != "by the edit" {
		t.Errorf("the edit's record: %q", got)
	}
	closeDB(t, db)
	checkBolt(t, path)
}

// TestRewriteBesideWriters: nothing that another process or handle was told is stored is lost in a rewrite, also where there
// can be no lock file.
func TestRewriteBesideWriters(t *testing.T) {
	for _, name := range []string{"lock file", "no lock file"} {
		t.Run(name, func(t *testing.T) {
			path := created(t)
			if name == "no lock file" {
				if err := errors.Join(os.Remove(path+".lock"), os.Mkdir(path+".lock", 0o700)); err != nil {
					t.Fatal(err)
				}
			}
			writers := []*process{start(t, "count", path), start(t, "count", path), start(t, "count", path)}
			db := open(t, path, boltkv.Options{})
			defer closeDB(t, db)
			refused := name == "no lock file" && runtime.GOOS == "windows" // an open file cannot be replaced there
			for range 20 {
				if err := db.(kv.Keeper).Rewrite(ctx, nil); (err != nil) != refused {
					t.Fatal(err)
				}
				if err := db.Update(ctx, addOne); err != nil {
					t.Fatal(err)
				}
			}
			for _, w := range writers {
				w.line(t)
				w.end(t)
			}
			if n := count(t, db); n != 320 {
				t.Errorf("counted to %d, want 320", n)
			}
		})
	}
}

// TestRewriteDue: after most of a large file was deleted, a rewrite is due, and then it is not.
func TestRewriteDue(t *testing.T) {
	path := newPath(t)
	db := open(t, path, boltkv.Options{Create: true})
	defer closeDB(t, db)
	keep := db.(kv.Keeper)
	const n = 400
	all := func(do func(tx kv.RwTx, key []byte) error) {
		err := db.Update(ctx, func(tx kv.RwTx) error {
			for i := range n {
				if err := do(tx, fmt.Append(nil, i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all(func(tx kv.RwTx, key []byte) error { return tx.Put("b", key, make([]byte, 256<<10)) })
	if s := space(t, keep); s.RewriteDue {
		t.Errorf("due before anything was deleted: %+v", s)
	}
	all(func(tx kv.RwTx, key []byte) error { return tx.Delete("b", key) })
	if s := space(t, keep); !s.RewriteDue || s.Free < 90<<20 {
		t.Errorf("not due: %+v", s)
	}
	if err := keep.Rewrite(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if s := space(t, keep); s.RewriteDue || s.File > 2<<20 {
		t.Errorf("after the rewrite: %+v", s)
	}
}
