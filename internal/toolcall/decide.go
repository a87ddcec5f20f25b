package toolcall

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
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
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// DenialText is the result text of a denied call.
func DenialText(v *record.Verdict) string {
	word := map[string]string{record.ByCancel: "cancelled", record.ByExpiry: "expired", record.ByCheck: "not run"}[v.Kind]
	word = cmp.Or(word, "denied")
	if v.Reason == "" {
		return word
	}
	return word + ": " + v.Reason
}

// CheckVerdict refuses verdicts that no call can take.
func CheckVerdict(v *record.Verdict) error {
	switch {
	case v.Status != pool.Approved && v.Status != pool.Denied:
		return base.Invalidf("a decision must be approved or denied, not %q", v.Status)
	case v.Arguments != nil && v.Status != pool.Approved:
		return base.Invalidf("only an approval takes other arguments")
	case v.Arguments == nil:
		return nil
	}
	if _, err := jsontree.Parse(v.Arguments); err != nil {
		return base.Invalidf("the arguments cannot be read: %v", err)
	}
	return nil
}

// verdictBy is the record of who decides.
func verdictBy(v *record.Verdict, s *base.Store) record.Decision {
	d := record.Decision{Decider: pool.Decider{Kind: v.Kind}, Reason: v.Reason, Arguments: v.Arguments}
	switch d.Kind {
	case "":
		d.Kind, d.Name, d.Claimed = record.ByPerson, s.Person, v.Name
	case record.ByPerson, record.ByCancel:
		d.Name, d.Claimed = s.Person, v.Name
	case record.ByRule, record.ByInherited:
		d.Name = v.Name
	default:
		d.Name, d.Claimed = s.Program, v.Name
	}
	return d
}

// WrongState is the error for a step that the call's state does not allow. done is the step as a past participle: "approved", "claimed".
func (a *callAt) WrongState(done string) error {
	by := ""
	if n := len(a.Rec.Decisions); n > 0 {
		d := a.Rec.Decisions[n-1]
		by = fmt.Sprintf(", since %s by %s %s", d.At.Time().Format("2006-01-02 15:04:05"), d.Kind, d.Name)
	}
	return base.Conflict("call %s is %s%s: it cannot be %s", a.name(), base.StateOf(a.Rec), by, done)
}

// HolderOf returns a branch that holds the call's message; for a call of an agent's hook that is on no branch yet, the active one, after which it stands. It
// returns ErrConflict if there is none.
func HolderOf(t *journal.Txn, a *callAt) (*branch.Branch, error) {
	if base.IsApart(a.Rec) {
		return t.Branch(t.Rec.Active.String())
	}
	if t.Target != nil && branchstore.Place(t.Target.Pieces, a.Rec.Home.Segment, a.Rec.Home.Position) >= 0 {
		return t.Target, nil
	}
	names, err := t.Holders(a.Rec.Home)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, base.Conflict("no branch holds the message of call %s any more: undo brings it back", a.name())
	}
	return t.Branch(names[0])
}

// Decide records a decision about a call and returns the name of the branch that holds the call. A denial also appends its result to that branch; an expiry
// does so only while the call is in the last turn.
func Decide(t *journal.Txn, a *callAt, v *record.Verdict, denial *pool.Message) (string, error) {
	takesBack := slices.Contains([]string{record.ByCancel, record.ByRule, record.ByInherited}, v.Kind) // a rule that came after the approval
	cancels := v.Status == pool.Denied && takesBack && base.StateOf(a.Rec) == record.CallState(pool.Approved, pool.NotRun)
	if a.Rec.Status != pool.Pending && !cancels {
		return "", a.WrongState(map[bool]string{true: "cancelled", false: string(v.Status)}[v.Kind == record.ByCancel])
	}
	holder, err := HolderOf(t, a)
	if err != nil {
		return "", err
	}
	if v.Arguments != nil && !bytes.Equal(v.Arguments, a.Message.Calls[a.Index].Arguments) {
		a.Rec.Effective = v.Arguments
	}
	if a.Rec.Gate != nil {
		t.Final = true
	} else {
		t.Touch(holder)
	}
	if v.Status == pool.Approved {
		if err := a.readable(a.arguments(), "approved"); err != nil {
			return "", err
		}
	}
	d := verdictBy(v, t.Store)
	if v.Status == pool.Approved && a.Rec.Gate == nil {
		if d.Runs, _, err = view.RunsNow(t.Tx, t.ID, t.Rec, holder, a.Rec.Tool); err != nil {
			return "", err
		}
		if v.Runs != nil && !v.Runs.Same(d.Runs) {
			return "", base.Conflict("the tool of call %s is another by now", a.name())
		}
	}
	if err := StepCall(t, a, v.Status, pool.NotRun, d); err != nil || v.Status != pool.Denied || a.Rec.Gate != nil {
		return holder.Name, err
	}
	last, err := inLastTurn(t, holder, a)
	if err != nil || !last && v.Kind == record.ByExpiry {
		return holder.Name, err
	}
	m, r := *denial, *denial.Result
	r.RequestID, r.Tool, m.Result = a.Rec.CallID, a.Rec.Tool, &r
	_, err = appendResult(t, holder, &m)
	return holder.Name, err
}

