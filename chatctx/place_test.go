package chatctx

import (
	"errors"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
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

// guest is one of several people at one store.
type guest struct {
	*Store
	t *testing.T
}

// guests opens one store for two people.
func guests(t *testing.T) (ann, bob guest) {
	clock, db := newClock(), sharedEngine(t)
	t.Cleanup(func() { db.Close() })
	as := func(user string) guest {
		s, err := OpenDB(hosted{db, clock}, Options{Program: "test"})
		if err != nil {
			t.Fatal(err)
		}
		s.at().User, s.at().Place = user, &pocket{branches: map[pool.ID]pool.ID{}}
		return guest{s, t}
	}
	return as("ann/x"), as("bob/x")
}

func (g guest) made(title string) *ChatContext {
	g.t.Helper()
	c, err := g.New(g.t.Context(), record.NewContext{Title: title})
	if err != nil {
		g.t.Fatal(err)
	}
	return c
}

func (g guest) journal() (out string) {
	g.t.Helper()
	for op, err := range journal.AllOperations(g.t.Context(), base.Of(g), "") {
		if errors.Is(err, ErrNotFound) {
			return "no conversation"
		}
		if err != nil {
			g.t.Fatal(err)
		}
		out += op.ID + " " + op.What + " " + op.User[:3] + "; "
	}
	return out
}

func (g guest) use(ref string) {
	g.t.Helper()
	if _, err := g.Use(g.t.Context(), ref); err != nil {
		g.t.Fatal(err)
	}
}

func (g guest) trash(ref string) {
	g.t.Helper()
	if _, err := g.Trash(g.t.Context(), ref); err != nil {
		g.t.Fatal(err)
	}
}

// current holds the title of the context in which a guest is, "" for none.
func (g guest) current(want string) {
	g.t.Helper()
	title := ""
	if c, err := g.Context(g.t.Context(), ""); err == nil {
		info, err := c.Info(g.t.Context())
		if err != nil {
			g.t.Fatal(err)
		}
		title = info.Title
	} else if !errors.Is(err, ErrNotFound) {
		g.t.Fatal(err)
	}
	if title != want {
		g.t.Errorf("%s is in %q, want %q", g.at().User, title, want)
	}
}

// undo holds what an undo takes back: an operation's name, "nothing", or an error.
func (g guest) undo(op, want string) {
	g.t.Helper()
	g.again(want, func() (*record.Undone, error) { return g.Undo(g.t.Context(), "", "", op) })
}

func (g guest) redo(want string) {
	g.t.Helper()
	g.again(want, func() (*record.Undone, error) { return g.Redo(g.t.Context(), "", "") })
}

func (g guest) again(want string, do func() (*record.Undone, error)) {
	g.t.Helper()
	got := "nothing"
	if u, err := do(); err == nil {
		got = u.Undid.What
	} else if !errors.Is(err, ErrNotFound) {
		got = err.Error()
	}
	if got != want {
		g.t.Errorf("%s takes back %s, want %s; of %s", g.at().User, got, want, g.journal())
	}
}

// TestUndoIsOnesOwn: of two people at one store each sees and takes back what was done in their current context and what they did to the store themselves; what
// the other did there only by its name.
func TestUndoIsOnesOwn(t *testing.T) {
	ann, bob := guests(t)
	defer checkStore(t, ann.Store)
	one := ann.made("one")
	appendTo(t, one, "", says("from ann")...)
	bob.undo("", "nothing")
	bob.use("one")
	bob.made("two") // while one was where bob is
	want(t, ann.journal(), "1 append ann; s1 new ann; ")
	want(t, bob.journal(), "s2 new bob; ")
	bob.use("one")
	want(t, bob.journal(), "1 append ann; s1 new ann; ")
	bob.trash("two")
	want(t, ann.journal(), "1 append ann; s1 new ann; ")
	want(t, bob.journal(), "s3 rm bob; 1 append ann; s1 new ann; ")

	// what is newest for each
	bob.undo("", "rm")
	ann.undo("", "append")
	bob.undo("", "nothing") // what is left is that ann made it
	ann.undo("", "new")
	ann.current("")
	bob.current("one")
	ann.undo("", "nothing")
	bob.use("two")
	bob.redo("rm") // what ann undid after it is about something else
	bob.undo("s3", "rm")
	ann.redo("new")
	ann.current("one")

	// undo of what one made goes back to where one was, and another's undo moves nobody
	three := ann.made("three")
	ann.undo("", "new")
	ann.current("one")
	ann.redo("new") // which is what ann undid last, though one has the undo of an append
	ann.current("three")
	ann.use("one")
	ann.redo("append")
	ann.undo("", "append")
	ann.use("three")
	ann.undo("", "new")
	ann.current("one")
	ann.use("two")
	ann.redo("new")
	ann.current("three")
	bob.use("three")
	bob.undo("", "nothing")
	for op, err := range journal.StoreOperations(t.Context(), base.Of(bob)) {
		if err != nil {
			t.Fatal(err)
		}
		if op.What == "new" {
			bob.undo(op.ID, "new")
			break
		}
	}
	ann.current("three")
	bob.current("three")
	ann.made("four")
	ann.trash("two")
	ann.undo("", "rm")
	bob.trash("two")
	ann.redo("nothing") // bob went on from it
	if info, err := three.Info(t.Context()); err != nil || info.Trashed == 0 {
		t.Errorf("what was taken back by its name is %+v, %v", info, err)
	}
}

// TestFirstOfOnePerson: a person's programs that are the first at one moment go on in one conversation; each other person's make their own.
func TestFirstOfOnePerson(t *testing.T) {
	ann, bob := guests(t)
	first := func(g guest) ID {
		t.Helper()
		c, err := g.New(t.Context(), record.NewContext{IfNone: true})
		if err != nil {
			t.Fatal(err)
		}
		if at, err := g.at().Place.Context(); err != nil || at != c.ID {
			t.Fatalf("the person is in %s, %v, want %s", at, err, c.ID)
		}
		return c.ID
	}
	anns := first(ann)
	bobs := first(bob)
	for range 2 { // the second time the Place knows it
		if again := first(ann); again != anns || bobs == anns {
			t.Fatalf("made %s, then %s; bob made %s", anns, again, bobs)
		}
	}
	ann.at().Place = &pocket{branches: map[ID]ID{}} // of another program, which looked before the first one came to note where ann is
	if again := first(ann); again != anns {
		t.Fatalf("the second program made %s beside %s", again, anns)
	}
	aside, err := ann.New(t.Context(), record.NewContext{Stay: true})
	if err != nil {
		t.Fatal(err)
	}
	ann.at().Place = &pocket{branches: map[ID]ID{}}
	if again := first(ann); again == aside.ID {
		t.Fatal("a conversation that was made aside became the current one")
	} else {
		anns = again
	}
	ann.trash(anns.String())
	ann.at().Place = &pocket{branches: map[ID]ID{}}
	if again := first(ann); again == anns {
		t.Fatal("a conversation in the trash became the current one")
	}
}
