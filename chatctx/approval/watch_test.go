package approval

import (
	"context"
	"os/exec"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
)

func TestWatchTellsOfNewCalls(t *testing.T) {
	b := newBench(t)
	b.ask("t", `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	calls, err := Watch(ctx, b.store, chatctx.CallFilter{}, true)
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
