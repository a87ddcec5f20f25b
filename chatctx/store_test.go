package chatctx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// engines opens a store in memory and one in a file; each is checked at the end.
func engines(t *testing.T, fn func(t *testing.T, s *Store)) {
	t.Run("memory", func(t *testing.T) { fn(t, open(t, "")) })
	t.Run("file", func(t *testing.T) { fn(t, open(t, filepath.Join(t.TempDir(), "chats.db"))) })
}

func open(t *testing.T, file string) *Store {
	t.Helper()
	o := Options{Create: true, Program: "test", Judge: byName{}}
	if file == "" {
		s := openAny(t, o)
		t.Cleanup(func() { closeChecked(t, s) })
		return s
	}
	s, err := Open(file, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeChecked(t, s) })
	return s
}

func closeChecked(t *testing.T, s *Store) {
	checkStore(t, s)
	if err := s.at().Close(); err != nil {
		t.Error(err)
	}
}

func newContext(t *testing.T, s *Store, texts ...string) *ChatContext {
	t.Helper()
	c, err := s.New(t.Context(), record.NewContext{Title: t.Name(), Messages: says(texts...)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// says makes messages: a text that begins with > is an assistant's.
func says(texts ...string) []*Message {
	var out []*Message
	for _, text := range texts {
		role := pool.User
		if strings.HasPrefix(text, ">") {
			role = pool.Assistant
		}
		out = append(out, pool.NewText(role, text))
	}
	return out
}

func commit(t *testing.T, b *Batch) *record.Committed {
	t.Helper()
	done, err := b.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func texts(t *testing.T, c *ChatContext, name string) string {
	t.Helper()
	snap, err := c.Snapshot(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for e, err := range snap.Entries(t.Context(), 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		text := e.Text()
		if e.Result != nil {
			text = "=" + e.Result.Text
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAppendExpectsARevision(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "a")
		info, err := c.Branch(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		revision := info.Revision
		add := func(text string) error {
			b := c.Begin("")
			b.AppendWith(AppendOptions{Expect: &revision}, says(text)...)
			done, err := b.Commit(t.Context())
			if err == nil && (done.Revision != revision+1 || done.Last().Revision != revision+1) {
				t.Errorf("revision %d and %d after %d", done.Revision, done.Last().Revision, revision)
			}
			return err
		}
		if err := add("b"); err != nil {
			t.Fatal(err)
		}
		if err := add("c"); !errors.Is(err, ErrConflict) {
			t.Errorf("an old revision: %v", err)
		}
		want(t, texts(t, c, ""), "a b")
	})
}

func TestAppendWithAKeyHappensOnce(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s.at().Clock = func() time.Time { return now }
		c := newContext(t, s)
		add := func() *Step {
			b := c.Begin("")
			b.AppendWith(AppendOptions{Key: "k"}, says("a")...)
			return commit(t, b).Last()
		}
		first, second := add(), add()
		if first.Again || !second.Again || second.Placed[0] != first.Placed[0] || second.Revision != first.Revision {
			t.Errorf("first %+v, second %+v", first, second)
		}
		now = now.Add(25 * time.Hour)
		if third := add(); third.Again {
			t.Error("a key is known after 25 hours")
		}
		want(t, texts(t, c, ""), "a a")
	})
}

func TestReferences(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "a", ">b", "c", ">d")
	b := c.Begin("")
	b.Tag("good", "@2")
	commit(t, b)
	snap, err := c.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	third, err := snap.Find(t.Context(), "@3")
	if err != nil {
		t.Fatal(err)
	}
	for ref, text := range map[record.Ref]string{"@": ">d", "@-1": "c", "@1": "a", "good": ">b", record.RefTo(third.ID): "c", record.Ref(record.Short(third.ID)): "c",
		record.Ref(third.ID.String()[:35]): "c"} {
		e, err := snap.Find(t.Context(), ref)
		if err != nil || e.Text() != text {
			t.Errorf("%s: %v, want %s (%v)", ref, e, text, err)
		}
	}
	for ref, kind := range map[record.Ref]error{"@5": ErrNotFound, "@0": ErrNotFound, "@x": ErrInvalid, "nothing": ErrNotFound, "": ErrNotFound,
		record.Ref(third.ID.String()[:4]): ErrAmbiguous, "ffffffff": ErrNotFound} {
		if _, err := snap.Find(t.Context(), ref); !errors.Is(err, kind) {
			t.Errorf("%q: %v, want %v", ref, err, kind)
		}
	}
}

func TestEditKeepsTheOldPathAndOtherParts(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "a", ">b", "c", ">d")
		image := &Message{Role: pool.User, Content: []pool.Part{{Type: pool.TextPart, Text: "look"},
			{Type: pool.ImagePart, MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n0000")}}}
		if _, err := c.Append(t.Context(), "", image); err != nil {
			t.Fatal(err)
		}
		b := c.Begin("")
		b.Edit("@3", "C", record.EditOptions{})
		one := commit(t, b).Last()
		want(t, one.Branch, "main.2")
		want(t, texts(t, c, "main.2"), "a >b C")
		want(t, texts(t, c, "main"), "a >b c >d look")
		b = c.Begin("main")
		b.Edit("@5", "see", record.EditOptions{KeepRest: true})
		two := commit(t, b).Last()
		want(t, two.Branch, "main.3")
		snap, err := c.Snapshot(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		e, err := snap.Find(t.Context(), "@")
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Content) != 2 || e.Content[1].SHA256 == (pool.Hash{}) || e.Text() != "see" || e.CopiedFrom == nil {
			t.Errorf("the edited message is %+v", e.Message)
		}
		data, mediaType, err := s.Artifact(t.Context(), e.Content[1].SHA256)
		if err != nil || mediaType != "image/png" || !bytes.HasPrefix(data, []byte("\x89PNG")) {
			t.Errorf("artifact %q of %s: %v", data, mediaType, err)
		}
	})
}

// asks is an assistant's message with a call of that id.
func asks(id string) *Message {
	return &Message{Role: pool.Assistant, Calls: []pool.Call{{ID: id, Tool: "look", Arguments: json.RawMessage(`{}`)}}}
}

func answers(id, text string) *Message {
	return &Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: id, Text: text}}
}

func callState(t *testing.T, c *ChatContext, name string, ref record.Ref) string {
	t.Helper()
	snap, err := c.Snapshot(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	e, err := snap.Find(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(e.Calls[0].Status, "/", e.Calls[0].Execution)
}

func TestCallsOnForksAreDecidedApart(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "a")
		if _, err := c.Append(t.Context(), "", asks("x")); err != nil {
			t.Fatal(err)
		}
		want(t, callState(t, c, "main", "@2"), "pending/none")
		b := c.Begin("main")
		b.Fork("other", ForkOptions{Stay: true})
		commit(t, b)
		if _, err := c.Append(t.Context(), "main", answers("x", "seen")); err != nil {
			t.Fatal(err)
		}
		want(t, callState(t, c, "main", "@2"), "approved/done")
		want(t, callState(t, c, "other", "@2"), "pending/none")

		b = c.Begin("main") // a fork that leaves the result behind asks again
		b.Fork("cut", ForkOptions{At: "@2", Stay: true})
		b.Fork("whole", ForkOptions{At: "@3", Stay: true})
		commit(t, b)
		want(t, callState(t, c, "cut", "@2"), "pending/none")
		want(t, callState(t, c, "whole", "@2"), "approved/done")

		b = c.Begin("main") // with a call go its results
		b.Drop("@2")
		res := commit(t, b).Last()
		if res.Removed != 2 {
			t.Errorf("dropped %d messages, want the call and its result", res.Removed)
		}
		want(t, texts(t, c, "main"), "a")
		b = c.Begin("main")
		b.Pick("whole", "@2")
		picked := commit(t, b).Last()
		if len(picked.Placed) != 2 {
			t.Errorf("picked %d messages, want the call and its result", len(picked.Placed))
		}
	})
}

