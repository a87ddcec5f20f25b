package chatctx

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Batch collects changes and makes them as one operation, in one transaction, when it is committed. References are resolved
// in that transaction, each step seeing what those before it did. What the steps return is filled in by Commit. A Batch is used once, by one
// goroutine.
type Batch struct {
	store   *Store
	context string
	branch  string
	what    string
	steps   []func(*journal.Txn) error
	err     error
	prepare []func() error // run once, before the transaction
	state   batchState
	appends []*journal.Appending
	group   *journal.Group
	calls   []CallRef // that are decided; they are settled first
}

// batchState is how far a batch has come.
type batchState int

const (
	collecting batchState = iota
	prepared
	committed
)

// Begin starts a batch on a context ("" the current one) and a branch ("" the active one).
func (s *Store) Begin(contextRef, branchName string) *Batch {
	return &Batch{store: s, context: contextRef, branch: branchName}
}

// Begin starts a batch on a branch, "" for the active one.
func (c *ChatContext) Begin(branchName string) *Batch {
	return c.store.Begin(c.ID.String(), branchName)
}

// step adds a step; the first names the operation.
func (b *Batch) step(what string, fn func(*journal.Txn) error) {
	if b.what == "" {
		b.what = what
	}
	b.steps = append(b.steps, fn)
}

// Name says what the operation is called on the journal, in place of its first step.
func (b *Batch) Name(what string) { b.what = what }

// Commit makes the changes. Either all of them are stored, durably, or none. A second Commit does nothing and gives ErrInvalid, unless the first one
// stored nothing.
func (b *Batch) Commit(ctx context.Context) (*Committed, error) {
	if b.state == committed {
		return nil, record.Invalidf("the batch was committed already: begin another one")
	}
	for _, p := range b.prepare {
		if b.err == nil && b.state == collecting {
			b.err = p()
		}
	}
	if b.err != nil {
		return nil, b.err
	}
	b.state = prepared
	var done *Committed
	var stored []ID
	err := b.store.at.DB.Update(ctx, func(tx kv.RwTx) (err error) {
		done, stored, err = b.run(tx)
		return err
	})
	if err == nil || errors.Is(err, kv.ErrUnknownOutcome) {
		b.state = committed
	}
	if err != nil {
		return nil, err
	}
	find.IndexAfter(ctx, b.store.at, stored)
	b.group.Remember(done)
	return done, nil
}

// run makes the changes in a transaction, and gives the messages that it stored.
func (b *Batch) run(tx kv.RwTx) (*Committed, []ID, error) {
	t, err := journal.Begin(b.store.at, tx, b.context, b.branch)
	if err != nil {
		return nil, nil, err
	}
	t.What = b.what
	b.group.Join(t)
	if again, err := b.again(t); err != nil || again {
		return &Committed{Context: t.ID, Title: t.Rec.Title, Branch: t.Target.Name, Revision: t.Target.Revision}, nil, err
	}
	for _, step := range b.steps {
		if err := step(t); err != nil {
			return nil, nil, err
		}
	}
	done, err := t.Finish()
	for _, a := range b.appends {
		if err == nil {
			err = a.Finish(t)
		}
	}
	return done, t.Written, err
}

// Append adds messages at the end of the branch. They get ids, and their calls a state, if they have none. An id names one message for good: one that the branch
// holds already stays where it is, one that the context has elsewhere is put on the branch as a fork would hold it, and one with another content
// is an ErrConflict. Ids of other contexts are for Copies. A batch whose appends have keys that are all known does nothing.
func (b *Batch) Append(msgs []*Message, o AppendOptions) *Appended {
	a := &journal.Appending{Msgs: msgs, O: o, Res: &Appended{}}
	a.CopyIDs()
	if slices.ContainsFunc(b.appends, func(other *journal.Appending) bool { return o.Key != "" && other.O.Key == o.Key }) {
		b.err = record.Invalidf("two appends of a batch have the key %q", o.Key)
	}
	b.appends = append(b.appends, a)
	b.ready(msgs)
	b.step("append", a.Step)
	return a.Res
}

// ready prepares messages for being stored.
func (b *Batch) ready(msgs []*Message) {
	b.prepare = append(b.prepare, func() error { return b.store.at.Ready(msgs) })
}

// moved adds a step that changes the target's history.
func (b *Batch) moved(what string, fn func(*journal.Txn, *Moved) error) *Moved {
	res := &Moved{}
	b.step(what, func(t *journal.Txn) error {
		*res = Moved{}
		if err := fn(t, res); err != nil {
			return err
		}
		head, err := branch.Head(t.Tx, t.ID, t.Target.Pieces)
		res.Head, res.Messages = head, t.Target.Len()
		return err
	})
	return res
}

