package chatctx

import (
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// picture shows all branches with their texts, and marks the active one.
func picture(t *testing.T, c *ChatContext) string {
	t.Helper()
	infos, err := c.Branches(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, len(infos))
	for i, info := range infos {
		mark := ""
		if info.Active {
			mark = "*"
		}
		lines[i] = fmt.Sprintf("%s%s: %s", info.Name, mark, texts(t, c, info.Name))
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// states remembers what each branch was at each revision, and fails where one number names two states.
type states map[string]string

func (s states) look(t *testing.T, c *ChatContext) {
	t.Helper()
	infos, err := c.Branches(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		at := fmt.Sprint(info.ID, info.Revision)
		is := info.Name + ": " + texts(t, c, info.Name)
		if was, ok := s[at]; ok && was != is {
			t.Errorf("revision %d names %q and %q", info.Revision, was, is)
		}
		s[at] = is
	}
}

func undoOp(t *testing.T, c *ChatContext, name, op string) {
	t.Helper()
	if _, err := c.Store().Undo(t.Context(), c.ID.String(), name, op); err != nil {
		t.Fatalf("undo %s: %v", op, err)
	}
}

func redoOn(t *testing.T, c *ChatContext, name string) {
	t.Helper()
	if _, err := c.Store().Redo(t.Context(), c.ID.String(), name); err != nil {
		t.Fatalf("redo on %q: %v", name, err)
	}
}

// TestUndoKeepsWhatAForkShares writes after an undo of a rename, of a removal and of a branch's making, where a fork holds what was there before.
func TestUndoKeepsWhatAForkShares(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s)
		add := func(name string, all ...string) {
			t.Helper()
			if _, err := c.Append(t.Context(), name, says(all...)...); err != nil {
				t.Fatal(err)
			}
		}
		seen := states{}
		add("", "one")
		seen.look(t, c)
		b := c.Begin("")
		b.RenameBranch("main", "x")
		commit(t, b)
		seen.look(t, c)
		add("", "two")
		b = c.Begin("")
		b.Fork("y", ForkOptions{})
		commit(t, b)
		seen.look(t, c)
		undoOp(t, c, "x", "3")
		seen.look(t, c)
		undoOp(t, c, "x", "2")
		seen.look(t, c)
		add("main", "three")
		seen.look(t, c)
		want(t, picture(t, c), "main: one three; y*: one two")

		b = c.Begin("main")
		b.RenameBranch("main", "z")
		b.Append(says("four")...)
		commit(t, b)
		b = c.Begin("z")
		b.Fork("w", ForkOptions{Stay: true})
		commit(t, b)
		undoOp(t, c, "z", "") // the fork, which is on the context's journal
		b = c.Begin("z")
		b.Fork("v", ForkOptions{})
		commit(t, b)
		undoOp(t, c, "z", "")
		want(t, picture(t, c), "main: one three; v*: one three four; y: one two")
		add("main", "five")
		seen.look(t, c)
		want(t, picture(t, c), "main: one three five; v*: one three four; y: one two")

		// A branch whose making was undone goes on where its segment ends.
		add("v", "six")
		b = c.Begin("v")
		b.Fork("u", ForkOptions{})
		commit(t, b)
		undoOp(t, c, "v", "")
		undoOp(t, c, "v", "")
		want(t, picture(t, c), "main: one three five; u*: one three four six; y: one two")
		redoOn(t, c, "v")
		add("v", "seven")
		seen.look(t, c)
		want(t, picture(t, c), "main: one three five; u*: one three four six; v: one three four seven; y: one two")
	})
}