func TestInterruptTakesOffTheUnfinishedTurn(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "a", ">b", "c")
	interrupt := func(all bool) int {
		b := c.Begin("")
		b.Interrupt(InterruptOptions{Question: all})
		return commit(t, b).Last().Removed
	}
	if _, err := c.Append(t.Context(), "", asks("x"), answers("x", "seen")); err != nil {
		t.Fatal(err)
	}
	if n := interrupt(false); n != 2 {
		t.Errorf("took %d messages off, want the call and its result", n)
	}
	want(t, texts(t, c, ""), "a >b c")
	if n := interrupt(true); n != 1 {
		t.Errorf("took %d messages off, want the user's", n)
	}
	if n := interrupt(true); n != 0 {
		t.Errorf("took %d messages off a finished turn", n)
	}
	want(t, texts(t, c, ""), "a >b")
}

func TestSnapshotStaysAsItWas(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s)
		for i := range 600 {
			if _, err := c.Append(t.Context(), "", says(fmt.Sprint(i))...); err != nil {
				t.Fatal(err)
			}
		}
		snap, err := c.Snapshot(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for e, err := range snap.Entries(t.Context(), 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Text() != fmt.Sprint(n) || e.Position != n+1 || e.Turn != fmt.Sprintf("u%d", n+1) {
				t.Fatalf("position %d turn %s text %q at %d", e.Position, e.Turn, e.Text(), n)
			}
			if n == 10 { // between two batches everything changes
				b := c.Begin("")
				b.Rewind("@5")
				b.Append(says("new")...)
				commit(t, b)
			}
			n++
		}
		if n != 600 {
			t.Errorf("read %d messages of a snapshot of 600", n)
		}
		back, err := snap.Page(t.Context(), 600, 598)
		if err != nil || len(back) != 3 || back[0].Text() != "599" || back[2].Text() != "597" {
			t.Errorf("backwards: %v (%v)", back, err)
		}
	})
}

