package chatctx

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Batch collects changes, and Commit makes them as one operation, in one transaction. References are resolved in that transaction, so each step sees the
// effects of the steps before it. Commit returns what the steps made. One goroutine fills a Batch; it is committed once: if several goroutines commit it,
// one succeeds and the others get ErrInvalid.
type Batch struct {
	mu      sync.Mutex // held by Commit
	store   *Store
	context string
	branch  string
	what    string
	steps   []step
	expect  *uint64
	err     error
	prepare []func() error // run once, before the transaction
	state   batchState
	keys    []string    // of the appends that have one
	fresh   map[ID]bool // new ids of the batch's messages, under which nothing can be stored yet
	group   *journal.Group
	command *journal.Command // the command that makes it; nil if the batch is a part of a group
	calls   []record.CallRef // calls that the batch decides; they are settled first
	rules   *toolcall.TriedRules
}

// step is one change of a batch. key, of an append, makes it happen once.
type step struct {
	what string
	key  string
	msgs []*Message // of an append with a key
	do   func(*journal.Txn, *Step) error
}

// batchState is the progress of a batch.
type batchState int

const (
	collecting batchState = iota
	prepared
	committed
)

// Begin starts a batch on a context ("" means the current one) and a branch, by name or id ("" means the active one).
func (s *Store) Begin(contextRef, branchName string) *Batch {
	return &Batch{store: s, context: contextRef, branch: branchName}
}

// Begin starts a batch on a branch; "" means the active one.
func (c *ChatContext) Begin(branchName string) *Batch {
	return c.store.Begin(c.ID.String(), branchName)
}

// step adds a step. The first one names the operation.
func (b *Batch) step(what string, do func(*journal.Txn, *Step) error) {
	b.steps = append(b.steps, step{what: what, do: do})
}

// Len returns the number of steps so far, which is the place of the next one in Committed.Steps.
func (b *Batch) Len() int { return len(b.steps) }

// Name sets the operation's name on the journal, instead of that of the first step.
func (b *Batch) Name(what string) { b.what = what }

// Expect makes Commit fail with ErrConflict unless the branch is at this revision.
func (b *Batch) Expect(revision uint64) { b.expect = &revision }

// Together makes this batch a part of one command with another, so that Undo undoes them together. Where somebody else has done something between them on the
// branch or the context, a new command begins. Pass the batch itself if only replies follow (Reply.Together); nil changes nothing. It returns the batch.
func (b *Batch) Together(with *Batch) *Batch {
	if with == nil {
		return b
	}
	if with.group == nil {
		with.group = journal.NewGroup()
	}
	b.group = with.group
	return b
}

