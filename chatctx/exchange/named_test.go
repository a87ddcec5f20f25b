package exchange

import (
	"bytes"
	"errors"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

// TestATitleFromElsewhereStays: an undo of a title that a model made does not take away the one that a person gave in another store since, and brings back
// that somebody there wanted none.
func TestATitleFromElsewhereStays(t *testing.T) {
	ctx := t.Context()
	s := memoryStore(t)
	c, err := s.New(ctx, record.NewContext{Messages: []*chatctx.Message{pool.NewText(pool.User, "hello")}})
	if err != nil {
		t.Fatal(err)
	}
	rename := func(title string) { commit(t, c, "", func(b *chatctx.Batch) { b.SetTitle(title) }) }
	title := func(s *chatctx.Store, want string) {
		t.Helper()
		if is := onlyContext(t, s).Title; is != want {
			t.Errorf("the title is %q, want %q", is, want)
		}
	}
	entitle := func(s *chatctx.Store) string {
		t.Helper()
		done, err := journal.NewTitles(base.Of(s)).Give(ctx, c.ID.String(), "of a model", nil)
		if err != nil {
			t.Fatal(err)
		}
		return done.Operation
	}

	other, _ := imported(t, exported(t, s, ExportOptions{All: true}))
	op := entitle(other)
	rename("Ann's")
	if _, err := imports(t, other, []string{"-"}, Options{Stdin: bytes.NewReader(exported(t, s, ExportOptions{All: true}))}); err != nil {
		t.Fatal(err)
	}
	title(other, "Ann's")
	if _, err := other.Undo(ctx, "", "", op); !errors.Is(err, chatctx.ErrConflict) {
		t.Errorf("an undo of the model's title: %v", err)
	}
	title(other, "Ann's")
	storetest.Check(t, other)

	rename("")
	third, _ := imported(t, exported(t, s, ExportOptions{All: true}))
	for _, s := range []*chatctx.Store{s, third} {
		before := exported(t, s, ExportOptions{All: true})
		op = entitle(s)
		if _, err := s.Undo(ctx, "", "", op); err != nil {
			t.Fatal(err)
		}
		is := exported(t, s, ExportOptions{All: true})
		if mark := []byte(`"renamed":true`); !bytes.Contains(before, mark) || !bytes.Contains(is, mark) {
			t.Errorf("before\n%s\nafter the undo\n%s", before, is)
		}
		if _, err := s.Redo(ctx, c.ID.String(), ""); err != nil {
			t.Errorf("redo: %v", err)
		}
		title(s, "of a model")
		storetest.Check(t, s)
	}
}
