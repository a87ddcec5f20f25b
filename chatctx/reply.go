package chatctx

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Reply is the right to answer on a branch. One program has it at a time; it lasts while Save renews it. Several goroutines may use it at the same time.
type Reply struct {
	Context ID
	Branch  string // its name when the reply began; a rename does no harm
	store   *Store
	id      ID // of the branch
	token   ID
	command journal.Command
}

// Together makes the end of the reply a part of one command with a committed batch, so that Undo undoes them together.
func (r *Reply) Together(with *Batch) {
	if with != nil {
		r.command.Within(with.group)
	}
}

// Within returns a context for what is done in the course of the reply: what is committed with it about calls on the branch is undone together with the reply.
func (r *Reply) Within(ctx context.Context) context.Context {
	return journal.InCommand(ctx, &r.command)
}

// Begun is the result of BeginReply. Its last step says where the messages are.
type Begun struct {
	record.Committed
	// Reply is nil if another program is answering already: then the messages wait in the queue, and Holder is that program's claim.
	Reply  *Reply
	Holder *record.Claim
	// Settled is what had arrived of a reply whose program died: it is on the branch now, unfinished. Nil: nothing.
	Settled *Message
	// FromQueue lists messages that waited since an earlier reply: they are on the branch now, before the new ones.
	FromQueue []record.Placement
}

