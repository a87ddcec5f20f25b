package chatctx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/pool"
)

// A door takes a message into a context, on the branch main where it is one to a branch.
type door struct {
	name  string
	loose bool // it puts messages on no branch
	take  func(t *testing.T, c *ChatContext, m *Message) error
}

func byBatch(fn func(*Batch, *Message)) func(*testing.T, *ChatContext, *Message) error {
	return func(t *testing.T, c *ChatContext, m *Message) error {
		b := c.Begin("main")
		fn(b, m)
		_, err := b.Commit(t.Context())
		return err
	}
}

// doors are all ways into a context for a message whose id somebody gave.
var doors = []door{
	{"append", false, byBatch(func(b *Batch, m *Message) { b.Append(m) })},
	{"append copies", false, byBatch(func(b *Batch, m *Message) { b.AppendWith(AppendOptions{Copies: true}, m) })},
	{"append with a key", false, byBatch(func(b *Batch, m *Message) { b.AppendWith(AppendOptions{Key: "k"}, m) })},
	{"insert", false, byBatch(func(b *Batch, m *Message) { b.Insert("@1", m) })},
	{"loose", true, byBatch(func(b *Batch, m *Message) { b.PutLoose(m) })},
	{"twice in one batch", false, byBatch(func(b *Batch, m *Message) {
		other := *m
		b.Append(m, &other)
	})},
	{"begin reply", false, func(t *testing.T, c *ChatContext, m *Message) error {
		begun, err := c.BeginReply(t.Context(), "main", AppendOptions{}, m)
		if err == nil {
			_, err = begun.Reply.Finish(t.Context(), Ending{})
		}
		return err
	}},
	{"reply", false, func(t *testing.T, c *ChatContext, m *Message) error {
		begun, err := c.BeginReply(t.Context(), "main", AppendOptions{})
		if err != nil {
			return err
		}
		_, err = begun.Reply.Finish(t.Context(), Ending{Messages: []*Message{m}})
		if err != nil {
			_, giveUp := begun.Reply.Finish(t.Context(), Ending{})
			err = errors.Join(err, giveUp)
		}
		return err
	}},
	{"queue", false, func(t *testing.T, c *ChatContext, m *Message) error {
		begun, err := c.BeginReply(t.Context(), "main", AppendOptions{})
		if err != nil {
			return err
		}
		_, err = c.BeginReply(t.Context(), "main", AppendOptions{}, m)
		for range 2 { // the second ends the claim that is kept for what waited
			if _, ended := begun.Reply.Finish(t.Context(), Ending{}); ended != nil && !errors.Is(ended, ErrStopped) {
				err = errors.Join(err, ended)
			}
		}
		return err
	}},
	{"native import", false, func(t *testing.T, c *ChatContext, m *Message) error {
		snap, err := c.Snapshot(t.Context(), "main")
		if err != nil {
			return err
		}
		ids, err := snap.IDs(t.Context())
		if err != nil {
			return err
		}
		i, err := intake.NewImportRun(base.Of(c.store), care.RemoveContext).Native(t.Context(), record.Native{ID: c.ID, Title: "T", Active: "main"})
		if err != nil {
			return err
		}
		if err := i.Branch(t.Context(), record.NativeBranch{Name: "main"}); err != nil {
			return err
		}
		var all []*Message
		for _, id := range ids {
			have, err := c.Message(t.Context(), id)
			if err != nil {
				return err
			}
			if id != m.ID {
				all = append(all, have)
			}
		}
		if slices.Contains(ids, m.ID) {
			all = slices.Insert(all, slices.Index(ids, m.ID), m)
		} else {
			all = append(all, m)
		}
		if err := i.Append(t.Context(), all, nil); err != nil {
			return err
		}
		_, err = i.Finish(t.Context())
		return err
	}},
}

