package exchange

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

// goldenStore is a store of format 2, compressed, with its contents as an export beside it. -update writes both again; once the format is frozen they stay.
const goldenStore = "testdata/stores/v2.db.gz"

// TestGoldenStore reads a store that an earlier program wrote: nothing is damaged, everything is there, and undo and redo work.
func TestGoldenStore(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "golden.db")
	if *update {
		writeGoldenStore(t, path)
	}
	packed, err := os.Open(goldenStore)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	file, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := chatctx.Open(path, chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	storetest.Check(t, s)
	held := exported(t, s, ExportOptions{All: true})
	golden(t, "testdata/stores/v2.golden", string(held))

	c, err := s.Context(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Undo(ctx, "", "", ""); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(exported(t, s, ExportOptions{All: true}), held) {
		t.Error("undo changed nothing")
	}
	if _, err := s.Redo(ctx, "", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(ctx, "", pool.NewText(pool.User, "later")); err != nil {
		t.Fatal(err)
	}
	storetest.Check(t, s)
}

func writeGoldenStore(t *testing.T, path string) {
	t.Helper()
	ctx := context.Background()
	s, err := chatctx.Open(path, chatctx.Options{Create: true, By: "ann", Program: "golden"})
	if err != nil {
		t.Fatal(err)
	}
	fillRich(t, s)
	c, err := s.Context(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	commit(t, c, "side way", func(b *chatctx.Batch) { b.RenameBranch("cut", "renamed") })
	commit(t, c, "", func(b *chatctx.Batch) { b.Append(pool.NewText(pool.User, "the newest")) })
	if err := s.Maintenance().Index(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Maintenance().Vacuum(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if _, err := w.Write(file); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goldenStore, packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
