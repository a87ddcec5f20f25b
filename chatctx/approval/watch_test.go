package approval

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

func TestWatchTellsOfNewCalls(t *testing.T) {
	b := newBench(t)
	b.ask("t", `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	calls, err := Watch(ctx, b.store, record.CallFilter{}, true)
	if err != nil {
		t.Fatal(err)
	}
	if c := (<-calls).Call; c.ID != "c1" {
		t.Errorf("first comes %s", c.ID)
	}
	b.ask("t", `{}`, "u", `{}`)
	for _, id := range []string{"c2", "c3"} {
		if c := (<-calls).Call; c.ID != id {
			t.Errorf("then comes %s, want %s", c.ID, id)
		}
	}
	argv := self(t, "decide", b.file, "3", "0") // another process: a decision is no new call
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.ask("t", `{}`)
	if c := (<-calls).Call; c.ID != "c4" {
		t.Errorf("then comes %s", c.ID)
	}
	cancel()
	for range calls {
		t.Error("something comes after the end")
	}
}

// TestWatchOutlivesTheFile: Watch reports new calls after the file was written anew, after another file was put in its place, and after an undo brought a call back.
func TestWatchOutlivesTheFile(t *testing.T) {
	b := newBench(t)
	b.ask("t", `{}`)
	backup := filepath.Join(t.TempDir(), "backup.db")
	f, err := os.Create(backup)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.store.Maintenance().Backup(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	f.Close()
	batch := b.c.Begin("")
	batch.Rewind("@1")
	b.commit(batch)
	calls, err := Watch(t.Context(), b.store, record.CallFilter{}, true)
	if err != nil {
		t.Fatal(err)
	}
	next := func(what, id string) {
		t.Helper()
		select {
		case news := <-calls:
			if news.Err != nil || news.Call.ID != id {
				t.Fatalf("after %s comes %+v", what, news)
			}
		case <-time.After(time.Minute):
			t.Fatalf("after %s nothing comes", what)
		}
	}
	b.ask("t", `{}`)
	next("a call", "c2")
	if err := b.store.Maintenance().Vacuum(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.ask("t", `{}`)
	next("vacuum", "c3")
	if _, err := b.store.Maintenance().PurgeMessages(t.Context(), "", "", []record.Ref{"@"}, chatctx.PurgeOptions{}); err != nil {
		t.Fatal(err)
	}
	b.ask("t", `{}`)
	next("a purge", "c4")
	if _, err := chatctx.Restore(t.Context(), b.file, backup); err != nil {
		t.Fatal(err)
	}
	next("restore", "c1") // it waited before all that were reported
	b.ask("t", `{}`)
	next("restore", "c5")
}
