package chatctx

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// Call finds a call. With contextRef it looks in that context, reading the reference on the named branch ("" means the active one). Without, it looks in
// the current context first and then in all others. Errors to test for: ErrNotFound, ErrAmbiguous.
func (s *Store) Call(ctx context.Context, contextRef, branchName string, ref record.CallRef) (*record.Call, error) {
	return toolcall.ReadCall(ctx, s.at(), contextRef, branchName, ref)
}

// Calls returns the open calls of all contexts, oldest first: those that wait for a decision, wait to be run, run, or are uncertain. It reads in short
// transactions and writes nothing: an expiry or a crash shows at once, and SettleCalls records it. Judge returns what the rules say of a call.
func (s *Store) Calls(ctx context.Context, f record.CallFilter) iter.Seq2[*record.Call, error] {
	return toolcall.Calls(ctx, s.at(), f)
}

// Judge returns what the rules now say of a call. It writes nothing.
func (s *Store) Judge(ctx context.Context, c *record.Call) (*record.Ruling, error) {
	return toolcall.Judge(ctx, s.at(), c)
}

// ApplyRules lets the rules decide about a waiting call. A rule that asks may set a time at which the call expires. A decision that came first stays.
// To a call of an agent's hook that hook applies them.
func (s *Store) ApplyRules(ctx context.Context, c *record.Call) (*record.Ruling, error) {
	r, err := toolcall.Judge(ctx, base.Of(s), c)
	if err != nil || r.Rule == nil || c.Status != pool.Pending || c.Branch == "" || c.Gate != nil {
		return r, err
	}
	b := s.Begin(c.Context.String(), c.Branch)
	v := record.Verdict{Status: pool.Approved, Kind: record.ByRule, Name: r.Rule.ID.String(), Reason: r.Rule.Reason}
	if r.Inherited {
		v.Kind = record.ByInherited
	}
	switch {
	case r.Effect == record.Allow:
		b.Decide(c.Ref(), v)
	case r.Effect == record.Deny:
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

// Decide adds a decision about a waiting call. A cancellation (Denied, ByCancel) may also take back an approval, as long as nobody has begun to run the
// call. A denial appends a tool message that says so to the branch; an expiry does so only while the call is in the last turn. Commit fails with an
// ErrConflict that names the call's state if that does not allow the decision, so of several decisions one wins. It fails with an ErrConflict that names
// the rule if a rule denies the call that would be approved. The step has the call in its new state.
func (b *Batch) Decide(ref record.CallRef, v record.Verdict) {
	denial := &Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "call", IsError: true}}
	b.prepare = append(b.prepare, func() error { return toolcall.CheckVerdict(&v) })
	b.texts("reason", &v.Reason)
	b.value("arguments", &v.Arguments)
	b.prepare = append(b.prepare, func() error {
		denial.Result.Text = toolcall.DenialText(&v)
		return nil
	})
	b.settle(ref)
	if v.Status == pool.Approved {
		b.prepare = append(b.prepare, func() error {
			return toolcall.MayApprove(context.Background(), b.store.at(), b.context, b.branch, ref, &v)
		})
	}
	if v.Status == pool.Denied {
		b.ready([]*Message{denial})
	}
	if v.Key != "" {
		b.keys = append(b.keys, v.Key)
	}
	what := map[pool.Status]string{pool.Approved: "approve", pool.Denied: "deny"}[v.Status]
	b.steps = append(b.steps, step{what: what, key: v.Key, do: func(t *journal.Txn, s *Step) error {
		at, err := toolcall.FindCall(t.Reader(), t.Target, b.branch != "", ref)
		if err != nil {
			return err
		}
		if v.Key != "" {
			t.On(s, t.Target)
		}
		name, err := toolcall.Decide(t, at, &v, denial)
		if err != nil {
			return err
		}
		s.Call, err = toolcall.DescribeCall(t.Reader(), at, t.Now, name)
		return err
	}})
}

// ExpireCall sets the time at which a call that waits for a decision is denied; zero means never.
func (b *Batch) ExpireCall(ref record.CallRef, at pool.Time) {
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

// settle settles a call before the batch's transaction, if it is due.
func (b *Batch) settle(ref record.CallRef) {
	if b.calls = append(b.calls, ref); len(b.calls) == 1 {
		b.prepare = append(b.prepare, func() error { return toolcall.SettleNamed(b.store.at(), b.context, b.branch, b.calls) })
	}
}

// CallClaim is the right to run a call. It lasts while its owner renews it and its process lives; then the call is uncertain.
type CallClaim struct {
	record.Claimed
	store *Store
	hold  time.Duration
}

// Renew extends the claim. It returns ErrTaken if the claim has ended or another program has it, and another ErrStopped if no branch holds the call's
// message any more. In both cases the caller must end the tool.
func (k *CallClaim) Renew(ctx context.Context) error {
	return toolcall.Renew(ctx, k.store.at(), &k.Claimed, k.hold)
}

// Held returns nil while the claim is held and a branch holds the call's message, else ErrTaken or another ErrStopped, as Renew does.
func (k *CallClaim) Held(ctx context.Context) error {
	return toolcall.Held(ctx, k.store.at(), &k.Claimed)
}

// Resolve ends the claim with the call's result, in one transaction.
func (k *CallClaim) Resolve(ctx context.Context, a record.CallAnswer) (*record.Committed, error) {
	a.Token = k.Token
	return k.store.ResolveCall(ctx, k.Call.Context.String(), k.Call.Branch, k.Call.Ref(), a)
}

// ClaimLife is how long a claim lasts without renewal.
const ClaimLife = base.ClaimLife

// ClaimCall durably marks a call as running before its tool starts. If several programs try, one gets it; the others get ErrConflict with the call's state,
// as does a claim of a call that may not run. Rules decide about a waiting call first, and an approved call that a rule denies by now cannot be claimed.
// If its tool was replaced after the approval, the call waits for a decision again. The context and the call are named as in Store.Call.
func (s *Store) ClaimCall(ctx context.Context, contextRef, branchName string, ref record.CallRef, o record.ClaimOptions) (*CallClaim, error) {
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
	claimed, err := toolcall.ClaimCall(ctx, s.at(), contextRef, branchName, ref, o)
	if err != nil {
		return nil, err
	}
	return &CallClaim{*claimed, s, o.Hold}, nil
}

// ResolveCall answers a running or uncertain call. In one transaction the call becomes done, or failed if the result is an error, and the result goes to
// the end of the branch. It returns ErrConflict with the state if the call waits, was answered, or runs under a claim whose token the answer does not have.
func (s *Store) ResolveCall(ctx context.Context, contextRef, branchName string, ref record.CallRef, a record.CallAnswer) (*record.Committed, error) {
	return toolcall.ResolveCall(ctx, s.at(), contextRef, branchName, ref, a)
}
