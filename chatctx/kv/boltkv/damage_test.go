package boltkv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/internal/testkit"
)

// filled makes a file with several pages in each bucket, a freelist, and returns its content.
func filled(t testing.TB, records int) []byte {
	t.Helper()
	path := newPath(t)
	db := open(t, path, boltkv.Options{Create: true, Init: mark, Sequential: []string{"log"}})
	for from := 0; from < records; from += 100 {
		err := db.Update(ctx, func(tx kv.RwTx) error {
			for i := from; i < from+100; i++ {
				key := fmt.Appendf(nil, "%08d", i)
				if err := errors.Join(tx.Put("log", key, bytes.Repeat(key, 125)), tx.Put("index", key, key)); err != nil {
					return err
				}
				if i%3 == 0 {
					if err := tx.Delete("log", key); err != nil {
						return err
					}
				}
			}
			return tx.Put("large", fmt.Appendf(nil, "%d", from), make([]byte, 100_000))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	closeDB(t, db)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// useAll does with a file what can be done with it. Errors are fine, panics are not.
func useAll(path string) error {
	db, err := boltkv.Open(path, boltkv.Options{IdleHold: -1})
	if err != nil {
		return err
	}
	keep := db.(kv.Keeper)
	errs := []error{
		db.View(ctx, func(tx kv.Tx) error {
			for _, bucket := range []string{"meta", "log", "index", "large"} {
				for _, reverse := range []bool{false, true} {
					sum := 0
					err := tx.Scan(bucket, kv.Range{Reverse: reverse}, func(key, value []byte) error {
						for _, b := range value {
							sum += int(b)
						}
						return nil
					})
					if err != nil {
						return err
					}
				}
			}
			return nil
		}),
		db.Update(ctx, func(tx kv.RwTx) error {
			for i := range 50 {
				key := fmt.Appendf(nil, "%08d", i*7)
				if err := errors.Join(tx.Put("log", key, key), tx.Delete("index", key)); err != nil {
					return err
				}
			}
			return nil
		}),
		db.Update(ctx, addOne),
		keep.CheckPages(ctx, func(string) {}),
	}
	_, err = keep.Space(ctx)
	errs = append(errs, err, keep.Rewrite(ctx, nil), db.Close())
	return errors.Join(errs...)
}

// TestFlippedBytes spoils 64 bytes at random places.
func TestFlippedBytes(t *testing.T) {
	whole := filled(t, 500)
	files, refused := 0, 0
	for seed := range testkit.Seeds(t, 40) {
		files++
		r := rand.New(rand.NewPCG(seed, 1))
		data := bytes.Clone(whole)
		for range 64 {
			data[r.IntN(len(data))] ^= byte(1 + r.IntN(255))
		}
		if seed%3 == 0 { // heads and elements of pages are where it hurts
			for range 64 {
				data[r.IntN(len(data)/16384)*16384+r.IntN(200)] ^= byte(1 + r.IntN(255))
			}
		}
		path := filepath.Join(t.TempDir(), "s.db")
		write(t, path, data)
		if err := useAll(path); err != nil {
			refused++
			if !errors.Is(err, kv.ErrDamaged) && !errors.Is(err, kv.ErrNotOurs) {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of %d files were refused somewhere", refused, files)
}

// TestCutFiles cuts a file at each page, and between them.
func TestCutFiles(t *testing.T) {
	whole := filled(t, 200)
	used := usedBytes(t, whole)
	for size := 1; size < len(whole); size += 8192 {
		path := filepath.Join(t.TempDir(), "s.db")
		write(t, path, whole[:size])
		err := useAll(path)
		if size < used && !errors.Is(err, kv.ErrDamaged) && !errors.Is(err, kv.ErrNotOurs) {
			t.Errorf("cut to %d of %d: %v", size, used, err)
		}
		if size >= used && err != nil {
			t.Errorf("cut to %d, all that is used: %v", size, err)
		}
	}
}

func usedBytes(t *testing.T, data []byte) (used int) {
	path := newPath(t)
	write(t, path, data)
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.View(func(tx *bolt.Tx) error { used = int(tx.Size()); return nil }); err != nil {
		t.Fatal(err)
	}
	return used
}

// TestCutWhileOpen cuts a file under a transaction that has it open: reading a value then faults in the caller's function.
func TestCutWhileOpen(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nobody can cut a file that is mapped here")
	}
	path := newPath(t)
	write(t, path, filled(t, 500))
	db := open(t, path, boltkv.Options{})
	defer closeDB(t, db)
	err := db.View(ctx, func(tx kv.Tx) error {
		value, err := tx.Get("large", []byte("400"))
		if err != nil {
			return err
		}
		if err := os.Truncate(path, 4*16384); err != nil {
			return err
		}
		sum := 0
		for _, b := range value {
			sum += int(b)
		}
		return fmt.Errorf("read %d bytes that are gone", sum)
	})
	if !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("View: %v", err)
	}
	if err := db.Update(ctx, addOne); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("Update: %v", err)
	}
	// A mistake of the caller's is no damage.
	defer func() {
		if recover() == nil {
			t.Error("a nil pointer in a View did not panic")
		}
	}()
	db = open(t, created(t), boltkv.Options{})
	defer closeDB(t, db)
	_ = db.View(ctx, func(tx kv.Tx) error {
		var nothing *[1 << 20]byte
		return fmt.Errorf("read %d", nothing[1<<19])
	})
}

// TestDamageEnds: a handle on a damaged file works again when a good one is in its place.
func TestDamageEnds(t *testing.T) {
	whole := filled(t, 300)
	path := newPath(t)
	write(t, path, whole)
	db := open(t, path, boltkv.Options{IdleHold: -1}) // a file that is open cannot be written over on Windows
	defer closeDB(t, db)
	spoilt := bytes.Clone(whole)
	for page := 2; page < len(spoilt)/16384; page++ {
		copy(spoilt[page*16384+8:], "\xff\xff\xff\xff\xff\xff\xff\xff")
	}
	write(t, path, spoilt)
	if err := db.Update(ctx, addOne); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("Update: %v", err)
	}
	if err := db.View(ctx, func(tx kv.Tx) error { _, err := tx.Get("log", []byte("1")); return err }); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("View: %v", err)
	}
	write(t, path+".good", whole)
	if err := os.Rename(path+".good", path); err != nil {
		t.Fatal(err)
	}
	if err := db.Update(ctx, addOne); err != nil {
		t.Errorf("Update of the good file: %v", err)
	}
}

// pageProblems is what the page check, or Open, finds wrong with a file.
func pageProblems(t *testing.T, data []byte) (found []string) {
	t.Helper()
	path := newPath(t)
	write(t, path, data)
	db, err := boltkv.Open(path, boltkv.Options{})
	if err != nil {
		return []string{err.Error()}
	}
	defer closeDB(t, db)
	if err := db.(kv.Keeper).CheckPages(ctx, func(p string) { found = append(found, p) }); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestCheckPages: a good file is without problems, and every page in use shows when its kind is spoilt.
func TestCheckPages(t *testing.T) {
	db, keep, path := filledDB(t, 500)
	if found := pageProblems(t, []byte(contents(path))); len(found) > 0 {
		t.Errorf("a good file: %v", found)
	}
	err := keep.Rewrite(ctx, func(tx kv.RwTx) error { // without large values, whose later pages have no kind
		for i := range 5 {
			if err := tx.Delete("large", fmt.Append(nil, i*100)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := space(t, keep)
	closeDB(t, db)
	whole := []byte(contents(path))
	pages, noticed := usedBytes(t, whole)/16384, 0
	for page := 2; page < pages; page++ {
		data := bytes.Clone(whole)
		data[page*16384+8] ^= 0x40
		data[page*16384+9] ^= 0x40
		if len(pageProblems(t, data)) > 0 {
			noticed++
		}
	}
	if want := int(s.Used/16384) - 2; noticed != want || noticed < 10 {
		t.Errorf("%d spoilt pages were noticed, %d are in use", noticed, want)
	}
}

func TestCheckPagesStops(t *testing.T) {
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	db := open(t, created(t), boltkv.Options{})
	defer closeDB(t, db)
	if err := db.(kv.Keeper).CheckPages(stopped, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("CheckPages with a context that has ended: %v", err)
	}
}

// checkBolt runs bbolt's own check on a file that nobody uses.
func checkBolt(t testing.TB, path string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			t.Errorf("bbolt's check: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
