package chatctx

import (
	"errors"
	"testing"

	"github.com/chatctx/chatctx/pool"
)

// pocket is a Place in memory.
type pocket struct {
	context  pool.ID
	branches map[pool.ID]pool.ID
}

func (p *pocket) Context() (pool.ID, error)          { return p.context, nil }
func (p *pocket) Branch(id pool.ID) (pool.ID, error) { return p.branches[id], nil }
func (p *pocket) Use(id pool.ID) error               { p.context = id; return nil }
func (p *pocket) Switch(id, branch pool.ID) error    { p.branches[id] = branch; return nil }

// TestUndoIsOnesOwn: of two people at one store each sees and takes back what was done in their current context and what they did to the store themselves; what the other did there only by its name.
func TestUndoIsOnesOwn(t *testing.T) {
	clock, db := newClock(), sharedEngine(t)
	defer db.Close()
	as := func(user string) *Store {
		s, err := OpenDB(hosted{db, clock}, Options{Program: "test"})
		if err != nil {
			t.Fatal(err)
		}
		s.at.User, s.at.Place = user, &pocket{branches: map[pool.ID]pool.ID{}}
		return s
	}
	ann, bob := as("ann/x"), as("bob/x")
	defer checkStore(t, ann)
	made := func(s *Store, title string) *ChatContext {
		t.Helper()
		c, err := s.New(t.Context(), NewContext{Title: title})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	journal := func(s *Store) (out string) {
		t.Helper()
		for op, err := range s.AllOperations(t.Context(), "") {
			if errors.Is(err, ErrNotFound) {
				return "no conversation"
			}
			if err != nil {
				t.Fatal(err)
			}
			out += op.ID + " " + op.What + " " + op.User[:3] + "; "
		}
		return out
	}
	use := func(s *Store, ref string) {
		t.Helper()
		if _, err := s.Use(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	current := func(s *Store, want string) {
		t.Helper()
		title := ""
		if c, err := s.Context(t.Context(), ""); err == nil {
			info, err := c.Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			title = info.Title
		} else if !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
		if title != want {
			t.Errorf("%s is in %q, want %q", s.at.User, title, want)
		}
	}
	again := func(s *Store, want string, do func() (*Undone, error)) {
		t.Helper()
		got := "nothing"
		if u, err := do(); err == nil {
			got = u.Undid.What
		} else if !errors.Is(err, ErrNotFound) {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s takes back %s, want %s; of %s", s.at.User, got, want, journal(s))
		}
	}
	undo := func(s *Store, op, want string) {
		t.Helper()
		again(s, want, func() (*Undone, error) { return s.Undo(t.Context(), "", "", op) })
	}
	redo := func(s *Store, want string) {
		t.Helper()
		again(s, want, func() (*Undone, error) { return s.Redo(t.Context(), "", "") })
	}

	one := made(ann, "one")
	appendTo(t, one, "", says("from ann")...)
	undo(bob, "", "nothing")
	use(bob, "one")
	made(bob, "two") // while one was where bob is
	want(t, journal(ann), "1 append ann; s1 new ann; ")
	want(t, journal(bob), "s2 new bob; ")
	use(bob, "one")
	want(t, journal(bob), "1 append ann; s1 new ann; ")
	if _, err := bob.Trash(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	want(t, journal(ann), "1 append ann; s1 new ann; ")
	want(t, journal(bob), "s3 rm bob; 1 append ann; s1 new ann; ")

	// what is newest for each
	undo(bob, "", "rm")
	undo(ann, "", "append")
	undo(bob, "", "nothing") // what is left is that ann made it
	undo(ann, "", "new")
	current(ann, "")
	current(bob, "one")
	undo(ann, "", "nothing")
	use(bob, "two")
	redo(bob, "rm") // what ann undid after it is about something else
	undo(bob, "s3", "rm")
	redo(ann, "new")
	current(ann, "one")

	// undo of what one made goes back to where one was, and another's undo moves nobody
	three := made(ann, "three")
	undo(ann, "", "new")
	current(ann, "one")
	redo(ann, "new") // which is what ann undid last, though one has the undo of an append
	current(ann, "three")
	use(ann, "one")
	redo(ann, "append")
	undo(ann, "", "append")
	use(ann, "three")
	undo(ann, "", "new")
	current(ann, "one")
	use(ann, "two")
	redo(ann, "new")
	current(ann, "three")
	use(bob, "three")
	undo(bob, "", "nothing")
	for op, err := range bob.StoreOperations(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if op.What == "new" {
			undo(bob, op.ID, "new")
			break
		}
	}
	current(ann, "three")
	current(bob, "three")
	made(ann, "four")
	if _, err := ann.Trash(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	undo(ann, "", "rm")
	if _, err := bob.Trash(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	redo(ann, "nothing") // bob went on from it
	if info, err := three.Info(t.Context()); err != nil || info.Trashed == 0 {
		t.Errorf("what was taken back by its name is %+v, %v", info, err)
	}
}
