package boltkv_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
)

var errForeign = errors.New("no mark of ours")

// ours is a Check as the layer above has it.
func ours(tx kv.Tx) error {
	if value, err := tx.Get("meta", []byte("mark")); err != nil || value == nil {
		return errors.Join(kv.ErrNotOurs, errForeign, err)
	}
	return nil
}

func mark(tx kv.RwTx) error { return tx.Put("meta", []byte("mark"), []byte("1")) }

func listing(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func foreignBolt(t *testing.T, path string, pageSize int) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: pageSize})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRefusals: what is no store is refused with the right error, stays as it was, and gets no files beside it.
func TestRefusals(t *testing.T) {
	whole, err := os.ReadFile(created(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		make func(path string)
		want error
	}{
		{"nothing there", func(string) {}, kv.ErrNotExist},
		{"folder", func(p string) { _ = os.Mkdir(p, 0o700) }, kv.ErrNotOurs},
		{"empty", func(p string) { write(t, p, nil) }, kv.ErrNotOurs},
		{"text", func(p string) { write(t, p, []byte("# Shopping\nmilk\n")) }, kv.ErrNotOurs},
		{"large text", func(p string) { write(t, p, make([]byte, 100_000)) }, kv.ErrNotOurs},
		{"SQLite", func(p string) { write(t, p, append([]byte("SQLite format 3\x00"), make([]byte, 8000)...)) }, kv.ErrNotOurs},
		{"bbolt, 4 KB pages", func(p string) { foreignBolt(t, p, 4096) }, kv.ErrNotOurs},
		{"bbolt, 16 KB pages", func(p string) { foreignBolt(t, p, 16384) }, kv.ErrNotOurs},
		{"cut in the first page", func(p string) { write(t, p, whole[:8192]) }, kv.ErrDamaged},
		{"cut after the first page", func(p string) { write(t, p, whole[:16384]) }, kv.ErrDamaged},
		{"cut in the middle", func(p string) { write(t, p, whole[:3*16384+5]) }, kv.ErrDamaged},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := newPath(t)
			test.make(path)
			before, before2 := listing(t, filepath.Dir(path)), contents(path)
			for _, o := range []boltkv.Options{{Check: ours}, {Check: ours, ReadOnly: true}, {Check: ours, Create: true, ReadOnly: true}} {
				if _, err := boltkv.Open(path, o); !errors.Is(err, test.want) {
					t.Errorf("Open(%+v): %v, want %v", o, err, test.want)
				}
			}
			if test.want != kv.ErrNotExist {
				if _, err := boltkv.Open(path, boltkv.Options{Check: ours, Create: true, Init: mark}); !errors.Is(err, test.want) {
					t.Errorf("Open to create: %v, want %v", err, test.want)
				}
			}
			if after := listing(t, filepath.Dir(path)); !slices.Equal(before, after) || before2 != contents(path) {
				t.Errorf("left %v, there was %v; same content %t", after, before, before2 == contents(path))
			}
		})
	}
}

func contents(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}

func TestPipe(t *testing.T) {
	path := newPath(t)
	if runtime.GOOS == "windows" || mkfifo(path) != nil {
		t.Skip("no named pipes here")
	}
	if _, err := boltkv.Open(path, boltkv.Options{}); !errors.Is(err, kv.ErrNotOurs) {
		t.Errorf("Open of a pipe: %v", err)
	}
}

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "s.db")
	db := open(t, path, boltkv.Options{Create: true, Init: mark, Check: ours})
	closeDB(t, db)
	for _, p := range []string{path, path + ".lock"} {
		if info, err := os.Stat(p); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", p, info.Mode(), err)
		}
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", info.Mode(), err)
	}
	if names := listing(t, filepath.Dir(path)); !slices.Equal(names, []string{"s.db", "s.db.lock"}) {
		t.Errorf("left %v", names)
	}
	// A second one finds the first.
	closeDB(t, open(t, path, boltkv.Options{Create: true, Check: ours, Init: func(kv.RwTx) error { return errForeign }}))
}