// Commit makes the changes. Either all of them are stored, durably, or none. After a Commit that stored something, another one does nothing and returns
// ErrInvalid.
//
// While an answer is being written on a branch (BeginReply), its history may only grow at its end, and the branch must stay. Other changes of the branch
// fail with ErrConflict, as do Undo and Redo of such changes.
func (b *Batch) Commit(ctx context.Context) (*record.Committed, error) {
	if b.store == nil {
		return nil, base.Invalidf("the batch was not begun: use Store.Begin or ChatContext.Begin")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == committed {
		return nil, base.Invalidf("the batch was committed already: begin another one")
	}
	for _, p := range b.prepare {
		if b.err == nil && b.state == collecting {
			b.err = p()
		}
	}
	if b.err == nil && b.rules != nil {
		b.err = b.rules.Try(b.context)
	}
	if b.err != nil {
		return nil, b.err
	}
	b.state = prepared
	var err error
	if ctx, b.context, err = view.InLane(ctx, b.store.at(), b.context); err != nil {
		return nil, err
	}
	var done *record.Committed
	var t *journal.Txn
	if b.group == nil {
		b.command = journal.CommandOf(ctx)
	}
	err = b.command.Store(func() error {
		return b.store.settled(ctx, func() error {
			return b.store.at().Update(ctx, func(tx kv.RwTx) (err error) {
				t, done, err = b.run(tx)
				return err
			})
		})
	})
	if err == nil || errors.Is(err, kv.ErrUnknownOutcome) {
		b.state = committed
	}
	if err != nil {
		return nil, err
	}
	return done, t.Arrive()
}

// run makes the changes in a transaction.
func (b *Batch) run(tx kv.RwTx) (*journal.Txn, *record.Committed, error) {
	begin := journal.Begin
	if len(b.steps) > 0 && b.steps[0].what == switchStep {
		begin = journal.BeginAnywhere
	}
	if err := b.fetch(tx); err != nil {
		return nil, nil, err
	}
	t, err := begin(b.store.at(), tx, b.context, b.branch)
	if err != nil {
		return nil, nil, err
	}
	if t.What = b.what; t.What == "" && len(b.steps) > 0 {
		t.What = b.steps[0].what
	}
	t.Fresh = maps.Clone(b.fresh)
	b.group.Join(t)
	b.command.Join(t)
	if again, err := b.again(t); err != nil || again != nil {
		return t, again, err
	}
	if err := t.Expect(b.expect); err != nil {
		return nil, nil, err
	}
	made := make([]*Step, len(b.steps))
	for i, s := range b.steps {
		made[i] = journal.NewStep(s.what)
		if err := s.do(t, made[i]); err != nil {
			return nil, nil, err
		}
	}
	done, err := t.Finish(made...)
	for i, s := range b.steps {
		if err == nil {
			err = t.Keep(s.key, made[i])
		}
	}
	return t, done, err
}

// fetch reads at once what the batch will read in any case: the context, the branch if its id is known, what the last batch on it led to, and what is
// stored under its keys and the ids of its messages.
func (b *Batch) fetch(tx kv.Tx) error {
	var id ID
	if len(b.context) != 36 || id.UnmarshalText([]byte(b.context)) != nil {
		return nil
	}
	keys := append(view.BranchKeys(id, b.branch), b.store.at().Hints.Keys(id, b.branch)...)
	for _, s := range b.steps {
		if s.key != "" {
			keys = append(keys, kv.In(base.KeyBucket, journal.KeyRange(id, s.key)))
		}
		for _, m := range s.msgs {
			if b.fresh[m.ID] {
				continue
			}
			keys = append(keys, kv.Key{Bucket: poolstore.Bucket, Key: base.Under(id, m.ID[:]...)})
		}
	}
	return view.Together(b.store.at(), tx, id, keys...)
}

// switchStep is the name of Switch's step.
const switchStep = "switch"

// again returns the result of the batch's appends if their keys are all known because it was committed before, else nil.
func (b *Batch) again(t *journal.Txn) (*record.Committed, error) {
	if len(b.keys) == 0 {
		return nil, nil
	}
	made := make([]*Step, len(b.steps))
	for i, s := range b.steps {
		made[i] = journal.NewStep(s.what)
		made[i].Again = true
		if s.key == "" {
			continue
		}
		if known, err := t.Known(s.key, s.msgs, made[i]); err != nil || !known {
			return nil, err
		}
	}
	return &record.Committed{What: t.What, Context: t.ID, Title: t.Rec.Title, Branch: t.Target.Name, Revision: t.Target.Revision, Again: true, Steps: made}, nil
}

// Append adds messages at the end of the branch. Messages without an id get one, and their calls get a state. An id names one message for good: a message
// that the branch holds already stays where it is, one that the context has elsewhere is put on the branch as a fork would hold it, and one with another
// content is an ErrConflict. One that was read from another context gets an id of its own here; for those that came as JSON use AppendOptions.Copies.
func (b *Batch) Append(messages ...*Message) { b.AppendWith(AppendOptions{}, messages...) }

// AppendWith is Append with options. A batch whose appends have keys that are all known does nothing.
func (b *Batch) AppendWith(o AppendOptions, messages ...*Message) {
	a := &journal.Appending{Msgs: messages, O: o, Fresh: journal.CopyIDs(messages, o.Copies)}
	if o.Key != "" {
		if err := journal.CheckKey(&o); b.err == nil {
			b.err = err
		}
		if slices.Contains(b.keys, o.Key) {
			b.err = base.Invalidf("two appends of a batch have the key %q", o.Key)
		}
		b.keys = append(b.keys, o.Key)
	}
	b.ready(messages)
	b.texts("prompt", &a.O.System)
	b.steps = append(b.steps, step{what: "append", key: o.Key, msgs: messages, do: a.Step})
}

// ready prepares messages for storage.
func (b *Batch) ready(msgs []*Message) {
	b.prepare = append(b.prepare, func() error {
		var without []*Message
		for _, m := range msgs {
			if m != nil && m.ID == (ID{}) {
				without = append(without, m)
			}
		}
		err := b.store.at().Ready(msgs)
		if b.fresh == nil {
			b.fresh = map[ID]bool{}
		}
		for _, m := range without {
			b.fresh[m.ID] = true
		}
		return err
	})
}

// history adds a step that changes the target's history.
func (b *Batch) history(what string, do func(*journal.Txn, *Step) error) {
	b.step(what, func(t *journal.Txn, s *Step) error {
		if err := do(t, s); err != nil {
			return err
		}
		return t.Stands(s, t.Target)
	})
}

// Insert puts messages before another. It treats their ids as Append does.
func (b *Batch) Insert(before record.Ref, messages ...*Message) {
	fresh := journal.CopyIDs(messages, false)
	b.ready(messages)
	b.history("insert", func(t *journal.Txn, s *Step) error {
		at, err := t.Position(t.Target, before)
		if err != nil {
			return err
		}
		own, err := t.Copies(messages, fresh)
		if err != nil {
			return err
		}
		if s.Placed, err = t.Place(t.Target, at-1, own); err != nil {
			return err
		}
		return t.Merge(t.Target)
	})
}

// Step is the result of one step of a batch. Fields that do not concern the kind of step are zero.
//
// Fields: What, Branch string; Revision uint64; Placed []Placement; Removed int; From string; At ID; Beside string; Head ID; Messages int; Again bool; Call
// *Call; Rule *Rule; Broken []Broken. For more of each: go doc chatctx/record.Step
type Step = record.Step

// MostKey is the longest key of an append, in bytes of UTF-8.
const MostKey = journal.MostKey

// AppendOptions are options of AppendWith. Expect, if not nil, is the revision that the branch must have, else the append fails with ErrConflict. Key makes
// the append happen once: a second one with the same key within 24 hours returns what the first made, and fails with ErrConflict if it has other messages or
// another branch, or if one of the messages has left the branch. Copies gives a message whose id this context does not have an id of its own, and records the
// original as CopiedFrom. System, if not empty, becomes the branch's system prompt together with the messages.
//
// Fields: Expect *uint64; Key string; Copies bool; System string. For more of each: go doc chatctx/record.AppendOptions
type AppendOptions = record.AppendOptions

// ForkOptions are options of Fork. At is the last message of the new branch, "" the head; if only another branch holds it, that one is forked. Stay leaves
// the active branch as it is. Where another branch has the name, the new one is called ELSE.2, ELSE.3 … after Else, or with "" Commit fails.
type ForkOptions struct {
	At   record.Ref
	Stay bool
	Else string
}

// Fork makes a branch with everything up to a message, and makes it the active one.
func (b *Batch) Fork(name string, o ForkOptions) {
	b.step("fork", func(t *journal.Txn, s *Step) error {
		if err := branchstore.CheckNewName(name); err != nil {
			return err
		}
		if o.Else != "" {
			if err := branchstore.CheckNewName(o.Else + ".2"); err != nil {
				return err
			}
		}
		from, n := t.Target, branchstore.Len(t.Target)
		if o.At != "" {
			var err error
			if from, n, err = t.Locate(from, o.At); err != nil {
				return err
			}
		}
		name, err := t.NameOr(name, o.Else)
		if err != nil {
			return err
		}
		made, err := t.Fork(from, name, n, s)
		if err != nil {
			return err
		}
		t.GoTo(made, o.Stay)
		return nil
	})
}

// ForkForReply is Fork with Stay for a single answer: the branch is claimed for the Reply, which can be used once the batch is committed. If the reply ends
// without a message, the branch is removed, unless something else was done on it. If its program dies before anything was stored, SettleDead removes the
// branch. Branch is set by the commit.
func (b *Batch) ForkForReply(name string, o ForkOptions) *Reply {
	o.Stay = true
	b.Fork(name, o)
	fork, r, claim := b.steps[len(b.steps)-1].do, &Reply{Branch: name, store: b.store}, b.store.at().NewClaim()
	b.steps[len(b.steps)-1].do = func(t *journal.Txn, s *Step) error {
		if err := fork(t, s); err != nil {
			return err
		}
		made, err := t.Branch(s.Branch)
		if err != nil {
			return err
		}
		claim.Made = t.Number()
		r.Branch = made.Name
		r.Context, r.id, r.token = t.ID, made.ID, claim.Token
		r.command.On(t.ID, made.ID)
		return base.PutRecord(t.Tx, base.ClaimBucket, replyKey(t, made), claim)
	}
	return r
}

// Edit makes a branch with everything before ref and a copy of that message with another text; its other parts stay, except thinking.
func (b *Batch) Edit(ref record.Ref, text string, o record.EditOptions) {
	b.texts("edit", &text)
	b.step("edit", func(t *journal.Txn, s *Step) error {
		made, err := t.Edit(t.Target, ref, text, o, s)
		if err != nil {
			return err
		}
		t.GoTo(made, o.Stay)
		return nil
	})
}

// Rewind makes ref the head.
func (b *Batch) Rewind(ref record.Ref) {
	b.history("rewind", func(t *journal.Txn, s *Step) error {
		pos, err := t.Position(t.Target, ref)
		if err != nil {
			return err
		}
		s.Removed = branchstore.Len(t.Target) - pos
		return t.Splice(t.Target, pos, s.Removed, nil)
	})
}

// Drop removes messages from the branch, and with a call its results. A Ref may be a range.
func (b *Batch) Drop(refs ...record.Ref) {
	b.history("drop", func(t *journal.Txn, s *Step) error {
		for _, ref := range refs {
			if err := base.Named("message", string(ref)); err != nil {
				return err
			}
		}
		all, err := t.WithResults(t.Target, refs)
		if err != nil {
			return err
		}
		for i := len(all) - 1; i >= 0; i-- {
			if err := t.Splice(t.Target, all[i]-1, 1, nil); err != nil {
				return err
			}
		}
		s.Removed = len(all)
		return t.Merge(t.Target)
	})
}

// Clear empties the history, with its sessions and figures.
func (b *Batch) Clear() {
	b.history("clear", func(t *journal.Txn, s *Step) error {
		s.Removed = branchstore.Len(t.Target)
		if err := t.Splice(t.Target, 0, s.Removed, nil); err != nil {
			return err
		}
		t.Target.Sessions, t.Target.Tokens = nil, nil
		return nil
	})
}

// InterruptOptions are options of Interrupt. Question also removes the user's message.
type InterruptOptions struct{ Question bool }

// Interrupt removes the unfinished turn but keeps the user's message. A finished turn stays. A reply that is being written there is stopped.
func (b *Batch) Interrupt(o InterruptOptions) {
	b.prepare = append(b.prepare, func() error { return b.store.stopReply(b.context, b.branch) })
	b.history("interrupt", func(t *journal.Txn, s *Step) error {
		claim, err := view.ClaimOf(t.Tx, t.ID, t.Target.ID)
		if err != nil {
			return err
		}
		if claim != nil { // not the one that was stopped
			return base.Conflict("a reply of %s began on branch %q meanwhile: interrupt once more", claim.Program, t.Target.Name)
		}
		start, finished, err := t.LastTurn(t.Target)
		if err != nil || finished {
			return err
		}
		if !o.Question {
			start++
		}
		start = max(start, 0)
		s.Removed = branchstore.Len(t.Target) - start
		return t.Splice(t.Target, start, s.Removed, nil)
	})
}

// Pick appends messages of another branch, in that branch's order, and with a call its results. Messages that this branch holds already are copied. A Ref
// may be a range.
func (b *Batch) Pick(from string, refs ...record.Ref) {
	b.history("pick", func(t *journal.Txn, s *Step) error {
		pieces, err := t.ToPick(from, refs)
		if err != nil {
			return err
		}
		return t.Bring(pieces, s)
	})
}

// Take puts the whole answer to which ref's message belongs in the place of the branch's own answer to the same user's message, or at the branch's end if
// it has none. What the branch had from there on goes to a new branch, which the step names in Beside. Calls without a result wait again in the copy.
// Taking an answer that the branch has already changes nothing. It is an ErrConflict if the branch does not hold that user's message, or an answer is being
// written on it.
func (b *Batch) Take(ref record.Ref, o record.TakeOptions) {
	b.history("take", func(t *journal.Txn, s *Step) error { return t.TakeAnswer(ref, o, s) })
}

// MergeOptions are options of Merge. Summary, if not "", is the text of one message that stands for those of the other branch and links to its origin.
type MergeOptions struct{ Summary string }

// Merge appends the messages that from holds after the common ancestor and this branch does not hold yet, also not as copies with calls that wait. If there
// are none, or a summary of all up to from's head is here, it changes nothing.
func (b *Batch) Merge(from string, o MergeOptions) {
	var message *Message
	if o.Summary != "" {
		message = pool.NewText(pool.User, o.Summary)
		message.Kind = journal.SummaryKind
		b.ready([]*Message{message})
	}
	b.history("merge", func(t *journal.Txn, s *Step) error {
		src, err := t.Branch(from)
		if err != nil {
			return err
		}
		if src == t.Target {
			return base.Invalidf("a branch cannot be merged into itself: name another one")
		}
		return t.MergeBranch(src, message, s)
	})
}

// Switch makes a branch the active one. A part of its name that no other branch has is enough, ignoring case.
func (b *Batch) Switch(name string) {
	b.step(switchStep, func(t *journal.Txn, _ *Step) error {
		to, err := t.BranchLike(name)
		if err != nil {
			return err
		}
		t.Switch(to)
		return nil
	})
}

// RemoveBranch removes a branch. What it alone holds stays until gc, so that undo can bring it back. The active branch and the last one cannot be removed
// (ErrConflict).
func (b *Batch) RemoveBranch(name string) {
	b.step("branch rm", func(t *journal.Txn, _ *Step) error {
		if err := base.Named("branch", name); err != nil {
			return err
		}
		gone, err := t.Branch(name)
		if err != nil {
			return err
		}
		if active, err := t.IsActive(gone); err != nil {
			return err
		} else if active && gone.ID == t.Rec.Active && b.store.at().Place != nil {
			return base.Conflict("the branch %q cannot be removed: everybody who has not switched is on it", gone.Name)
		} else if active {
			return base.Conflict("%q is the active branch: chatctx switch to another first", gone.Name)
		}
		t.OnContext = true
		return t.Remove(gone)
	})
}

// RestoreBranch brings a removed branch back, as an undo of its removal does, whatever was done since. as gives it another name; "" keeps its own, which may be in
// use by now (ErrConflict). If two removed ones have the name it is an ErrAmbiguous, whose candidates name the operations that removed them.
func (b *Batch) RestoreBranch(name, as string) {
	b.step("branch restore", func(t *journal.Txn, _ *Step) error {
		if err := base.Named("branch", name); err != nil {
			return err
		}
		if as != "" {
			if err := branchstore.CheckNewName(as); err != nil {
				return err
			}
		}
		t.OnContext = true
		return t.RestoreBranch(name, as)
	})
}

// RenameBranch gives a branch another name.
func (b *Batch) RenameBranch(name, to string) {
	b.step("branch mv", func(t *journal.Txn, _ *Step) error {
		old, err := t.Branch(name)
		if err != nil || old.Name == to {
			return err
		}
		if err := branchstore.CheckNewName(to); err != nil {
			return err
		}
		t.OnContext = true
		return t.Rename(old, to)
	})
}

// Tag gives a message a name that is unique in the context. It is an ErrConflict if another message has the name.
func (b *Batch) Tag(name string, ref record.Ref) {
	b.step("tag", func(t *journal.Txn, _ *Step) error {
		if err := branchstore.CheckNewName(name); err != nil {
			return err
		}
		id, err := t.Message(t.Target, ref)
		if err != nil {
			return err
		}
		key := base.Under(t.ID, []byte(name)...)
		old, err := t.Tx.Get(base.TagBucket, key)
		if err != nil {
			return err
		}
		if old != nil {
			if ID(old) == id {
				return nil
			}
			return base.Conflict("the tag %q is on %s: chatctx tag rm %q first", name, record.Short(ID(old)), name)
		}
		t.OnContext = true
		return t.PutRaw(base.TagBucket, key, id[:])
	})
}

// Untag removes a tag.
func (b *Batch) Untag(name string) {
	b.removeNamed("tag rm", base.TagBucket, "tag", name)
}

// removeNamed adds the step does, which removes the record of that name, a what, from the context.
func (b *Batch) removeNamed(does, bucket, what, name string) {
	b.step(does, func(t *journal.Txn, _ *Step) error {
		key := base.Under(t.ID, []byte(name)...)
		old, err := t.Tx.Get(bucket, key)
		if err != nil {
			return err
		}
		if old == nil {
			return base.NotFound(what, name)
		}
		t.OnContext = true
		return t.PutRaw(bucket, key, nil)
	})
}

// Mark marks a message pinned or excluded; "" removes the mark.
func (b *Batch) Mark(ref record.Ref, mark string) {
	b.prepare = append(b.prepare, func() error { return base.CheckMark(mark) })
	b.step("mark", func(t *journal.Txn, _ *Step) error {
		id, position, err := t.Reader().Find(t.Target, ref)
		if err != nil {
			return err
		}
		key := base.Under(t.ID, id[:]...)
		old, err := t.Tx.Get(base.MarkBucket, key)
		if err != nil || string(old) == mark {
			return err
		}
		t.OnContext = true
		t.Marked(t.Target, position, mark == base.Excluded)
		if mark == "" {
			return t.PutRaw(base.MarkBucket, key, nil)
		}
		return t.PutRaw(base.MarkBucket, key, []byte(mark))
	})
}

// SetTitle sets the title of the context.
func (b *Batch) SetTitle(title string) {
	b.prepare = append(b.prepare, func() error { return b.store.at().Title(&title) })
	b.step("rename", func(t *journal.Txn, _ *Step) error {
		t.OnContext = t.OnContext || title != t.Rec.Title
		t.Rec.Renamed = t.Rec.Renamed || title != t.Rec.Title
		t.Rec.Title, t.Rec.Derived = title, false
		return nil
	})
}

// Label gives the context a label. If it has the label already, nothing changes.
func (b *Batch) Label(label string) {
	b.step("label", func(t *journal.Txn, _ *Step) (err error) {
		n := len(t.Rec.Labels)
		t.Rec.Labels, err = base.WithLabels(t.Rec.Labels, label)
		t.OnContext = t.OnContext || n < len(t.Rec.Labels)
		return err
	})
}

// Unlabel removes a label from the context. It is an ErrNotFound if the context does not have the label.
func (b *Batch) Unlabel(label string) {
	b.step("label rm", func(t *journal.Txn, _ *Step) error {
		rest := base.WithoutLabel(t.Rec.Labels, label)
		if len(rest) == len(t.Rec.Labels) {
			return base.NotFound("label", label)
		}
		t.Rec.Labels, t.OnContext = rest, true
		return nil
	})
}

// SetSystem sets the branch's system prompt; "" removes it.
func (b *Batch) SetSystem(text string) {
	b.prompt("system", text, func(to *branch.Branch) *string { return &to.System })
}

// SetPrompt sets the branch's user prompt; "" removes it.
func (b *Batch) SetPrompt(text string) {
	b.prompt("prompt", text, func(to *branch.Branch) *string { return &to.Prompt })
}

func (b *Batch) prompt(what, text string, field func(*branch.Branch) *string) {
	b.texts("prompt", &text)
	b.step(what, func(t *journal.Txn, _ *Step) error {
		return t.SetPrompt(field(t.Target), text)
	})
}

// SetSettings sets settings of the branch; null removes a key.
func (b *Batch) SetSettings(set map[string]json.RawMessage) {
	b.settings(set, func(t *journal.Txn) *map[string]json.RawMessage { return &t.Target.Settings }, func(t *journal.Txn) { t.Touch(t.Target) })
}

// SetContextSettings sets settings of the context, which hold on every branch without its own value; null removes a key.
func (b *Batch) SetContextSettings(set map[string]json.RawMessage) {
	b.settings(set, func(t *journal.Txn) *map[string]json.RawMessage { return &t.Rec.Settings }, func(t *journal.Txn) { t.OnContext = true })
}

func (b *Batch) settings(set map[string]json.RawMessage, of func(*journal.Txn) *map[string]json.RawMessage, changedAt func(*journal.Txn)) {
	b.values("setting", &set)
	b.step("config", func(t *journal.Txn, _ *Step) error {
		have := of(t)
		merged, changed, err := view.ChangeSettings(*have, set)
		if err != nil || !changed {
			return err
		}
		*have = merged
		changedAt(t)
		return nil
	})
}

// SetTokens sets the figures of the branch.
func (b *Batch) SetTokens(tokens branch.Tokens) {
	b.step("tokens", func(t *journal.Txn, _ *Step) error {
		t.Target.Tokens = &tokens
		t.Touch(t.Target)
		return nil
	})
}

// SetContextData sets a program's data on the context under a name; null removes them.
func (b *Batch) SetContextData(name string, v json.RawMessage) {
	b.value("data", &v)
	b.step("data", func(t *journal.Txn, _ *Step) error {
		merged, changed, err := view.MergeValues(t.Rec.AppData, map[string]json.RawMessage{name: v})
		t.Rec.AppData = merged
		t.OnContext = t.OnContext || changed
		return err
	})
}

// SetBranchData sets a program's data on the branch under a name; null removes them.
func (b *Batch) SetBranchData(name string, v json.RawMessage) {
	b.value("data", &v)
	b.step("data", func(t *journal.Txn, _ *Step) error {
		merged, changed, err := view.MergeValues(t.Target.AppData, map[string]json.RawMessage{name: v})
		if err == nil && changed {
			t.Target.AppData = merged
			t.Touch(t.Target)
		}
		return err
	})
}

// SetMessageData sets a program's data on a message under a name; null removes them.
func (b *Batch) SetMessageData(ref record.Ref, name string, v json.RawMessage) {
	b.value("data", &v)
	b.rewrite("data", ref, func(m *Message) error {
		merged, _, err := view.MergeValues(m.AppData, map[string]json.RawMessage{name: v})
		m.AppData = merged
		return err
	})
}

// SetCompactSummary sets the short form of a tool result.
func (b *Batch) SetCompactSummary(ref record.Ref, text string) {
	b.texts("summary", &text)
	b.rewrite("summary", ref, func(m *Message) error {
		if m.Result == nil {
			return base.Invalidf("message %s is not a tool result", record.Short(m.ID))
		}
		m.Result.CompactSummary = text
		return nil
	})
}

// rewrite changes one of the few fields of a stored message that may change.
func (b *Batch) rewrite(what string, ref record.Ref, fn func(*Message) error) {
	b.step(what, func(t *journal.Txn, _ *Step) error {
		id, err := t.Message(t.Target, ref)
		if err != nil {
			return err
		}
		m, err := poolstore.Get(t.Tx, t.ID, id)
		if err != nil {
			return err
		}
		if err := fn(m); err != nil {
			return err
		}
		old, err := t.Tx.Get(poolstore.Bucket, base.Under(t.ID, id[:]...))
		if err != nil {
			return err
		}
		t.OnContext = true
		if err := t.Remember(poolstore.Bucket, base.Under(t.ID, id[:]...), old); err != nil {
			return err
		}
		return find.PutMessage(t.Tx, t.ID, m, t.Now)
	})
}

// SetSessions sets the sessions of the branch, the current one last. It is an ErrInvalid if they name positions that the branch does not have, or a summary
// that is not stored.
func (b *Batch) SetSessions(sessions []branch.Session) {
	b.prepare = append(b.prepare, func() (err error) {
		sessions, err = b.store.at().Sessions(sessions)
		return err
	})
	b.step("sessions", func(t *journal.Txn, _ *Step) error { return t.SetSessions(t.Target, sessions) })
}

// PutLoose stores a message in the pool that is on no branch, such as a session's summary. It gets its id at once, so that later steps can name it.
func (b *Batch) PutLoose(m *Message) {
	if m != nil && m.ID == (ID{}) {
		m.ID = pool.NewID()
	}
	b.ready([]*Message{m})
	b.step("loose", func(t *journal.Txn, _ *Step) error { return t.StoreLoose(m) })
}

// texts passes texts through the embedder's hook, before the batch's transaction.
func (b *Batch) texts(kind string, texts ...*string) {
	b.prepare = append(b.prepare, func() error { return b.store.at().Texts(kind, texts...) })
}

// value is texts for a JSON value.
func (b *Batch) value(kind string, raw *json.RawMessage) {
	b.prepare = append(b.prepare, func() error { return b.store.at().Value(kind, raw) })
}

// values is value for each value of a map.
func (b *Batch) values(kind string, m *map[string]json.RawMessage) {
	b.prepare = append(b.prepare, func() error { return b.store.at().Values(kind, m) })
}
