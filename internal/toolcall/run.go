package toolcall

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// ClaimCall durably marks a call as running before its tool starts. If several programs try, one gets it; the others get ErrConflict with the call's state,
// as does a claim of a call that may not run. If the tool was replaced after the approval, the call waits for a decision again, and the error is ErrConflict.
// The context and the call are named as in Store.Call.
func ClaimCall(ctx context.Context, s *base.Store, contextRef, branchName string, ref record.CallRef, o record.ClaimOptions) (*record.Claimed, error) {
	found, err := ReadCall(ctx, s, contextRef, branchName, ref)
	if err != nil {
		return nil, err
	}
	if err := SettleNamed(s, found.Context.String(), found.Branch, []record.CallRef{found.Ref()}); err != nil {
		return nil, err
	}
	claim := s.NewClaim()
	if o.PID != 0 {
		claim.PID = max(o.PID, 0)
	}
	base.Hold(claim, claim.Since, holdOf(o.Hold))
	k := &record.Claimed{Token: claim.Token}
	var waits error // again
	err = s.Update(view.Lane(ctx, s, found.Context), func(tx kv.RwTx) error {
		t, err := journal.BeginAt(s, tx, found.Context)
		if err != nil {
			return err
		}
		t.What = "claim"
		if waits, err = claimIn(t, k, found, claim, o); err == nil {
			_, err = t.Finish()
		}
		return err
	})
	if err = cmp.Or(err, waits); err != nil {
		return nil, err
	}
	return k, nil
}

// claimIn makes a call running, or lets it wait again if its tool was replaced, which waits says.
func claimIn(t *journal.Txn, k *record.Claimed, c *record.Call, claim *record.Claim, o record.ClaimOptions) (waits, err error) {
	var other *replacedError
	if k.Call, err = ClaimFor(t, c, claim, o); errors.As(err, &other) {
		return other, reconsider(t, c, other.why)
	}
	if err != nil {
		return nil, err
	}
	approval := approvalOf(k.Call.Decisions)
	k.Older = approval != nil && approval.Runs == nil
	b, err := t.Branch(k.Call.Branch)
	if err != nil {
		return nil, err
	}
	runs, tool, err := view.RunsNow(t.Tx, t.ID, t.Rec, b, c.Tool)
	if k.Tool = tool; tool != nil {
		tool.Dir = runs.Dir
	}
	return nil, err
}

// replacedError is the conflict of a call whose tool was replaced after its approval.
type replacedError struct {
	why string
	error
}

func (e *replacedError) Unwrap() error { return e.error }

// Reconsider lets an approved call wait for a decision again if its tool was replaced after the approval, as ClaimCall does; changed reports that.
func Reconsider(ctx context.Context, s *base.Store, c *record.Call) (changed bool, err error) {
	err = s.Update(view.Lane(ctx, s, c.Context), func(tx kv.RwTx) error {
		changed = false
		t, err := journal.BeginAt(s, tx, c.Context)
		if err != nil {
			return err
		}
		at, err := CallOf(t.Reader(), c.Message, c.Index-1, c.Ref())
		if err != nil || base.StateOf(at.Rec) != record.CallState(pool.Approved, pool.NotRun) {
			return err
		}
		holder, err := HolderOf(t, at)
		if err != nil {
			return err
		}
		runs, _, err := view.RunsNow(t.Tx, t.ID, t.Rec, holder, at.Rec.Tool)
		if err != nil {
			return err
		}
		why := at.replaced(runs)
		if why == "" {
			return nil
		}
		changed, t.What = true, "settle"
		if err := reconsider(t, c, why); err != nil {
			return err
		}
		_, err = t.Finish()
		return err
	})
	return changed, err
}

// reconsider lets an approved call wait for a decision again, with nothing left of the approval but its step.
func reconsider(t *journal.Txn, c *record.Call, why string) error {
	at, err := CallOf(t.Reader(), c.Message, c.Index-1, c.Ref())
	if err != nil {
		return err
	}
	at.Rec.Effective, at.Rec.Expires = nil, 0
	return StepCall(t, at, pool.Pending, pool.NotRun, record.Decision{Decider: pool.Decider{Kind: record.ByCheck, Name: t.Store.Program}, Reason: why})
}