// TestAMessageIsStoredOnce holds every door to the rule that an id names one content in its context. What an edited file says goes on a branch, under an id of its own.
func TestAMessageIsStoredOnce(t *testing.T) {
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			s := open(t, "")
			c := newContext(t, s, "a", ">b")
			snap, err := c.Snapshot(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			ids, err := snap.IDs(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			before, _ := c.Info(t.Context())

			same := &Message{ID: ids[0], Role: pool.User, Content: says("a")[0].Content}
			if err := d.take(t, c, same); err != nil {
				t.Fatal(err)
			}
			want(t, texts(t, c, "main"), "a >b")

			for what, m := range map[string]*Message{
				"text": {ID: ids[0], Role: pool.User, Content: says("other")[0].Content},
				"role": {ID: ids[0], Role: pool.Assistant, Content: says("a")[0].Content},
				"calls": {ID: ids[1], Role: pool.Assistant, Content: says(">b")[0].Content,
					Calls: []pool.Call{{ID: "c", Tool: "t", Arguments: json.RawMessage(`{}`)}}},
			} {
				err := d.take(t, c, m)
				if d.name == "native import" {
					before.Messages++
					if _, lost := c.Branch(t.Context(), fmt.Sprintf("main.%d", before.Branches+1)); err != nil || lost != nil || m.ID == *m.CopiedFrom {
						t.Errorf("another %s: %v, %v", what, err, lost)
					}
					before.Branches++
				} else if !errors.Is(err, ErrConflict) && d.name != "append with a key" {
					t.Errorf("another %s: %v", what, err)
				}
				want(t, texts(t, c, "main"), "a >b")
			}
			after, _ := c.Info(t.Context())
			if after.Messages != before.Messages {
				t.Errorf("%d messages, there were %d", after.Messages, before.Messages)
			}
		})
	}
}

// TestAMessageComesBackOnItsBranch: a message of the pool that the branch does not hold is put there, without being stored again, and undo and
// redo hold.
func TestAMessageComesBackOnItsBranch(t *testing.T) {
	for _, d := range doors {
		if d.loose || d.name == "native import" {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			s := open(t, "")
			c := newContext(t, s, "a", "b", "c")
			m, err := c.Message(t.Context(), appendTo(t, c, "", says("d")...).Placed[0].Message)
			if err != nil {
				t.Fatal(err)
			}
			b := c.Begin("")
			b.Rewind("@2")
			commit(t, b)
			before, _ := c.Info(t.Context())
			if err := d.take(t, c, m); err != nil {
				t.Fatal(err)
			}
			placed := map[bool]string{true: "d a b", false: "a b d"}[d.name == "insert"]
			want(t, texts(t, c, "main"), placed)
			after, _ := c.Info(t.Context())
			if after.Messages != before.Messages {
				t.Errorf("%d messages, there were %d", after.Messages, before.Messages)
			}
			if _, err := s.Undo(t.Context(), c.ID.String(), "main", ""); err != nil {
				t.Fatal(err)
			}
			want(t, texts(t, c, "main"), "a b")
			if _, err := s.Redo(t.Context(), c.ID.String(), "main"); err != nil {
				t.Fatal(err)
			}
			want(t, texts(t, c, "main"), placed)
			if _, err := s.Undo(t.Context(), c.ID.String(), "main", ""); err != nil {
				t.Fatal(err)
			}
			if d.name == "append with a key" {
				return // it is known from now on
			}
			if err := d.take(t, c, m); err != nil {
				t.Fatal(err)
			}
			want(t, texts(t, c, "main"), placed)
		})
	}
}

