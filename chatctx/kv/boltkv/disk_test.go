//go:build linux

package boltkv_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/internal/testkit"
)

// TestDiskFull fills a small disk: the append that does not fit says so, all before it is there, and the same handle goes on
// when there is room.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=6m"); err != nil {
		t.Skipf("no small disk can be made here: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	ballast := filepath.Join(dir, "ballast")
	write(t, ballast, make([]byte, 3<<20))
	testFull(t, dir, syscall.ENOSPC, func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFileLimit does the same with a limit on the size of files.
func TestFileLimit(t *testing.T) {
	if !testkit.Alone(t) {
		return
	}
	testFull(t, t.TempDir(), syscall.EFBIG, testkit.LimitFiles(t, 4<<20))
}

func testFull(t *testing.T, dir string, cause error, makeRoom func()) {
	path := filepath.Join(dir, "s.db")
	db := open(t, path, boltkv.Options{Create: true, Sequential: []string{"log"}})
	add := func(n int) error {
		return db.Update(ctx, func(tx kv.RwTx) error {
			return tx.Put("log", fmt.Appendf(nil, "%08d", n), make([]byte, 1000))
		})
	}
	stored := 0
	var full error
	for ; full == nil; stored++ {
		full = add(stored)
	}
	stored--
	if !strings.Contains(full.Error(), cause.Error()) || errors.Is(full, kv.ErrUnknownOutcome) || errors.Is(full, kv.ErrDamaged) {
		t.Errorf("the append that does not fit: %v", full)
	}
	for range 20 {
		if err := add(stored); err == nil || !strings.Contains(err.Error(), cause.Error()) {
			t.Errorf("another try: %v", err)
		}
	}
	if err := db.(kv.Keeper).Rewrite(ctx, nil); !errors.Is(err, cause) && err != nil {
		t.Errorf("Rewrite: %v", err)
	}
	if err := db.(kv.Keeper).Backup(ctx, &slowWriter{write: func() {}}); !errors.Is(err, cause) && err != nil {
		t.Errorf("Backup: %v", err)
	}
	makeRoom()
	for range 500 {
		if err := add(stored); err != nil {
			t.Fatalf("append with room again: %v", err)
		}
		stored++
	}
	found := 0
	err := db.View(ctx, func(tx kv.Tx) error {
		return tx.Scan("log", kv.Range{}, func(key, value []byte) error {
			found++
			return nil
		})
	})
	if err != nil || found != stored || stored < 1000 {
		t.Errorf("%d of %d are there: %v", found, stored, err)
	}
	closeDB(t, db)
	checkBolt(t, path)
	t.Logf("%d stored, then: %v", stored-500, full)
}