// arguments are what the call would run with, exactly as given.
func (a *callAt) arguments() json.RawMessage {
	if a.Rec.Effective != nil {
		return a.Rec.Effective
	}
	return a.Message.Calls[a.Index].Arguments
}

// StepCall changes a call's state and records the step.
func StepCall(t *journal.Txn, a *callAt, status pool.Status, execution pool.Execution, d record.Decision) error {
	d.At, d.From, d.To, d.Program = t.Now, base.StateOf(a.Rec), record.CallState(status, execution), t.Store.Program
	d.User = t.Store.User
	if d.Kind == record.ByPerson || d.Kind == record.ByCancel {
		d.Claimed = cmp.Or(d.Claimed, t.Store.Claimed)
	}
	d.ArgsSHA256 = sha256.Sum256(jsontree.Canonical(a.arguments()))
	a.Rec.Status, a.Rec.Execution = status, execution
	if d.Reason != "" || execution == pool.NotRun {
		a.Rec.Reason = d.Reason
	}
	a.Rec.Decisions = append(a.Rec.Decisions, d)
	return t.PutCall(a.Message.ID, a.Index, a.Rec)
}

// inLastTurn reports whether the call's message is in the last turn of the branch.
func inLastTurn(t *journal.Txn, b *branch.Branch, a *callAt) (bool, error) {
	at := branchstore.Place(b.Pieces, a.Rec.Home.Segment, a.Rec.Home.Position)
	before, err := branchstore.Turns(t.Tx, t.ID, b.Pieces, at+1)
	if err != nil {
		return false, err
	}
	all, err := branchstore.Turns(t.Tx, t.ID, b.Pieces, branchstore.Len(b))
	return before == all, err
}

// appendResult appends the result of a call whose state is set already.
func appendResult(t *journal.Txn, b *branch.Branch, m *pool.Message) (record.Placement, error) {
	p, err := t.Put(b, []*pool.Message{m})
	if err != nil {
		return record.Placement{}, err
	}
	at := branchstore.Len(b)
	return record.Placement{Message: m.ID, Position: at + 1}, t.Splice(b, at, 0, []branch.Piece{p})
}

// SettleNamed settles the named calls of a context that are due. It skips references that name no call, or several: the next reader reports them.
func SettleNamed(s *base.Store, contextRef, branchName string, refs []record.CallRef) error {
	ctx := context.Background()
	var stale []callName
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		stale = nil
		id, err := view.ResolveContext(s, tx, contextRef)
		if err != nil {
			return err
		}
		for _, ref := range refs {
			at, err := callIn(s, tx, id, branchName, ref)
			if errors.Is(err, base.ErrNotFound) || errors.Is(err, base.ErrAmbiguous) {
				continue
			}
			if err != nil {
				return err
			}
			d, _, err := DueIn(view.Reader{Tx: tx, ID: id}, at.Message.ID, at.Index, at.Rec, s.Now())
			if err != nil {
				return err
			}
			if d != nil {
				stale = append(stale, callName{id, at.Message.ID, at.Index})
			}
		}
		return nil
	})
	if errors.Is(err, base.ErrNotFound) || errors.Is(err, base.ErrAmbiguous) {
		return nil // a reference to the context that names none, or several: the batch reports it
	}
	if err != nil {
		return err
	}
	return settleCalls(ctx, s, stale)
}