func TestTokensOfABranch(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "a")
	in, out := int64(100), int64(20)
	reply := says(">b")[0]
	reply.Meta.InputTokens, reply.Meta.OutputTokens = &in, &out
	if _, err := c.Append(t.Context(), "", reply); err != nil {
		t.Fatal(err)
	}
	expect := func(w branch.Tokens) {
		t.Helper()
		if got, err := view.Tokens(t.Context(), base.ContextOf(c.Store(), c.ID), ""); err != nil || got != w {
			t.Errorf("tokens %+v, want %+v (%v)", got, w, err)
		}
	}
	expect(branch.Tokens{Input: 100, Output: 20})
	b := c.Begin("")
	b.SetTokens(branch.Tokens{Input: 1, Output: 2})
	commit(t, b)
	expect(branch.Tokens{Input: 1, Output: 2})
	b = c.Begin("")
	b.Clear()
	commit(t, b)
	expect(branch.Tokens{})
	if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
		t.Fatal(err)
	}
	expect(branch.Tokens{Input: 1, Output: 2})
}

func TestUndoIsOfThePersonsOwnBranch(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "a", ">b")
		b := c.Begin("")
		b.Fork("agent", ForkOptions{Stay: true})
		commit(t, b)
		for i := range 50 {
			b := c.Begin("main")
			b.Fork(fmt.Sprintf("fork%d", i), ForkOptions{})
			commit(t, b)
			if _, err := c.Append(t.Context(), "agent", says("busy")...); err != nil {
				t.Fatal(err)
			}
			done, err := s.Undo(t.Context(), "", "", "")
			if err != nil || done.Undid.What != "fork" {
				t.Fatalf("undid %+v: %v", done, err)
			}
		}
		want(t, strings.Repeat("busy ", 50), strings.TrimPrefix(texts(t, c, "agent"), "a >b ")+" ")
	})
}

func TestUndoWithoutACurrentContext(t *testing.T) {
	s := open(t, "")
	in := func(id string) *record.Incoming {
		return &record.Incoming{Format: "test", Conversation: id, Nodes: []record.Node{{ID: "1", Message: says("a")[0]}}, Branches: []record.IncomingBranch{{Name: "main", Leaf: 1}}}
	}
	done, err := s.Import(t.Context(), []*record.Incoming{in("x"), in("y")})
	if err != nil {
		t.Fatal(err)
	}
	trashed := func(want bool) {
		t.Helper()
		for _, d := range done {
			info, err := (&ChatContext{ID: d.Context, store: s}).Info(t.Context())
			if err != nil || (info.Trashed != 0) != want {
				t.Errorf("info %+v: %v", info, err)
			}
		}
	}
	if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
		t.Fatal(err)
	}
	trashed(true)
	if _, err := s.Redo(t.Context(), "", ""); err != nil {
		t.Fatal(err)
	}
	trashed(false)
}

