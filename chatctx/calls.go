package chatctx

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/chatctx/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// Call is a call of a stored message as it is now. A call that came answered has no Since and no Decisions.
type Call = record.Call

// CallRef names a call: MESSAGE:INDEX, the message as a Ref names one and the index counted from 1; or the provider's id, where that is unique.
type CallRef = record.CallRef

// CallState names the state of a call on record: pending/none, approved/running, denied/none …
func CallState(status pool.Status, execution pool.Execution) string {
	return record.CallState(status, execution)
}

// What an open call waits for: see Call.WaitsFor.
const (
	WaitsForPerson  = record.WaitsForPerson
	WaitsForProgram = record.WaitsForProgram
	WaitsForChild   = record.WaitsForChild
	WaitsForResult  = record.WaitsForResult
)

// Decision is one step in the life of a call, on record. From and To are what CallState gives.
type Decision = record.Decision

// The kinds of whoever takes a step with a call.
const (
	ByPerson    = record.ByPerson
	ByRule      = record.ByRule      // named by its id
	ByInherited = record.ByInherited // a rule of a parent context, named by its id
	ByImport    = record.ByImport
	ByExpiry    = record.ByExpiry
	ByCancel    = record.ByCancel // a person too, who gave the call up
	ByProgram   = record.ByProgram
	ByCheck     = record.ByCheck // a program that found that the call cannot be run
)

// Call finds a call. With contextRef it is looked for in that context, read on a branch ("" the active one); without, first in the current context and
// then in all others. Errors to test for: ErrNotFound, ErrAmbiguous.
func (s *Store) Call(ctx context.Context, contextRef, branchName string, ref CallRef) (*Call, error) {
	return toolcall.ReadCall(ctx, s.at, contextRef, branchName, ref)
}

// CallFilter narrows a list of open calls.
type CallFilter = toolcall.CallFilter

// Calls gives the open calls of all contexts, oldest first: those that wait for a decision, for being run, or for a word about what became of them. Nothing is written: a call whose time is over or whose program died
// is shown as that, and SettleCalls puts it on record. Judge says what the rules say of one. Calls are read in short transactions.
func (s *Store) Calls(ctx context.Context, f CallFilter) iter.Seq2[*Call, error] {
	return toolcall.Calls(ctx, s.at, f)
}

// OpenCalls gives the open calls that a branch ("" the active one) holds, in the order of its history, like Store.Calls.
func (c *ChatContext) OpenCalls(ctx context.Context, branchName string) ([]*Call, error) {
	return toolcall.OpenCalls(ctx, c.at(), branchName)
}

// SettleCalls puts on record what time or a crash has brought to the calls of a branch ("" the active one). In a store that cannot be written it does nothing.
func (c *ChatContext) SettleCalls(ctx context.Context, branchName string) error {
	return toolcall.SettleBranch(ctx, c.at(), branchName)
}

// Judge says what the rules say of a call now. Nothing is written.
func (s *Store) Judge(ctx context.Context, c *Call) (*Ruling, error) {
	return toolcall.Judge(ctx, s.at, c)
}

// Judge says what the rules would say of a call of a tool on a branch, "" the active one.
func (c *ChatContext) Judge(ctx context.Context, branchName, tool string, arguments json.RawMessage) (*Ruling, error) {
	return toolcall.Ask(ctx, c.store.at, c.ID, branchName, Question{Tool: tool, Arguments: arguments})
}

// ApplyRules lets the rules decide about a call that waits for a decision. An ask may give it a time to expire. What somebody else decided meanwhile stays.
func (s *Store) ApplyRules(ctx context.Context, c *Call) (*Ruling, error) {
	r, err := s.Judge(ctx, c)
	if err != nil || r.Rule == nil || c.Status != pool.Pending || c.Branch == "" {
		return r, err
	}
	b := s.Begin(c.Context.String(), c.Branch)
	v := Verdict{Status: pool.Approved, Kind: ByRule, Name: r.Rule.ID.String(), Reason: r.Rule.Reason}
	if r.Inherited {
		v.Kind = ByInherited
	}
	switch {
	case r.Effect == Allow:
		b.Decide(c.Ref(), v)
	case r.Effect == Deny:
		v.Status = pool.Denied
		b.Decide(c.Ref(), v)
	case r.Rule.After > 0 && c.Expires == 0:
		b.ExpireCall(c.Ref(), c.Since+pool.Time(r.Rule.After.Microseconds()))
	default:
		return r, nil
	}
	if _, err := b.Commit(ctx); err != nil && !errors.Is(err, ErrConflict) {
		return nil, err
	}
	return r, nil
}

// CallStep is one step in the life of a call: its beginning, with From "", or a decision.
type CallStep = toolcall.CallStep

// CallLog gives all steps of the calls that ever waited in a context, or with the zero id in all of them, oldest first. The last step of each call leads to its present state: where time or a crash has brought it
// there, and nobody has written that yet, the step says what. Nothing is written.
func (s *Store) CallLog(ctx context.Context, context ID) ([]*CallStep, error) {
	return toolcall.CallLog(ctx, s.at, context)
}

