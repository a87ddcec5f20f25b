package chatctx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/grant"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// TestPartialRepliesCanBeRead: what Save keeps of a reply is a message whose JSON can be written, however little of a call has come, and what can be no message
// is refused.
func TestPartialRepliesCanBeRead(t *testing.T) {
	s := openAny(t, Options{Program: "test", Judge: byName{}})
	defer closeChecked(t, s)
	for _, bad := range []*Message{
		{}, {Role: "robot", Content: says(">a")[0].Content}, {Role: pool.Assistant, Created: never}, {Role: pool.Assistant, Content: []pool.Part{{}}},
		{Role: pool.User, Calls: []pool.Call{{ID: "c", Tool: "t"}}}, {Role: pool.Assistant, Calls: []pool.Call{{ID: "c", Tool: "t", Status: "perhaps"}}},
	} {
		begun, err := newContext(t, s).BeginReply(t.Context(), "", AppendOptions{}, says("q")...)
		if err != nil {
			t.Fatal(err)
		}
		if err := begun.Reply.Save(t.Context(), bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for arguments, kept := range map[string]string{`{"pa`: `"{\"pa"`, `{"path":"a"}`: `{"path":"a"}`, ``: `""`, `"\ud83d"`: `"\ufffd"`} {
		c := newContext(t, s)
		begun, err := c.BeginReply(t.Context(), "", AppendOptions{}, says("q")...)
		if err != nil {
			t.Fatal(err)
		}
		partial := &Message{Role: pool.Assistant, Content: []pool.Part{{Type: pool.TextPart, Text: "I "}, {Type: pool.CallPart, CallID: "d"}, {Type: pool.CallPart, CallID: "c"}},
			Calls: []pool.Call{{ID: "d"}, {ID: "c", Tool: "t", Arguments: json.RawMessage(arguments), Raw: json.RawMessage(`{"x`)}}}
		if err := begun.Reply.Save(t.Context(), partial); err != nil {
			t.Fatal(err)
		}
		want(t, string(partial.Calls[1].Arguments), arguments) // it goes on growing
		if m, err := c.Settle(t.Context(), "", SettleOptions{Force: true}); err != nil || len(m.Calls) != 1 || len(m.Content) != 2 {
			t.Fatalf("%+v %v", m, err)
		}
		snapshot, err := c.Snapshot(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		page, err := snapshot.Page(t.Context(), snapshot.Len(), snapshot.Len())
		if err != nil {
			t.Fatal(err)
		}
		want(t, string(page[0].Calls[0].Arguments), kept)
	}
	readAll(t, s)
}

// TestOneOfManyCommits: of several who commit one batch at once, one does.
func TestOneOfManyCommits(t *testing.T) {
	s := openAny(t, Options{Program: "test", Judge: byName{}})
	defer closeChecked(t, s)
	c := newContext(t, s)
	for range 10 {
		b := c.Begin("")
		b.Append(says("once")...)
		b.SetTitle("a title")
		var errs [6]error
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { _, errs[i] = b.Commit(t.Context()) })
		}
		all.Wait()
		done := 0
		for _, err := range errs {
			if err == nil {
				done++
			} else if !errors.Is(err, ErrInvalid) {
				t.Error(err)
			}
		}
		if done != 1 {
			t.Errorf("%d commits made it", done)
		}
	}
	snapshot, err := c.Snapshot(t.Context(), "")
	if err != nil || snapshot.Len() != 10 {
		t.Errorf("%d messages, %v", snapshot.Len(), err)
	}
}

// TestNothingIsNoMessage: nil where a message belongs is ErrInvalid, through every door.
func TestNothingIsNoMessage(t *testing.T) {
	s := openAny(t, Options{Program: "test", Judge: byName{}})
	defer closeChecked(t, s)
	c := newContext(t, s, "a")
	none := []*Message{nil}
	doors := map[string]func() error{
		"append":       func() error { _, err := c.Append(t.Context(), "", nil); return err },
		"append twice": func() error { _, err := c.Append(t.Context(), "", says("b")[0], nil); return err },
		"copies":       batch1(t, c, func(b *Batch) { b.AppendWith(AppendOptions{Key: "k", Copies: true}, nil) }),
		"insert":       batch1(t, c, func(b *Batch) { b.Insert("@1", none...) }),
		"loose":        batch1(t, c, func(b *Batch) { b.PutLoose(nil) }),
		"reply":        func() error { _, err := c.BeginReply(t.Context(), "", AppendOptions{}, nil); return err },
		"new":          func() error { _, err := s.New(t.Context(), record.NewContext{Messages: none}); return err },
		"task": func() error {
			_, err := c.StartTask(t.Context(), "", record.NewTask{NewContext: record.NewContext{Messages: none}})
			return err
		},
		"import": func() error { _, err := s.Import(t.Context(), []*record.Incoming{nil}); return err },
		"node": func() error {
			_, err := s.Import(t.Context(), []*record.Incoming{{Nodes: []record.Node{{ID: "1"}}, Branches: []record.IncomingBranch{{Name: "main", Leaf: 1}}}})
			return err
		},
		"import loose": func() error { _, err := s.Import(t.Context(), []*record.Incoming{{Loose: none}}); return err },
		"zero batch":   func() error { _, err := (&Batch{}).Commit(t.Context()); return err },
		"judge":        func() error { _, err := toolcall.Judge(t.Context(), base.Of(s), nil); return err },
		"apply rules":  func() error { _, err := s.ApplyRules(t.Context(), nil); return err },
		"counts":       func() error { return c.SetCounts(t.Context(), "e", []ID{pool.NewID()}, nil) },
		"together":     batch1(t, c, func(b *Batch) { b.Together(nil).PutLoose(nil) }),
	}
	for name, door := range doors {
		if err := door(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	begun, err := c.BeginReply(t.Context(), "", AppendOptions{}, says("q")...)
	if err != nil {
		t.Fatal(err)
	}
	begun.Reply.Together(nil)
	for _, e := range []Ending{{Messages: none}, {Loose: none, Sessions: []branch.Session{}}} {
		if _, err := begun.Reply.Finish(t.Context(), e); !errors.Is(err, ErrInvalid) {
			t.Error(err)
		}
	}
}

func batch1(t *testing.T, c *ChatContext, fn func(*Batch)) func() error {
	return func() error {
		b := c.Begin("")
		fn(b)
		_, err := b.Commit(t.Context())
		return err
	}
}

// TestNothingIsRemovedWithoutAName: what cannot be named without a reference is not removed.
func TestNothingIsRemovedWithoutAName(t *testing.T) {
	s := openAny(t, Options{Program: "test", Judge: byName{}})
	defer closeChecked(t, s)
	c := newContext(t, s, "a", ">b")
	care := s.Maintenance()
	for name, remove := range map[string]func() error{
		"trash":         func() error { _, err := s.Trash(t.Context(), ""); return err },
		"trash one of":  func() error { _, err := s.Trash(t.Context(), c.ID.String(), ""); return err },
		"restore":       func() error { _, err := s.Restore(t.Context(), ""); return err },
		"purge context": func() error { _, err := care.PurgeContext(t.Context(), "", PurgeOptions{}); return err },
		"purge branch":  func() error { _, err := care.PurgeBranch(t.Context(), c.ID.String(), "", PurgeOptions{}); return err },
		"purge messages": func() error {
			_, err := care.PurgeMessages(t.Context(), c.ID.String(), "", []record.Ref{""}, PurgeOptions{})
			return err
		},
		"remove a branch": batch1(t, c, func(b *Batch) { b.RemoveBranch("") }),
		"drop":            batch1(t, c, func(b *Batch) { b.Drop("") }),
		"rewind":          batch1(t, c, func(b *Batch) { b.Rewind("") }),
		"a rule":          batch1(t, c, func(b *Batch) { b.RemoveRule("") }),
		"a tool":          batch1(t, c, func(b *Batch) { b.RemoveTool("") }),
		"a label":         batch1(t, c, func(b *Batch) { b.Unlabel("") }),
		"a tag":           batch1(t, c, func(b *Batch) { b.Untag("") }),
		"a token":         func() error { return grant.Remove(t.Context(), base.Of(s), "") },
		"a store's rule":  func() error { _, err := s.RemoveRule(t.Context(), ""); return err },
		"a store's tool":  func() error { _, err := s.RemoveTool(t.Context(), ""); return err },
	} {
		if err := remove(); !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if snapshot, err := c.Snapshot(t.Context(), ""); err != nil || snapshot.Len() != 2 {
		t.Errorf("%v", err)
	}
}

// TestSessionsFit: sessions that name what the branch does not have are refused, and the store stays whole.
func TestSessionsFit(t *testing.T) {
	s := openAny(t, Options{Program: "test"})
	defer closeChecked(t, s)
	c := newContext(t, s)
	if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, "one"), pool.NewText(pool.Assistant, "two")); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]branch.Session{
		"start":          {Start: -5},
		"far start":      {Start: 4},
		"pruned":         {Start: 1, PrunedTo: -3},
		"far pruned":     {Start: 1, PrunedTo: 3},
		"digest":         {Start: 1, Digests: []branch.Digest{{From: 2, To: 1, Text: "a"}}},
		"far digest":     {Start: 1, Digests: []branch.Digest{{From: 2, To: 3, Text: "a"}}},
		"digest from":    {Start: 1, Digests: []branch.Digest{{From: 0, To: 1, Text: "a"}}},
		"no summary":     {Start: 2, Summary: pool.NewID()},
		"text not UTF-8": {Start: 1, Digests: []branch.Digest{{From: 1, To: 1, Text: "a\xff"}}},
	} {
		b := c.Begin("")
		b.SetSessions([]branch.Session{bad})
		if _, err := b.Commit(t.Context()); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := c.Begin("")
	summary := pool.NewText(pool.User, "It began.")
	b.PutLoose(summary)
	b.SetSessions([]branch.Session{{Start: 3, Summary: summary.ID, PrunedTo: 2, Digests: []branch.Digest{{From: 1, To: 2, Text: "a"}}}})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Error(err)
	}
}

// smallDB is an engine whose values have at most as many bytes.
type smallDB struct {
	kv.DB
	most int
}

func (d smallDB) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	return d.DB.Update(ctx, func(tx kv.RwTx) error { return fn(smallTx{tx, d.most}) })
}

