package chatctx

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

func TestCountsAreKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	s, err := Open(file, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.New(t.Context(), record.NewContext{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.New(t.Context(), record.NewContext{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []ID
	var counts []int
	for i := range 600 { // more than are read one by one
		ids, counts = append(ids, pool.NewID()), append(counts, i+1)
	}
	if err := c.SetCounts(t.Context(), "o200k_base", ids, counts); err != nil {
		t.Fatal(err)
	}
	if err := c.SetCounts(t.Context(), "cl100k_base", ids[:1], []int{7}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 600} {
		got, err := c.Counts(t.Context(), "o200k_base", ids[:n])
		if err != nil || !slices.Equal(got, counts[:n]) {
			t.Errorf("%d counts: %v %v", n, got[:1], err)
		}
	}
	if got, _ := c.Counts(t.Context(), "cl100k_base", ids[:2]); !slices.Equal(got, []int{7, 0}) {
		t.Errorf("another encoding: %v", got)
	}
	if got, _ := other.Counts(t.Context(), "o200k_base", ids[:1]); got[0] != 0 {
		t.Errorf("another context: %v", got)
	}
	if err := s.at().Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(file, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.at().Close()
	c, err = s.Context(t.Context(), c.ID.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetCounts(t.Context(), "o200k_base", ids[:1], []int{99}); err != nil {
		t.Errorf("a store that can only be read: %v", err)
	}
	if got, err := c.Counts(t.Context(), "o200k_base", ids[:1]); err != nil || got[0] != 1 {
		t.Errorf("%v %v", got, err)
	}
}