// TestCallsOfAMessageThatComesAgain: what waits on another branch waits on its own in a copy, once.
func TestCallsOfAMessageThatComesAgain(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "a")
	b := c.Begin("main")
	b.Fork("other", ForkOptions{Stay: true})
	commit(t, b)
	asks := &Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "x", Tool: "t", Arguments: json.RawMessage(`{"k": 1}`)}}}
	id := appendTo(t, c, "main", asks).Placed[0].Message
	given := func() *Message {
		return &Message{ID: id, Role: pool.Assistant, Calls: []pool.Call{{ID: "x", Tool: "t", Arguments: json.RawMessage(`{"k":1}`)}}}
	}
	first := appendTo(t, c, "other", given()).Placed[0]
	if first.Message == id || first.Known {
		t.Fatalf("%+v, not a copy", first)
	}
	again := appendTo(t, c, "other", given()).Placed[0]
	if again != (record.Placement{Message: first.Message, Position: 2, Known: true}) {
		t.Errorf("again %+v, was %+v", again, first)
	}
	copied, err := c.Message(t.Context(), first.Message)
	if err != nil || copied.CopiedFrom == nil || *copied.CopiedFrom != id {
		t.Errorf("%+v %v", copied, err)
	}
	if n := len(openRefs(t, s, record.CallFilter{Context: c.ID})); n != 2 {
		t.Errorf("%d calls wait, want 2", n)
	}
	// Its result comes along: the call of the copy is answered by it.
	result := &Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "x", Text: "r"}}
	appendTo(t, c, "other", given(), result)
	if n := len(openRefs(t, s, record.CallFilter{Context: c.ID})); n != 1 {
		t.Errorf("%d calls wait, want 1", n)
	}
}

// TestARunOfMessagesGoesToAnotherBranch: a call and its result from one branch are shared by the other.
func TestARunOfMessagesGoesToAnotherBranch(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "a")
	b := c.Begin("main")
	b.Fork("other", ForkOptions{Stay: true})
	commit(t, b)
	placed := appendTo(t, c, "main", &Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "x", Tool: "t"}}},
		&Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "x", Text: "r"}}, says(">b")[0]).Placed
	var all []*Message
	for _, p := range placed {
		m, err := c.Message(t.Context(), p.Message)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	got := appendTo(t, c, "other", slices.Concat(says("new"), all, says("last"))...).Placed
	for i, p := range placed {
		if got[i+1].Message != p.Message || got[i+1].Position != i+3 || got[i+1].Known {
			t.Errorf("%+v, want %v", got[i+1], p)
		}
	}
	want(t, texts(t, c, "other"), "a new  =r >b last")
	if refs := openRefs(t, s, record.CallFilter{Context: c.ID}); len(refs) > 0 {
		t.Errorf("%v wait", refs)
	}
}

func TestInsertOfKnownMessagesSaysWhereTheyAre(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "a", "b")
	snap, _ := c.Snapshot(t.Context(), "")
	ids, err := snap.IDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := c.Begin("")
	x, y := says("x")[0], says("y")[0]
	b.Insert("@1", x, &Message{ID: ids[1], Role: pool.User, Content: says("b")[0].Content}, y)
	placed := commit(t, b).Last().Placed
	if !slices.Equal(placed, []record.Placement{{Message: x.ID, Position: 1}, {Message: ids[1], Position: 4, Known: true}, {Message: y.ID, Position: 2}}) {
		t.Errorf("%+v", placed)
	}
	want(t, texts(t, c, ""), "x y a b")
}

func TestABatchIsCommittedOnce(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "a")
	b := c.Begin("")
	b.Append(says("b")...)
	b.Fork("x", ForkOptions{})
	commit(t, b)
	if _, err := b.Commit(t.Context()); !errors.Is(err, ErrInvalid) {
		t.Errorf("a second commit: %v", err)
	}
	want(t, texts(t, c, "main"), "a b")
	failed := c.Begin("main")
	one := uint64(99)
	failed.AppendWith(AppendOptions{Expect: &one}, says("c")...)
	for range 2 { // nothing was stored: it may be tried again, and says the same
		if _, err := failed.Commit(t.Context()); !errors.Is(err, ErrConflict) {
			t.Errorf("at another revision: %v", err)
		}
	}
}

