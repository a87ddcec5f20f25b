package chatctx

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Verdict says what is decided about a call, and who decides.
type Verdict struct {
	Status pool.Status // Approved or Denied
	Kind   string      // one of the By… constants; "": ByPerson
	Name   string      // of who decides; "": the person of the store
	Reason string      // that of a denial goes to the model as it is
	// Arguments, of an approval, are run in place of the proposed ones; nil: those.
	Arguments json.RawMessage
}

// denialText is what a result says of a call that was decided against.
func (v *Verdict) denialText() string {
	word := map[string]string{ByCancel: "cancelled", ByExpiry: "expired"}[v.Kind]
	if word == "" {
		word = "denied"
	}
	if v.Reason == "" {
		return word
	}
	return word + ": " + v.Reason
}

// check refuses what can never be decided.
func (v *Verdict) check() error {
	switch {
	case v.Status != pool.Approved && v.Status != pool.Denied:
		return invalid("a call is approved or denied, not %q", v.Status)
	case v.Arguments != nil && v.Status != pool.Approved:
		return invalid("other arguments belong to an approval")
	case v.Arguments != nil && !json.Valid(v.Arguments):
		return invalid("the arguments are no JSON")
	}
	return nil
}

// by is who decides, on record.
func (v *Verdict) by(s *Store) (kind, name string) {
	kind, name = v.Kind, v.Name
	if kind == "" {
		kind = ByPerson
	}
	switch {
	case name != "":
	case kind == ByPerson || kind == ByCancel:
		name = s.by
	default:
		name = s.program
	}
	return kind, name
}

// Decide adds a decision about a call that waits for one. A cancellation (Denied, ByCancel) may also take an approval back that nobody has begun to run. Where the call is decided against
// while its turn is still the last one, a tool message that says so goes to the end of the branch. Commit gives an ErrConflict that names
// the state where the call cannot be decided so: of several who try, one wins. What the returned Call says is filled in by Commit.
func (b *Batch) Decide(ref CallRef, v Verdict) *Call {
	res := &Call{}
	denial := &Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "call", IsError: true}}
	b.prepare = append(b.prepare, v.check)
	b.texts("reason", &v.Reason)
	b.value("arguments", &v.Arguments)
	b.prepare = append(b.prepare, func() error {
		denial.Result.Text = v.denialText()
		return nil
	})
	b.settle(ref)
	if v.Status == pool.Denied {
		b.ready([]*Message{denial})
	}
	b.step(map[pool.Status]string{pool.Approved: "approve", pool.Denied: "deny"}[v.Status], func(t *txn) error {
		at, err := t.reader().call(t.target, b.branch != "", ref)
		if err != nil {
			return err
		}
		name, err := t.decide(at, &v, denial)
		if err != nil {
			return err
		}
		c, err := t.reader().describeCall(at, t.now, name)
		if err == nil {
			*res = *c
		}
		return err
	})
	return res
}

// ExpireCall sets when a call that waits for a decision counts as denied; zero: never.
func (b *Batch) ExpireCall(ref CallRef, at pool.Time) {
	b.settle(ref)
	b.step("expire", func(t *txn) error {
		c, err := t.reader().call(t.target, b.branch != "", ref)
		if err != nil {
			return err
		}
		if c.rec.Status != pool.Pending {
			return c.wrongState("given a time to expire")
		}
		holder, err := t.holderOf(c)
		if err != nil || c.rec.Expires == at {
			return err
		}
		t.touch(holder)
		c.rec.Expires = at
		return t.putCall(c.message.ID, c.index, c.rec)
	})
}

// wrongState is the error for a step that a call's state does not allow.
func (a *callAt) wrongState(done string) error {
	by := ""
	if n := len(a.rec.Decisions); n > 0 {
		d := a.rec.Decisions[n-1]
		by = fmt.Sprintf(", since %s by %s %s", d.At.Time().Format("2006-01-02 15:04:05"), d.ByKind, d.ByName)
	}
	return conflict("call %s is %s%s: it cannot be %s", a.name(), a.rec.state(), by, done)
}

// holderOf is the branch that holds a call's message.
func (t *txn) holderOf(a *callAt) (*branch.Branch, error) {
	if t.target != nil && branch.Place(t.target.Pieces, a.rec.Home.Segment, a.rec.Home.Position) >= 0 {
		return t.target, nil
	}
	names, err := t.holders(a.rec.Home)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, conflict("no branch holds the message of call %s any more: undo brings it back", a.name())
	}
	return t.branch(names[0])
}

// decide takes a decision about a call and names the branch that holds it.
func (t *txn) decide(a *callAt, v *Verdict, denial *Message) (string, error) {
	cancels := v.Status == pool.Denied && v.Kind == ByCancel && a.rec.state() == CallState(pool.Approved, pool.NotRun)
	if a.rec.Status != pool.Pending && !cancels {
		return "", a.wrongState(map[bool]string{true: "cancelled", false: string(v.Status)}[v.Kind == ByCancel])
	}
	holder, err := t.holderOf(a)
	if err != nil {
		return "", err
	}
	kind, name := v.by(t.store)
	if v.Arguments != nil && !bytes.Equal(v.Arguments, a.message.Calls[a.index].Arguments) {
		a.rec.Effective = v.Arguments
	}
	t.touch(holder)
	d := Decision{ByKind: kind, ByName: name, Reason: v.Reason, Arguments: v.Arguments}
	if err := t.stepCall(a, v.Status, pool.NotRun, d); err != nil || v.Status != pool.Denied {
		return holder.Name, err
	}
	last, err := t.inLastTurn(holder, a)
	if err != nil || !last && v.Kind == ByExpiry {
		return holder.Name, err
	}
	m, r := *denial, *denial.Result
	r.RequestID, r.Tool, m.Result = a.rec.CallID, a.rec.Tool, &r
	_, err = t.appendResult(holder, &m)
	return holder.Name, err
}

