package chatctx

import (
	"errors"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/pool"
)

func TestExpectRefusesAnOldRevision(t *testing.T) {
	s, err := OpenMemory(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.at().Close()
	c, err := s.New(t.Context(), record.NewContext{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := c.Branch(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	set := func(revision uint64) error {
		b := c.Begin("")
		b.Name("compact")
		b.Expect(revision)
		b.SetSessions([]branch.Session{{ID: pool.NewID(), Start: 1}})
		done, err := b.Commit(t.Context())
		if err == nil && done.What != "compact" {
			t.Errorf("the operation is called %q", done.What)
		}
		return err
	}
	if err := set(info.Revision); err != nil {
		t.Fatal(err)
	}
	if err := set(info.Revision); !errors.Is(err, ErrConflict) {
		t.Errorf("an old revision: %v", err)
	}
}

func TestSessionsOfARequestGiveWayToNewerOnes(t *testing.T) {
	a, b := pool.NewID(), pool.NewID()
	one := []branch.Session{{ID: a, Start: 1}}
	for _, c := range []struct {
		name      string
		now, used []branch.Session
		want      bool
	}{
		{"first", nil, one, true},
		{"marks moved", one, []branch.Session{{ID: a, Start: 1, PrunedTo: 4}}, true},
		{"compacted meanwhile", append(one, branch.Session{ID: b, Start: 5}), one, false},
		{"compacted from nothing meanwhile", []branch.Session{{ID: b, Start: 1}, {ID: a, Start: 5}}, one, false},
		{"pruned meanwhile", []branch.Session{{ID: a, Start: 1, PrunedTo: 9}}, []branch.Session{{ID: a, Start: 1, PrunedTo: 4}}, false},
		{"moved meanwhile", []branch.Session{{ID: a, Start: 3}}, one, false},
		{"another one", []branch.Session{{ID: b, Start: 1}}, one, false},
	} {
		if got := journal.SameSessions(c.now, c.used); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestForkAndRewindCutMarks(t *testing.T) {
	s, err := OpenMemory(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.at().Close()
	var msgs []*Message
	for range 10 {
		msgs = append(msgs, pool.NewText(pool.User, "x"))
	}
	c, err := s.New(t.Context(), record.NewContext{Messages: msgs})
	if err != nil {
		t.Fatal(err)
	}
	b := c.Begin("")
	b.SetSessions([]branch.Session{{ID: pool.NewID(), Start: 1, PrunedTo: 8, Digests: []branch.Digest{{From: 1, To: 3}, {From: 4, To: 7}}}})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	look := func(name string) {
		info, err := c.Branch(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Sessions[0]; len(info.Sessions) != 1 || got.PrunedTo != 5 || len(got.Digests) != 1 || got.Digests[0].To != 3 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	b = c.Begin("main")
	b.Fork("other", ForkOptions{At: "@5", Stay: true})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	look("other")
	b = c.Begin("main")
	b.Rewind("@5")
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	look("main")
}
