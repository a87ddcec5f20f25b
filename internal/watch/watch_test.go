package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestFiles writes into a folder, a folder created later and a single file, and is told of each, but not of other files beside the single file.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	folder, single := filepath.Join(dir, "folder"), filepath.Join(dir, "one.db")
	put := func(path string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("text"), 0o600)); err != nil {
			t.Error(err)
		}
	}
	put(filepath.Join(folder, "a"))
	put(single)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	wanted := map[string]bool{filepath.Join(folder, "b"): true, filepath.Join(folder, "new", "deep", "c"): true, single + "-wal": true}
	ready := func() {
		put(filepath.Join(dir, "beside"))
		for p := range wanted {
			put(p)
		}
	}
	err := Files(ctx, []string{folder, single}, ready, func(path string) {
		if path == filepath.Join(dir, "beside") {
			t.Error("told of what is not watched")
		}
		delete(wanted, path)
		if len(wanted) == 0 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