// BeginReply claims the branch ("" means the active one) for a reply and appends messages, usually the user's, in one transaction. It first settles what a
// dead program left there. If a reply runs already, the messages are queued; without messages that is an ErrConflict. If the key of o is known, the
// messages are neither appended nor queued again: Again is set, Placed says where they are (Position 0: in the queue), and the branch is claimed all the
// same, unless a reply runs.
func (c *ChatContext) BeginReply(ctx context.Context, branchName string, o AppendOptions, messages ...*Message) (*Begun, error) {
	err := journal.CheckKey(&o)
	if err == nil {
		err = c.store.at().Ready(messages)
	}
	if err == nil {
		err = c.store.at().Texts("prompt", &o.System)
	}
	if err != nil {
		return nil, err
	}
	var out *Begun
	claim := c.store.at().NewClaim()
	err = c.store.at().Update(view.Lane(ctx, c.store.at(), c.ID), func(tx kv.RwTx) error {
		t, err := journal.Begin(c.store.at(), tx, c.ID.String(), branchName)
		if err != nil {
			return err
		}
		out, err = beginReply(t, messages, claim, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	if out.Reply != nil {
		out.Reply.store = c.store
	}
	return out, nil
}

func beginReply(t *journal.Txn, msgs []*Message, claim *record.Claim, o AppendOptions) (*Begun, error) {
	out, made := &Begun{}, journal.NewStep("append")
	again, err := t.Known(o.Key, msgs, made)
	if err != nil {
		return nil, err
	}
	if again {
		msgs = nil
	} else if err := t.Expect(o.Expect); err != nil {
		return nil, err
	}
	holder, err := view.ClaimOf(t.Tx, t.ID, t.Target.ID)
	if err != nil {
		return nil, err
	}
	t.What = "send"
	switch {
	case holder == nil || base.Dead(holder, t.Now):
		err = startReply(t, msgs, claim, out, made)
	case again:
		out.Holder = holder
	default:
		out.Holder = holder
		made.What = "queue"
		made.Placed, err = queue(t, holder, msgs)
	}
	if err == nil && !again {
		err = t.Begins(o)
	}
	if err == nil && !again {
		err = t.Stands(made, t.Target)
	}
	if err != nil {
		return nil, err
	}
	done, err := t.Finish(made)
	if err != nil {
		return nil, err
	}
	out.Committed, out.Again = *done, again
	return out, t.Keep(o.Key, made)
}

func startReply(t *journal.Txn, msgs []*Message, claim *record.Claim, out *Begun, made *Step) (err error) {
	if out.Settled, _, err = settleReply(t, t.Target); err == nil {
		err = t.SettleAskings()
	}
	if err != nil {
		return err
	}
	if out.FromQueue, err = unqueue(t, t.Target); err != nil {
		return err
	}
	if len(msgs) > 0 {
		if made.Placed, err = t.Append(t.Target, msgs); err != nil {
			return err
		}
	}
	out.Reply = &Reply{Context: t.ID, Branch: t.Target.Name, id: t.Target.ID, token: claim.Token}
	out.Reply.command.On(t.ID, t.Target.ID)
	out.Reply.command.Join(t)
	return base.PutRecord(t.Tx, base.ClaimBucket, replyKey(t, t.Target), claim)
}

func replyKey(t *journal.Txn, b *branch.Branch) []byte { return base.Under(t.ID, b.ID[:]...) }

// settleReply ends a reply that nobody works on: what had arrived goes to the end of the branch, unfinished. bare: the branch was made for the reply and
// has nothing.
func settleReply(t *journal.Txn, b *branch.Branch) (m *Message, bare bool, err error) {
	claim, err := view.ClaimOf(t.Tx, t.ID, b.ID)
	if err != nil {
		return nil, false, err
	}
	if err := t.Tx.Delete(base.ClaimBucket, replyKey(t, b)); err != nil {
		return nil, false, err
	}
	if bare = claim != nil && claim.Made != 0 && b.Last == claim.Made; bare {
		if err := t.PartOf(claim.Made); err != nil {
			return nil, false, err
		}
	}
	m, err = settlePartial(t, b)
	return m, bare && m == nil, err
}

// leave removes a branch that was made for an answer which did not come, unless somebody is on it by now.
func leave(t *journal.Txn, b *branch.Branch) error {
	active, err := t.IsActive(b)
	if err != nil || active {
		return err
	}
	t.OnContext = true
	return t.Remove(b)
}

// settlePartial puts what was saved of a reply at the end of the branch, unfinished; it returns nil if nothing was saved.
func settlePartial(t *journal.Txn, b *branch.Branch) (*Message, error) {
	key := replyKey(t, b)
	raw, err := t.Tx.Get(base.PartialBucket, key)
	if raw == nil || err != nil {
		return nil, err
	}
	m, err := unfinished(raw)
	if err != nil {
		return nil, err
	}
	if err := t.Tx.Delete(base.PartialBucket, key); err != nil {
		return nil, err
	}
	if has, err := poolstore.Has(t.Tx, t.ID, m.ID); has || err != nil { // the complete message was stored already
		return nil, err
	}
	_, err = t.Append(b, []*Message{m})
	return m, err
}

// queue makes messages wait until the running reply is done, except those that wait already or are on the branch.
func queue(t *journal.Txn, holder *record.Claim, msgs []*Message) ([]record.Placement, error) {
	if len(msgs) == 0 {
		return nil, t.Answers(holder, t.Target)
	}
	t.What = "queue"
	prefix := replyKey(t, t.Target)
	keys, ids, err := view.QueuedOn(t.Tx, t.ID, t.Target.ID)
	if err != nil {
		return nil, err
	}
	last := uint64(0)
	if n := len(keys); n > 0 {
		last = binary.BigEndian.Uint64(keys[n-1][len(prefix):])
	}
	out := make([]record.Placement, 0, len(msgs))
	for _, m := range msgs {
		at, err := queueable(t, m)
		if err != nil {
			return nil, err
		}
		out = append(out, at)
		if at.Position > 0 || slices.Contains(ids, m.ID) {
			continue
		}
		last = max(last+1, uint64(t.Now))
		if err := t.PutRaw(base.QueuedBucket, binary.BigEndian.AppendUint64(slices.Clone(prefix), last), m.ID[:]); err != nil {
			return nil, err
		}
		ids = append(ids, m.ID)
		t.Touch(t.Target)
	}
	return out, nil
}

// queueable stores a message that will wait, unless it is stored, and returns where the branch holds it, if it does.
func queueable(t *journal.Txn, m *Message) (record.Placement, error) {
	was, err := t.Stored(m)
	if err != nil {
		return record.Placement{}, err
	}
	if was == nil {
		return record.Placement{Message: m.ID}, t.KeepNew(m)
	}
	return t.Standing(t.Target, was)
}

// unqueue puts the waiting messages at the end of the branch.
func unqueue(t *journal.Txn, b *branch.Branch) ([]record.Placement, error) {
	keys, ids, err := view.QueuedOn(t.Tx, t.ID, b.ID)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	t.Touch(b) // even if all of them are on it by now
	var placed []record.Placement
	for i, id := range ids { // one by one: each came by itself, and its calls wait as if it were the last
		m, err := t.Get(id)
		if err != nil {
			return nil, err
		}
		if err := t.PutRaw(base.QueuedBucket, keys[i], nil); err != nil {
			return nil, err
		}
		at, err := t.Append(b, []*Message{m})
		if err != nil {
			return nil, err
		}
		placed = append(placed, at...)
	}
	return placed, nil
}

// leftOn returns what settleReply would put at the end of a branch, nil for nothing.
func leftOn(tx kv.Tx, ctx ID, b *branch.Branch) (*Entry, error) {
	raw, err := tx.Get(base.PartialBucket, base.Under(ctx, b.ID[:]...))
	if raw == nil || err != nil {
		return nil, err
	}
	m, err := unfinished(raw)
	if err != nil {
		return nil, err
	}
	if has, err := poolstore.Has(tx, ctx, m.ID); has || err != nil {
		return nil, err
	}
	turns, err := branchstore.Turns(tx, ctx, b.Pieces, branchstore.Len(b))
	if err != nil {
		return nil, err
	}
	parent, err := branchstore.Head(tx, ctx, b.Pieces)
	return &Entry{Message: m, Position: branchstore.Len(b) + 1, Parent: parent, Turn: fmt.Sprintf("a%d", turns), Session: view.SessionAt(b, branchstore.Len(b)+1)}, err
}

// unfinished returns the message that the saved part of a reply becomes.
func unfinished(raw []byte) (*Message, error) {
	m := &Message{}
	err := poolstore.Decode(raw, m)
	m.Unfinished = true
	m.Meta.Error = cmp.Or(m.Meta.Error, "the program that received the reply ended")
	return m, err
}

// SettleOptions are options of Settle. Force also ends a running reply; its program then stops within a second.
type SettleOptions struct{ Force bool }

// Settle ends a reply on the branch whose program has died: what had arrived becomes an unfinished message at the end of the branch. It returns that
// message, nil if nothing had arrived.
func (c *ChatContext) Settle(ctx context.Context, branchName string, o SettleOptions) (*Message, error) {
	return c.settle(ctx, branchName, false, func(claim *record.Claim) bool { return o.Force || base.Dead(claim, c.store.at().Now()) })
}

// SettleDead is Settle for all branches of the context, and for the questions apart from them (Asking). It removes branches that were made for answers
// (ForkForReply) of which nothing had arrived.
func (c *ChatContext) SettleDead(ctx context.Context) error {
	var dead []ID
	err := view.At(ctx, c.at(), func(tx kv.Tx, _ *base.ContextRecord) (err error) {
		dead, err = c.dead(tx)
		return err
	}, kv.In(base.ClaimBucket, kv.Prefix(c.ID[:])))
	for _, on := range dead {
		if err == nil {
			_, err = c.settle(ctx, on.String(), true, func(claim *record.Claim) bool { return base.Dead(claim, c.store.at().Now()) })
		}
	}
	if err != nil {
		return err
	}
	return c.settleAskings(ctx)
}

// settle ends the reply on a branch if ends accepts its claim. away: a branch that was made for the reply and has nothing is removed.
func (c *ChatContext) settle(ctx context.Context, branchName string, away bool, ends func(*record.Claim) bool) (*Message, error) {
	var m *Message
	err := c.store.at().Update(view.Lane(ctx, c.store.at(), c.ID), func(tx kv.RwTx) error {
		m = nil
		t, err := journal.Begin(c.store.at(), tx, c.ID.String(), branchName)
		if err != nil {
			return err
		}
		holder, err := view.ClaimOf(tx, c.ID, t.Target.ID)
		if err != nil || holder == nil || !ends(holder) {
			return err
		}
		t.What = "reply"
		var bare bool
		if m, bare, err = settleReply(t, t.Target); err == nil && bare && away {
			err = leave(t, t.Target)
		}
		if err != nil {
			return err
		}
		_, err = t.Finish()
		return err
	})
	return m, err
}

// settled calls do. If the answer of a dead program must first be put on a branch, it does that and calls do again.
func (s *Store) settled(ctx context.Context, do func() error) error {
	for {
		err := do()
		var left *journal.UnsettledError
		if !errors.As(err, &left) {
			return err
		}
		c := &ChatContext{ID: left.Context, store: s}
		if _, err := c.Settle(ctx, left.Branch.String(), SettleOptions{}); err != nil {
			return err
		}
	}
}

// at begins an operation on the reply's branch, if the claim still holds.
func (r *Reply) at(tx kv.RwTx) (*journal.Txn, error) {
	t, err := journal.BeginAt(r.store.at(), tx, r.Context)
	if err != nil {
		return nil, err
	}
	l, err := t.Load(r.id)
	if err != nil {
		return nil, err
	}
	if l == nil || l.Removed != 0 {
		return nil, fmt.Errorf("%w: the branch %q was removed", ErrStopped, r.Branch)
	}
	t.Target = l.Branch
	return t, r.held(tx)
}

func (r *Reply) held(tx kv.Tx) error {
	claim, err := view.ClaimOf(tx, r.Context, r.id)
	switch {
	case err != nil:
	case claim == nil:
		err = fmt.Errorf("%w: the reply was finished, or another program stopped it", ErrStopped)
	case claim.Token != r.token:
		err = fmt.Errorf("%w: another program answers on the branch %q", ErrStopped, r.Branch)
	}
	return err
}

// Held returns nil while this reply has the claim, else ErrStopped.
func (r *Reply) Held(ctx context.Context) error {
	return r.store.at().DB.View(ctx, func(tx kv.Tx) error { return r.held(tx) })
}

// Save renews the claim and, if partial is not nil, stores what has arrived of the reply so far, so that a crash does not lose it. partial must be a
// message as for Append (else ErrInvalid), except that the arguments of a call may be incomplete: they are kept as a JSON string until they are complete. A
// call without a tool's name is left out. Save returns ErrStopped if the claim is gone.
func (r *Reply) Save(ctx context.Context, partial *Message) error {
	var raw []byte
	if partial != nil {
		var err error
		if raw, err = r.store.encodePartial(partial); err != nil {
			return err
		}
	}
	return r.store.at().Update(view.Lane(ctx, r.store.at(), r.Context), func(tx kv.RwTx) error {
		if err := r.held(tx); err != nil {
			return err
		}
		claim, err := view.ClaimOf(tx, r.Context, r.id)
		if err != nil {
			return err
		}
		base.Renew(claim, r.store.at().Now())
		key := base.Under(r.Context, r.id[:]...)
		if err := base.PutRecord(tx, base.ClaimBucket, key, claim); err != nil || raw == nil {
			return err
		}
		return tx.Put(base.PartialBucket, key, raw)
	})
}

// encodePartial encodes what has arrived as a message, without what a record cannot hold and images that are not stored yet, and with calls that can be
// read. The hook gets a copy, since the message goes on growing.
func (s *Store) encodePartial(m *Message) ([]byte, error) {
	c := *m
	c.Calls = partialCalls(m.Calls)
	c.Content = slices.DeleteFunc(slices.Clone(m.Content), func(p pool.Part) bool {
		nameless := p.Type == pool.CallPart && !slices.ContainsFunc(c.Calls, func(call pool.Call) bool { return call.ID == p.CallID })
		return p.Data != nil || nameless
	})
	if c.ID == (ID{}) {
		c.ID = pool.NewID()
	}
	raw, err := poolstore.Encode(&c)
	if err != nil {
		return nil, err
	}
	own := &Message{}
	if err := poolstore.Decode(raw, own); err != nil {
		return nil, err
	}
	poolstore.MakeWhole(own)
	if err := s.at().Message(own); err != nil {
		return nil, err
	}
	if err := own.Validate(); err != nil {
		return nil, err
	}
	return poolstore.Encode(own)
}

// partialCalls returns the calls that have a name so far, with incomplete arguments as a string.
func partialCalls(calls []pool.Call) []pool.Call {
	calls = slices.DeleteFunc(slices.Clone(calls), func(c pool.Call) bool { return c.Tool == "" })
	for i := range calls {
		c := &calls[i]
		if c.Arguments != nil && !json.Valid(c.Arguments) {
			c.Arguments = jsontree.AppendString(nil, string(c.Arguments))
		}
		if c.Raw != nil && !json.Valid(c.Raw) {
			c.Raw = nil
		}
	}
	return calls
}

// Ending is the end of a reply, or of one of its requests.
type Ending struct {
	Messages []*Message // the reply, complete or not; results of tools
	// Loose has messages for the pool that are on no branch, such as those to which Sessions refer.
	Loose []*Message
	// Sessions, if not nil, replaces the branch's sessions as the request used them. If the branch was compacted or pruned meanwhile, its own stay.
	Sessions []branch.Session
	// Begins, if not nil, is a session that begins after Sessions, which has the sessions of the request even if it did not change them.
	Begins *branch.Session
	// Request is what LastRequest returns for Provider from now on; a Provider of "" changes nothing.
	Provider string
	Request  []byte
	GoOn     bool // keep the claim: another request follows
	// Stop leaves the queued messages in the queue.
	Stop bool
}

// Ended is the result of Finish. Its step says where the messages are.
type Ended struct {
	record.Committed
	// FromQueue lists messages that waited for this reply and are on the branch now. The claim is kept for them.
	FromQueue []record.Placement
	Held      bool
}

// Finish appends messages and ends the reply, or goes on with it, in one transaction. If the claim is gone, it stores nothing and returns ErrStopped. A
// reply that ends without messages leaves what Save stored of it, unfinished.
func (r *Reply) Finish(ctx context.Context, e Ending) (*Ended, error) {
	if err := r.store.at().Ready(e.Messages); err != nil {
		return nil, err
	}
	err := r.store.at().Ready(e.Loose)
	if err != nil {
		return nil, err
	}
	if e.Sessions, err = r.store.at().Sessions(e.Sessions); err != nil {
		return nil, err
	}
	if err := base.CheckKey("the name of a provider", e.Provider); err != nil {
		return nil, err
	}
	var out *Ended
	err = r.command.Store(func() error {
		return r.store.at().Update(view.Lane(ctx, r.store.at(), r.Context), func(tx kv.RwTx) (err error) {
			out, err = r.finish(tx, &e)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	if len(out.FromQueue) > 0 {
		r.command.Asked()
	}
	return out, nil
}

func (r *Reply) finish(tx kv.RwTx, e *Ending) (*Ended, error) {
	t, err := r.at(tx)
	if err != nil {
		return nil, err
	}
	t.What = "reply"
	r.command.Join(t)
	out, made := &Ended{}, journal.NewStep("reply")
	came := len(e.Messages) > 0
	if came {
		made.Placed, err = t.Append(t.Target, e.Messages)
	} else {
		var m *Message
		m, err = settlePartial(t, t.Target)
		came = m != nil
	}
	if err != nil {
		return nil, err
	}
	for _, m := range e.Loose {
		if err := t.StoreLoose(m); err != nil {
			return nil, err
		}
	}
	if e.Sessions != nil && journal.SameSessions(t.Target.Sessions, e.Sessions) {
		sessions := e.Sessions
		if e.Begins != nil {
			sessions = append(slices.Clone(sessions), *e.Begins)
		}
		if err := t.SetSessions(t.Target, sessions); err != nil {
			return nil, err
		}
	}
	if e.Provider != "" {
		key := append(replyKey(t, t.Target), e.Provider...)
		if err := tx.Put(base.RequestBucket, key, e.Request); err != nil {
			return nil, err
		}
	}
	if !e.Stop {
		if out.FromQueue, err = unqueue(t, t.Target); err != nil {
			return nil, err
		}
	}
	out.Held = e.GoOn || len(out.FromQueue) > 0
	if err := r.release(t, out.Held, came); err != nil {
		return nil, err
	}
	if err := t.Stands(made, t.Target); err != nil {
		return nil, err
	}
	done, err := t.Finish(made)
	if err == nil {
		out.Committed = *done
	}
	return out, err
}

// release ends the claim unless it is kept, and removes what was saved of the reply. If the branch was made for the reply and nothing came, the branch is
// removed.
func (r *Reply) release(t *journal.Txn, keep, came bool) error {
	if keep {
		return t.Tx.Delete(base.PartialBucket, replyKey(t, t.Target))
	}
	claim, err := view.ClaimOf(t.Tx, t.ID, r.id)
	if err == nil {
		err = t.EndAnswer(r.id)
	}
	if err == nil && !came && claim.Made != 0 && t.Target.Last == claim.Made {
		err = leave(t, t.Target)
	}
	return err
}

// stopReply ends the reply that runs on a branch, if there is one: what had arrived of it goes to the branch, as an operation of its own.
func (s *Store) stopReply(contextRef, branchName string) error {
	ctx := context.Background()
	c, err := s.Context(ctx, contextRef)
	if err != nil {
		return err
	}
	claim, err := view.Running(ctx, base.ContextOf(c.Store(), c.ID), branchName)
	if claim != nil && err == nil {
		_, err = c.settle(ctx, branchName, false, func(now *record.Claim) bool { return now.Token == claim.Token })
	}
	return err
}
