package chatctx

import (
	"errors"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
)

// answersOf is a conversation whose branch main has asked, been answered and gone on, with another answer to the same question on the branch other.
func answersOf(t *testing.T, s *Store) *ChatContext {
	t.Helper()
	c := newContext(t, s, "first", ">old", "next", ">later")
	b := c.Begin("main")
	b.Fork("other", ForkOptions{At: "@1", Stay: true})
	commit(t, b)
	if _, err := c.Append(t.Context(), "other", says(">new", ">newer")...); err != nil {
		t.Fatal(err)
	}
	return c
}

func take(t *testing.T, c *ChatContext, ref record.Ref, o record.TakeOptions) *Step {
	t.Helper()
	b := c.Begin("main")
	b.Take(ref, o)
	return commit(t, b).Last()
}

func TestTakePutsTheOtherAnswerInPlace(t *testing.T) {
	const before = "main*: first >old next >later; other: first >new >newer"
	for _, test := range []struct {
		what  string
		ref   record.Ref
		o     record.TakeOptions
		after string
	}{
		{"the head of a branch", "other", record.TakeOptions{}, "main*: first >new >newer; main.2: first >old next >later; other: first >new >newer"},
		{"a message of the answer", "other@2", record.TakeOptions{}, "main*: first >new >newer; main.2: first >old next >later; other: first >new >newer"},
		{"the question there", "other@1", record.TakeOptions{}, "main*: first >new >newer; main.2: first >old next >later; other: first >new >newer"},
		{"with what came later", "other", record.TakeOptions{KeepRest: true}, "main*: first >new >newer next >later; main.2: first >old next >later; other: first >new >newer"},
		{"the own answer", "a1", record.TakeOptions{}, before},
	} {
		t.Run(test.what, func(t *testing.T) {
			engines(t, func(t *testing.T, s *Store) {
				c := answersOf(t, s)
				seen := states{}
				step := take(t, c, test.ref, test.o)
				seen.look(t, c)
				want(t, picture(t, c), test.after)
				if test.after == before {
					return
				}
				want(t, step.Beside, "main.2")
				if len(step.Placed) != 2 || step.Placed[0].Position != 2 {
					t.Errorf("placed %v, want two messages from position 2 on", step.Placed)
				}
				undoOp(t, c, "main", "")
				seen.look(t, c)
				want(t, picture(t, c), before)
				redoOn(t, c, "main")
				seen.look(t, c)
				want(t, picture(t, c), test.after)
				undoOp(t, c, "main", "")
				want(t, picture(t, c), before)
			})
		})
	}
}

func TestTakeAddsWhereThereIsNoAnswer(t *testing.T) {
	s := open(t, "")
	c := answersOf(t, s)
	b := c.Begin("main")
	b.Rewind("@1")
	commit(t, b)
	if step := take(t, c, "other", record.TakeOptions{}); step.Beside != "" {
		t.Errorf("made the branch %q where nothing gave way", step.Beside)
	}
	want(t, picture(t, c), "main*: first >new >newer; other: first >new >newer")
	undoOp(t, c, "main", "")
	want(t, picture(t, c), "main*: first; other: first >new >newer")
}

func TestTakeRefuses(t *testing.T) {
	s := open(t, "")
	c := answersOf(t, s)
	b := c.Begin("main")
	b.Fork("empty", ForkOptions{At: "@1", Stay: true})
	commit(t, b)
	if _, err := c.Append(t.Context(), "other", says("its own", ">answer")...); err != nil {
		t.Fatal(err)
	}
	before := picture(t, c)
	for ref, kind := range map[record.Ref]error{"other": ErrConflict, "empty": ErrConflict, "nowhere": ErrNotFound, "other@9": ErrNotFound} {
		b := c.Begin("main")
		b.Take(ref, record.TakeOptions{})
		if _, err := b.Commit(t.Context()); !errors.Is(err, kind) {
			t.Errorf("take %s gives %v, want %v", ref, err, kind)
		}
	}
	want(t, picture(t, c), before)
}

// TestTakeIsNotUndoneUnderOthers goes on where the answer came and where the old one went.
func TestTakeIsNotUndoneUnderOthers(t *testing.T) {
	s := open(t, "")
	c := answersOf(t, s)
	take(t, c, "other", record.TakeOptions{})
	if _, err := c.Append(t.Context(), "main.2", says("on")...); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Undo(t.Context(), c.ID.String(), "main", ""); !errors.Is(err, ErrConflict) {
		t.Errorf("undo under an append gives %v, want ErrConflict", err)
	}
	undoOp(t, c, "main.2", "")
	undoOp(t, c, "main", "")
	want(t, picture(t, c), "main*: first >old next >later; other: first >new >newer")
}

// TestTakeMovesCalls has a decided call give way and a pending one come: the first keeps what was decided, the second is asked about on its own.
func TestTakeMovesCalls(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "go")
		b := c.Begin("main")
		b.Fork("other", ForkOptions{Stay: true})
		b.Append(asks("old"))
		commit(t, b)
		if _, err := c.Append(t.Context(), "other", asks("new")); err != nil {
			t.Fatal(err)
		}
		open := func(want int) {
			t.Helper()
			n := 0
			for _, err := range s.Calls(t.Context(), record.CallFilter{}) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != want {
				t.Errorf("%d calls wait, want %d", n, want)
			}
		}
		open(2)
		take(t, c, "other", record.TakeOptions{})
		open(3)
		want(t, callState(t, c, "main", "@2"), "pending/none")
		want(t, callState(t, c, "main.2", "@2"), "pending/none")
		decided, err := c.Snapshot(t.Context(), "main.2")
		if err != nil {
			t.Fatal(err)
		}
		was, err := decided.Find(t.Context(), "@2")
		if err != nil {
			t.Fatal(err)
		}
		if was.CopiedFrom != nil {
			t.Error("the call that gave way was copied, want it moved")
		}
		is, err := c.Snapshot(t.Context(), "main")
		if err != nil {
			t.Fatal(err)
		}
		if m, err := is.Find(t.Context(), "@2"); err != nil || m.CopiedFrom == nil {
			t.Errorf("the call that waits on other was not copied: %v", err)
		}
		undoOp(t, c, "main", "")
		open(2)
		want(t, callState(t, c, "main", "@2"), "pending/none")
		checkStore(t, s)
		redoOn(t, c, "main")
		open(3)
		checkStore(t, s)
		undoOp(t, c, "main", "")
		if _, err := c.Append(t.Context(), "main", answers("old", "seen")); err != nil {
			t.Fatal(err)
		}
		take(t, c, "other", record.TakeOptions{})
		want(t, callState(t, c, "main.2", "@2"), "approved/done")
	})
}

// TestTakeWaitsForAReply refuses while somebody answers on the branch.
func TestTakeWaitsForAReply(t *testing.T) {
	s := open(t, "")
	c := answersOf(t, s)
	begun, err := c.BeginReply(t.Context(), "main", AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b := c.Begin("main")
	b.Take("other", record.TakeOptions{})
	if _, err := b.Commit(t.Context()); !errors.Is(err, ErrConflict) {
		t.Errorf("take beside a reply gives %v, want ErrConflict", err)
	}
	if _, err := begun.Reply.Finish(t.Context(), Ending{Messages: says(">done")}); err != nil {
		t.Fatal(err)
	}
	take(t, c, "other", record.TakeOptions{})
	want(t, picture(t, c), "main*: first >new >newer; main.2: first >old next >later >done; other: first >new >newer")
}