// Replaced returns why an approved call will wait for a decision again: its tool was replaced after the approval. It is "" for any other call.
func Replaced(ctx context.Context, s *base.Store, c *record.Call) (why string, err error) {
	if c.State() != record.CallState(pool.Approved, pool.NotRun) {
		return "", nil
	}
	runs, err := RunsNow(ctx, s, c)
	if err != nil {
		return "", err
	}
	return replaced(c.Decisions, runs), nil
}

// RunsNow returns what the tool of a call of a branch runs with, as the store has it now.
func RunsNow(ctx context.Context, s *base.Store, c *record.Call) (runs *record.Runs, err error) {
	err = view.At(ctx, &base.Conversation{ID: c.Context, Store: s}, func(tx kv.Tx, rec *base.ContextRecord) error {
		b, err := view.BranchOf(tx, c.Context, rec, c.Branch)
		if err != nil {
			return err
		}
		runs, _, err = view.RunsNow(tx, c.Context, rec, b, c.Tool)
		return err
	})
	return runs, err
}

func (a *callAt) replaced(runs *record.Runs) string { return replaced(a.Rec.Decisions, runs) }

// replaced says that the tool of a call is not the one that was approved, and is "" if it is, or if the approval does not hold that.
func replaced(steps []record.Decision, runs *record.Runs) string {
	approval := approvalOf(steps)
	if approval == nil || approval.Runs == nil || approval.Runs.Same(runs) {
		return ""
	}
	return fmt.Sprintf("its tool was replaced after the approval, from %s to %s", approval.Runs, runs)
}

// approvalOf returns the newest step that approves a call, nil if there is none: whoever appended it as approved decided.
func approvalOf(steps []record.Decision) *record.Decision {
	for i := len(steps) - 1; i >= 0; i-- {
		if d := &steps[i]; d.To == record.CallState(pool.Approved, pool.NotRun) && d.ArgsSHA256 != (pool.Hash{}) {
			return d
		}
	}
	return nil
}

// ClaimFor makes a call running under a claim, as a step of the transaction.
func ClaimFor(t *journal.Txn, c *record.Call, claim *record.Claim, o record.ClaimOptions) (*record.Call, error) {
	at, err := CallOf(t.Reader(), c.Message, c.Index-1, c.Ref())
	if err != nil {
		return nil, err
	}
	holder, err := HolderOf(t, at)
	if err != nil {
		return nil, err
	}
	if at.Rec.Gate != nil {
		return nil, base.Conflict("call %s is for %s to run: a decision lets it, and nothing else runs it", at.name(), at.Rec.Gate.Agent)
	}
	fresh := base.StateOf(at.Rec) == record.CallState(pool.Approved, pool.NotRun)
	again := base.StateOf(at.Rec) == record.CallState(pool.Approved, pool.Uncertain) && o.Again
	if !fresh && !again {
		return nil, at.WrongState("claimed" + map[bool]string{true: " (again is for one whose program died)"}[o.Again])
	}
	if err := at.readable(at.arguments(), "claimed"); err != nil {
		return nil, err
	}
	if err := at.approved(); err != nil {
		return nil, err
	}
	runs, _, err := view.RunsNow(t.Tx, t.ID, t.Rec, holder, at.Rec.Tool)
	if err != nil {
		return nil, err
	}
	if why := at.replaced(runs); why != "" && fresh {
		return nil, &replacedError{why, base.Conflict("call %s waits for a decision again: %s", at.name(), why)}
	} else if why != "" {
		return nil, base.Conflict("call %s cannot run again: %s; chatctx calls resolve answers it", at.name(), why)
	}
	d := record.Decision{Decider: pool.Decider{Kind: record.ByProgram, Name: t.Store.Program, Claimed: o.Name}}
	if again {
		d = record.Decision{Decider: pool.Decider{Kind: record.ByPerson, Name: t.Store.Person, Claimed: o.Name}, Reason: "run again"}
	}
	if o.Stored {
		d.Runs = runs
	}
	at.Rec.Token = claim.Token
	if err := StepCall(t, at, pool.Approved, pool.Running, d); err != nil {
		return nil, err
	}
	if err := base.PutRecord(t.Tx, base.ClaimBucket, base.CallKey(t.ID, c.Message, c.Index-1), claim); err != nil {
		return nil, err
	}
	return DescribeCall(t.Reader(), at, t.Now, holder.Name)
}

