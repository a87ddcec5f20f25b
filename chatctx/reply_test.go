package chatctx_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// twoPrograms are two programs with one store, whose clock the test moves.
func twoPrograms(t *testing.T) (a, b *chatctx.ChatContext, now *time.Time) {
	t.Helper()
	at := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	clock := func() time.Time { return at }
	db := memkv.New()
	open := func(name string) *chatctx.Store {
		s, err := chatctx.OpenDB(db, chatctx.Options{Program: name, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second := open("first"), open("second")
	t.Cleanup(func() { storetest.Close(t, first) })
	a, err := first.New(t.Context(), record.NewContext{Title: "T"})
	if err != nil {
		t.Fatal(err)
	}
	if b, err = second.Context(t.Context(), a.ID.String()); err != nil {
		t.Fatal(err)
	}
	return a, b, &at
}

func user(text string) []*chatctx.Message {
	return []*chatctx.Message{pool.NewText(pool.User, text)}
}

func answer(text string) []*chatctx.Message {
	return []*chatctx.Message{pool.NewText(pool.Assistant, text)}
}

// texts are the words on a branch, an unfinished message with a * behind.
func texts(t *testing.T, c *chatctx.ChatContext, branch string) (out []string) {
	t.Helper()
	snap, err := c.Snapshot(t.Context(), branch)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range snap.Entries(t.Context(), 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		text := e.Text()
		if e.Unfinished {
			text += "*"
		}
		out = append(out, text)
	}
	return out
}

func wantTexts(t *testing.T, c *chatctx.ChatContext, branch string, want ...string) {
	t.Helper()
	got := texts(t, c, branch)
	if len(got) != len(want) {
		t.Fatalf("%q on %s, want %q", got, branch, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%q on %s, want %q", got, branch, want)
		}
	}
}

func begin(t *testing.T, c *chatctx.ChatContext, msgs []*chatctx.Message) *chatctx.Begun {
	t.Helper()
	b, err := c.BeginReply(t.Context(), "main", chatctx.AppendOptions{}, msgs...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func queued(t *testing.T, c *chatctx.ChatContext) (out []string) {
	t.Helper()
	list, err := view.Queued(t.Context(), base.ContextOf(c.Store(), c.ID), "main")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if !e.Queued || e.Position != 0 {
			t.Errorf("queued entry %+v", e)
		}
		out = append(out, e.Text())
	}
	return out
}

func TestReplyAndQueue(t *testing.T) {
	a, b, _ := twoPrograms(t)
	begun := begin(t, a, user("one"))
	if begun.Reply == nil || len(begun.Last().Placed) != 1 {
		t.Fatalf("%+v", begun)
	}
	for _, text := range []string{"two", "three"} {
		later := begin(t, b, user(text))
		if later.Reply != nil || later.Holder == nil || later.Holder.Program != "first" {
			t.Fatalf("%+v", later)
		}
	}
	if _, err := b.BeginReply(t.Context(), "main", chatctx.AppendOptions{}); !errors.Is(err, chatctx.ErrConflict) {
		t.Errorf("a second reply: %v", err)
	}
	wantTexts(t, b, "main", "one")
	if q := queued(t, b); len(q) != 2 || q[0] != "two" || q[1] != "three" {
		t.Fatalf("queue %q", q)
	}
	if _, err := b.Begin("main").Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended, err := begun.Reply.Finish(t.Context(), chatctx.Ending{Messages: answer("1"), Provider: "p", Request: []byte("chain")})
	if err != nil || !ended.Held || len(ended.FromQueue) != 2 || ended.Last().Placed[0].Position != 2 {
		t.Fatalf("%+v, %v", ended, err)
	}
	wantTexts(t, b, "main", "one", "1", "two", "three")
	if last, err := view.LastRequest(t.Context(), base.ContextOf(b.Store(), b.ID), "main", "p"); err != nil || string(last) != "chain" {
		t.Errorf("%q, %v", last, err)
	}
	ended, err = begun.Reply.Finish(t.Context(), chatctx.Ending{Messages: answer("2, 3")})
	if err != nil || ended.Held {
		t.Fatalf("%+v, %v", ended, err)
	}
	if claim, err := view.Running(t.Context(), base.ContextOf(b.Store(), b.ID), "main"); claim != nil || err != nil {
		t.Errorf("%+v, %v", claim, err)
	}
	if _, err := begun.Reply.Finish(t.Context(), chatctx.Ending{Messages: answer("4")}); !errors.Is(err, chatctx.ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
	wantTexts(t, a, "main", "one", "1", "two", "three", "2, 3")
}

// TestUndoTakesOneAnswer: the answer to what was asked while another one came is a command of its own.
func TestUndoTakesOneAnswer(t *testing.T) {
	s, err := chatctx.OpenMemory(chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.New(t.Context(), record.NewContext{Title: "T"})
	if err != nil {
		t.Fatal(err)
	}
	begun := begin(t, c, user("one"))
	begin(t, c, user("two"))
	for _, text := range []string{"1", "2", "and more of 2"} {
		goOn := chatctx.Ending{Messages: answer(text), GoOn: text == "2"}
		if _, err := begun.Reply.Finish(t.Context(), goOn); err != nil {
			t.Fatal(err)
		}
	}
	for _, left := range [][]string{{"one", "1", "two"}, {"one"}} {
		if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
			t.Fatal(err)
		}
		wantTexts(t, c, "main", left...)
	}
	if q := queued(t, c); len(q) != 1 || q[0] != "two" {
		t.Errorf("queue %q", q)
	}
	storetest.Check(t, s)
}

func TestUndoOfQueue(t *testing.T) {
	a, b, _ := twoPrograms(t)
	begun := begin(t, a, user("one"))
	begin(t, b, user("two"))
	if _, err := begun.Reply.Finish(t.Context(), chatctx.Ending{Messages: answer("1")}); err != nil {
		t.Fatal(err)
	}
	if _, err := begun.Reply.Finish(t.Context(), chatctx.Ending{Stop: true}); err != nil { // and nothing answers what waited
		t.Fatal(err)
	}
	undo := func() {
		t.Helper()
		if _, err := a.Store().Undo(t.Context(), a.ID.String(), "main", ""); err != nil {
			t.Fatal(err)
		}
	}
	undo()
	wantTexts(t, a, "main", "one")
	if q := queued(t, a); len(q) != 1 || q[0] != "two" {
		t.Errorf("undoing the reply leaves the queue %q", q)
	}
	undo()
	if q := queued(t, a); len(q) != 0 {
		t.Errorf("undoing the queueing leaves the queue %q", q)
	}
}

func TestDeadProgram(t *testing.T) {
	a, b, now := twoPrograms(t)
	begun := begin(t, a, user("one"))
	begin(t, b, user("two"))
	partial := pool.NewText(pool.Assistant, "half of")
	partial.Content = append(partial.Content, pool.Part{Type: pool.ImagePart, MediaType: "image/png", Data: []byte("x")})
	if err := begun.Reply.Save(t.Context(), partial); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(chatctx.ClaimLife)
	if m, err := b.Settle(t.Context(), "main", chatctx.SettleOptions{}); m != nil || err != nil {
		t.Fatalf("settled while it may live: %v, %v", m, err)
	}
	*now = now.Add(time.Second)
	if m, err := b.Settle(t.Context(), "main", chatctx.SettleOptions{}); err != nil || m == nil || !m.Unfinished || m.Meta.Error == "" || len(m.Content) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	wantTexts(t, b, "main", "one", "half of*")
	if err := begun.Reply.Held(t.Context()); !errors.Is(err, chatctx.ErrStopped) {
		t.Errorf("held: %v", err)
	}
	if err := begun.Reply.Save(t.Context(), partial); !errors.Is(err, chatctx.ErrStopped) {
		t.Errorf("save: %v", err)
	}
	next := begin(t, b, user("three"))
	if next.Settled != nil || len(next.FromQueue) != 1 {
		t.Errorf("%+v", next)
	}
	wantTexts(t, b, "main", "one", "half of*", "two", "three")
}

// A claim of a process that is gone is dead at once, and the next who asks settles it.
func TestGoneProcess(t *testing.T) {
	alive := record.Claim{PID: 1, Host: "elsewhere", Renewed: pool.Now()}
	if base.Dead(&alive, pool.Now()) {
		t.Error("a process on another host cannot be known to be gone")
	}
	a, b, now := twoPrograms(t)
	begun := begin(t, a, user("one"))
	if err := begun.Reply.Save(t.Context(), pool.NewText(pool.Assistant, "half")); err != nil {
		t.Fatal(err)
	}
	claim, err := view.Running(t.Context(), base.ContextOf(b.Store(), b.ID), "main")
	if err != nil || claim == nil || base.Dead(claim, pool.TimeOf(*now)) {
		t.Fatalf("%+v, %v", claim, err)
	}
	for _, change := range []func(*record.Claim){
		func(c *record.Claim) { c.PID = 1 << 30 },
		func(c *record.Claim) { c.Boot = "an earlier one" },
	} {
		gone := *claim
		if change(&gone); gone.Boot != claim.Boot && claim.Boot == "" {
			continue // a system that does not tell
		}
		if !base.Dead(&gone, pool.TimeOf(*now)) {
			t.Errorf("%+v is taken for alive", gone)
		}
	}
}

func TestInterruptARunningReply(t *testing.T) {
	a, b, _ := twoPrograms(t)
	begun := begin(t, a, user("one"))
	if err := begun.Reply.Save(t.Context(), pool.NewText(pool.Assistant, "half")); err != nil {
		t.Fatal(err)
	}
	batch := b.Begin("main")
	batch.Interrupt(chatctx.InterruptOptions{})
	if done, err := batch.Commit(t.Context()); err != nil || done.Last().Removed != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	wantTexts(t, b, "main", "one")
	if _, err := begun.Reply.Finish(t.Context(), chatctx.Ending{Messages: answer("1")}); !errors.Is(err, chatctx.ErrStopped) {
		t.Errorf("finish: %v", err)
	}
	if _, err := b.Store().Undo(t.Context(), b.ID.String(), "main", ""); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, b, "main", "one", "half*")
}

// A reply lands on the branch it was asked on, whatever that is called by then, also when others wrote to it meanwhile.
func TestReplyLandsOnItsBranch(t *testing.T) {
	a, b, _ := twoPrograms(t)
	begun := begin(t, a, user("one"))
	batch := b.Begin("main")
	batch.Fork("other", chatctx.ForkOptions{})
	if _, err := batch.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	batch = b.Begin("other")
	batch.RenameBranch("main", "old")
	if _, err := batch.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Append(t.Context(), "old", user("by the way")...); err != nil {
		t.Fatal(err)
	}
	ended, err := begun.Reply.Finish(t.Context(), chatctx.Ending{Messages: answer("1")})
	if err != nil || ended.Branch != "old" {
		t.Fatalf("%+v, %v", ended, err)
	}
	wantTexts(t, a, "old", "one", "by the way", "1")
	wantTexts(t, a, "other", "one")

	if begun, err = a.BeginReply(t.Context(), "old", chatctx.AppendOptions{}, user("two")...); err != nil {
		t.Fatal(err)
	}
	batch = b.Begin("other")
	batch.RemoveBranch("old")
	if _, err := batch.Commit(t.Context()); !errors.Is(err, chatctx.ErrConflict) {
		t.Errorf("the branch goes away under an answer: %v", err)
	}
	if _, err := begun.Reply.Finish(t.Context(), chatctx.Ending{Messages: answer("2")}); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, a, "old", "one", "by the way", "1", "two", "2")
}

// TestNothingMovesUnderAnAnswer: until an answer has ended, what it stands on stays, and what would change that says who answers and what to do. A branch may grow meanwhile.
func TestNothingMovesUnderAnAnswer(t *testing.T) {
	a, b, now := twoPrograms(t)
	if _, err := begin(t, a, user("one")).Reply.Finish(t.Context(), chatctx.Ending{Messages: answer("1")}); err != nil {
		t.Fatal(err)
	}
	batch := a.Begin("main")
	batch.Fork("other", chatctx.ForkOptions{At: "@1", Stay: true})
	if _, err := batch.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := begin(t, a, user("two")).Reply.Finish(t.Context(), chatctx.Ending{Messages: answer("2")}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Append(t.Context(), "other", answer("another")...); err != nil {
		t.Fatal(err)
	}
	begun, err := a.BeginReply(t.Context(), "main", chatctx.AppendOptions{}, user("three")...)
	if err != nil {
		t.Fatal(err)
	}
	change := func(what string, fill func(*chatctx.Batch)) error {
		batch := b.Begin("main")
		if fill(batch); what == "undo" {
			_, err := b.Store().Undo(t.Context(), b.ID.String(), "main", "")
			return err
		}
		_, err := batch.Commit(t.Context())
		return err
	}
	changes := map[string]func(*chatctx.Batch){
		"undo":   func(*chatctx.Batch) {},
		"rewind": func(b *chatctx.Batch) { b.Rewind("@3") },
		"drop":   func(b *chatctx.Batch) { b.Drop("@1") },
		"clear":  func(b *chatctx.Batch) { b.Clear() },
		"insert": func(b *chatctx.Batch) { b.Insert("@3", user("before")...) },
		"take":   func(b *chatctx.Batch) { b.Take("other", record.TakeOptions{}) },
		"remove": func(b *chatctx.Batch) { b.Switch("other"); b.RemoveBranch("main") },
	}
	for what, fill := range changes {
		if err := change(what, fill); !errors.Is(err, chatctx.ErrConflict) || !strings.Contains(err.Error(), "first, process") || !strings.Contains(err.Error(), "chatctx interrupt") {
			t.Errorf("%s under an answer: %v", what, err)
		}
	}
	all := []string{"one", "1", "two", "2", "three"}
	wantTexts(t, a, "main", all...)
	for what, fill := range map[string]func(*chatctx.Batch){
		"append": func(b *chatctx.Batch) { b.Append(user("by the way")...) },
		"fork":   func(b *chatctx.Batch) { b.Fork("third", chatctx.ForkOptions{Stay: true}) },
		"edit":   func(b *chatctx.Batch) { b.Edit("@3", "two again", record.EditOptions{Stay: true}) },
		"rename": func(b *chatctx.Batch) { b.RenameBranch("other", "else") },
		"config": func(b *chatctx.Batch) { b.SetSystem("Be short.") },
	} {
		if err := change(what, fill); err != nil {
			t.Errorf("%s under an answer: %v", what, err)
		}
	}
	// What a program leaves that dies goes where it belongs before the rest moves.
	if err := begun.Reply.Save(t.Context(), pool.NewText(pool.Assistant, "half of")); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(chatctx.ClaimLife + time.Second)
	if err := change("drop", changes["drop"]); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, a, "main", "1", "two", "2", "three", "by the way", "half of*")
	if err := change("undo", changes["undo"]); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, a, "main", append(all, "by the way", "half of*")...)
}

// TestUndoOfAnExchange: one undo takes back a question and its answer, and redo brings both back. What others put on the branch in between
// is taken back by itself.
func TestUndoOfAnExchange(t *testing.T) {
	a, b, _ := twoPrograms(t)
	exchange := func() *chatctx.Ended {
		t.Helper()
		ended, err := begin(t, a, user("why")).Reply.Finish(t.Context(), chatctx.Ending{Messages: answer("so")})
		if err != nil {
			t.Fatal(err)
		}
		return ended
	}
	undo := func(op string, left ...string) {
		t.Helper()
		if _, err := a.Store().Undo(t.Context(), a.ID.String(), "main", op); err != nil {
			t.Fatal(err)
		}
		wantTexts(t, a, "main", left...)
	}
	exchange()
	last := exchange()
	undone, err := a.Store().Undo(t.Context(), a.ID.String(), "main", "")
	if err != nil || undone.Undid.What != "send" {
		t.Fatalf("%+v, %v", undone, err)
	}
	wantTexts(t, a, "main", "why", "so")
	undo(undone.Operation, "why", "so", "why", "so")
	undo("", "why", "so")
	if _, err := a.Store().Redo(t.Context(), a.ID.String(), "main"); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, a, "main", "why", "so", "why", "so")
	undo(last.Operation, "why", "so")
	r := begin(t, a, user("and")).Reply
	if _, err := b.Append(t.Context(), "main", pool.NewText(pool.User, "between")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(t.Context(), chatctx.Ending{Messages: answer("that")}); err != nil {
		t.Fatal(err)
	}
	undo("", "why", "so", "and", "between")
	undo("", "why", "so", "and")
	undo("", "why", "so")

	// A round that stores nothing forgets nothing of the command.
	r = begin(t, a, user("and")).Reply
	if _, err := r.Finish(t.Context(), chatctx.Ending{GoOn: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(t.Context(), chatctx.Ending{Messages: answer("that")}); err != nil {
		t.Fatal(err)
	}
	undo("", "why", "so")
}

// TestUndoOfBranches: what began as one command on several branches is taken back at once, unless something else was done there since.
func TestUndoOfBranches(t *testing.T) {
	a, b, _ := twoPrograms(t)
	batch := a.Begin("main")
	batch.Fork("one", chatctx.ForkOptions{})
	batch.Append(user("why")...)
	batch.Fork("two", chatctx.ForkOptions{})
	batch.Switch("main")
	if _, err := batch.Together(batch).Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		begun, err := a.BeginReply(t.Context(), name, chatctx.AppendOptions{})
		if err != nil {
			t.Fatal(err)
		}
		begun.Reply.Together(batch)
		if _, err := begun.Reply.Finish(t.Context(), chatctx.Ending{Messages: answer(name)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Append(t.Context(), "two", pool.NewText(pool.User, "more")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Store().Undo(t.Context(), a.ID.String(), "main", ""); !errors.Is(err, chatctx.ErrConflict) {
		t.Fatalf("with more on it: %v", err)
	}
	wantTexts(t, a, "one", "why", "one")
	if _, err := a.Store().Undo(t.Context(), a.ID.String(), "two", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Store().Undo(t.Context(), a.ID.String(), "main", ""); err != nil {
		t.Fatal(err)
	}
	if list, err := a.Branches(t.Context()); err != nil || len(list) != 1 {
		t.Fatalf("%d branches are left, %v", len(list), err)
	}
	if _, err := a.Store().Redo(t.Context(), a.ID.String(), "main"); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, a, "one", "why", "one")
	wantTexts(t, a, "two", "why", "two")
}

// TestInterruptTakesNoOtherClaim: a reply that was not stopped first keeps its claim.
func TestInterruptTakesNoOtherClaim(t *testing.T) {
	a, b, _ := twoPrograms(t)
	batch := a.Begin("main")
	batch.Fork("other", chatctx.ForkOptions{Stay: true})
	if _, err := batch.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	begun, err := a.BeginReply(t.Context(), "other", chatctx.AppendOptions{}, user("one")...)
	if err != nil {
		t.Fatal(err)
	}
	batch = b.Begin("main")
	batch.Switch("other")
	batch.Interrupt(chatctx.InterruptOptions{Question: true})
	if _, err := batch.Commit(t.Context()); !errors.Is(err, chatctx.ErrConflict) {
		t.Errorf("interrupt: %v", err)
	}
	if _, err := begun.Reply.Finish(t.Context(), chatctx.Ending{Messages: answer("1")}); err != nil {
		t.Error(err)
	}
	wantTexts(t, a, "other", "one", "1")
}

// TestAReplyThatEndsKeepsWhatWasSaved: without messages it leaves what was saved; what was saved of a message that is there is not put there again.
func TestAReplyThatEndsKeepsWhatWasSaved(t *testing.T) {
	a, _, _ := twoPrograms(t)
	r := begin(t, a, user("one")).Reply
	half := pool.NewText(pool.Assistant, "half")
	if err := r.Save(t.Context(), half); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(t.Context(), chatctx.Ending{}); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, a, "main", "one", "half*")
	r = begin(t, a, user("two")).Reply
	whole := pool.NewText(pool.Assistant, "whole")
	whole.ID = pool.NewID()
	if _, err := r.Finish(t.Context(), chatctx.Ending{Messages: []*chatctx.Message{whole}, GoOn: true}); err != nil {
		t.Fatal(err)
	}
	late := pool.NewText(pool.Assistant, "who")
	late.ID = whole.ID
	if err := r.Save(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if m, err := a.Settle(t.Context(), "main", chatctx.SettleOptions{Force: true}); m != nil || err != nil {
		t.Errorf("%+v, %v", m, err)
	}
	wantTexts(t, a, "main", "one", "half*", "two", "whole")
}

// TestRepliesAreSafe uses replies of one command from several goroutines. The race detector looks.
func TestRepliesAreSafe(t *testing.T) {
	a, _, _ := twoPrograms(t)
	batch := a.Begin("main")
	batch.Fork("other", chatctx.ForkOptions{Stay: true})
	if _, err := batch.Together(batch).Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	const n = 20
	var all sync.WaitGroup
	run := func(fn func() error) {
		all.Go(func() {
			for range n {
				if err := fn(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, name := range []string{"main", "other"} {
		begun, err := a.BeginReply(t.Context(), name, chatctx.AppendOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := begun.Reply
		for range 2 {
			run(func() error {
				_, err := r.Finish(t.Context(), chatctx.Ending{Messages: answer("x"), GoOn: true})
				return err
			})
		}
		run(func() error { return r.Held(t.Context()) })
		run(func() error { return r.Save(t.Context(), pool.NewText(pool.Assistant, "half")) })
		run(func() error { r.Together(batch); return nil })
	}
	all.Wait()
	for _, name := range []string{"main", "other"} {
		if _, err := a.Settle(t.Context(), name, chatctx.SettleOptions{Force: true}); err != nil {
			t.Fatal(err)
		}
		if got := len(texts(t, a, name)); got != 2*n && got != 2*n+1 { // with what was saved last
			t.Errorf("%d messages on %s", got, name)
		}
	}
}

// TestAReplyIsItsToken: a program that lost its claim to another stores nothing any more, though that one's claim is there.
func TestAReplyIsItsToken(t *testing.T) {
	a, b, now := twoPrograms(t)
	lost := begin(t, a, user("one"))
	*now = now.Add(2 * chatctx.ClaimLife)
	held := begin(t, b, user("two"))
	if _, err := lost.Reply.Finish(t.Context(), chatctx.Ending{Messages: answer("late")}); !errors.Is(err, chatctx.ErrStopped) {
		t.Errorf("finish without the claim: %v", err)
	}
	if err := lost.Reply.Save(t.Context(), answer("late")[0]); !errors.Is(err, chatctx.ErrStopped) {
		t.Errorf("save without the claim: %v", err)
	}
	if _, err := held.Reply.Finish(t.Context(), chatctx.Ending{Messages: answer("here")}); err != nil {
		t.Error(err)
	}
	wantTexts(t, a, "main", "one", "two", "here")
	storetest.Check(t, a.Store())
}

// TestBranchesOfTheDead: a branch that was made for an answer goes with the program that died before a word came, and stays where somebody went on or something came.
func TestBranchesOfTheDead(t *testing.T) {
	a, b, now := twoPrograms(t)
	if _, err := a.Append(t.Context(), "main", user("name it")...); err != nil {
		t.Fatal(err)
	}
	batch := a.Begin("main")
	batch.ForkForReply("bare", chatctx.ForkOptions{At: "@"})
	batch.ForkForReply("gone on", chatctx.ForkOptions{At: "@"})
	half := batch.ForkForReply("half", chatctx.ForkOptions{At: "@"})
	done := batch.ForkForReply("done", chatctx.ForkOptions{At: "@"})
	if _, err := batch.Together(batch).Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Append(t.Context(), "gone on", user("by the way")...); err != nil {
		t.Fatal(err)
	}
	if err := half.Save(t.Context(), pool.NewText(pool.Assistant, "half of")); err != nil {
		t.Fatal(err)
	}
	done.Together(batch)
	if _, err := done.Finish(t.Context(), chatctx.Ending{Messages: answer("whole")}); err != nil {
		t.Fatal(err)
	}
	names := func(want ...string) {
		t.Helper()
		list, err := b.Branches(t.Context())
		var got []string
		for _, info := range list {
			got = append(got, info.Name)
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("branches %q, %v, want %q", got, err, want)
		}
	}
	if err := b.SettleDead(t.Context()); err != nil {
		t.Fatal(err)
	}
	names("bare", "done", "gone on", "half", "main")
	*now = now.Add(chatctx.ClaimLife + time.Second)
	if err := b.SettleDead(t.Context()); err != nil {
		t.Fatal(err)
	}
	names("done", "gone on", "half", "main")
	wantTexts(t, b, "half", "name it", "half of*")
	wantTexts(t, b, "gone on", "name it", "by the way")
	if _, err := b.Store().Undo(t.Context(), b.ID.String(), "main", ""); !errors.Is(err, chatctx.ErrConflict) {
		t.Errorf("undo under what was added: %v", err)
	}
	for _, op := range []string{"3", ""} { // what was added, then the rest at once
		if _, err := b.Store().Undo(t.Context(), b.ID.String(), "gone on", op); err != nil {
			t.Fatal(err)
		}
	}
	names("main")
}