// Insert puts messages before another. For their ids holds what Append says.
func (b *Batch) Insert(before Ref, msgs []*Message) *Moved {
	b.ready(msgs)
	return b.moved("insert", func(t *journal.Txn, res *Moved) error {
		at, err := t.Position(t.Target, before)
		if err != nil {
			return err
		}
		if res.Added, err = t.Place(t.Target, at-1, msgs); err != nil {
			return err
		}
		return t.Merge(t.Target)
	})
}

// Fork makes a branch with everything up to and with at ("" the head) and goes on in it; stay: does not.
func (b *Batch) Fork(name string, at Ref, stay bool) *Forked {
	res := &Forked{}
	b.step("fork", func(t *journal.Txn) error {
		from := t.Target
		n := from.Len()
		if at != "" {
			pos, err := t.Position(from, at)
			if err != nil {
				return err
			}
			n = pos
		}
		made, err := t.Fork(from, name, n, res)
		if err != nil {
			return err
		}
		t.GoTo(made, stay)
		return nil
	})
	return res
}

// Edit makes a branch with everything before ref and a copy of that message with its text replaced, its other parts kept.
func (b *Batch) Edit(ref Ref, text string, o EditOptions) *Forked {
	res := &Forked{}
	b.texts("edit", &text)
	b.step("edit", func(t *journal.Txn) error {
		made, err := t.Edit(t.Target, ref, text, o, res)
		if err != nil {
			return err
		}
		t.GoTo(made, o.Stay)
		return nil
	})
	return res
}

// Rewind makes ref the head.
func (b *Batch) Rewind(ref Ref) *Moved {
	return b.moved("rewind", func(t *journal.Txn, res *Moved) error {
		pos, err := t.Position(t.Target, ref)
		if err != nil {
			return err
		}
		res.Removed = t.Target.Len() - pos
		return t.Splice(t.Target, pos, res.Removed, nil)
	})
}

// Drop takes messages off the branch; with a call go its results.
func (b *Batch) Drop(refs ...Ref) *Moved {
	return b.moved("drop", func(t *journal.Txn, res *Moved) error {
		all, err := t.WithResults(t.Target, refs)
		if err != nil {
			return err
		}
		for i := len(all) - 1; i >= 0; i-- {
			if err := t.Splice(t.Target, all[i]-1, 1, nil); err != nil {
				return err
			}
		}
		res.Removed = len(all)
		return t.Merge(t.Target)
	})
}

// Clear empties the history; sessions and figures go with it.
func (b *Batch) Clear() *Moved {
	return b.moved("clear", func(t *journal.Txn, res *Moved) error {
		res.Removed = t.Target.Len()
		if err := t.Splice(t.Target, 0, res.Removed, nil); err != nil {
			return err
		}
		t.Target.Sessions, t.Target.Tokens = nil, nil
		return nil
	})
}

// Interrupt takes the unfinished turn's messages after the user's off the branch, with all also that one. A finished turn stays. Whoever works on a
// reply there is told to stop.
func (b *Batch) Interrupt(all bool) *Moved {
	b.prepare = append(b.prepare, func() error { return b.store.stopReply(b.context, b.branch) })
	return b.moved("interrupt", func(t *journal.Txn, res *Moved) error {
		claim, err := view.ClaimOf(t.Tx, t.ID, t.Target.ID)
		if err != nil {
			return err
		}
		if claim != nil { // another than the one that was stopped
			return record.Conflict("a reply of %s began on branch %q meanwhile: interrupt once more", claim.Program, t.Target.Name)
		}
		start, finished, err := t.LastTurn(t.Target)
		if err != nil || finished {
			return err
		}
		if !all {
			start++
		}
		start = max(start, 0)
		res.Removed = t.Target.Len() - start
		return t.Splice(t.Target, start, res.Removed, nil)
	})
}

// Pick appends messages of another branch, in that branch's order; a call takes its results along, and what this branch holds already is copied.
func (b *Batch) Pick(from string, refs ...Ref) *Moved {
	return b.moved("pick", func(t *journal.Txn, res *Moved) error {
		src, err := t.Branch(from)
		if err != nil {
			return err
		}
		all, err := t.WithResults(src, refs)
		if err != nil {
			return err
		}
		var pieces []branch.Piece
		for _, pos := range all {
			pieces = append(pieces, branch.Slice(src.Pieces, pos-1, pos)...)
		}
		return t.Take(pieces, res)
	})
}