// approved refuses a call if its approval was for other arguments than those that would run, or comes from an imported file alone. A call that was appended
// as approved has no such step: whoever appended it decided.
func (a *callAt) approved() error {
	d := approvalOf(a.Rec.Decisions)
	if d == nil || !d.Said && d.ArgsSHA256 == sha256.Sum256(jsontree.Canonical(a.arguments())) {
		return nil
	}
	return base.Conflict("no decision in this store approves the arguments that call %s would run with: deny it, and let the model call again", a.name())
}

// Renew extends the claim. It returns ErrTaken if the claim has ended or another program has it, and another ErrStopped if no branch holds the call's
// message any more. In both cases the caller must end the tool.
func Renew(ctx context.Context, s *base.Store, k *record.Claimed, hold time.Duration) error {
	key := base.CallKey(k.Call.Context, k.Call.Message, k.Call.Index-1)
	return s.Update(view.Lane(ctx, s, k.Call.Context), func(tx kv.RwTx) error {
		claim, err := Owned(tx, k)
		if err != nil {
			return err
		}
		base.Hold(claim, s.Now(), holdOf(hold))
		return base.PutRecord(tx, base.ClaimBucket, key, claim)
	})
}

// Held returns nil while the claim is held and a branch holds the call's message, else ErrTaken or another ErrStopped, as Renew does.
func Held(ctx context.Context, s *base.Store, k *record.Claimed) error {
	return s.DB.View(ctx, func(tx kv.Tx) error {
		_, err := Owned(tx, k)
		return err
	})
}

// Owned returns the claim as it is recorded, or the error that Held returns.
func Owned(tx kv.Tx, k *record.Claimed) (*record.Claim, error) {
	c := k.Call
	claim := &record.Claim{}
	ok, err := base.GetRecord(tx, base.ClaimBucket, base.CallKey(c.Context, c.Message, c.Index-1), claim)
	if err != nil {
		return nil, err
	}
	if !ok || claim.Token != k.Token {
		return nil, fmt.Errorf("%w: call %s", base.ErrTaken, c.Ref())
	}
	shown, err := tx.Get(base.OpenBucket, base.OpenKey(&record.CallRecord{Since: c.Since}, c.Context, c.Message, c.Index-1))
	if err == nil && shown == nil {
		err = fmt.Errorf("%w: no branch holds the message of call %s any more", base.ErrStopped, c.Ref())
	}
	return claim, err
}

// answerBy records who answers: the person in By, else the store's person if the call is uncertain and there is no token, else the program.
func answerBy(a *record.CallAnswer, s *base.Store, uncertain bool) record.Decision {
	switch {
	case a.By != "":
		return record.Decision{Decider: pool.Decider{Kind: record.ByPerson, Name: s.Person, Claimed: a.By}}
	case uncertain && a.Token == (pool.ID{}):
		return record.Decision{Decider: pool.Decider{Kind: record.ByPerson, Name: s.Person}}
	}
	return record.Decision{Decider: pool.Decider{Kind: record.ByProgram, Name: s.Program}}
}