// Verdict says what is decided about a call, and who decides.
type Verdict = toolcall.Verdict

// Decide adds a decision about a call that waits for one. A cancellation (Denied, ByCancel) may also take back an approval, as long as nobody has begun to run the call. A
// denial appends a tool message that says so to the branch; an expiry appends none once the call's turn is no longer the last. Commit gives an ErrConflict that names
// the state where the call cannot be decided so: of several who try, one wins; and one that names the rule where the call would be approved against a rule that denies it.
// Its step has the call as it is then.
func (b *Batch) Decide(ref CallRef, v Verdict) {
	denial := &Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "call", IsError: true}}
	b.prepare = append(b.prepare, v.Check)
	b.texts("reason", &v.Reason)
	b.value("arguments", &v.Arguments)
	b.prepare = append(b.prepare, func() error {
		denial.Result.Text = v.DenialText()
		return nil
	})
	b.settle(ref)
	if v.Status == pool.Approved {
		b.prepare = append(b.prepare, func() error {
			return toolcall.MayApprove(context.Background(), b.store.at, b.context, b.branch, ref, &v)
		})
	}
	if v.Status == pool.Denied {
		b.ready([]*Message{denial})
	}
	b.step(map[pool.Status]string{pool.Approved: "approve", pool.Denied: "deny"}[v.Status], func(t *journal.Txn, s *Step) error {
		at, err := toolcall.FindCall(t.Reader(), t.Target, b.branch != "", ref)
		if err != nil {
			return err
		}
		name, err := toolcall.Decide(t, at, &v, denial)
		if err != nil {
			return err
		}
		s.Call, err = toolcall.DescribeCall(t.Reader(), at, t.Now, name)
		return err
	})
}

// ExpireCall sets when a call that waits for a decision counts as denied; zero: never.
func (b *Batch) ExpireCall(ref CallRef, at pool.Time) {
	b.settle(ref)
	b.step("expire", func(t *journal.Txn, _ *Step) error {
		c, err := toolcall.FindCall(t.Reader(), t.Target, b.branch != "", ref)
		if err != nil {
			return err
		}
		if c.Rec.Status != pool.Pending {
			return c.WrongState("given a time to expire")
		}
		holder, err := toolcall.HolderOf(t, c)
		if err != nil || c.Rec.Expires == at {
			return err
		}
		t.Touch(holder)
		c.Rec.Expires = at
		return t.PutCall(c.Message.ID, c.Index, c.Rec)
	})
}

// settle has a call settled before the batch's transaction, if that is due then.
func (b *Batch) settle(ref CallRef) {
	if b.calls = append(b.calls, ref); len(b.calls) == 1 {
		b.prepare = append(b.prepare, func() error { return toolcall.SettleNamed(b.store.at, b.context, b.branch, b.calls) })
	}
}

// ClaimOptions of ClaimCall.
type ClaimOptions = toolcall.ClaimOptions

// CallClaim is the right to run a call. It lasts while it is renewed and its process lives; after that the call is uncertain.
type CallClaim = toolcall.CallClaim

// Claim says who works on something: a branch's reply, a call. It is dead, and its work is settled by whoever next touches it, when
// the process is gone on the same host since the same boot, or when it was not renewed for ClaimLife.
type Claim = record.Claim

// ClaimLife is how long a claim holds without being renewed.
const ClaimLife = record.ClaimLife

// ClaimCall makes a call running, durably, before its tool is started: of several who try, one gets it. ErrConflict, with the state, for the others and for
// calls that may not be run. The rules decide about a call that waits, and an approved one that a rule denies by now is not given. The context and the call are named as in Store.Call.
func (s *Store) ClaimCall(ctx context.Context, contextRef, branchName string, ref CallRef, o ClaimOptions) (*CallClaim, error) {
	c, err := s.Call(ctx, contextRef, branchName, ref)
	if err != nil {
		return nil, err
	}
	if c.Open() && c.Branch != "" && c.Execution != pool.Running {
		r, err := s.ApplyRules(ctx, c)
		if err == nil && c.Status == pool.Approved {
			err = toolcall.Denied(c, r)
		}
		if err != nil {
			return nil, err
		}
	}
	return toolcall.ClaimCall(ctx, s.at, contextRef, branchName, ref, o)
}

// ClaimOf is the claim of a call that another process took, by its token. Whether it is still held, Renew and Resolve say.
func (s *Store) ClaimOf(c *Call, token ID, hold time.Duration) *CallClaim {
	return toolcall.ClaimOf(s.at, c, token, hold)
}

// Answer is how a call ended. Of Text, JSON and Parts in Result the first that a Result has counts; its RequestID is filled in.
type Answer = toolcall.Answer

// ResolveCall answers a call that runs, or that is uncertain: it is done, or failed where the result is an error, and its result goes to the end of the branch, in one
// transaction. ErrConflict, with the state, for calls that wait or were answered, and for those that another program runs.
func (s *Store) ResolveCall(ctx context.Context, contextRef, branchName string, ref CallRef, a Answer) (*Committed, error) {
	return toolcall.ResolveCall(ctx, s.at, contextRef, branchName, ref, a)
}