// settleCalls records expiries and crashes, in one operation for each context.
func settleCalls(ctx context.Context, s *base.Store, names []callName) error {
	byContext := map[pool.ID][]callName{}
	var order []pool.ID
	for _, n := range names {
		if byContext[n.ctx] == nil {
			order = append(order, n.ctx)
		}
		byContext[n.ctx] = append(byContext[n.ctx], n)
	}
	for _, id := range order {
		if err := settleIn(ctx, s, id, byContext[id]); err != nil {
			return err
		}
	}
	return nil
}

func settleIn(ctx context.Context, s *base.Store, id pool.ID, names []callName) error {
	expired := record.Verdict{Status: pool.Denied, Kind: record.ByExpiry, Reason: "nobody decided in time"}
	denials := make([]*pool.Message, len(names))
	for i := range denials {
		denials[i] = &pool.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "call", Text: DenialText(&expired), IsError: true}}
	}
	if err := s.Ready(denials); err != nil {
		return err
	}
	return s.Update(view.Lane(base.AsGate(ctx), s, id), func(tx kv.RwTx) error {
		t, err := journal.BeginAt(s, tx, id)
		if err != nil {
			return err
		}
		t.What = "settle"
		for i, n := range names {
			at, err := CallOf(t.Reader(), n.message, n.index, "")
			if errors.Is(err, base.ErrNotFound) {
				continue
			}
			if err == nil {
				err = settleCall(t, at, &expired, denials[i])
			}
			if err != nil {
				return err
			}
		}
		_, err = t.Finish()
		return err
	})
}

// settleCall records the expiry of a call or the crash of its program, if there was one.
func settleCall(t *journal.Txn, a *callAt, expired *record.Verdict, denial *pool.Message) error {
	d, _, err := DueIn(t.Reader(), a.Message.ID, a.Index, a.Rec, t.Now)
	if err != nil || d == nil {
		return err
	}
	if d.kind == record.ByExpiry {
		_, err := Decide(t, a, expired, denial)
		if errors.Is(err, base.ErrConflict) { // no branch holds the call: it is settled once a branch does
			return nil
		}
		return err
	}
	if d.status == pool.Withdrawn {
		t.Final = true
		return StepCall(t, a, d.status, pool.NotRun, record.Decision{Decider: pool.Decider{Kind: d.kind, Name: t.Store.Program}, Reason: d.reason})
	}
	return uncertain(t, a, d.reason)
}

// uncertain ends the claim of a call whose outcome is unknown.
func uncertain(t *journal.Txn, a *callAt, reason string) error {
	if err := t.Tx.Delete(base.ClaimBucket, base.CallKey(t.ID, a.Message.ID, a.Index)); err != nil {
		return err
	}
	return StepCall(t, a, pool.Approved, pool.Uncertain, record.Decision{Decider: pool.Decider{Kind: record.ByProgram, Name: t.Store.Program}, Reason: reason})
}

// GiveUp ends the open calls on the branches of a context that will not go on. It cancels calls that nobody has begun. A running call loses its claim and
// becomes uncertain, so its program ends the tool and cannot report an outcome.
func GiveUp(t *journal.Txn, reason string) error {
	var waiting []view.Unanswered
	err := t.Each(func(b *branch.Branch) error {
		calls, err := view.UnansweredIn(t.Tx, t.ID, b.Pieces)
		waiting = append(waiting, calls...)
		return err
	})
	for _, u := range waiting {
		if err != nil {
			return err
		}
		var a *callAt
		if a, err = CallOf(t.Reader(), u.Message, u.Index, ""); err != nil {
			return err
		}
		switch {
		case a.Rec.Execution == pool.Running:
			err = uncertain(t, a, reason)
		case base.IsOpen(a.Rec) && a.Rec.Execution == pool.NotRun:
			v := record.Verdict{Status: pool.Denied, Kind: record.ByCancel, Reason: reason}
			err = StepCall(t, a, pool.Denied, pool.NotRun, verdictBy(&v, t.Store))
		}
	}
	return err
}
