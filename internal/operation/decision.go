package operation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// callDecision is the entry of the decision about what was shown.
func callDecision(at string) *Operation {
	return Define("calls.decide", "POST "+at+"/decide", Decide, "decide about a call as it was shown, and if that is asked run it and let the model go on; the same key goes on where an earlier request ended", decideShown).
		Stream(append([]Event{Tells[contract.Call]("decided", "the decision is stored"), Tells[contract.Call]("running", "the tool begins"), Tells[contract.Answered]("ran", "the call has its result")}, sendEvents...)...).
		Resuming().Fails(asking...)
}

// decisionParams are a decision about what was shown.
type decisionParams struct {
	Change
	CallName
	Verdict   string          `json:"verdict" words:"approve deny" doc:"approve or deny"`
	Arguments json.RawMessage `json:"arguments,omitempty" doc:"run it with these in place of the arguments that the model proposed"`
	Reason    string          `json:"reason,omitempty" doc:"the reason; that of a denial goes to the model word for word"`
	Rule      *Offer          `json:"rule,omitempty" doc:"also add this rule, one of the call's offers, whole as it was shown. Needs admin"`
	Run       bool            `json:"run,omitempty" doc:"run the approved call. Needs run"`
	GoOn      bool            `json:"go_on,omitempty" doc:"let the model go on if no other call of the turn is open. Needs run"`
	Seen      string          `json:"seen" doc:"the hash seen of calls.get, with the same arguments if there are other ones: if the call, its tool or its folder is another by now, nothing is stored and the conflict has the call as it is"`
}

// StaleError means that a decision is about what is not so any more. It is an ErrConflict, and its JSON has the call as it is now.
type StaleError struct {
	Now ShownCall
	Why string
}

func (e *StaleError) Error() string {
	return e.Why + ": look at the call as it is now, and decide again"
}

// Unwrap returns ErrConflict.
func (e *StaleError) Unwrap() error { return chatctx.ErrConflict }

// stale returns the error of a decision that does not fit the call as it is now.
func (r *Request) stale(c *record.Call, why string) error {
	now, err := r.Store.Call(r.Ctx, c.Context.String(), c.Branch, c.Ref())
	if err != nil {
		return err
	}
	card, err := r.shown(now, false)
	if err != nil {
		return err
	}
	return &StaleError{card, why}
}

