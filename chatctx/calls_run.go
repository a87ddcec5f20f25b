package chatctx

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// ClaimOptions of ClaimCall.
type ClaimOptions struct {
	// Again runs a call again whose program died while it ran. Without it only an approved call that nobody has run is given.
	Again bool
	// PID is the process whose end ends the claim: 0 is this one, -1 none. Hold is how long the claim lasts without being renewed; 0: ClaimLife.
	PID  int
	Hold time.Duration
	// Name is who runs it, on the record; "": the program.
	Name string
}

// CallClaim is the right to run a call. It lasts while it is renewed and its process lives; after that the call is uncertain.
type CallClaim struct {
	Call  *Call
	Token ID // lets another process renew and resolve
	store *Store
	hold  pool.Time
}

// ClaimCall makes a call running, durably, before its tool is started: of several who try, one gets it. ErrConflict, with the state, for the others and for
// calls that may not be run. The context and the call are named as in Store.Call.
func (s *Store) ClaimCall(ctx context.Context, contextRef, branchName string, ref CallRef, o ClaimOptions) (*CallClaim, error) {
	found, err := s.Call(ctx, contextRef, branchName, ref)
	if err != nil {
		return nil, err
	}
	claim := s.newClaim()
	if o.PID != 0 {
		claim.PID = max(o.PID, 0)
	}
	hold := pool.Time(max(o.Hold, ClaimLife) / time.Microsecond)
	claim.hold(claim.Since, hold)
	k := &CallClaim{store: s, Token: claim.Token, hold: hold}
	err = s.db.Update(ctx, func(tx kv.RwTx) error {
		t, err := s.beginAt(tx, found.Context)
		if err != nil {
			return err
		}
		t.what = "claim"
		k.Call, err = t.claim(found, claim, o)
		if err == nil {
			_, err = t.finish()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}

// hold renews a claim so that it lasts for a time without being renewed again.
func (c *Claim) hold(now, life pool.Time) {
	c.Renewed = now + life - pool.Time(ClaimLife/time.Microsecond)
}

func (t *txn) claim(c *Call, claim *Claim, o ClaimOptions) (*Call, error) {
	at, err := t.reader().callOf(c.Message, c.Index-1, c.Ref())
	if err != nil {
		return nil, err
	}
	holder, err := t.holderOf(at)
	if err != nil {
		return nil, err
	}
	fresh := at.rec.state() == CallState(pool.Approved, pool.NotRun)
	again := at.rec.Execution == pool.Uncertain && o.Again
	if !fresh && !again {
		return nil, at.wrongState("claimed" + map[bool]string{true: " (again is for one whose program died)"}[o.Again])
	}
	name := o.Name
	if name == "" {
		name = t.store.program
	}
	d := Decision{ByKind: ByProgram, ByName: name}
	if again {
		d = Decision{ByKind: ByPerson, ByName: t.store.by, Reason: "run again"}
	}
	at.rec.Token = claim.Token
	if err := t.stepCall(at, pool.Approved, pool.Running, d); err != nil {
		return nil, err
	}
	if err := putRecord(t.tx, claimBucket, callKey(t.id, c.Message, c.Index-1), claim); err != nil {
		return nil, err
	}
	return t.reader().describeCall(at, t.now, holder.Name)
}

// Renew keeps the claim. ErrStopped where it is lost, or where no branch holds the call's message any more: the tool is then to be ended.
func (k *CallClaim) Renew(ctx context.Context) error {
	key := callKey(k.Call.Context, k.Call.Message, k.Call.Index-1)
	return k.store.db.Update(ctx, func(tx kv.RwTx) error {
		claim, err := k.held(tx)
		if err != nil {
			return err
		}
		claim.hold(k.store.now(), k.hold)
		return putRecord(tx, claimBucket, key, claim)
	})
}

// Held is nil while the claim is held and a branch holds the call's message, else ErrStopped.
func (k *CallClaim) Held(ctx context.Context) error {
	return k.store.db.View(ctx, func(tx kv.Tx) error {
		_, err := k.held(tx)
		return err
	})
}

func (k *CallClaim) held(tx kv.Tx) (*Claim, error) {
	c := k.Call
	claim := &Claim{}
	ok, err := getRecord(tx, claimBucket, callKey(c.Context, c.Message, c.Index-1), claim)
	if err != nil {
		return nil, err
	}
	if !ok || claim.Token != k.Token {
		return nil, fmt.Errorf("%w: call %s is no longer claimed by it", ErrStopped, c.Ref())
	}
	shown, err := tx.Get(openBucket, openKey(&callRecord{Since: c.Since}, c.Context, c.Message, c.Index-1))
	if err == nil && shown == nil {
		err = fmt.Errorf("%w: no branch holds the message of call %s any more", ErrStopped, c.Ref())
	}
	return claim, err
}

// Answer is how a call ended. Of Text, JSON and Parts in Result the first that a Result has counts; its RequestID is filled in.
type Answer struct {
	Result pool.Result
	// Beside is content of the message beside the result, for people and programs: the whole of an output that was cut.
	Beside []pool.Part
	// Kind of the message: "interrupted" for a tool that was ended.
	Kind string
	// By is the person that says so; "": the program that ran it, or of an uncertain call without a Token the store's person.
	By string
	// Token is the claim's. Without it a call is answered whose claim belongs to no process of ours, or whose program is gone.
	Token ID
}

// by is who answers: who says so, else the program that ran the call, else, where that is gone, the person of the store.
func (a *Answer) by(s *Store, uncertain bool) Decision {
	switch {
	case a.By != "":
		return Decision{ByKind: ByPerson, ByName: a.By}
	case uncertain && a.Token == (ID{}):
		return Decision{ByKind: ByPerson, ByName: s.by}
	}
	return Decision{ByKind: ByProgram, ByName: s.program}
}

// Answered is a call that was answered, and its result.
type Answered struct {
	Committed
	Call      *Call
	Placement // of the result; Position 0 where no branch held the call's message: the result then lies in the pool alone
}

// Resolve ends the claim with the call's result: the result message and the end of the call are one transaction.
func (k *CallClaim) Resolve(ctx context.Context, a Answer) (*Answered, error) {
	a.Token = k.Token
	return k.store.ResolveCall(ctx, k.Call.Context.String(), k.Call.Branch, k.Call.Ref(), a)
}

// ResolveCall answers a call that runs, or that is uncertain: it is done, or failed where the result is an error, and its result goes to the end of the branch, in one
// transaction. ErrConflict, with the state, for calls that wait or were answered, and for those that another program runs.
func (s *Store) ResolveCall(ctx context.Context, contextRef, branchName string, ref CallRef, a Answer) (*Answered, error) {
	found, err := s.Call(ctx, contextRef, branchName, ref)
	if err != nil {
		return nil, err
	}
	m := found.answer(&a)
	if err := s.ready([]*Message{m}); err != nil {
		return nil, err
	}
	var out *Answered
	err = s.db.Update(ctx, func(tx kv.RwTx) error {
		out = &Answered{}
		t, err := s.beginAt(tx, found.Context)
		if err != nil {
			return err
		}
		t.what = "resolve"
		message := *m // put changes it
		if err := t.resolve(found, &a, &message, out); err != nil {
			return err
		}
		done, err := t.finish()
		if err == nil {
			out.Committed = *done
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// answer is the message with a call's result. A call that ran with other arguments than the proposed ones says so there.
func (c *Call) answer(a *Answer) *Message {
	r := a.Result
	r.RequestID, r.Tool = c.ID, c.Tool
	if c.Effective != nil {
		words := "Run with other arguments: " + string(c.Effective) + "\n"
		switch {
		case len(r.Parts) > 0:
			r.Parts = append([]pool.Part{{Type: pool.TextPart, Text: words}}, r.Parts...)
		case len(r.JSON) > 0:
			r.Text, r.JSON = words+string(r.JSON), nil
		default:
			r.Text = words + r.Text
		}
	}
	return &Message{Role: pool.ToolRole, Result: &r, Content: a.Beside, Kind: a.Kind}
}

func (t *txn) resolve(c *Call, a *Answer, m *Message, out *Answered) error {
	at, err := t.reader().callOf(c.Message, c.Index-1, c.Ref())
	if err != nil {
		return err
	}
	if err := t.mayResolve(at, a); err != nil {
		return err
	}
	if err := t.tx.Delete(claimBucket, callKey(t.id, c.Message, c.Index-1)); err != nil {
		return err
	}
	execution := pool.Done
	if a.Result.IsError {
		execution = pool.Failed
	}
	d := a.by(t.store, at.rec.Execution == pool.Uncertain)
	holders, err := t.holders(at.rec.Home)
	if err != nil {
		return err
	}
	if err := t.stepCall(at, pool.Approved, execution, d); err != nil {
		return err
	}
	branchName := ""
	if len(holders) == 0 {
		out.Message, err = m.ID, t.store1(m)
	} else {
		branchName = holders[0]
		out.Placement, err = t.resolveOn(branchName, m)
	}
	if err != nil {
		return err
	}
	out.Call, err = t.reader().describeCall(at, t.now, branchName)
	return err
}

func (t *txn) resolveOn(name string, m *Message) (Placement, error) {
	var b *branch.Branch
	b, err := t.branch(name)
	if err != nil {
		return Placement{}, err
	}
	t.target = b
	return t.appendResult(b, m)
}

// mayResolve refuses to answer a call that does not run, or that somebody else runs.
func (t *txn) mayResolve(a *callAt, by *Answer) error {
	d, claim, err := t.reader().due(a.message.ID, a.index, a.rec, t.now)
	switch {
	case err != nil:
		return err
	case by.Token != (ID{}) && a.rec.Token != by.Token:
		return conflict("call %s is claimed by another: the claim %s has ended", a.name(), Short(by.Token))
	case a.rec.Execution == pool.Uncertain || d != nil && d.execution == pool.Uncertain:
		return nil
	case a.rec.Execution != pool.Running:
		return a.wrongState("answered: only a call that runs or is uncertain can")
	case by.Token != (ID{}):
		return nil
	case claim.PID > 0 && claim.PID != os.Getpid():
		return conflict("call %s is %s by %s, process %d: it will answer", a.name(), a.rec.state(), claim.Program, claim.PID)
	}
	return nil
}

// ClaimOf is the claim of a call that another process took, by its token. Whether it is still held, Renew and Resolve say.
func (s *Store) ClaimOf(c *Call, token ID, hold time.Duration) *CallClaim {
	return &CallClaim{Call: c, Token: token, store: s, hold: pool.Time(max(hold, ClaimLife) / time.Microsecond)}
}