func TestAppendsCopiesOfOtherContexts(t *testing.T) {
	s := open(t, "")
	from, to := newContext(t, s, "a", ">b"), newContext(t, s)
	snap, _ := from.Snapshot(t.Context(), "")
	page, err := snap.Page(t.Context(), 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	b := to.Begin("")
	b.AppendWith(AppendOptions{Copies: true}, page[0].Message, page[1].Message, page[0].Message)
	a := commit(t, b).Last()
	want(t, texts(t, to, ""), "a >b")
	for i, p := range a.Placed[:2] {
		m, err := to.Message(t.Context(), p.Message)
		if err != nil || m.ID == page[i].ID || m.CopiedFrom == nil || *m.CopiedFrom != page[i].ID {
			t.Errorf("%+v %v", m, err)
		}
	}
	if !a.Placed[2].Known || a.Placed[2].Message != a.Placed[0].Message {
		t.Errorf("%+v", a.Placed)
	}
}

func TestEachAppendKeepsItsKey(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s, "a")
	twoKeys := func(branchName string) *record.Committed {
		b := c.Begin(branchName)
		b.AppendWith(AppendOptions{Key: "x"}, says("x")...)
		b.AppendWith(AppendOptions{Key: "y"}, says("y")...)
		b.Fork("f", ForkOptions{Stay: true}) // the second time it would be a conflict: nothing of the batch is done again
		return commit(t, b)
	}
	first := twoKeys("main")
	b := c.Begin("main")
	b.RenameBranch("main", "trunk")
	commit(t, b)
	again := twoKeys("")
	if first.Again || !again.Again || again.Operation != "" || len(again.Steps) != 3 || !again.Steps[2].Again {
		t.Errorf("%+v, then %+v", first, again)
	}
	for i, was := range first.Steps[:2] {
		if got := again.Steps[i]; !got.Again || got.Branch != "trunk" || !slices.Equal(got.Placed, was.Placed) || got.Revision != was.Revision {
			t.Errorf("%d: %+v, was %+v", i, got, was)
		}
	}
	mixed := c.Begin("")
	mixed.AppendWith(AppendOptions{Key: "x"}, says("x")...)
	mixed.AppendWith(AppendOptions{Key: "z"}, says("z")...)
	done := commit(t, mixed)
	known, fresh := done.Steps[0], done.Steps[1]
	if !known.Again || fresh.Again || fresh.Revision != done.Revision {
		t.Errorf("%+v %+v", known, fresh)
	}
	want(t, texts(t, c, ""), "a x y z")
	twice := c.Begin("")
	twice.AppendWith(AppendOptions{Key: "t"}, says("1")...)
	twice.AppendWith(AppendOptions{Key: "t"}, says("2")...)
	if _, err := twice.Commit(t.Context()); !errors.Is(err, ErrInvalid) {
		t.Errorf("one key twice: %v", err)
	}
}

func TestBeginReplyHappensOnce(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s)
	o := AppendOptions{Key: "k"}
	first, err := c.BeginReply(t.Context(), "", o, says("a")...)
	if err != nil {
		t.Fatal(err)
	}
	busy, err := c.BeginReply(t.Context(), "", o, says("a")...)
	if err != nil || !busy.Again || busy.Reply != nil || busy.Holder == nil || !slices.Equal(busy.Last().Placed, first.Last().Placed) {
		t.Errorf("%+v %v", busy, err)
	}
	late, err := c.BeginReply(t.Context(), "", AppendOptions{Key: "q"}, says("b")...)
	if err != nil || late.Reply != nil || late.Again {
		t.Errorf("%+v %v", late, err)
	}
	if late, err = c.BeginReply(t.Context(), "", AppendOptions{Key: "q"}, says("b")...); err != nil || !late.Again || len(late.Last().Placed) != 1 || late.Last().Placed[0].Position != 0 {
		t.Errorf("%+v %v", late, err)
	}
	if _, err := first.Reply.Finish(t.Context(), Ending{Messages: says(">r")}); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Reply.Finish(t.Context(), Ending{}); err != nil {
		t.Fatal(err)
	}
	again, err := c.BeginReply(t.Context(), "", o, says("a")...)
	if err != nil || !again.Again || again.Reply == nil {
		t.Fatalf("%+v %v", again, err)
	}
	if _, err := again.Reply.Finish(t.Context(), Ending{}); err != nil {
		t.Fatal(err)
	}
	want(t, texts(t, c, ""), "a >r b")
}