// Merge appends what from holds since the common ancestor; with a summary, one message with that text that links to where it came from.
func (b *Batch) Merge(from string, summary *string) *Moved {
	var message *Message
	if summary != nil {
		message = pool.NewText(pool.User, *summary)
		message.Kind = "summary"
		b.ready([]*Message{message})
	}
	return b.moved("merge", func(t *journal.Txn, res *Moved) error {
		src, err := t.Branch(from)
		if err != nil {
			return err
		}
		if src == t.Target {
			return record.Invalidf("a branch is not merged into itself")
		}
		n, err := branch.Shared(t.Tx, t.ID, src.Pieces, t.Target.Pieces)
		if err != nil || n == src.Len() {
			return err
		}
		if message == nil {
			return t.Take(branch.Slice(src.Pieces, n, src.Len()), res)
		}
		return t.MergeSummary(src, *message, res)
	})
}

// Switch makes a branch the active one.
func (b *Batch) Switch(name string) {
	b.step("switch", func(t *journal.Txn) error {
		to, err := t.Branch(name)
		if err != nil {
			return err
		}
		if to.ID != t.Rec.Active {
			t.OnContext = true
		}
		t.Rec.Active, t.Target = to.ID, to
		return nil
	})
}

// RemoveBranch removes a branch; what it alone holds stays until gc, so that undo can bring it back. The active and the last one stay (ErrConflict).
func (b *Batch) RemoveBranch(name string) {
	b.step("branch rm", func(t *journal.Txn) error {
		gone, err := t.Branch(name)
		if err != nil {
			return err
		}
		if gone.ID == t.Rec.Active {
			return record.Conflict("%q is the active branch: chatctx switch to another first", gone.Name)
		}
		t.OnContext = true
		return t.Remove(gone)
	})
}

// RenameBranch gives a branch another name.
func (b *Batch) RenameBranch(name, to string) {
	b.step("branch mv", func(t *journal.Txn) error {
		old, err := t.Branch(name)
		if err != nil || old.Name == to {
			return err
		}
		t.OnContext = true
		return t.Rename(old, to)
	})
}

// Tag gives a message a second name, unique in the context; a name that is in use for another message is a conflict.
func (b *Batch) Tag(name string, ref Ref) {
	b.step("tag", func(t *journal.Txn) error {
		if err := branch.CheckName(name); err != nil {
			return err
		}
		if name[0] == '@' {
			return record.Invalidf("a tag does not begin with @")
		}
		id, err := t.Message(t.Target, ref)
		if err != nil {
			return err
		}
		key := record.Under(t.ID, []byte(name)...)
		old, err := t.Tx.Get(record.TagBucket, key)
		if err != nil {
			return err
		}
		if old != nil {
			if ID(old) == id {
				return nil
			}
			return record.Conflict("the tag %q is on %s: chatctx tag rm %q first", name, Short(ID(old)), name)
		}
		t.OnContext = true
		return t.PutRaw(record.TagBucket, key, id[:])
	})
}

// Untag takes a tag away.
func (b *Batch) Untag(name string) {
	b.step("tag rm", func(t *journal.Txn) error {
		key := record.Under(t.ID, []byte(name)...)
		old, err := t.Tx.Get(record.TagBucket, key)
		if err != nil {
			return err
		}
		if old == nil {
			return NotFound("tag", name)
		}
		t.OnContext = true
		return t.PutRaw(record.TagBucket, key, nil)
	})
}

// Mark marks a message, usually pinned or excluded; "" takes the mark away.
func (b *Batch) Mark(ref Ref, mark string) {
	b.step("mark", func(t *journal.Txn) error {
		id, err := t.Message(t.Target, ref)
		if err != nil {
			return err
		}
		key := record.Under(t.ID, id[:]...)
		old, err := t.Tx.Get(record.MarkBucket, key)
		if err != nil || string(old) == mark {
			return err
		}
		t.OnContext = true
		if mark == "" {
			return t.PutRaw(record.MarkBucket, key, nil)
		}
		return t.PutRaw(record.MarkBucket, key, []byte(mark))
	})
}

// SetTitle names the context.
func (b *Batch) SetTitle(title string) {
	b.texts("title", &title)
	b.step("rename", func(t *journal.Txn) error {
		if err := view.CheckTitle(title); err != nil {
			return err
		}
		t.OnContext = t.OnContext || title != t.Rec.Title
		t.Rec.Title, t.Rec.Derived = title, false
		return nil
	})
}

// SetSystem sets the branch's system prompt; nil takes it away.
func (b *Batch) SetSystem(text *string) {
	b.prompt("system", text, func(to *branch.Branch) *string { return &to.System })
}

// SetPrompt sets the branch's user prompt; nil takes it away.
func (b *Batch) SetPrompt(text *string) {
	b.prompt("prompt", text, func(to *branch.Branch) *string { return &to.Prompt })
}