type smallTx struct {
	kv.RwTx
	most int
}

func (tx smallTx) Put(bucket string, key, value []byte) error {
	if len(value) > tx.most {
		return fmt.Errorf("%w: %d bytes", kv.ErrTooLarge, len(value))
	}
	return tx.RwTx.Put(bucket, key, value)
}

// TestWhatIsTooLarge: what a store cannot hold for its size is an ErrTooLarge at every door, and nothing of it is stored. What has a place of its own has no
// such bound.
func TestWhatIsTooLarge(t *testing.T) {
	s, err := OpenDB(smallDB{memkv.New(), 1 << 19}, Options{Program: "test"})
	noErr(t, err)
	defer closeChecked(t, s)
	c := newContext(t, s, "a")
	huge := strings.Repeat("x", 1<<20)
	parts := make([]pool.Part, 100_001)
	for i := range parts {
		parts[i] = pool.Part{Type: pool.TextPart, Text: "x"}
	}
	for name, do := range map[string]func() error{
		"a text":  func() error { return second(c.Append(t.Context(), "", says(huge)...)) },
		"parts":   func() error { return second(c.Append(t.Context(), "", &Message{Role: pool.User, Content: parts})) },
		"new":     func() error { return second(s.New(t.Context(), record.NewContext{Messages: says(huge)})) },
		"a reply": func() error { return second(c.BeginReply(t.Context(), "", AppendOptions{}, says(huge)...)) },
		"an edit": func() error {
			b := c.Begin("")
			b.Edit("@1", huge, record.EditOptions{})
			return second(b.Commit(t.Context()))
		},
		"a prompt": func() error { b := c.Begin(""); b.SetSystem(huge); return second(b.Commit(t.Context())) },
		"settings": func() error {
			return second(s.SetSettings(t.Context(), map[string]json.RawMessage{"app.x": json.RawMessage(`"` + huge + `"`)}))
		},
		"app data": func() error {
			b := c.Begin("")
			b.SetContextData("x", json.RawMessage(`"`+huge+`"`))
			return second(b.Commit(t.Context()))
		},
		"a summary": func() error { b := c.Begin(""); b.PutLoose(says(huge)[0]); return second(b.Commit(t.Context())) },
	} {
		if err := do(); !errors.Is(err, ErrTooLarge) || len(err.Error()) > 1000 {
			t.Errorf("%s: %.300v, want ErrTooLarge", name, err)
		}
	}
	want(t, texts(t, c, ""), "a")
	noErr(t, second(s.PutArtifact(t.Context(), []byte(huge), "text/plain")))
}