func TestImportsKeepIdsApart(t *testing.T) {
	s := open(t, "")
	id := pool.NewID()
	in := func(text string) *record.Incoming {
		return &record.Incoming{Format: "f", Title: "T", Nodes: []record.Node{{Message: &Message{ID: id, Role: pool.User, Content: says(text)[0].Content}}},
			Branches: []record.IncomingBranch{{Name: "main", Leaf: 1}}}
	}
	twice := in("a")
	twice.Nodes = append(twice.Nodes, record.Node{Parent: 0, Message: &Message{ID: id, Role: pool.User, Content: says("b")[0].Content}})
	if _, err := s.Import(t.Context(), []*record.Incoming{twice}); !errors.Is(err, ErrInvalid) {
		t.Errorf("one id twice: %v", err)
	}
	one := in("a")
	if _, err := s.Import(t.Context(), []*record.Incoming{one}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(t.Context(), []*record.Incoming{one}); !errors.Is(err, ErrInvalid) {
		t.Errorf("the same conversation once more: %v", err)
	}
}

// TestClaimsOfTasksAreTheirOwn: the end of a task does not end a claim that another program has on the call by then.
func TestClaimsOfTasksAreTheirOwn(t *testing.T) {
	s, clock := clocked(t)
	c := newContext(t, s, "a")
	appendTo(t, c, "", &Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "x", Tool: "t"}}})
	if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved}); err != nil {
		t.Fatal(err)
	}
	k, err := s.ClaimCall(t.Context(), c.ID.String(), "", "x", record.ClaimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	child, err := c.StartTask(t.Context(), "", record.NewTask{NewContext: record.NewContext{Title: "child"}, Call: &k.Claimed})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Trash(t.Context(), child.ID.String()); err != nil {
		t.Fatal(err)
	}
	clock.move(2 * ClaimLife)
	other, err := s.ClaimCall(t.Context(), c.ID.String(), "", "x", record.ClaimOptions{Again: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Restore(t.Context(), child.ID.String()); err != nil {
		t.Fatal(err)
	}
	ended, err := child.EndTask(t.Context(), record.TaskEnd{State: record.TaskReturned, Summary: "s"})
	if err != nil || ended.CallState != "" {
		t.Fatalf("%+v %v", ended, err)
	}
	if err := other.Held(t.Context()); err != nil {
		t.Errorf("the other's claim: %v", err)
	}
	if _, err := k.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "late"}}); !errors.Is(err, ErrConflict) {
		t.Errorf("with the claim that ended: %v", err)
	}
	clock.move(2 * ClaimLife) // the other is dead too, and its claim on record
	if _, err := k.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "late"}}); !errors.Is(err, ErrConflict) {
		t.Errorf("with a claim that is not the dead one: %v", err)
	}
	if _, err := other.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "done"}}); err != nil {
		t.Error(err)
	}
}

// TestWatchTellsInOrder: what happens in a new context is told oldest first.
func TestWatchTellsInOrder(t *testing.T) {
	s := open(t, "")
	changes, err := s.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := newContext(t, s, "a")
	for i := range 5 {
		appendTo(t, c, "", says(fmt.Sprint(i))...)
	}
	var got []string
	for len(got) < 5 {
		ch := <-changes
		if ch.Err != nil {
			t.Fatal(ch.Err)
		}
		if ch.Context == c.ID && ch.Kind == "append" {
			got = append(got, ch.Operation)
		}
	}
	if !slices.Equal(got, []string{"1", "2", "3", "4", "5"}) {
		t.Errorf("%v", got)
	}
}