// TestRedoInTheStore takes a large import back and brings it back, as often as one likes; a redo that has nothing to bring back changes nothing.
func TestRedoInTheStore(t *testing.T) {
	s := open(t, "")
	if _, err := s.New(t.Context(), record.NewContext{Title: "Here"}); err != nil {
		t.Fatal(err)
	}
	var list []*intake.Incoming
	for i := range 1000 {
		list = append(list, &intake.Incoming{Incoming: record.Incoming{Format: "test", Conversation: fmt.Sprint(i), Nodes: []record.Node{{ID: "1", Message: says("a")[0]}}, Branches: []record.IncomingBranch{{Name: "main", Leaf: 1}}}})
	}
	run := intake.NewImportRun(base.Of(s), care.RemoveContext)
	for i := 0; i < len(list); i += 100 {
		if _, err := run.Import(t.Context(), list[i:i+100]); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(want int) {
		t.Helper()
		n := 0
		for _, err := range s.Contexts(t.Context(), record.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != want {
			t.Errorf("%d contexts, want %d", n, want)
		}
		checkStore(t, s)
	}
	holds(1001)
	for range 2 {
		if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
			t.Fatal(err)
		}
		holds(1)
		if _, err := s.Undo(t.Context(), "", "", "s2"); !errors.Is(err, ErrConflict) {
			t.Fatal(err)
		}
		if _, err := s.Redo(t.Context(), "", ""); err != nil {
			t.Fatal(err)
		}
		holds(1001)
		if _, err := s.Redo(t.Context(), "", ""); !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	}
}

// TestTitleInTheTrash finds the context outside the trash by a title that one in the trash has too, and the other way to take that out.
func TestTitleInTheTrash(t *testing.T) {
	s := open(t, "")
	made := func() ID {
		c, err := s.New(t.Context(), record.NewContext{Title: "Twice"})
		if err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	old := made()
	if _, err := s.Trash(t.Context(), "Twice"); err != nil {
		t.Fatal(err)
	}
	now := made()
	if c, err := s.Context(t.Context(), "Twice"); err != nil || c.ID != now {
		t.Errorf("found %v: %v", c, err)
	}
	if done, err := s.Restore(t.Context(), "Twice"); err != nil || done.Context != old {
		t.Errorf("restored %v: %v", done, err)
	}
	var ref *record.RefError
	if _, err := s.Context(t.Context(), "Twice"); !errors.As(err, &ref) || len(ref.Candidates) != 2 {
		t.Errorf("two of a title: %v", err)
	}
}

// TestCheckAfterRename gives branches other names, back and forth, and looks for damage.
func TestCheckAfterRename(t *testing.T) {
	s := open(t, "")
	c, err := s.New(t.Context(), record.NewContext{Title: "Names"})
	if err != nil {
		t.Fatal(err)
	}
	rename := func(name, to string) {
		t.Helper()
		b := c.Begin("")
		b.RenameBranch(name, to)
		if _, err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkStore(t, s)
	}
	rename("main", "a")
	rename("a", "z")
	for range 2 {
		if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
			t.Fatal(err)
		}
		checkStore(t, s)
		if _, err := s.Redo(t.Context(), "", ""); err != nil {
			t.Fatal(err)
		}
		checkStore(t, s)
	}
}

// TestTheMakingOfWhatWentOnIsNotUndone names the store's operation after somebody has gone on from it.
func TestTheMakingOfWhatWentOnIsNotUndone(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "a")
	if _, err := c.Append(t.Context(), "", says("b")...); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Undo(t.Context(), "", "", "s1"); !errors.Is(err, ErrConflict) {
		t.Errorf("undo of new under an append: %v", err)
	}
	want(t, texts(t, c, ""), "a b")
	for range 2 {
		if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := c.Info(t.Context()); err != nil || info.Trashed == 0 {
		t.Errorf("after both undos: %+v %v", info, err)
	}
}

// TestEachUndoNamesItsWayBack takes an undo back by its number, and then the redo.
func TestEachUndoNamesItsWayBack(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "a")
	if _, err := c.Append(t.Context(), "", says("b")...); err != nil {
		t.Fatal(err)
	}
	op := ""
	for _, w := range []string{"a", "a b", "a", "a b"} {
		done, err := s.Undo(t.Context(), "", "", op)
		if err != nil {
			t.Fatalf("undo %s: %v", op, err)
		}
		op = done.Operation
		want(t, texts(t, c, ""), w)
	}
	if _, err := s.Undo(t.Context(), "", "", "99"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an operation that is not there: %v", err)
	}
}

