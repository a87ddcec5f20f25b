package chatctx

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

func label(t *testing.T, c *ChatContext, labels ...string) {
	t.Helper()
	b := c.Begin("")
	for _, l := range labels {
		b.Label(l)
	}
	commit(t, b)
}

// listedTitles are the titles of a list, in its order.
func listedTitles(t *testing.T, s *Store, o record.ListOptions) string {
	t.Helper()
	var out []string
	for info, err := range s.Contexts(t.Context(), o) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, info.Title)
	}
	return strings.Join(out, " ")
}

func labelCounts(t *testing.T, s *Store) string {
	t.Helper()
	all, err := view.Labels(t.Context(), base.Of(s))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range slices.Sorted(maps.Keys(all)) {
		out = append(out, fmt.Sprint(l, "=", all[l]))
	}
	return strings.Join(out, " ")
}

func titledContext(t *testing.T, s *Store, title string, texts ...string) *ChatContext {
	t.Helper()
	c, err := s.New(t.Context(), record.NewContext{Title: title, Messages: says(texts...)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLabels(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		a, b, c := titledContext(t, s, "a", "one"), titledContext(t, s, "b", "two"), titledContext(t, s, "c")
		titledContext(t, s, "", "made of words")
		label(t, a, "work", Pinned)
		label(t, b, "work", Archived)
		label(t, c, "wor")
		want(t, labelCounts(t, s), "archived=1 pinned=1 wor=1 work=2")
		for _, test := range []struct {
			o    record.ListOptions
			want string
		}{
			{record.ListOptions{}, "c b a made of words"},
			{record.ListOptions{Orderly: true}, "a c made of words"},
			{record.ListOptions{Labels: []string{"work"}}, "b a"},
			{record.ListOptions{Labels: []string{"work"}, Orderly: true}, "a"},
			{record.ListOptions{Labels: []string{"work", Archived}, Orderly: true}, "b"},
			{record.ListOptions{Labels: []string{"nothing"}}, ""},
			{record.ListOptions{Empty: true}, "c"},
			{record.ListOptions{Untitled: true}, "made of words"},
		} {
			want(t, listedTitles(t, s, test.o), test.want)
		}

		// undo and redo, and what removes for good
		undoOp(t, a, "", "")
		want(t, labelCounts(t, s), "archived=1 wor=1 work=1")
		redoOn(t, a, "")
		u := a.Begin("")
		u.Unlabel("work")
		commit(t, u)
		want(t, labelCounts(t, s), "archived=1 pinned=1 wor=1 work=1")
		label(t, a, Pinned) // has it already
		info, err := a.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want(t, strings.Join(info.Labels, " "), Pinned)
		undoOp(t, a, "", "")
		want(t, labelCounts(t, s), "archived=1 pinned=1 wor=1 work=2")
		if _, err := s.Copy(t.Context(), a.ID.String(), "copy", false); err != nil {
			t.Fatal(err)
		}
		want(t, labelCounts(t, s), "archived=1 pinned=2 wor=1 work=3")
		if _, err := s.Trash(t.Context(), b.ID.String()); err != nil {
			t.Fatal(err)
		}
		want(t, listedTitles(t, s, record.ListOptions{Trash: true, Orderly: true}), "b")
		for trashed := pool.Now(); pool.Now() <= trashed+1; { // some clocks tick slowly
		}
		if _, err := s.Maintenance().GC(t.Context(), record.GCOptions{OlderThan: time.Nanosecond}); err != nil {
			t.Fatal(err)
		}
		want(t, labelCounts(t, s), "pinned=2 wor=1 work=2")
	})
}

func TestLabelsRefused(t *testing.T) {
	s := open(t, "")
	c := titledContext(t, s, "a")
	for _, l := range []string{"", " a", "a ", "-a", "a\x00b", "a\nb", "\xff", strings.Repeat("a", 201)} {
		b := c.Begin("")
		b.Label(l)
		if _, err := b.Commit(t.Context()); !errors.Is(err, ErrInvalid) {
			t.Errorf("the label %q gives %v, want ErrInvalid", l, err)
		}
	}
	b := c.Begin("")
	b.Unlabel("work")
	if _, err := b.Commit(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Errorf("taking away a label that is not there gives %v, want ErrNotFound", err)
	}
	many := c.Begin("")
	for i := range base.MaxLabels + 1 {
		many.Label(fmt.Sprint("l", i))
	}
	if _, err := many.Commit(t.Context()); !errors.Is(err, ErrInvalid) {
		t.Errorf("too many labels give %v, want ErrInvalid", err)
	}
	want(t, labelCounts(t, s), "")
}

// TestLabelsAreMended holds the index against the records.
func TestLabelsAreMended(t *testing.T) {
	s := open(t, "")
	c := titledContext(t, s, "a")
	label(t, c, "work", "home")
	err := s.at().DB.Update(t.Context(), func(tx kv.RwTx) error {
		if err := tx.Delete(base.LabelBucket, base.LabelKey("work", c.ID)); err != nil {
			return err
		}
		if err := tx.Put(base.LabelBucket, []byte("junk"), []byte{}); err != nil {
			return err
		}
		return tx.Put(base.LabelBucket, base.LabelKey("stray", c.ID), []byte{})
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	if err := s.Maintenance().Check(t.Context(), CheckOptions{}, func(p record.Problem) {
		if p.Invariant == 12 {
			found++
		}
	}); err != nil || found != 3 {
		t.Errorf("check finds %d faults of labels and gives %v, want 3", found, err)
	}
	if _, err := s.Maintenance().Repair(t.Context(), record.RepairOptions{}); err != nil {
		t.Fatal(err)
	}
	want(t, labelCounts(t, s), "home=1 work=1")
}

// TestLabelsAreImported gives a new context the labels that come with it.
func TestLabelsAreImported(t *testing.T) {
	s := open(t, "")
	in := &record.Incoming{Format: "x", Conversation: "1", Title: "in", Labels: []string{"work", Archived}, Nodes: []record.Node{{Message: says("one")[0]}},
		Branches: []record.IncomingBranch{{Name: "main", Leaf: 1}}}
	if _, err := s.Import(t.Context(), []*record.Incoming{in}); err != nil {
		t.Fatal(err)
	}
	want(t, labelCounts(t, s), "archived=1 work=1")
	bad := &record.Incoming{Format: "x", Conversation: "2", Labels: []string{""}, Branches: []record.IncomingBranch{{Name: "main"}}}
	if _, err := s.Import(t.Context(), []*record.Incoming{bad}); !errors.Is(err, ErrInvalid) {
		t.Errorf("an import with an empty label gives %v, want ErrInvalid", err)
	}
}
