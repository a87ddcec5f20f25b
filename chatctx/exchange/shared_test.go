package exchange

import (
	"context"
	"github.com/chatctx/chatctx/chatctx/record"
	"testing"
)

// readAll reads paths and returns their contents, after checking the laws of every reader.
func readAll(t testing.TB, o Options, paths ...string) ([]*record.Incoming, *Report) {
	t.Helper()
	var all []*record.Incoming
	rep, err := Read(context.Background(), paths, o, func(in *record.Incoming) error {
		checkIncoming(t, in)
		all = append(all, in)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, rep
}

// checkIncoming checks that a conversation meets the store's requirements.
func checkIncoming(t testing.TB, in *record.Incoming) {
	t.Helper()
	if in.Conversation == "" || in.Title == "" || in.Format == "" {
		t.Errorf("a conversation without id %q, title %q or format %q", in.Conversation, in.Title, in.Format)
	}
	held := make([]bool, len(in.Nodes))
	names := map[string]bool{}
	for _, b := range in.Branches {
		if names[b.Name] {
			t.Errorf("two branches are named %q", b.Name)
		}
		names[b.Name] = true
		for n := b.Leaf - 1; n >= 0 && !held[n]; n = in.Nodes[n].Parent - 1 {
			held[n] = true
		}
	}
	if len(in.Branches) == 0 {
		t.Error("no branch")
	}
	for i, n := range in.Nodes {
		if n.Parent > i {
			t.Fatalf("node %d stands before its parent %d", i, n.Parent)
		}
		if !held[i] {
			t.Errorf("node %q is on no branch", n.ID)
		}
		if err := n.Message.Validate(); err != nil {
			t.Errorf("node %q: %v", n.ID, err)
		}
		for _, c := range n.Message.Calls {
			if c.Open() {
				t.Errorf("node %q: the call %q waits", n.ID, c.ID)
			}
		}
	}
}