func TestCreateFails(t *testing.T) {
	path := newPath(t)
	_, err := boltkv.Open(path, boltkv.Options{Create: true, Init: func(tx kv.RwTx) error { return errForeign }})
	if !errors.Is(err, errForeign) {
		t.Errorf("Open: %v", err)
	}
	if names := listing(t, filepath.Dir(path)); len(names) > 0 {
		t.Errorf("left %v", names)
	}
	write(t, path+".new", []byte("what a dead program left"))
	closeDB(t, open(t, path, boltkv.Options{Create: true, Init: mark, Check: ours}))
}

// TestCreateRace: of many who create a file at once, one does, and all have the same.
func TestCreateRace(t *testing.T) {
	path := newPath(t)
	const n = 8
	errs := make(chan error, n)
	for range n {
		go func() {
			db, err := boltkv.Open(path, boltkv.Options{Create: true, Init: mark, Check: ours})
			if err == nil {
				err = errors.Join(db.Update(ctx, addOne), db.Close())
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	db := open(t, path, boltkv.Options{})
	defer closeDB(t, db)
	if got := count(t, db); got != n {
		t.Errorf("counted to %d", got)
	}
}

func TestReadOnly(t *testing.T) {
	path := created(t)
	db := open(t, path, boltkv.Options{ReadOnly: true})
	if err := db.Update(ctx, addOne); !errors.Is(err, kv.ErrReadOnly) {
		t.Errorf("Update: %v", err)
	}
	if err := db.(kv.Keeper).Rewrite(ctx, nil); !errors.Is(err, kv.ErrReadOnly) {
		t.Errorf("Rewrite: %v", err)
	}
	closeDB(t, db)
}

// TestNoRights reads a file in a folder that can only be read, and is refused where there is no right at all.
func TestNoRights(t *testing.T) {
	if os.Geteuid() <= 0 { // root, or a system without such ids
		asNobody(t)
		return
	}
	path := created(t)
	for p, mode := range map[string]os.FileMode{path + ".lock": 0, path: 0o400, filepath.Dir(path): 0o500} {
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Chmod(filepath.Dir(path), 0o700)
	db := open(t, path, boltkv.Options{})
	if got := get(t, db, "b", "k"); got != "v" {
		t.Errorf("read %q", got)
	}
	if err := db.Update(ctx, addOne); !errors.Is(err, kv.ErrReadOnly) {
		t.Errorf("Update: %v", err)
	}
	closeDB(t, db)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err := boltkv.Open(path, boltkv.Options{})
	if !errors.Is(err, os.ErrPermission) || errors.Is(err, kv.ErrNotOurs) {
		t.Errorf("Open without a right to read: %v", err)
	}
	if _, err := boltkv.Open(filepath.Join(filepath.Dir(path), "new.db"), boltkv.Options{Create: true}); !errors.Is(err, os.ErrPermission) {
		t.Errorf("Open to create in a folder that can only be read: %v", err)
	}
}

// TestCheck: the caller's look at the file happens once for each file that appears at the path.
func TestCheck(t *testing.T) {
	path := newPath(t)
	looks := 0
	db := open(t, path, boltkv.Options{Create: true, Init: mark, IdleHold: -1, Check: func(tx kv.Tx) error { looks++; return ours(tx) }})
	defer closeDB(t, db)
	put(t, db, "b", "k", "v")
	if looks != 1 {
		t.Errorf("%d looks at one file", looks)
	}
	if err := db.(kv.Keeper).Rewrite(ctx, nil); err != nil {
		t.Fatal(err)
	}
	put(t, db, "b", "k", "w")
	if looks != 2 {
		t.Errorf("%d looks after a rewrite", looks)
	}
	foreign := newPath(t)
	foreignBolt(t, foreign, 4096)
	if err := os.Rename(foreign, path); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{db.View(ctx, func(kv.Tx) error { return nil }), db.Update(ctx, addOne)} {
		if !errors.Is(err, errForeign) {
			t.Errorf("after another file came to the path: %v", err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{db.View(ctx, func(kv.Tx) error { return nil }), db.Update(ctx, addOne)} {
		if !errors.Is(err, kv.ErrNotExist) {
			t.Errorf("after the file went: %v", err)
		}
	}
}
