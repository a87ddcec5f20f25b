package chatctx

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/chatctx/chatctx/branch"
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
	steps   []func(*txn) error
	err     error
	prepare []func() error // run once, before the transaction
	state   batchState
	appends []*appending
	group   *group
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
func (b *Batch) step(what string, fn func(*txn) error) {
	if b.what == "" {
		b.what = what
	}
	b.steps = append(b.steps, fn)
}

// Name says what the operation is called on the journal, in place of its first step.
func (b *Batch) Name(what string) { b.what = what }

// Committed says what a batch did.
type Committed struct {
	Operation string // how op log and undo name it: a number; the store's begin with s. "" where nothing changed
	What      string
	Context   ID
	Title     string
	Branch    string // the one that the steps left as theirs: after a fork, the new one
	Revision  uint64
}

// Commit makes the changes. Either all of them are stored, durably, or none. A second Commit does nothing and gives ErrInvalid, unless the first one
// stored nothing.
func (b *Batch) Commit(ctx context.Context) (*Committed, error) {
	if b.state == committed {
		return nil, invalid("the batch was committed already: begin another one")
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
	err := b.store.db.Update(ctx, func(tx kv.RwTx) (err error) {
		done, stored, err = b.run(tx)
		return err
	})
	if err == nil || errors.Is(err, kv.ErrUnknownOutcome) {
		b.state = committed
	}
	if err != nil {
		return nil, err
	}
	b.store.indexAfter(ctx, stored)
	b.group.remember(done)
	return done, nil
}

// run makes the changes in a transaction, and gives the messages that it stored.
func (b *Batch) run(tx kv.RwTx) (*Committed, []ID, error) {
	t, err := b.store.begin(tx, b.context, b.branch)
	if err != nil {
		return nil, nil, err
	}
	t.what = b.what
	b.group.join(t)
	if again, err := b.again(t); err != nil || again {
		return &Committed{Context: t.id, Title: t.rec.Title, Branch: t.target.Name, Revision: t.target.Revision}, nil, err
	}
	for _, step := range b.steps {
		if err := step(t); err != nil {
			return nil, nil, err
		}
	}
	done, err := t.finish()
	for _, a := range b.appends {
		if err == nil {
			err = a.finish(t)
		}
	}
	return done, t.written, err
}

// AppendOptions of Append. Expect, if not nil, is the revision that the branch must have (else ErrConflict). Key makes the append
// happen once: a second one with the same key within 24 hours gives what the first made. Copies gives a message whose id this context does not have an
// id of its own, and notes the other one as what it is a copy of.
type AppendOptions struct {
	Expect *uint64
	Key    string
	Copies bool
}

// Placement is where a message stands. Known: it stood there before.
type Placement struct {
	Message  ID   `cbor:"1,keyasint"`
	Position int  `cbor:"2,keyasint"`
	Known    bool `cbor:"-"`
}

// Appended is what an append made.
type Appended struct {
	Context  ID
	Branch   string // "" where the key was known and the branch is gone
	Placed   []Placement
	Revision uint64
	Again    bool // the idempotency key was known: nothing was added
}

// Append adds messages at the end of the branch. They get ids, and their calls a state, if they have none. An id names one message for good: one that the branch
// holds already stays where it is, one that the context has elsewhere is put on the branch as a fork would hold it, and one with another content
// is an ErrConflict. Ids of other contexts are for Copies. A batch whose appends have keys that are all known does nothing.
func (b *Batch) Append(msgs []*Message, o AppendOptions) *Appended {
	a := &appending{msgs: msgs, o: o, res: &Appended{}}
	a.copyIDs()
	if slices.ContainsFunc(b.appends, func(other *appending) bool { return o.Key != "" && other.o.Key == o.Key }) {
		b.err = invalid("two appends of a batch have the key %q", o.Key)
	}
	b.appends = append(b.appends, a)
	b.ready(msgs)
	b.step("append", a.step)
	return a.res
}

// ready prepares messages for being stored.
func (b *Batch) ready(msgs []*Message) {
	b.prepare = append(b.prepare, func() error { return b.store.ready(msgs) })
}

// Moved counts what a change of a history did.
type Moved struct {
	Added    []Placement
	Removed  int
	Head     ID
	Messages int // on the branch afterwards
}

// moved adds a step that changes the target's history.
func (b *Batch) moved(what string, fn func(*txn, *Moved) error) *Moved {
	res := &Moved{}
	b.step(what, func(t *txn) error {
		*res = Moved{}
		if err := fn(t, res); err != nil {
			return err
		}
		head, err := branch.Head(t.tx, t.id, t.target.Pieces)
		res.Head, res.Messages = head, t.target.Len()
		return err
	})
	return res
}

// Insert puts messages before another. For their ids holds what Append says.
func (b *Batch) Insert(before Ref, msgs []*Message) *Moved {
	b.ready(msgs)
	return b.moved("insert", func(t *txn, res *Moved) error {
		at, err := t.position(t.target, before)
		if err != nil {
			return err
		}
		if res.Added, err = t.place(t.target, at-1, msgs); err != nil {
			return err
		}
		return t.merge(t.target)
	})
}

// Forked is a new branch.
type Forked struct {
	Branch   string
	From     string
	At       ID // the last message shared; zero for none
	Messages int
}

// Fork makes a branch with everything up to and with at ("" the head) and goes on in it; stay: does not.
func (b *Batch) Fork(name string, at Ref, stay bool) *Forked {
	res := &Forked{}
	b.step("fork", func(t *txn) error {
		from := t.target
		n := from.Len()
		if at != "" {
			pos, err := t.position(from, at)
			if err != nil {
				return err
			}
			n = pos
		}
		made, err := t.fork(from, name, n, res)
		if err != nil {
			return err
		}
		t.goTo(made, stay)
		return nil
	})
	return res
}

// goTo makes a branch the active one and the steps' own. A branch that was only made is looked for on the context's journal.
func (t *txn) goTo(b *branch.Branch, stay bool) {
	t.onContext = t.onContext || stay
	if !stay {
		t.rec.Active, t.target = b.ID, b
	}
}

// EditOptions of Edit. Name "" takes main.2, main.3 … ; KeepRest carries what followed along; Stay does not go on in the new branch.
type EditOptions struct {
	Name     string
	KeepRest bool
	Stay     bool
}

// Edit makes a branch with everything before ref and a copy of that message with its text replaced, its other parts kept.
func (b *Batch) Edit(ref Ref, text string, o EditOptions) *Forked {
	res := &Forked{}
	b.texts("edit", &text)
	b.step("edit", func(t *txn) error {
		made, err := t.edit(t.target, ref, text, o, res)
		if err != nil {
			return err
		}
		t.goTo(made, o.Stay)
		return nil
	})
	return res
}

// Rewind makes ref the head.
func (b *Batch) Rewind(ref Ref) *Moved {
	return b.moved("rewind", func(t *txn, res *Moved) error {
		pos, err := t.position(t.target, ref)
		if err != nil {
			return err
		}
		res.Removed = t.target.Len() - pos
		return t.splice(t.target, pos, res.Removed, nil)
	})
}

// Drop takes messages off the branch; with a call go its results.
func (b *Batch) Drop(refs ...Ref) *Moved {
	return b.moved("drop", func(t *txn, res *Moved) error {
		all, err := t.withResults(t.target, refs)
		if err != nil {
			return err
		}
		for i := len(all) - 1; i >= 0; i-- {
			if err := t.splice(t.target, all[i]-1, 1, nil); err != nil {
				return err
			}
		}
		res.Removed = len(all)
		return t.merge(t.target)
	})
}

// Clear empties the history; sessions and figures go with it.
func (b *Batch) Clear() *Moved {
	return b.moved("clear", func(t *txn, res *Moved) error {
		res.Removed = t.target.Len()
		if err := t.splice(t.target, 0, res.Removed, nil); err != nil {
			return err
		}
		t.target.Sessions, t.target.Tokens = nil, nil
		return nil
	})
}

// Interrupt takes the unfinished turn's messages after the user's off the branch, with all also that one. A finished turn stays. Whoever works on a
// reply there is told to stop.
func (b *Batch) Interrupt(all bool) *Moved {
	b.prepare = append(b.prepare, func() error { return b.store.stopReply(b.context, b.branch) })
	return b.moved("interrupt", func(t *txn, res *Moved) error {
		claim, err := claimOf(t.tx, t.id, t.target.ID)
		if err != nil {
			return err
		}
		if claim != nil { // another than the one that was stopped
			return conflict("a reply of %s began on branch %q meanwhile: interrupt once more", claim.Program, t.target.Name)
		}
		start, finished, err := t.lastTurn(t.target)
		if err != nil || finished {
			return err
		}
		if !all {
			start++
		}
		start = max(start, 0)
		res.Removed = t.target.Len() - start
		return t.splice(t.target, start, res.Removed, nil)
	})
}

// Pick appends messages of another branch, in that branch's order; a call takes its results along, and what this branch holds already is copied.
func (b *Batch) Pick(from string, refs ...Ref) *Moved {
	return b.moved("pick", func(t *txn, res *Moved) error {
		src, err := t.branch(from)
		if err != nil {
			return err
		}
		all, err := t.withResults(src, refs)
		if err != nil {
			return err
		}
		var pieces []branch.Piece
		for _, pos := range all {
			pieces = append(pieces, branch.Slice(src.Pieces, pos-1, pos)...)
		}
		return t.take(pieces, res)
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
	return b.moved("merge", func(t *txn, res *Moved) error {
		src, err := t.branch(from)
		if err != nil {
			return err
		}
		if src == t.target {
			return invalid("a branch is not merged into itself")
		}
		n, err := branch.Shared(t.tx, t.id, src.Pieces, t.target.Pieces)
		if err != nil || n == src.Len() {
			return err
		}
		if message == nil {
			return t.take(branch.Slice(src.Pieces, n, src.Len()), res)
		}
		return t.mergeSummary(src, *message, res)
	})
}

// Switch makes a branch the active one.
func (b *Batch) Switch(name string) {
	b.step("switch", func(t *txn) error {
		to, err := t.branch(name)
		if err != nil {
			return err
		}
		if to.ID != t.rec.Active {
			t.onContext = true
		}
		t.rec.Active, t.target = to.ID, to
		return nil
	})
}

// RemoveBranch removes a branch; what it alone holds stays until gc, so that undo can bring it back. The active and the last one stay (ErrConflict).
func (b *Batch) RemoveBranch(name string) {
	b.step("branch rm", func(t *txn) error {
		gone, err := t.branch(name)
		if err != nil {
			return err
		}
		if gone.ID == t.rec.Active {
			return conflict("%q is the active branch: chatctx switch to another first", gone.Name)
		}
		t.onContext = true
		return t.remove(gone)
	})
}

// RenameBranch gives a branch another name.
func (b *Batch) RenameBranch(name, to string) {
	b.step("branch mv", func(t *txn) error {
		old, err := t.branch(name)
		if err != nil || old.Name == to {
			return err
		}
		t.onContext = true
		return t.rename(old, to)
	})
}

// Tag gives a message a second name, unique in the context; a name that is in use for another message is a conflict.
func (b *Batch) Tag(name string, ref Ref) {
	b.step("tag", func(t *txn) error {
		if err := branch.CheckName(name); err != nil {
			return err
		}
		if name[0] == '@' {
			return invalid("a tag does not begin with @")
		}
		id, err := t.message(t.target, ref)
		if err != nil {
			return err
		}
		key := under(t.id, []byte(name)...)
		old, err := t.tx.Get(tagBucket, key)
		if err != nil {
			return err
		}
		if old != nil {
			if ID(old) == id {
				return nil
			}
			return conflict("the tag %q is on %s: chatctx tag rm %q first", name, Short(ID(old)), name)
		}
		t.onContext = true
		return t.putRaw(tagBucket, key, id[:])
	})
}

// Untag takes a tag away.
func (b *Batch) Untag(name string) {
	b.step("tag rm", func(t *txn) error {
		key := under(t.id, []byte(name)...)
		old, err := t.tx.Get(tagBucket, key)
		if err != nil {
			return err
		}
		if old == nil {
			return NotFound("tag", name)
		}
		t.onContext = true
		return t.putRaw(tagBucket, key, nil)
	})
}

// Mark marks a message, usually pinned or excluded; "" takes the mark away.
func (b *Batch) Mark(ref Ref, mark string) {
	b.step("mark", func(t *txn) error {
		id, err := t.message(t.target, ref)
		if err != nil {
			return err
		}
		key := under(t.id, id[:]...)
		old, err := t.tx.Get(markBucket, key)
		if err != nil || string(old) == mark {
			return err
		}
		t.onContext = true
		if mark == "" {
			return t.putRaw(markBucket, key, nil)
		}
		return t.putRaw(markBucket, key, []byte(mark))
	})
}

// SetTitle names the context.
func (b *Batch) SetTitle(title string) {
	b.texts("title", &title)
	b.step("rename", func(t *txn) error {
		if err := checkTitle(title); err != nil {
			return err
		}
		t.onContext = t.onContext || title != t.rec.Title
		t.rec.Title, t.rec.Derived = title, false
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
	b.step(what, func(t *txn) error {
		id, err := t.putPrompt(own)
		if err != nil {
			return err
		}
		if f := field(t.target); *f != id {
			*f = id
			t.touch(t.target)
		}
		return nil
	})
}

// SetSettings sets the branch's settings, or the context's; a null value takes a key away.
func (b *Batch) SetSettings(onContext bool, set map[string]json.RawMessage) {
	b.values("setting", &set)
	b.step("config", func(t *txn) error {
		have := &t.target.Settings
		if onContext {
			have = &t.rec.Settings
		}
		merged, changed, err := mergeSettings(*have, set)
		if err != nil || !changed {
			return err
		}
		*have = merged
		if onContext {
			t.onContext = true
		} else {
			t.touch(t.target)
		}
		return nil
	})
}

// SetTokens sets the figures of the branch.
func (b *Batch) SetTokens(tokens branch.Tokens) {
	b.step("tokens", func(t *txn) error {
		t.target.Tokens = &tokens
		t.touch(t.target)
		return nil
	})
}

// SetContextData sets what a program keeps under its name on the context; null takes it away.
func (b *Batch) SetContextData(name string, v json.RawMessage) {
	b.value("data", &v)
	b.step("data", func(t *txn) error {
		merged, changed, err := mergeSettings(t.rec.AppData, map[string]json.RawMessage{name: v})
		t.rec.AppData = merged
		t.onContext = t.onContext || changed
		return err
	})
}

// SetBranchData sets what a program keeps under its name on the branch; null takes it away.
func (b *Batch) SetBranchData(name string, v json.RawMessage) {
	b.value("data", &v)
	b.step("data", func(t *txn) error {
		merged, changed, err := mergeSettings(t.target.AppData, map[string]json.RawMessage{name: v})
		if err == nil && changed {
			t.target.AppData = merged
			t.touch(t.target)
		}
		return err
	})
}

// SetMessageData sets what a program keeps under its name on a message; null takes it away.
func (b *Batch) SetMessageData(ref Ref, name string, v json.RawMessage) {
	b.value("data", &v)
	b.rewrite("data", ref, func(m *Message) error {
		merged, _, err := mergeSettings(m.AppData, map[string]json.RawMessage{name: v})
		m.AppData = merged
		return err
	})
}

// SetCompactSummary sets the short form of a tool result.
func (b *Batch) SetCompactSummary(ref Ref, text string) {
	b.texts("summary", &text)
	b.rewrite("summary", ref, func(m *Message) error {
		if m.Result == nil {
			return invalid("message %s is no tool result", Short(m.ID))
		}
		m.Result.CompactSummary = text
		return nil
	})
}

// rewrite changes one of the few fields of a stored message that may change.
func (b *Batch) rewrite(what string, ref Ref, fn func(*Message) error) {
	b.step(what, func(t *txn) error {
		id, err := t.message(t.target, ref)
		if err != nil {
			return err
		}
		m, err := pool.Get(t.tx, t.id, id)
		if err != nil {
			return err
		}
		if err := fn(m); err != nil {
			return err
		}
		old, err := t.tx.Get(pool.Bucket, under(t.id, id[:]...))
		if err != nil {
			return err
		}
		t.onContext = true
		if err := t.remember(pool.Bucket, under(t.id, id[:]...), old); err != nil {
			return err
		}
		return putMessage(t.tx, t.id, m, t.now)
	})
}

// SetSessions puts a branch's sessions.
func (b *Batch) SetSessions(sessions []branch.Session) {
	b.prepare = append(b.prepare, func() (err error) {
		sessions, err = b.store.sessions(sessions)
		return err
	})
	b.step("sessions", func(t *txn) error {
		t.target.Sessions = slices.Clone(sessions)
		t.touch(t.target)
		return nil
	})
}

// PutLoose stores a message that lies in the pool and on no branch: a session's summary. Its id is set at once.
func (b *Batch) PutLoose(m *Message) ID {
	if m.ID == (ID{}) {
		m.ID = pool.NewID()
	}
	b.ready([]*Message{m})
	b.step("loose", func(t *txn) error { return t.storeLoose(m) })
	return m.ID
}