func TestStoreOperationsAreUndoneToo(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		first := newContext(t, s, "a")
		second, err := s.New(t.Context(), record.NewContext{Title: "second"})
		if err != nil {
			t.Fatal(err)
		}
		undo := func(what string) {
			t.Helper()
			done, err := s.Undo(t.Context(), "", "", "")
			if err != nil || done.Undid.What != what {
				t.Fatalf("undid %+v, want %s: %v", done, what, err)
			}
		}
		if _, err := s.Trash(t.Context(), first.ID.String()); err != nil {
			t.Fatal(err)
		}
		undo("rm") // made while second was current
		if info, err := first.Info(t.Context()); err != nil || info.Trashed != 0 {
			t.Errorf("info %+v: %v", info, err)
		}
		if _, err := s.Trash(t.Context(), second.ID.String()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Begin("", "").Commit(t.Context()); !errors.Is(err, ErrConflict) {
			t.Errorf("a change in the trash: %v", err)
		}
		undo("rm")
		undo("new")
		if info, err := second.Info(t.Context()); err != nil || info.Trashed == 0 {
			t.Errorf("after the undo of new: %+v: %v", info, err)
		}
		if _, err := s.Redo(t.Context(), second.ID.String(), ""); err != nil {
			t.Fatal(err)
		}
		if info, err := second.Info(t.Context()); err != nil || info.Trashed != 0 {
			t.Errorf("after the redo of new: %+v: %v", info, err)
		}
	})
}

func TestCopyIsDeep(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "a", ">b", "c")
		if _, err := c.Append(t.Context(), "", asks("x")); err != nil {
			t.Fatal(err)
		}
		b := c.Begin("")
		b.Tag("good", "@2")
		b.Edit("@3", "C", record.EditOptions{Stay: true})
		system := "be brief"
		b.SetSystem(system)
		commit(t, b)
		other, err := s.Copy(t.Context(), c.ID.String(), "copy", false)
		if err != nil {
			t.Fatal(err)
		}
		want(t, texts(t, other, "main"), texts(t, c, "main"))
		want(t, texts(t, other, "main.2"), texts(t, c, "main.2"))
		want(t, callState(t, other, "main", "@4"), "pending/none")
		if _, err := other.Append(t.Context(), "main", answers("x", "seen")); err != nil {
			t.Fatal(err)
		}
		want(t, callState(t, c, "main", "@4"), "pending/none")
		info, err := other.Branch(t.Context(), "main")
		if err != nil || info.System != "be brief" {
			t.Errorf("the copy's system prompt: %+v %v", info, err)
		}
		tags, err := other.Tags(t.Context())
		if err != nil || len(tags) != 1 {
			t.Errorf("the copy's tags: %v %v", tags, err)
		}
	})
}

func TestNamesAreChecked(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "a")
	for name, kind := range map[string]error{"": ErrInvalid, "a\nb": ErrInvalid, strings.Repeat("x", 256): ErrInvalid, "a\xff": ErrInvalid, "main": ErrConflict,
		strings.Repeat("ä", 127): nil, "with space / and : all": nil} {
		b := c.Begin("main")
		b.Fork(name, ForkOptions{Stay: true})
		if _, err := b.Commit(t.Context()); !errors.Is(err, kind) {
			t.Errorf("%q: %v, want %v", name, err, kind)
		}
	}
	b := c.Begin("main")
	b.RemoveBranch("main")
	if _, err := b.Commit(t.Context()); !errors.Is(err, ErrConflict) {
		t.Errorf("removing the active branch: %v", err)
	}
}

// TestNothingOfAFailedBatchStays makes a batch whose last step cannot be.
func TestNothingOfAFailedBatchStays(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "a")
		b := c.Begin("")
		b.Append(says("b")...)
		b.Fork("f", ForkOptions{})
		b.Rewind("@99")
		if _, err := b.Commit(t.Context()); !errors.Is(err, ErrNotFound) {
			t.Errorf("commit: %v", err)
		}
		want(t, texts(t, c, ""), "a")
		if infos, err := c.Branches(t.Context()); err != nil || len(infos) != 1 {
			t.Errorf("branches %v: %v", infos, err)
		}
	})
}

func TestTheClockSetsNoOrder(t *testing.T) {
	s := open(t, "")
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s.at().Clock = func() time.Time { now = now.Add(-time.Hour); return now }
	c := newContext(t, s)
	var all []string
	for i := range 20 {
		msgs := says(fmt.Sprint(i))
		msgs[0].ID = pool.ID{byte(200 - i)} // ids that sort the other way too
		all = append(all, fmt.Sprint(i))
		if _, err := c.Append(t.Context(), "", msgs...); err != nil {
			t.Fatal(err)
		}
	}
	want(t, texts(t, c, ""), strings.Join(all, " "))
	for i := 19; i >= 10; i-- {
		if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
			t.Fatal(err)
		}
		all = all[:i]
		want(t, texts(t, c, ""), strings.Join(all, " "))
	}
}