func (b *Batch) prompt(what string, text *string, field func(*branch.Branch) *string) {
	own := ""
	if text != nil {
		own = *text
	}
	b.texts("prompt", &own)
	b.step(what, func(t *journal.Txn) error {
		id, err := t.PutPrompt(own)
		if err != nil {
			return err
		}
		if f := field(t.Target); *f != id {
			*f = id
			t.Touch(t.Target)
		}
		return nil
	})
}

// SetSettings sets the branch's settings, or the context's; a null value takes a key away.
func (b *Batch) SetSettings(onContext bool, set map[string]json.RawMessage) {
	b.values("setting", &set)
	b.step("config", func(t *journal.Txn) error {
		have := &t.Target.Settings
		if onContext {
			have = &t.Rec.Settings
		}
		merged, changed, err := view.MergeSettings(*have, set)
		if err != nil || !changed {
			return err
		}
		*have = merged
		if onContext {
			t.OnContext = true
		} else {
			t.Touch(t.Target)
		}
		return nil
	})
}

// SetTokens sets the figures of the branch.
func (b *Batch) SetTokens(tokens branch.Tokens) {
	b.step("tokens", func(t *journal.Txn) error {
		t.Target.Tokens = &tokens
		t.Touch(t.Target)
		return nil
	})
}

// SetContextData sets what a program keeps under its name on the context; null takes it away.
func (b *Batch) SetContextData(name string, v json.RawMessage) {
	b.value("data", &v)
	b.step("data", func(t *journal.Txn) error {
		merged, changed, err := view.MergeSettings(t.Rec.AppData, map[string]json.RawMessage{name: v})
		t.Rec.AppData = merged
		t.OnContext = t.OnContext || changed
		return err
	})
}

// SetBranchData sets what a program keeps under its name on the branch; null takes it away.
func (b *Batch) SetBranchData(name string, v json.RawMessage) {
	b.value("data", &v)
	b.step("data", func(t *journal.Txn) error {
		merged, changed, err := view.MergeSettings(t.Target.AppData, map[string]json.RawMessage{name: v})
		if err == nil && changed {
			t.Target.AppData = merged
			t.Touch(t.Target)
		}
		return err
	})
}

// SetMessageData sets what a program keeps under its name on a message; null takes it away.
func (b *Batch) SetMessageData(ref Ref, name string, v json.RawMessage) {
	b.value("data", &v)
	b.rewrite("data", ref, func(m *Message) error {
		merged, _, err := view.MergeSettings(m.AppData, map[string]json.RawMessage{name: v})
		m.AppData = merged
		return err
	})
}

// SetCompactSummary sets the short form of a tool result.
func (b *Batch) SetCompactSummary(ref Ref, text string) {
	b.texts("summary", &text)
	b.rewrite("summary", ref, func(m *Message) error {
		if m.Result == nil {
			return record.Invalidf("message %s is no tool result", Short(m.ID))
		}
		m.Result.CompactSummary = text
		return nil
	})
}

// rewrite changes one of the few fields of a stored message that may change.
func (b *Batch) rewrite(what string, ref Ref, fn func(*Message) error) {
	b.step(what, func(t *journal.Txn) error {
		id, err := t.Message(t.Target, ref)
		if err != nil {
			return err
		}
		m, err := pool.Get(t.Tx, t.ID, id)
		if err != nil {
			return err
		}
		if err := fn(m); err != nil {
			return err
		}
		old, err := t.Tx.Get(pool.Bucket, record.Under(t.ID, id[:]...))
		if err != nil {
			return err
		}
		t.OnContext = true
		if err := t.Remember(pool.Bucket, record.Under(t.ID, id[:]...), old); err != nil {
			return err
		}
		return find.PutMessage(t.Tx, t.ID, m, t.Now)
	})
}

// SetSessions puts a branch's sessions.
func (b *Batch) SetSessions(sessions []branch.Session) {
	b.prepare = append(b.prepare, func() (err error) {
		sessions, err = b.store.at.Sessions(sessions)
		return err
	})
	b.step("sessions", func(t *journal.Txn) error {
		t.Target.Sessions = slices.Clone(sessions)
		t.Touch(t.Target)
		return nil
	})
}

// PutLoose stores a message that lies in the pool and on no branch: a session's summary. Its id is set at once.
func (b *Batch) PutLoose(m *Message) ID {
	if m.ID == (ID{}) {
		m.ID = pool.NewID()
	}
	b.ready([]*Message{m})
	b.step("loose", func(t *journal.Txn) error { return t.StoreLoose(m) })
	return m.ID
}