// TestOneChangeIsToldOnce: whatever an operation was about is in one event, as the journal has it in one entry.
func TestOneChangeIsToldOnce(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c, other := newContext(t, s, "a", ">b"), newContext(t, s)
		changes, err := s.Watch(t.Context())
		noErr(t, err)
		for _, step := range []struct {
			do   func(b *Batch)
			kind string
			on   []string
		}{
			{func(b *Batch) { b.Append(says("c")...) }, "append", []string{"main"}},
			{func(b *Batch) { b.Fork("goes", ForkOptions{}) }, "fork", []string{"goes"}},
			{func(b *Batch) { b.Fork("stays", ForkOptions{Stay: true}) }, "fork", []string{"stays"}},
			{func(b *Batch) { b.Append(says("d")...); b.Fork("both", ForkOptions{Stay: true}) }, "append", []string{"both", "goes"}},
			{func(b *Batch) { b.Switch("main") }, "switch", nil},
			{func(b *Batch) { b.RenameBranch("main", "first") }, "branch mv", []string{"first"}},
			{func(b *Batch) { b.SetTitle("t") }, "rename", nil},
			{func(b *Batch) { b.RemoveBranch("both") }, "branch rm", []string{"both"}},
		} {
			b := c.Begin("")
			step.do(b)
			done := commit(t, b)
			told := <-changes
			slices.Sort(told.Branches)
			if !reflect.DeepEqual(told, record.Change{Context: c.ID, Branches: step.on, Kind: step.kind, Operation: done.Operation}) {
				t.Errorf("%s: told of %+v", step.kind, told)
			}
		}
		done, err := s.Undo(t.Context(), c.ID.String(), "", "")
		noErr(t, err)
		if told := <-changes; told.Kind != "undo" || told.Operation != done.Operation || told.Context != c.ID {
			t.Errorf("undo: told of %+v, it was %+v", told, done)
		}
		trashed, err := s.Trash(t.Context(), c.ID.String(), other.ID.String())
		noErr(t, err)
		of := map[ID]bool{}
		for range 2 {
			told := <-changes
			of[told.Context] = told.Operation == trashed.Operation
		}
		if !of[c.ID] || !of[other.ID] {
			t.Errorf("the trash of two: told of %v", of)
		}
		appendTo(t, newContext(t, s), "", says("x")...)
		for _, kind := range []string{"new", "append"} {
			if told := <-changes; told.Kind != kind {
				t.Errorf("after all: %+v", told)
			}
		}
	})
}