// TestBranchesTradeNamesInOneBatch removes, makes and renames branches of the same names in one batch, and takes that back and forth.
func TestBranchesTradeNamesInOneBatch(t *testing.T) {
	for _, c := range []struct {
		what  string
		do    func(*Batch)
		after string
	}{
		{"remove, fork", func(b *Batch) { b.RemoveBranch("a"); b.Fork("a", ForkOptions{At: "@1", Stay: true}) }, "a: one; b: one b; main*: one two"},
		{"remove, fork, append", func(b *Batch) {
			b.RemoveBranch("a")
			b.Fork("a", ForkOptions{At: "@1"})
			b.Append(says("new")...)
		}, "a*: one new; b: one b; main: one two"},
		{"append, remove", func(b *Batch) {
			b.Pick("a", "@2")
			b.Switch("a")
			b.Append(says("more")...)
			b.Switch("main")
			b.RemoveBranch("a")
		}, "b: one b; main*: one two a"},
		{"fork, remove", func(b *Batch) { b.Fork("c", ForkOptions{At: "@1", Stay: true}); b.RemoveBranch("c") }, "a: one a; b: one b; main*: one two"},
		{"remove, rename", func(b *Batch) { b.RemoveBranch("a"); b.RenameBranch("b", "a") }, "a: one b; main*: one two"},
		{"swap", func(b *Batch) { b.RenameBranch("a", "tmp"); b.RenameBranch("b", "a"); b.RenameBranch("tmp", "b") }, "a: one b; b: one a; main*: one two"},
		{"swap with the active one", func(b *Batch) {
			b.RenameBranch("main", "tmp")
			b.RenameBranch("b", "main")
			b.RenameBranch("tmp", "b")
			b.Append(says("three")...)
		}, "a: one a; b*: one two three; main: one b"},
		{"around", func(b *Batch) {
			b.RenameBranch("a", "tmp")
			b.RemoveBranch("b")
			b.RenameBranch("main", "b")
			b.Fork("a", ForkOptions{At: "@1", Stay: true})
			b.RenameBranch("tmp", "main")
		}, "a: one; b*: one two; main: one a"},
		{"rename and back", func(b *Batch) { b.RenameBranch("a", "tmp"); b.RenameBranch("tmp", "a") }, "a: one a; b: one b; main*: one two"},
	} {
		t.Run(c.what, func(t *testing.T) {
			engines(t, func(t *testing.T, s *Store) {
				cc := newContext(t, s, "one", "two")
				for _, name := range []string{"a", "b"} {
					b := cc.Begin("main")
					b.Fork(name, ForkOptions{At: "@1", Stay: true})
					commit(t, b)
					if _, err := cc.Append(t.Context(), name, says(name)...); err != nil {
						t.Fatal(err)
					}
				}
				seen := states{}
				const before = "a: one a; b: one b; main*: one two"
				want(t, picture(t, cc), before)
				seen.look(t, cc)
				b := cc.Begin("main")
				c.do(b)
				op := commit(t, b).Operation
				want(t, picture(t, cc), c.after)
				for range 2 {
					seen.look(t, cc)
					undoOp(t, cc, "", op)
					want(t, picture(t, cc), before)
					seen.look(t, cc)
					checkStore(t, s)
					undos := newestOperation(t, cc)
					undoOp(t, cc, "", undos) // to undo an undo is to redo it
					want(t, picture(t, cc), c.after)
					checkStore(t, s)
				}
			})
		})
	}
}

func newestOperation(t *testing.T, c *ChatContext) string {
	t.Helper()
	for op, err := range c.Store().Operations(t.Context(), c.ID.String()) {
		if err != nil {
			t.Fatal(err)
		}
		return op.ID
	}
	return ""
}

// TestARemovedBranchTakesNothing refuses a batch that goes on writing to the branch that it removed, and gives its name to others.
func TestARemovedBranchTakesNothing(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "one")
		b := c.Begin("")
		b.Fork("a", ForkOptions{Stay: true})
		commit(t, b)
		b = c.Begin("a")
		b.RemoveBranch("a")
		b.Append(says("lost?")...)
		if _, err := b.Commit(t.Context()); !errors.Is(err, ErrConflict) {
			t.Errorf("an append to a branch that the batch removed: %v", err)
		}
		b = c.Begin("")
		b.RemoveBranch("a")
		op := commit(t, b).Operation
		want(t, picture(t, c), "main*: one")
		if _, err := c.Branch(t.Context(), "a"); !errors.Is(err, ErrNotFound) {
			t.Errorf("a removed branch: %v", err)
		}
		b = c.Begin("")
		b.Fork("a", ForkOptions{Stay: true})
		commit(t, b)
		if _, err := s.Undo(t.Context(), c.ID.String(), "", op); !errors.Is(err, ErrConflict) {
			t.Errorf("to bring a removed branch back under a name that is taken: %v", err)
		}
		info, err := c.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.Branches != 2 {
			t.Errorf("counts %d branches", info.Branches)
		}
	})
}

