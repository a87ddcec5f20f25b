package boltkv_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/internal/engine"
)

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "s.db") }

// created makes a file with one record and returns it closed.
func created(t testing.TB) string {
	t.Helper()
	path := newPath(t)
	db := open(t, path, boltkv.Options{Create: true})
	put(t, db, "b", "k", "v")
	closeDB(t, db)
	return path
}

func put(t testing.TB, db kv.DB, bucket, key, value string) {
	t.Helper()
	if err := db.Update(ctx, func(tx kv.RwTx) error { return tx.Put(bucket, []byte(key), []byte(value)) }); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, db kv.DB, bucket, key string) (value string) {
	t.Helper()
	err := db.View(ctx, func(tx kv.Tx) error {
		v, err := tx.Get(bucket, []byte(key))
		value = string(v)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func closeDB(t testing.TB, db kv.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// TestProcesses has several processes add to one counter while others read.
func TestProcesses(t *testing.T) {
	path := created(t)
	reader := start(t, "read", path)
	reader.line(t)
	var writers []*process
	for range 4 {
		writers = append(writers, start(t, "count", path))
	}
	db := open(t, path, boltkv.Options{})
	defer closeDB(t, db)
	for range 100 {
		if err := db.Update(ctx, addOne); err != nil {
			t.Fatal(err)
		}
		count(t, db)
	}
	for _, w := range writers {
		w.line(t)
		w.end(t)
	}
	reader.end(t)
	if n := count(t, db); n != 500 {
		t.Errorf("counted to %d, want 500", n)
	}
}

// TestBusyWriter: beside a process that appends without a pause, everybody else has their turn.
func TestBusyWriter(t *testing.T) {
	path := created(t)
	for range 2 {
		busy := start(t, "append", path)
		busy.line(t)
		go func() {
			for busy.lines.Scan() {
			}
		}()
	}
	for i := range 50 {
		db := open(t, path, boltkv.Options{IdleHold: -1})
		put(t, db, "b", "k", fmt.Sprint(i))
		if got := get(t, db, "b", "k"); got != fmt.Sprint(i) {
			t.Errorf("read %s after %d was written", got, i)
		}
		closeDB(t, db)
	}
}

// TestBusyReaders: six processes that read without a pause do not keep a writer out.
func TestBusyReaders(t *testing.T) {
	path := created(t)
	for range 6 {
		start(t, "read", path).line(t)
	}
	db := open(t, path, boltkv.Options{})
	defer closeDB(t, db)
	for i := range 20 {
		put(t, db, "b", "k", fmt.Sprint(i))
	}
}

// TestHolderNamed: a wait that runs out says who has the file, also when that program was stopped.
func TestHolderNamed(t *testing.T) {
	path := created(t)
	holder := start(t, "hold", path, "BOLTKV_PURPOSE=import")
	holder.line(t)
	stop(t, holder)
	db := open(t, path, boltkv.Options{Wait: 50 * time.Millisecond, Check: func(kv.Tx) error { return errForeign }})
	defer closeDB(t, db)
	err := db.View(ctx, func(kv.Tx) error { return nil })
	var locked *kv.LockedError
	if !errors.As(err, &locked) || !errors.Is(err, kv.ErrLocked) {
		t.Fatalf("View beside a stopped holder: %v", err)
	}
	h := locked.Holder
	if h.PID != holder.Process.Pid || h.Purpose != "import" || h.Command != filepath.Base(os.Args[0]) || h.Since.IsZero() {
		t.Errorf("the holder is named as %+v, it is process %d", h, holder.Process.Pid)
	}
	goOn(t, holder)
	holder.end(t)
	if err := db.View(ctx, func(kv.Tx) error { return nil }); !errors.Is(err, errForeign) {
		t.Errorf("Check did not run when the holder had gone: %v", err)
	}
}

// TestWaitCancelled: a context ends a wait for another process, and nothing is left of the wait.
func TestWaitCancelled(t *testing.T) {
	path := created(t)
	db := open(t, path, boltkv.Options{})
	defer closeDB(t, db)
	holder := start(t, "hold", path)
	holder.line(t)
	waits, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	err := db.Update(waits, func(tx kv.RwTx) error { t.Error("ran beside the holder"); return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Update: %v", err)
	}
	holder.end(t)
	put(t, db, "b", "k", "w")
}

// TestLongPurpose: waiting for a backup does not count, and is reported.
func TestLongPurpose(t *testing.T) {
	path := created(t)
	db := open(t, path, boltkv.Options{Wait: time.Millisecond})
	defer closeDB(t, db)
	holder := start(t, "hold", path, "BOLTKV_PURPOSE=backup")
	holder.line(t)
	for what, try := range map[string]func(context.Context) error{
		"View":   func(ctx context.Context) error { return db.View(ctx, func(tx kv.Tx) error { return nil }) },
		"Update": func(ctx context.Context) error { return db.Update(ctx, func(tx kv.RwTx) error { return nil }) },
	} {
		waits, cancel := context.WithTimeout(ctx, time.Minute)
		err := try(engine.WithWaiting(waits, func(h kv.Holder) {
			if h.PID != holder.Process.Pid || h.Purpose != "backup" || h.Waits {
				t.Errorf("%s is told that it waits for %v", what, h)
			}
			cancel()
		}))
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s beside a backup: %v", what, err)
		}
	}
	holder.end(t)
}

// TestNested: an Update within a View of the same file waits for itself, but not for ever.
func TestNested(t *testing.T) {
	db := open(t, created(t), boltkv.Options{Wait: 30 * time.Millisecond})
	defer closeDB(t, db)
	err := db.View(ctx, func(kv.Tx) error {
		return db.Update(ctx, func(kv.RwTx) error { return nil })
	})
	var locked *kv.LockedError
	if !errors.As(err, &locked) || locked.Holder.PID != os.Getpid() {
		t.Errorf("Update within a View: %v", err)
	}
	put(t, db, "b", "k", "w")
}

// TestLockFileDeleted: what a lock file is deleted under goes on, and so do those who come later.
func TestLockFileDeleted(t *testing.T) {
	path := created(t)
	writers := []*process{start(t, "count", path), start(t, "count", path)}
	db := open(t, path, boltkv.Options{})
	defer closeDB(t, db)
	for range 100 {
		if err := os.Remove(path + ".lock"); err != nil && !errors.Is(err, os.ErrNotExist) && runtime.GOOS != "windows" {
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
	if n := count(t, db); n != 300 {
		t.Errorf("counted to %d, want 300", n)
	}
}

// TestStaleLockFile: a lock file that a dead program left, or a folder in its place, is no obstacle.
func TestStaleLockFile(t *testing.T) {
	path := created(t)
	for _, text := range []string{"", "{\"pid\":1,\"purpose\":\"backup\"}\n", string(make([]byte, 100_000))} {
		if err := os.WriteFile(path+".lock", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		db := open(t, path, boltkv.Options{Wait: -1})
		put(t, db, "b", "k", text)
		closeDB(t, db)
	}
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".lock", 0o700); err != nil {
		t.Fatal(err)
	}
	db := open(t, path, boltkv.Options{Wait: -1})
	put(t, db, "b", "k", "w")
	closeDB(t, db)
}

// TestSharedInProcess: the same file by other names is the same file.
func TestSharedInProcess(t *testing.T) {
	path := created(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	if _, err := os.Stat(link); err != nil {
		t.Skip("a link that was made leads nowhere, as under Wine: ", err)
	}
	hard := filepath.Join(filepath.Dir(path), "hard.db")
	if err := os.Link(path, hard); err != nil {
		t.Skip(err)
	}
	a, b, c := open(t, path, boltkv.Options{}), open(t, link, boltkv.Options{Wait: -1}), open(t, hard, boltkv.Options{Wait: -1})
	defer closeDB(t, c)
	err := a.View(ctx, func(kv.Tx) error {
		return errors.Join(b.View(ctx, func(kv.Tx) error { return nil }), c.View(ctx, func(kv.Tx) error { return nil }))
	})
	if err != nil {
		t.Error(err)
	}
	err = a.Update(ctx, func(kv.RwTx) error { return b.View(ctx, func(kv.Tx) error { return nil }) })
	if err != nil {
		t.Errorf("View of another handle while one writes: %v", err)
	}
	closeDB(t, a)
	put(t, b, "b", "k", "by link")
	closeDB(t, b)
	if got := get(t, c, "b", "k"); got != "by link" {
		t.Errorf("read %q", got)
	}
}

// TestWatchProcess: a commit of another process is told.
func TestWatchProcess(t *testing.T) {
	path := created(t)
	db := open(t, path, boltkv.Options{})
	defer closeDB(t, db)
	changed, err := db.Watch(ctx, "count", nil)
	if err != nil {
		t.Fatal(err)
	}
	writer := start(t, "count", path)
	<-changed
	writer.end(t)
	vacuum := start(t, "vacuum", path)
	vacuum.line(t)
	<-changed
	vacuum.end(t)
}