// TestSessionsAreTheCallers: the hook changes what is stored, and not what the caller has.
func TestSessionsAreTheCallers(t *testing.T) {
	s, err := OpenMemory(Options{BeforeStore: func(m *Message) error {
		for i := range m.Content {
			m.Content[i].Text = "-"
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.at().Close()
	given := []branch.Session{{Digests: []branch.Digest{{Text: "d"}}, Data: map[string]json.RawMessage{"k": json.RawMessage(`{"d":"d"}`)}}}
	got, err := s.at().Sessions(given)
	if err != nil {
		t.Fatal(err)
	}
	want(t, given[0].Digests[0].Text+string(given[0].Data["k"]), `d{"d":"d"}`)
	want(t, got[0].Digests[0].Text+string(got[0].Data["k"]), `-{"d":"-"}`)
}

// flaky is an engine that cannot read for a while.
type flaky struct {
	kv.DB
	fails atomic.Bool
}

func (f *flaky) View(ctx context.Context, fn func(kv.Tx) error) error {
	if f.fails.Load() {
		return ErrLocked
	}
	return f.DB.View(ctx, fn)
}

// TestWatchTellsOfErrors: what the watch could not read it tells of later, and says so meanwhile.
func TestWatchTellsOfErrors(t *testing.T) {
	db := &flaky{DB: memkv.New()}
	s, err := OpenDB(db, Options{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.at().Close()
	c := newContext(t, s)
	changes, err := s.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db.fails.Store(true)
	b := c.Begin("")
	b.Append(says("a")...)
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ch := <-changes; !errors.Is(ch.Err, ErrLocked) {
		t.Errorf("%+v", ch)
	}
	db.fails.Store(false)
	appendTo(t, c, "", says("b")...)
	var got []string
	for len(got) < 2 {
		if ch := <-changes; ch.Err == nil {
			got = append(got, ch.Operation)
		}
	}
	if !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("%v", got)
	}
}

// TestAKeyIsForOneAppend: what a key was used for is done once; for anything else it is refused, and the message that it was used for is named.
func TestAKeyIsForOneAppend(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "a")
		under := func(branch string, m *Message) (*record.Committed, error) {
			b := c.Begin(branch)
			b.AppendWith(AppendOptions{Key: "k"}, m)
			return b.Commit(t.Context())
		}
		first, err := under("", says("b")[0])
		if err != nil {
			t.Fatal(err)
		}
		id := first.Last().Placed[0].Message
		if again, err := under("", says("b")[0]); err != nil || !again.Again || again.Last().Placed[0].Message != id {
			t.Errorf("the same again: %+v, %v", again, err)
		}
		refused := func(what string, err error, names string) {
			t.Helper()
			if !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), names) {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err = under("", says("other")[0])
		refused("another text", err, id.String())
		_, err = under("", says(">b")[0])
		refused("another role", err, id.String())
		_, err = c.BeginReply(t.Context(), "", AppendOptions{Key: "k"}, says("other")[0])
		refused("another text to reply to", err, id.String())
		b := c.Begin("")
		b.Fork("fork", ForkOptions{Stay: true})
		commit(t, b)
		_, err = under("fork", says("b")[0])
		refused("another branch", err, "main")
		b = c.Begin("")
		b.Rewind("@1")
		commit(t, b)
		_, err = under("", says("b")[0])
		refused("a message that left", err, id.String())
		want(t, texts(t, c, ""), "a")
		if _, err := s.Undo(t.Context(), c.ID.String(), "", ""); err != nil {
			t.Fatal(err)
		}
		if again, err := under("", says("b")[0]); err != nil || !again.Again {
			t.Errorf("back by undo: %+v, %v", again, err)
		}
	})
}

// TestAMessageThatWasReadElsewhere: what was read from one context and is put into another gets an id of its own there, through every door; in its own context it stays itself.
func TestAMessageThatWasReadElsewhere(t *testing.T) {
	s := open(t, "")
	from, to := newContext(t, s, "one", "two", "three"), newContext(t, s, "other")
	snap, err := from.Snapshot(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	var read []*Message
	for e, err := range snap.Entries(t.Context(), 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, e.Message)
	}
	appendTo(t, to, "", read[0])
	b := to.Begin("")
	b.Insert("@1", read[1])
	commit(t, b)
	made, err := s.New(t.Context(), record.NewContext{Title: "made of it", Messages: read})
	if err != nil {
		t.Fatal(err)
	}
	own := appendTo(t, from, "", read[2]).Placed[0]
	if own != (record.Placement{Message: read[2].ID, Position: 3, Known: true}) {
		t.Errorf("in its own context it is %+v", own)
	}
	for _, c := range []*ChatContext{to, made} {
		snap, err := c.Snapshot(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		copies := 0
		for e, err := range snap.Entries(t.Context(), 1, 0) {
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range read {
				if e.ID == m.ID {
					t.Errorf("message %s is in two contexts", m.ID)
				}
				if e.CopiedFrom != nil && *e.CopiedFrom == m.ID && e.Text() == m.Text() {
					copies++
				}
			}
		}
		if want := map[ID]int{to.ID: 2, made.ID: 3}[c.ID]; copies != want {
			t.Errorf("%d copies, want %d", copies, want)
		}
	}
	checkStore(t, s)
}

// TestReceiptsAreNotCounted: a message that says only what a title or a digest cost is kept, and is none of the conversation's messages; with words it is one.
func TestReceiptsAreNotCounted(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "a", ">b")
		loose := func(m *Message) int {
			b := c.Begin("")
			b.PutLoose(m)
			commit(t, b)
			info, err := c.Info(t.Context())
			noErr(t, err)
			return info.Messages
		}
		for _, kind := range []string{"title", "digest"} {
			m := &Message{ID: pool.NewID(), Role: pool.Assistant, Kind: kind, Hidden: true, Unsent: true}
			if n := loose(m); n != 2 {
				t.Errorf("with the receipt of a %s there are %d messages", kind, n)
			}
		}
		if n := loose(says(">words")[0]); n != 3 {
			t.Errorf("with a loose message there are %d messages", n)
		}
		checkStore(t, s)
	})
}