// records counts a context's branch records, removed ones included.
func records(t *testing.T, s *Store, id ID) int {
	t.Helper()
	n := 0
	err := s.at().DB.View(t.Context(), func(tx kv.Tx) error {
		n = 0
		return branchstore.All(tx, id, func(*branch.Branch) error { n++; return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestGCTakesRemovedBranches keeps a removed branch for as long as an operation can bring it back, and no longer.
func TestGCTakesRemovedBranches(t *testing.T) {
	s, now := clocked(t)
	c := newContext(t, s, "one")
	b := c.Begin("")
	b.Fork("a", ForkOptions{Stay: true})
	commit(t, b)
	if _, err := c.Append(t.Context(), "a", says("of a")...); err != nil {
		t.Fatal(err)
	}
	b = c.Begin("")
	b.RemoveBranch("a")
	op := commit(t, b).Operation
	gc := func() {
		t.Helper()
		if _, err := s.Maintenance().GC(t.Context(), record.GCOptions{OlderThan: time.Hour}); err != nil {
			t.Fatal(err)
		}
		checkStore(t, s)
	}
	gc()
	undoOp(t, c, "", op)
	want(t, picture(t, c), "a: one of a; main*: one")
	b = c.Begin("")
	b.RemoveBranch("a")
	commit(t, b)
	now.move(2 * time.Hour)
	gc()
	if n := records(t, s, c.ID); n != 1 {
		t.Errorf("%d branch records are left", n)
	}
	want(t, picture(t, c), "main*: one")
	info, err := c.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Messages != 1 {
		t.Errorf("%d messages are left", info.Messages)
	}
	if _, err := s.Undo(t.Context(), c.ID.String(), "", ""); !errors.Is(err, ErrConflict) {
		t.Errorf("undo of what gc took: %v", err)
	}
}

// TestGCEndsRedo refuses to redo what gc has let go of, or what something newer was done on.
func TestGCEndsRedo(t *testing.T) {
	for _, newer := range []bool{false, true} {
		s, now := clocked(t)
		c := newContext(t, s, "one")
		if _, err := c.Append(t.Context(), "", says("two")...); err != nil {
			t.Fatal(err)
		}
		undoOp(t, c, "", "")
		now.move(2 * time.Hour)
		if _, err := s.Maintenance().GC(t.Context(), record.GCOptions{OlderThan: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if newer {
			if _, err := c.Append(t.Context(), "", says("three")...); err != nil {
				t.Fatal(err)
			}
		}
		if done, err := s.Redo(t.Context(), c.ID.String(), ""); !errors.Is(err, ErrNotFound) {
			t.Errorf("redo after gc, newer %t: %v %v", newer, done, err)
		}
		want(t, picture(t, c), map[bool]string{false: "main*: one", true: "main*: one three"}[newer])
	}
}

// TestUndoMakesNothingCurrentThatIsGone undoes a context's making after gc took the one that was current before.
func TestUndoMakesNothingCurrentThatIsGone(t *testing.T) {
	s, now := clocked(t)
	first, err := s.New(t.Context(), record.NewContext{Title: "first"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.New(t.Context(), record.NewContext{Title: "second"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Trash(t.Context(), first.ID.String()); err != nil {
		t.Fatal(err)
	}
	now.move(2 * time.Hour)
	if _, err := s.Maintenance().GC(t.Context(), record.GCOptions{OlderThan: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Context(t.Context(), "first"); !errors.Is(err, ErrNotFound) {
		t.Fatalf("gc left the first context: %v", err)
	}
	if _, err := s.Undo(t.Context(), "", "", "s2"); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Context(t.Context(), ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("the current context is %v, %v", c, err)
	}
	checkStore(t, s)
}

// TestRedoIsPerBranch lets three programs append, undo and redo, each on a branch of its own, beside plain stacks.
func TestRedoIsPerBranch(t *testing.T) {
	for seed := range testkit.Seeds(t, 6) {
		rng := rand.New(rand.NewSource(int64(seed)))
		file := ""
		if seed%6 == 1 {
			file = filepath.Join(t.TempDir(), "chats.db")
		}
		s := open(t, file)
		c := newContext(t, s, "begin")
		names := []string{"main", "a", "b"}
		for _, name := range names[1:] {
			b := c.Begin("main")
			b.Fork(name, ForkOptions{Stay: true})
			commit(t, b)
		}
		b := c.Begin("")
		b.SetTitle("nothing is undone below this")
		commit(t, b)
		type stacks struct{ done, undone []string }
		plain := map[string]*stacks{}
		for _, name := range names {
			plain[name] = &stacks{}
		}
		for i := range 150 {
			name := names[rng.Intn(len(names))]
			p := plain[name]
			switch n := rng.Intn(5); {
			case n < 2:
				text := fmt.Sprint("m", i)
				if _, err := c.Append(t.Context(), name, says(text)...); err != nil {
					t.Fatal(err)
				}
				p.done, p.undone = append(p.done, text), nil
			case n == 2 && len(p.done) > 0:
				undoOp(t, c, name, "")
				last := len(p.done) - 1
				p.done, p.undone = p.done[:last], append(p.undone, p.done[last])
			case n > 2 && len(p.undone) > 0:
				redoOn(t, c, name)
				last := len(p.undone) - 1
				p.done, p.undone = append(p.done, p.undone[last]), p.undone[:last]
			case n > 2:
				if done, err := s.Redo(t.Context(), c.ID.String(), name); !errors.Is(err, ErrNotFound) {
					t.Fatalf("seed %d: redo on %s with nothing to redo: %v %v", seed, name, done, err)
				}
			}
			for _, name := range names {
				if got, is := texts(t, c, name), strings.Join(append([]string{"begin"}, plain[name].done...), " "); got != is {
					t.Fatalf("seed %d, step %d: %s has %q, want %q", seed, i, name, got, is)
				}
			}
		}
	}
}

// TestRedoFollowsWhoWasThere: a branch that was made of another one than the active one, and became that, comes back by a redo where its undo led to, as on the
// branch that it was forked from.
func TestRedoFollowsWhoWasThere(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "begin")
		for _, name := range []string{"x", "z"} {
			b := c.Begin("main")
			b.Fork(name, ForkOptions{Stay: true})
			commit(t, b)
		}
		b := c.Begin("x")
		b.Fork("y", ForkOptions{})
		commit(t, b)
		const with, without = "main: begin; x: begin; y*: begin; z: begin", "main*: begin; x: begin; z: begin"
		for _, name := range []string{"", "main", "x", "y"} {
			want(t, picture(t, c), with)
			undoOp(t, c, "", "")
			want(t, picture(t, c), without)
			if done, err := s.Redo(t.Context(), c.ID.String(), "z"); !errors.Is(err, ErrNotFound) {
				t.Fatalf("redo on a branch that has nothing to do with it: %v, %v", done, err)
			}
			redoOn(t, c, name)
		}
		want(t, picture(t, c), with)
		checkStore(t, s)
	})
}

// TestRedoOfOneCommandOnSeveralBranches brings all of it back, on whichever of its branches it is asked for, and not before what was undone after it.
func TestRedoOfOneCommandOnSeveralBranches(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "begin")
	b := c.Begin("main")
	b.Fork("a", ForkOptions{Stay: true})
	commit(t, b)
	first := c.Begin("main")
	first.Append(says("one")...)
	second := c.Begin("a").Together(first)
	second.Append(says("one")...)
	commit(t, first)
	commit(t, second)
	both := "a: begin one; main*: begin one"
	for _, name := range []string{"main", "a"} {
		undoOp(t, c, "main", "")
		want(t, picture(t, c), "a: begin; main*: begin")
		redoOn(t, c, name)
		want(t, picture(t, c), both)
	}
	b = c.Begin("")
	b.RenameBranch("a", "x")
	b.RenameBranch("main", "a")
	op := commit(t, b).Operation
	undoOp(t, c, "", op)
	undoOp(t, c, "a", "")
	want(t, picture(t, c), "a: begin; main*: begin")
	redoOn(t, c, "main")
	redoOn(t, c, "main")
	want(t, picture(t, c), "a*: begin one; x: begin one")
}

// TestRedoOfABranch brings a branch back on its own name and on the one that it came from, and on no other.
func TestRedoOfABranch(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "begin")
	b := c.Begin("main")
	b.Fork("a", ForkOptions{Stay: true})
	commit(t, b)
	b = c.Begin("main")
	b.Fork("y", ForkOptions{})
	commit(t, b)
	for _, name := range []string{"main", "y", ""} {
		undoOp(t, c, "", "")
		want(t, picture(t, c), "a: begin; main*: begin")
		if _, err := s.Redo(t.Context(), c.ID.String(), "a"); !errors.Is(err, ErrNotFound) {
			t.Errorf("redo on another branch: %v", err)
		}
		if _, err := s.Redo(t.Context(), c.ID.String(), "nowhere"); !errors.Is(err, ErrNotFound) {
			t.Errorf("redo on no branch: %v", err)
		}
		redoOn(t, c, name)
		want(t, picture(t, c), "a: begin; main: begin; y*: begin")
	}
}

// TestKeysFollowARenamedBranch gives a known key's branch by the name that it has now.
func TestKeysFollowARenamedBranch(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s)
	add := func() *Step {
		t.Helper()
		b := c.Begin("")
		b.AppendWith(AppendOptions{Key: "k"}, pool.NewText(pool.User, "once"))
		return commit(t, b).Last()
	}
	add()
	b := c.Begin("")
	b.RenameBranch("main", "x")
	commit(t, b)
	if res := add(); !res.Again || res.Branch != "x" {
		t.Errorf("the key made %+v", res)
	}
}

// TestLineageFollowsTheBranch names the branch that another came from as it is called now, and not at all once it is gone.
func TestLineageFollowsTheBranch(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "one")
	from := func() string {
		t.Helper()
		info, err := c.Branch(t.Context(), "y")
		if err != nil {
			t.Fatal(err)
		}
		return info.From
	}
	b := c.Begin("")
	b.Fork("y", ForkOptions{})
	commit(t, b)
	want(t, from(), "main")
	b = c.Begin("")
	b.RenameBranch("main", "x")
	commit(t, b)
	want(t, from(), "x")
	copied, err := s.Copy(t.Context(), c.ID.String(), "copy", false)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := copied.Branch(t.Context(), "y"); err != nil || info.From != "x" {
		t.Errorf("the copy came from %q: %v", info.From, err)
	}
	b = c.Begin("")
	b.RemoveBranch("x")
	commit(t, b)
	want(t, from(), "")
}

// TestNamesAreMended breaks the index of names and the names themselves: check tells of each, repair puts them right.
func TestNamesAreMended(t *testing.T) {
	for what, harm := range map[string]func(tx kv.RwTx, id ID, b map[string]*branch.Branch) error{
		"a name is missing": func(tx kv.RwTx, id ID, b map[string]*branch.Branch) error { return branchstore.DeleteName(tx, id, "a") },
		"a name leads to another": func(tx kv.RwTx, id ID, b map[string]*branch.Branch) error {
			return branchstore.PutName(tx, id, "a", b["main"].ID)
		},
		"a name leads nowhere": func(tx kv.RwTx, id ID, b map[string]*branch.Branch) error {
			return branchstore.PutName(tx, id, "z", pool.NewID())
		},
		"a name leads to no id": func(tx kv.RwTx, id ID, b map[string]*branch.Branch) error {
			return tx.Put(branchstore.NameBucket, append(base.Under(id), 'z'), []byte("short"))
		},
		"a removed branch has a name": func(tx kv.RwTx, id ID, b map[string]*branch.Branch) error {
			return branchstore.PutName(tx, id, "gone", b["gone"].ID)
		},
		"two branches have one name": func(tx kv.RwTx, id ID, b map[string]*branch.Branch) error {
			b["b"].Name = "a"
			return branchstore.Put(tx, id, b["b"])
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := open(t, "")
			c := newContext(t, s, "one")
			for _, name := range []string{"a", "b", "gone"} {
				b := c.Begin("main")
				b.Fork(name, ForkOptions{Stay: true})
				commit(t, b)
				if _, err := c.Append(t.Context(), name, says(name)...); err != nil {
					t.Fatal(err)
				}
			}
			b := c.Begin("")
			b.RemoveBranch("gone")
			commit(t, b)
			err := s.at().DB.Update(t.Context(), func(tx kv.RwTx) error {
				all := map[string]*branch.Branch{}
				if err := branchstore.All(tx, c.ID, func(b *branch.Branch) error { all[b.Name] = b; return nil }); err != nil {
					return err
				}
				if names := slices.Sorted(maps.Keys(all)); len(names) != 4 {
					t.Fatalf("the records are of %q", names)
				}
				return harm(tx, c.ID, all)
			})
			if err != nil {
				t.Fatal(err)
			}
			found := map[int]bool{}
			if err := s.Maintenance().Check(t.Context(), CheckOptions{}, func(p record.Problem) { found[p.Invariant] = true }); err != nil || !found[11] {
				t.Errorf("check found %v: %v", found, err)
			}
			if _, err := s.Maintenance().Repair(t.Context(), record.RepairOptions{}); err != nil {
				t.Fatal(err)
			}
			is := "a: one a; b: one b; main*: one"
			if what == "two branches have one name" {
				is = "a.2: one b; a: one a; main*: one"
			}
			want(t, picture(t, c), is)
		})
	}
}

// TestNativeBranchesHaveTheirOwnIDs refuses a file in which two branches have one id: the second would take the first one's place.
func TestNativeBranchesHaveTheirOwnIDs(t *testing.T) {
	s := open(t, "")
	run := intake.NewImportRun(base.Of(s), care.RemoveContext)
	n, err := run.Native(t.Context(), record.Native{ID: pool.NewID(), Title: "twice", Active: "main"})
	if err != nil {
		t.Fatal(err)
	}
	id := pool.NewID()
	if err := n.Branch(t.Context(), record.NativeBranch{ID: id, Name: "main"}); err != nil {
		t.Fatal(err)
	}
	if err := n.Branch(t.Context(), record.NativeBranch{ID: id, Name: "other"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a second branch with the id: %v", err)
	}
}

// walker makes random batches of several steps.
type walker struct {
	t     *testing.T
	rng   *rand.Rand
	c     *ChatContext
	texts int
}

func (w *walker) name() string {
	return []string{"main", "a", "b", "c", "d"}[w.rng.Intn(5)]
}

// step adds a step to a batch. Many are refused: the name is taken, or free, or the branch is the active one.
func (w *walker) step(b *Batch) {
	w.texts++
	switch w.rng.Intn(11) {
	case 0:
		b.Fork(w.name(), ForkOptions{Stay: w.rng.Intn(2) == 0})
	case 1:
		b.RemoveBranch(w.name())
	case 2, 3:
		b.RenameBranch(w.name(), w.name())
	case 4:
		b.Switch(w.name())
	case 5:
		b.Rewind("@1")
	case 6:
		b.Edit("@1", fmt.Sprint("e", w.texts), record.EditOptions{Name: w.name(), KeepRest: true, Stay: w.rng.Intn(2) == 0})
	case 7:
		b.Insert("@1", says(fmt.Sprint("i", w.texts))...)
	case 8:
		b.Merge(w.name(), MergeOptions{})
	case 9:
		asks := &Message{Role: pool.Assistant, Calls: []pool.Call{{ID: fmt.Sprint("call", w.texts), Tool: "look", Arguments: []byte(`{}`)}}}
		b.Append(asks)
	default:
		b.Append(says(fmt.Sprint("m", w.texts))...)
	}
}

// TestUndoGivesBackWhatWas makes random batches and takes each that went through back and forth, with undos, redos and gc at random in between. What was comes
// back whole, no revision names two states, and check finds nothing wrong.
func TestUndoGivesBackWhatWas(t *testing.T) {
	for seed := range testkit.Seeds(t, testkit.Fewer(4)) {
		s, clock := clocked(t)
		w := &walker{t: t, rng: rand.New(rand.NewSource(int64(seed))), c: newContext(t, s, "begin")}
		seen := states{}
		went := 0
		for i := range 400 {
			before := picture(t, w.c)
			b := w.c.Begin("")
			for range 1 + w.rng.Intn(5) {
				w.step(b)
			}
			done, err := b.Commit(t.Context())
			if err != nil {
				want(t, picture(t, w.c), before)
			} else if done.Operation != "" {
				went++
				after := picture(t, w.c)
				seen.look(t, w.c)
				undoOp(t, w.c, "", done.Operation)
				want(t, picture(t, w.c), before)
				seen.look(t, w.c)
				undoOp(t, w.c, "", newestOperation(t, w.c))
				want(t, picture(t, w.c), after)
				seen.look(t, w.c)
			}
			switch w.rng.Intn(6) {
			case 0, 1:
				var u *record.Undone
				if u, err = s.Undo(t.Context(), w.c.ID.String(), w.name(), ""); err == nil && u.Undid.Context == (ID{}) {
					_, err = s.Restore(t.Context(), w.c.ID.String()) // it was the making of the context
				}
			case 2:
				_, err = s.Redo(t.Context(), w.c.ID.String(), w.name())
			case 3:
				clock.move(time.Minute)
				_, err = s.Maintenance().GC(t.Context(), record.GCOptions{OlderThan: 3 * time.Minute})
			}
			if errors.Is(err, ErrDamaged) {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
			seen.look(t, w.c)
			if i%10 == 0 {
				checkStore(t, s)
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d, after %s", seed, i, before)
			}
		}
		if went < 50 {
			t.Errorf("only %d batches went through", went)
		}
	}
}

// TestUndoOfADecisionThatAForkShares: a denied call that a fork holds too does not wait again when the denial is undone. It does once the fork is undone first.
func TestUndoOfADecisionThatAForkShares(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "look")
		m := asks("c1")
		if _, err := c.Append(t.Context(), "", m); err != nil {
			t.Fatal(err)
		}
		b := c.Begin("")
		b.Decide(record.CallRef(m.ID.String()+":1"), record.Verdict{Status: pool.Denied, Reason: "no"})
		denied := commit(t, b)
		b = c.Begin("")
		b.Fork("f", ForkOptions{At: "@2", Stay: true})
		forked := commit(t, b)
		undoOp(t, c, "main", denied.Operation)
		want(t, callState(t, c, "main", "@2"), "denied/none")
		redoOn(t, c, "main")
		undoOp(t, c, "f", forked.Operation)
		undoOp(t, c, "main", denied.Operation)
		want(t, callState(t, c, "main", "@2"), "pending/none")
		checkStore(t, s)
	})
}

// TestMixedCommandsAreUndone: commands of two programs that change the context in turns can be undone, the newest first, down to the beginning.
func TestMixedCommandsAreUndone(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "begin")
	first := map[string]*Batch{}
	for _, step := range []string{"x1", "y1", "x2", "y2", "y3"} {
		b := c.Begin("main")
		b.Fork(step, ForkOptions{Stay: true})
		if first[step[:1]] == nil {
			first[step[:1]] = b
		}
		commit(t, b.Together(first[step[:1]]))
		b = c.Begin(step)
		b.Append(says(step)...)
		commit(t, b.Together(first[step[:1]]))
	}
	for _, left := range []string{"main*: begin; x1: begin x1; x2: begin x2; y1: begin y1", "main*: begin; x1: begin x1; y1: begin y1", "main*: begin; x1: begin x1", "main*: begin"} {
		undoOp(t, c, "main", "")
		want(t, picture(t, c), left)
	}
	for range 4 {
		redoOn(t, c, "main")
	}
	want(t, picture(t, c), "main*: begin; x1: begin x1; x2: begin x2; y1: begin y1; y2: begin y2; y3: begin y3")
}

// TestMixedAppendsAreUndone: two programs append to one branch in turns, each in several batches of one command. An undo takes back what one of them appended
// in one go, and nothing of the other's.
func TestMixedAppendsAreUndone(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "begin")
		first := map[string]*Batch{}
		for _, text := range []string{"x1", "x2", "y1", "x3", "x4", "y2", "y3"} {
			b := c.Begin("main")
			b.Append(says(text)...)
			if first[text[:1]] == nil {
				first[text[:1]] = b
			}
			commit(t, b.Together(first[text[:1]]))
		}
		title := c.Begin("main").Together(first["x"])
		title.SetTitle("t") // on the context alone, but another's messages stand on the branch
		commit(t, title)
		all := []string{"begin x1 x2 y1 x3 x4 y2 y3", "begin x1 x2 y1 x3 x4 y2 y3", "begin x1 x2 y1 x3 x4", "begin x1 x2 y1", "begin x1 x2", "begin"}
		for _, left := range all[1:] {
			undoOp(t, c, "main", "")
			want(t, picture(t, c), "main*: "+left)
		}
		for i := len(all) - 2; i >= 0; i-- {
			redoOn(t, c, "main")
			want(t, picture(t, c), "main*: "+all[i])
		}
		checkStore(t, s)
	})
}