// stepCall brings a call into another state and puts the step on its record.
func (t *txn) stepCall(a *callAt, status pool.Status, execution pool.Execution, d Decision) error {
	d.At, d.From, d.To, d.Program = t.now, a.rec.state(), CallState(status, execution), t.store.program
	args := a.rec.Effective
	if args == nil {
		args = a.message.Calls[a.index].Arguments
	}
	d.ArgsSHA256 = sha256.Sum256(args)
	a.rec.Status, a.rec.Execution = status, execution
	if d.Reason != "" || execution == pool.NotRun {
		a.rec.Reason = d.Reason
	}
	a.rec.Decisions = append(a.rec.Decisions, d)
	return t.putCall(a.message.ID, a.index, a.rec)
}

// inLastTurn reports whether no turn begins on the branch after a call's message.
func (t *txn) inLastTurn(b *branch.Branch, a *callAt) (bool, error) {
	at := branch.Place(b.Pieces, a.rec.Home.Segment, a.rec.Home.Position)
	before, err := branch.Turns(t.tx, t.id, b.Pieces, at+1)
	if err != nil {
		return false, err
	}
	all, err := branch.Turns(t.tx, t.id, b.Pieces, b.Len())
	return before == all, err
}

// appendResult puts the result of a call, which has its state already, at the end of a branch.
func (t *txn) appendResult(b *branch.Branch, m *Message) (Placement, error) {
	p, err := t.put(b, []*Message{m})
	if err != nil {
		return Placement{}, err
	}
	at := b.Len()
	return Placement{Message: m.ID, Position: at + 1}, t.splice(b, at, 0, []branch.Piece{p})
}

// settle has a call settled before the batch's transaction, if that is due then.
func (b *Batch) settle(ref CallRef) {
	if b.calls = append(b.calls, ref); len(b.calls) == 1 {
		b.prepare = append(b.prepare, func() error { return b.store.settleNamed(b.context, b.branch, b.calls) })
	}
}

// settleNamed settles those calls of a context that are due. A reference that names none is left to whoever reads it next.
func (s *Store) settleNamed(contextRef, branchName string, refs []CallRef) error {
	ctx := context.Background()
	var stale []callName
	err := s.db.View(ctx, func(tx kv.Tx) error {
		stale = nil
		id, err := resolveContext(tx, contextRef)
		if err != nil {
			return err
		}
		for _, ref := range refs {
			at, err := callIn(tx, id, branchName, ref)
			if errors.Is(err, ErrNotFound) || errors.Is(err, ErrAmbiguous) {
				continue
			}
			if err != nil {
				return err
			}
			d, _, err := reader{tx: tx, id: id}.due(at.message.ID, at.index, at.rec, s.now())
			if err != nil {
				return err
			}
			if d != nil {
				stale = append(stale, callName{id, at.message.ID, at.index})
			}
		}
		return nil
	})
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrAmbiguous) {
		return nil // of the context: the batch says so
	}
	if err != nil {
		return err
	}
	return s.settleCalls(ctx, stale)
}

// settleCalls puts on record what time or a crash has brought to calls, one operation a context.
func (s *Store) settleCalls(ctx context.Context, names []callName) error {
	byContext := map[ID][]callName{}
	var order []ID
	for _, n := range names {
		if byContext[n.ctx] == nil {
			order = append(order, n.ctx)
		}
		byContext[n.ctx] = append(byContext[n.ctx], n)
	}
	for _, id := range order {
		if err := s.settleIn(ctx, id, byContext[id]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) settleIn(ctx context.Context, id ID, names []callName) error {
	expired := Verdict{Status: pool.Denied, Kind: ByExpiry, Reason: "nobody decided in time"}
	denials := make([]*Message, len(names))
	for i := range denials {
		denials[i] = &Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "call", Text: expired.denialText(), IsError: true}}
	}
	if err := s.ready(denials); err != nil {
		return err
	}
	return s.db.Update(ctx, func(tx kv.RwTx) error {
		t, err := s.beginAt(tx, id)
		if err != nil {
			return err
		}
		t.what = "settle"
		for i, n := range names {
			at, err := t.reader().callOf(n.message, n.index, "")
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err == nil {
				err = t.settleCall(at, &expired, denials[i])
			}
			if err != nil {
				return err
			}
		}
		_, err = t.finish()
		return err
	})
}

// settleCall puts on record what time or a crash has brought to a call, if anything.
func (t *txn) settleCall(a *callAt, expired *Verdict, denial *Message) error {
	d, _, err := t.reader().due(a.message.ID, a.index, a.rec, t.now)
	if err != nil || d == nil {
		return err
	}
	if d.kind == ByExpiry {
		_, err := t.decide(a, expired, denial)
		if errors.Is(err, ErrConflict) { // no branch holds it: it is looked at again when one does
			return nil
		}
		return err
	}
	return t.uncertain(a, d.reason)
}

// uncertain ends the claim of a call whose program died while it ran.
func (t *txn) uncertain(a *callAt, reason string) error {
	if err := t.tx.Delete(claimBucket, callKey(t.id, a.message.ID, a.index)); err != nil {
		return err
	}
	return t.stepCall(a, pool.Approved, pool.Uncertain, Decision{ByKind: ByProgram, ByName: t.store.program, Reason: reason})
}