// ResolveCall answers a running or uncertain call. In one transaction the call becomes done, or failed if the result is an error, and the result goes to
// the end of the branch. The step in what it returns has the call and the result's place. The position is 0 if no branch holds the call's message: then the
// result is in the pool alone. It returns ErrConflict with the state if the call waits, was answered, or runs under a claim whose token the answer does not
// have.
func ResolveCall(ctx context.Context, s *base.Store, contextRef, branchName string, ref record.CallRef, a record.CallAnswer) (*record.Committed, error) {
	found, err := ReadCall(ctx, s, contextRef, branchName, ref)
	if err != nil {
		return nil, err
	}
	m := answerOf(found, &a)
	if err := s.Ready([]*pool.Message{m}); err != nil {
		return nil, err
	}
	if err := SettleNamed(s, found.Context.String(), found.Branch, []record.CallRef{found.Ref()}); err != nil {
		return nil, err
	}
	var done *record.Committed
	command := journal.CommandOf(ctx)
	err = command.Store(func() error {
		return s.Update(view.Lane(ctx, s, found.Context), func(tx kv.RwTx) error {
			t, err := journal.BeginAt(s, tx, found.Context)
			if err != nil {
				return err
			}
			t.What = "resolve"
			message := *m // Put changes it
			step := journal.NewStep(t.What)
			if err := resolve(t, found, &a, &message, step); err != nil {
				return err
			}
			command.Join(t)
			done, err = t.Finish(step)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// answerOf makes the message with a call's result. If the call ran with other arguments than the proposed ones, the result says so.
func answerOf(c *record.Call, a *record.CallAnswer) *pool.Message {
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
	return &pool.Message{Role: pool.ToolRole, Result: &r, Content: a.Beside, Kind: a.Kind}
}

func resolve(t *journal.Txn, c *record.Call, a *record.CallAnswer, m *pool.Message, step *record.Step) error {
	at, err := CallOf(t.Reader(), c.Message, c.Index-1, c.Ref())
	if err != nil {
		return err
	}
	if err := mayResolve(t, at, a); err != nil {
		return err
	}
	if err := t.Tx.Delete(base.ClaimBucket, base.CallKey(t.ID, c.Message, c.Index-1)); err != nil {
		return err
	}
	execution := pool.Done
	if a.Result.IsError {
		execution = pool.Failed
	}
	d := answerBy(a, t.Store, at.Rec.Execution == pool.Uncertain)
	holders, err := t.Holders(at.Rec.Home)
	if err != nil {
		return err
	}
	if len(holders) == 0 {
		at.Rec.Result = m.ID
	}
	if err := StepCall(t, at, pool.Approved, execution, d); err != nil {
		return err
	}
	branchName, placed := "", record.Placement{}
	if len(holders) == 0 {
		placed.Message, err = m.ID, t.Store1(m)
	} else {
		branchName = holders[0]
		placed, err = ResolveOn(t, branchName, m)
		t.On(step, t.Target)
	}
	if err != nil {
		return err
	}
	step.Placed = []record.Placement{placed}
	step.Call, err = DescribeCall(t.Reader(), at, t.Now, branchName)
	return err
}

// ResolveOn appends a call's result to the named branch.
func ResolveOn(t *journal.Txn, name string, m *pool.Message) (record.Placement, error) {
	var b *branch.Branch
	b, err := t.Branch(name)
	if err != nil {
		return record.Placement{}, err
	}
	t.Target = b
	return appendResult(t, b, m)
}

// mayResolve refuses to answer a call that does not run or that another claim holds.
func mayResolve(t *journal.Txn, a *callAt, by *record.CallAnswer) error {
	d, claim, err := DueIn(t.Reader(), a.Message.ID, a.Index, a.Rec, t.Now)
	switch {
	case err != nil:
		return err
	case by.Token != (pool.ID{}) && a.Rec.Token != by.Token:
		return base.Conflict("call %s is claimed by another: the claim %s has ended", a.name(), record.Short(by.Token))
	case a.Rec.Execution == pool.Uncertain || d != nil && d.execution == pool.Uncertain:
		return nil
	case a.Rec.Execution != pool.Running:
		return a.WrongState("answered: only a call that runs or is uncertain can")
	case by.Token != (pool.ID{}):
		return nil
	}
	return base.Conflict("call %s is %s by %s: only the holder of the claim's token can answer it", a.name(), base.StateOf(a.Rec), claim.Who())
}

// holdOf is how long a claim lasts: ClaimLife where nothing is said.
func holdOf(d time.Duration) pool.Time {
	if d <= 0 {
		d = base.ClaimLife
	}
	return pool.Time(d / time.Microsecond)
}