// TestRedoTakesTheNewestUndo: redo takes back the undo that was made last, on the branch or in the store, where the conversation is the current one and where
// it is not.
func TestRedoTakesTheNewestUndo(t *testing.T) {
	for _, stays := range []bool{false, true} {
		t.Run(fmt.Sprint("another is current: ", stays), func(t *testing.T) {
			engines(t, func(t *testing.T, s *Store) {
				c := newContext(t, s, "begin")
				other := newContext(t, s, "other")
				if !stays {
					if _, err := s.Use(t.Context(), c.ID.String()); err != nil {
						t.Fatal(err)
					}
				}
				trashed := func(want bool) {
					t.Helper()
					info, err := c.Info(t.Context())
					if err != nil || (info.Trashed != 0) != want {
						t.Errorf("trashed is %v, %v, want %t", info.Trashed, err, want)
					}
				}
				inTrash := func(op string) (again string) {
					t.Helper()
					done, err := s.Undo(t.Context(), "", "", op)
					if err != nil {
						t.Fatal(err)
					}
					return done.Operation
				}
				appendTo(t, c, "", says("more")...)
				undoOp(t, c, "", "")
				rm, err := s.Trash(t.Context(), c.ID.String())
				if err != nil {
					t.Fatal(err)
				}
				inTrash(rm.Operation)
				redoOn(t, c, "")
				trashed(true)
				want(t, texts(t, c, ""), "begin")
				inTrash(rm.Operation)
				trashed(false)

				appendTo(t, other, "", says("theirs")...)
				undoOp(t, other, "", "")
				redoOn(t, other, "") // the one that has nothing to do with the store
				want(t, texts(t, other, ""), "other theirs")
				appendTo(t, c, "", says("after")...)
				undoOp(t, c, "", "")
				redoOn(t, c, "")
				want(t, texts(t, c, ""), "begin after")
				trashed(false)
				checkStore(t, s)
			})
		})
	}
}