func TestWatchTellsOfOtherProcesses(t *testing.T) {
	if os.Getenv("CHATCTX_APPEND_TO") != "" {
		appendElsewhere(t)
		return
	}
	file := filepath.Join(t.TempDir(), "chats.db")
	s := open(t, file)
	c := newContext(t, s, "a")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	changes, err := s.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestWatchTellsOfOtherProcesses$")
	cmd.Env = append(os.Environ(), "CHATCTX_APPEND_TO="+file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	change := <-changes
	if change.Context != c.ID || !slices.Equal(change.Branches, []string{"main"}) || change.Kind != "append" {
		t.Errorf("told of %+v", change)
	}
	want(t, texts(t, c, ""), "a elsewhere")
}

func appendElsewhere(t *testing.T) {
	s, err := Open(os.Getenv("CHATCTX_APPEND_TO"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Context(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(t.Context(), "", says("elsewhere")...); err != nil {
		t.Fatal(err)
	}
	if err := s.at().Close(); err != nil {
		t.Fatal(err)
	}
}

func TestManyWritersOnOneBranch(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s)
		const writers, each = 16, 25
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					if _, err := c.Append(context.Background(), "", says(fmt.Sprintf("%d:%d", w, i))...); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		all := strings.Fields(texts(t, c, ""))
		if len(all) != writers*each {
			t.Fatalf("%d messages of %d", len(all), writers*each)
		}
		next := [writers]int{}
		for _, text := range all {
			var w, i int
			fmt.Sscanf(text, "%d:%d", &w, &i)
			if i != next[w] {
				t.Fatalf("writer %d: message %d came where %d should", w, i, next[w])
			}
			next[w]++
		}
	})
}

func TestBackupIsAStore(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "chats.db"))
	c := newContext(t, s, "a", ">b")
	var copied bytes.Buffer
	if err := s.Maintenance().Backup(t.Context(), &copied); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup.db")
	if err := os.WriteFile(file, copied.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	other := open(t, file)
	back, err := other.Context(t.Context(), c.ID.String())
	if err != nil {
		t.Fatal(err)
	}
	want(t, texts(t, back, ""), "a >b")
}

// TestListGoesByOrderOfChange: a change is listed before all earlier ones, also those of a program whose clock was ahead.
func TestListGoesByOrderOfChange(t *testing.T) {
	s, clock := clocked(t)
	if base.Of(s).User != "" {
		t.Skip("the users of a server share its clock, which is never ahead of itself")
	}
	var made []*ChatContext
	for _, title := range []string{"Early", "Ahead"} {
		c, err := s.New(t.Context(), record.NewContext{Title: title})
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, c)
		clock.move(time.Hour)
	}
	clock.move(-3 * time.Hour)
	for _, want := range []int{0, 1, 0} {
		if _, err := made[want].Append(t.Context(), "", says("x")...); err != nil {
			t.Fatal(err)
		}
		for info, err := range s.Contexts(t.Context(), record.ListOptions{}) {
			if err != nil || info.ID != made[want].ID {
				t.Errorf("the list begins with %s, not with what changed last; %v", info.Title, err)
			}
			break
		}
		clock.move(-time.Minute)
	}
}

func TestContextsAreListedByLastChange(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		var made []*ChatContext
		for _, title := range []string{"Alpha", "Beta", "Gamma"} {
			c, err := s.New(t.Context(), record.NewContext{Title: title})
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, c)
		}
		if _, err := made[0].Append(t.Context(), "", says("x")...); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Trash(t.Context(), "Beta"); err != nil {
			t.Fatal(err)
		}
		list := func(o record.ListOptions) (titles []string) {
			for info, err := range s.Contexts(t.Context(), o) {
				if err != nil {
					t.Fatal(err)
				}
				titles = append(titles, info.Title)
			}
			return titles
		}
		if got := list(record.ListOptions{}); !slices.Equal(got, []string{"Alpha", "Gamma"}) {
			t.Errorf("contexts %v", got)
		}
		if got := list(record.ListOptions{Trash: true}); !slices.Equal(got, []string{"Beta"}) {
			t.Errorf("trash %v", got)
		}
		if got := list(record.ListOptions{Word: "GAM"}); !slices.Equal(got, []string{"Gamma"}) {
			t.Errorf("by word %v", got)
		}
	})
}

func checkStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Maintenance().Check(context.Background(), CheckOptions{Full: true}, func(p record.Problem) { t.Errorf("check: %d %s: %s", p.Invariant, p.Where, p.Text) }); err != nil {
		t.Errorf("check: %v", err)
	}
}