// seenOf is the hash of what a call's card shows: the arguments that it runs with, the tool's command line and folder, and its state.
func seenOf(c *record.Call, plan *approval.Plan, runs *record.Runs) string {
	v := struct {
		Call, State string
		Arguments   []string
		Tool        *record.Runs
		Plan        *contract.Runs
		Gate        *record.Gate
	}{string(c.Ref()), c.State(), []string{string(c.Arguments), string(c.Effective)}, runs, contract.ShownOf(c, contract.Call{}, plan).Runs, c.Gate}
	raw, _ := json.Marshal(v) // texts, numbers and lists always encode
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// decisionDone is what a decision led to.
type decisionDone struct {
	Call   contract.Call `json:"call"`    // as it is now
	Open   int           `json:"open"`    // other calls of the turn that are still open
	WentOn bool          `json:"went_on"` // the model was asked
	answers
}

// refuse returns an error for a decision that nobody may make, or this caller may not.
func (in *decisionParams) refuse(r *Request) error {
	approves := in.Verdict == "approve"
	switch {
	case !approves && (in.Run || in.Rule != nil || in.Arguments != nil):
		return base.Invalid("a denial takes no arguments, no rule and no run")
	case approves && in.GoOn && !in.Run:
		return base.Invalid("go_on after an approval needs run")
	}
	if in.Rule != nil {
		if err := r.need(Admin); err != nil {
			return err
		}
	}
	if in.Run || in.GoOn {
		return r.need(Run)
	}
	return nil
}

// key is what the store keeps of a decision's key: another decision with it is another one.
func (in *decisionParams) key(r *Request, c *record.Call) string {
	if in.Key == "" {
		return ""
	}
	what, _ := json.Marshal([]any{in.Key, r.By, c.Ref(), in.Verdict, string(in.Arguments), in.Reason, in.Rule, in.Run, in.GoOn, in.Seen}) // these always encode
	sum := sha256.Sum256(what)
	return "calls.decide " + hex.EncodeToString(sum[:])
}

// decideShown decides, runs and goes on. The decision and the run are finished also if the caller goes away meanwhile; with the same key a later request goes on after the
// last step that the store has.
func decideShown(r *Request, in *decisionParams) (out decisionDone, err error) {
	out.answers = answers{Answers: []contract.Answer{}, Failed: []failed{}}
	if string(in.Arguments) == "null" { // like missing ones
		in.Arguments = nil
	}
	if err := in.refuse(r); err != nil {
		return out, err
	}
	c, err := r.call(in.Target, in.CallName)
	if err != nil {
		return out, err
	}
	if c.Gate != nil && (in.Run || in.GoOn || in.Rule != nil || in.Arguments != nil) {
		return out, base.Invalid("a call of an agent takes approve or deny alone: the agent runs it")
	}
	last, end := r.lasting()
	defer end()
	beside := *r
	beside.Ctx = last
	teller := r.Teller()
	if c, err = beside.decideSeen(in, c, teller); err == nil && in.Run {
		c, err = beside.runDecided(c, teller)
	}
	teller.Flush()
	teller.Close()
	r.Revision = beside.Revision
	if err == nil {
		out.Call = contract.CallOf(c)
		err = r.goOn(in, c, &out)
	}
	return out, err
}

// lasting returns a context that does not end when the caller goes away.
func (r *Request) lasting() (context.Context, func()) {
	if r.Outlive == nil {
		return r.Ctx, func() {}
	}
	return r.Outlive()
}

// decideSeen stores the decision, unless it is about something else than the call is now. With a known key it stores nothing.
func (r *Request) decideSeen(in *decisionParams, c *record.Call, teller Teller) (*record.Call, error) {
	v := record.Verdict{Status: pool.Approved, Name: r.By, Reason: in.Reason, Arguments: in.Arguments, Key: in.key(r, c)}
	if in.Verdict == "deny" {
		v.Status = pool.Denied
	}
	runs, err := toolcall.RunsNow(r.Ctx, base.Of(r.Store), c)
	if err != nil {
		return nil, err
	}
	with := *c
	if in.Arguments != nil {
		with.Effective = in.Arguments
	}
	plan, err := r.plan(&with)
	if err != nil {
		return nil, err
	}
	fresh := seenOf(&with, plan, runs) == in.Seen
	if v.Runs = runs; v.Status == pool.Denied || c.Gate != nil {
		v.Runs = nil
	}
	if !fresh && (v.Key == "" || c.Status == pool.Pending) {
		return nil, r.stale(c, "the call is not as it was shown")
	}
	b := r.Store.Begin(c.Context.String(), c.Branch)
	if in.Rule != nil && fresh {
		if err := r.addGiven(b, in.Rule, c, &v); err != nil {
			return nil, err
		}
	}
	b.Decide(c.Ref(), v)
	done, err := b.Commit(r.Ctx)
	if now, lost := r.Store.Call(r.Ctx, c.Context.String(), c.Branch, c.Ref()); err != nil && errors.Is(err, chatctx.ErrConflict) && lost == nil && (!fresh || now.State() != c.State() || v.Runs != nil && r.replaced(c, runs)) {
		return nil, r.stale(c, err.Error())
	}
	if err != nil {
		return nil, err
	}
	r.Revision = &done.Revision
	now, err := r.Store.Call(r.Ctx, c.Context.String(), c.Branch, c.Ref())
	if err == nil && now.Status != v.Status { // an undo took back what the key made
		return nil, r.stale(c, "the decision was taken back")
	}
	if err == nil {
		told := contract.CallOf(now)
		if !done.Again {
			told.Operation = done.Operation
		}
		teller.Put("decided", told)
	}
	return now, err
}

// replaced reports whether the tool of a call is another than the one that was read before.
func (r *Request) replaced(c *record.Call, was *record.Runs) bool {
	is, err := toolcall.RunsNow(r.Ctx, base.Of(r.Store), c)
	return err == nil && !is.Same(was)
}

// addGiven adds the rule that was shown, if the call with these arguments still has that offer.
func (r *Request) addGiven(b *chatctx.Batch, given *Offer, c *record.Call, v *record.Verdict) error {
	j, err := toolcall.Judge(r.Ctx, base.Of(r.Store), c)
	if err != nil {
		return err
	}
	if v.Arguments != nil {
		j.Question.Arguments = v.Arguments
	}
	offers := approval.Offers(j.Question)
	i := slices.IndexFunc(offers, given.is)
	if i < 0 || !slices.Contains([]string{"", "context", "branch"}, given.Scope) {
		return r.stale(c, "the rule is none of the call's offers")
	}
	rule := *offers[i]
	rule.Reason = v.Reason
	b.AddRule(rule, record.RuleScope{Branch: given.Scope == "branch"})
	return nil
}

// runDecided runs the approved call, unless somebody has run it.
func (r *Request) runDecided(c *record.Call, teller Teller) (*record.Call, error) {
	if c.Execution != pool.NotRun && c.Execution != pool.Uncertain {
		return c, nil
	}
	cc, err := r.Store.Context(r.Ctx, c.Context.String())
	if err != nil {
		return c, err
	}
	note := ""
	e, end := r.executor(cc, &Running{}, func(*record.Call) { note = approval.OlderNote })
	defer end()
	show := e.Show
	e.Show = func(ev approval.Event) {
		if ev.Step == approval.StepClaimed {
			teller.Put("running", contract.CallOf(ev.Call))
		}
		show(ev)
	}
	done, err := e.RunCall(r.Ctx, c, false)
	now, lost := r.Store.Call(context.WithoutCancel(r.Ctx), c.Context.String(), c.Branch, c.Ref())
	switch {
	case err != nil && errors.Is(err, chatctx.ErrConflict) && lost == nil && now.Status == pool.Approved && now.Execution != pool.NotRun && now.Execution != pool.Uncertain:
		return now, nil // somebody else has taken it
	case err != nil:
		return c, err
	}
	v := contract.AnsweredOf(done)
	v.Note = note
	teller.Put("ran", v)
	return now, lost
}

// goOn lets the model go on if that was asked for, the turn waits for no other call, and the branch ends with this call's result: of those who decide the last calls at one
// moment only the last one finds that, and nobody does after the model has answered.
func (r *Request) goOn(in *decisionParams, c *record.Call, out *decisionDone) error {
	cc, err := r.Store.Context(r.Ctx, c.Context.String())
	if err != nil {
		return err
	}
	if out.Open, err = openBeside(r, cc, c); err != nil || !in.GoOn || out.Open > 0 || c.Open() || c.Branch == "" {
		return err
	}
	snap, err := cc.Snapshot(r.Ctx, c.Branch)
	if err != nil || snap.Len() == 0 {
		return err
	}
	if last, err := endsWithResult(r, snap, c); err != nil || !last {
		return err
	}
	s, err := r.sending(Target{c.Context.String(), c.Branch}, &asked{})
	if err != nil {
		return err
	}
	defer s.close()
	out.WentOn = true
	out.answers, err = s.said()
	return err
}

// endsWithResult reports whether a branch ends with the results of the message of a call, that of the call last.
func endsWithResult(r *Request, snap *chatctx.Snapshot, c *record.Call) (bool, error) {
	for e, err := range snap.Entries(r.Ctx, snap.Len(), 1) {
		switch {
		case err != nil:
			return false, err
		case e.Message.Result == nil:
			return e.Message.ID == c.Message && e.Position < snap.Len(), nil
		case e.Position == snap.Len() && e.Message.Result.RequestID != c.ID:
			return false, nil
		}
	}
	return false, nil
}

// openBeside counts the other open calls of a call's message.
func openBeside(r *Request, cc *chatctx.ChatContext, c *record.Call) (open int, err error) {
	m, err := cc.Message(r.Ctx, c.Message)
	if err != nil {
		return 0, err
	}
	for i := range m.Calls {
		if i+1 != c.Index && m.Calls[i].Open() {
			open++
		}
	}
	return open, nil
}
