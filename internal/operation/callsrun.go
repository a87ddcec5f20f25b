package operation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
	"github.com/chatctx/chatctx/subtask"
)

// callRuns are the operations that run calls, and that wait for what others do with them.
func callRuns(at string) []*Operation {
	return []*Operation{
		Define("calls.run", "POST "+at+"/run", Run, "run approved calls with the stored tools (see tools), and put their results on the branch", runCalls).Lasting().
			As("calls run", "chatctx calls run\nchatctx calls run @:1 --again").
			With("Without CALL: the branch's calls that rules allow or that are approved. A call is claimed before its tool starts, so nothing runs twice. Exit code 6: calls still wait."),
		Define("calls.wait", "", Read, "wait until calls are decided: 0 when they are approved, 6 when one is denied or expired", waitForCalls).Judging().
			As("calls wait", "chatctx calls wait @:1 --give-up 10m && ./run-the-tool").
			With("With --then-claim the exit codes are 0 when the call is yours to run, 6 denied, 9 not decided in time, 15 withdrawn: whoever asked for it is gone."),
		Define("calls.watch", "GET", Read, "print open calls as they come up, also from other programs", watchCalls).Following().
			As("calls watch", "chatctx calls watch --json"),
	}
}

// Running says which calls to run. The API names one, the command line several or none.
type Running struct {
	Change
	Call    record.CallRef   `json:"call" doc:"the call: MESSAGE:INDEX, or the provider's id if it is unique"`
	Calls   []record.CallRef `json:"-" arg:"[CALL…]"`
	Again   bool             `json:"again,omitempty" flag:"again" doc:"run a call again whose program died while it ran"`
	Limit   *int             `json:"-" flag:"limit" doc:"run at most {N} at a time"`
	Timeout time.Duration    `json:"-" flag:"default-timeout" old:"timeout" doc:"the {TIME} after which a tool without a limit of its own is ended"`
}

// Ran is a call that ran. The command line runs several, a line each.
type Ran struct {
	contract.Answered
	*Runs
}

// Runs are what became of several calls.
type Runs struct {
	Carried []subtask.Carried    `json:"-"` // the tasks below the branch that went on
	Waiting []approval.Waiting   `json:"-"`
	Nothing bool                 `json:"-"` // there was nothing to run
	Other   *record.Call         `json:"-"` // then, one that is approved on another branch
	Context *chatctx.ChatContext `json:"-"`
	Branch  string               `json:"-"`
	each    func(fn func(any) error) error
}

// Each calls fn with each call that ran, and runs those that were named.
func (v Ran) Each(fn func(any) error) error {
	if v.Runs == nil {
		return fn(v.Answered)
	}
	return v.each(fn)
}

func runCalls(r *Request, in *Running) (v Ran, err error) {
	switch {
	case in.Call != "":
		v.Answered, err = r.runCall(in, in.Call)
	case len(in.Calls) > 0:
		v.Runs = &Runs{each: func(fn func(any) error) error { return r.runNamed(in, fn) }}
	default:
		v.Runs, err = r.runBranch(in)
	}
	return v, err
}

// executor returns what runs the calls of a conversation. older learns which calls ran under approvals that hold nothing of what the tool runs.
func (r *Request) executor(c *chatctx.ChatContext, in *Running, older func(*record.Call)) (*approval.Executor, func()) {
	e, end := r.Executor(c)
	e.Limit = max(e.Limit, 0)
	if in.Limit != nil {
		e.Limit = *in.Limit
	}
	if in.Timeout > 0 {
		e.Timeout = in.Timeout
	}
	show := e.Show
	e.Show = func(ev approval.Event) {
		if ev.Older {
			older(ev.Call)
		}
		if show != nil {
			show(ev)
		}
	}
	return e, end
}

func (r *Request) runCall(in *Running, ref record.CallRef) (v contract.Answered, err error) {
	c, err := r.call(in.Target, CallName{ref})
	if err != nil {
		return v, err
	}
	cc, err := r.Store.Context(r.Ctx, c.Context.String())
	if err != nil {
		return v, err
	}
	note := ""
	e, end := r.executor(cc, in, func(*record.Call) { note = approval.OlderNote })
	defer end()
	done, err := e.RunCall(r.Ctx, c, in.Again)
	if err != nil {
		return v, err
	}
	v = contract.AnsweredOf(done)
	v.Note = note
	return v, nil
}

func (r *Request) runNamed(in *Running, fn func(any) error) error {
	for _, ref := range in.Calls {
		if _, err := r.call(in.Target, CallName{ref}); err != nil {
			return err
		}
	}
	for done, ref := range in.Calls {
		v, err := r.runCall(in, ref)
		if err == nil {
			err = fn(v)
		}
		if err != nil && done > 0 {
			return contract.Partly(err, plural.Are(done, "call")+" run")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// runBranch runs the calls of a branch that may run, after those of the tasks below it.
func (r *Request) runBranch(in *Running) (v *Runs, err error) {
	v = &Runs{}
	if v.Context, v.Branch, err = r.branchOf(in.Target); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	older := map[record.CallRef]bool{}
	e, end := r.executor(v.Context, in, func(c *record.Call) {
		mu.Lock()
		defer mu.Unlock()
		older[c.Ref()] = true
	})
	defer end()
	if v.Carried, err = r.runner().CarryOn(r.Ctx, v.Context, v.Branch); err != nil {
		return nil, err
	}
	report, err := e.Run(r.Ctx, v.Branch)
	if report == nil {
		report = &approval.Report{}
	}
	v.Waiting = report.Waiting
	v.each = func(fn func(any) error) error {
		for _, done := range report.Ran {
			a := contract.AnsweredOf(done)
			if older[a.Ref()] {
				a.Note = approval.OlderNote
			}
			if err := fn(a); err != nil {
				return err
			}
		}
		return err
	}
	if err == nil && r.Ctx.Err() != nil {
		err = context.Canceled
	}
	if v.Nothing = err == nil && len(v.Carried)+len(report.Ran)+report.Handed+len(report.Waiting) == 0; v.Nothing {
		v.Other, err = r.approvedElsewhere(v.Context, v.Branch)
	}
	return v, nil
}

// approvedElsewhere returns a call of a conversation that is approved on another branch, nil if there is none.
func (r *Request) approvedElsewhere(c *chatctx.ChatContext, branch string) (*record.Call, error) {
	for call, err := range r.Store.Calls(r.Ctx, record.CallFilter{Context: c.ID, State: contract.CallStates["approved"]}) {
		if err != nil || call.Context == c.ID && call.Branch != branch {
			return call, err
		}
	}
	return nil, nil
}

// DeniedError means that an awaited call was denied.
type DeniedError struct{ Call *record.Call }

func (e *DeniedError) Error() string {
	s := fmt.Sprintf("call %s is denied", NameOf(e.Call))
	if e.Call.Reason != "" {
		s += ": " + e.Call.Reason
	}
	return s
}

// NameOf returns a call's name in text.
func NameOf(c *record.Call) string { return fmt.Sprintf("%s:%d", record.Short(c.Message), c.Index) }

// StateOf returns a call's state in words.
func StateOf(c *record.Call) string {
	if c.Execution == "" || c.Execution == pool.NotRun {
		return string(c.Status)
	}
	return string(c.Execution)
}

// ElsewhereError means that a call had ended before this program got it, so nobody approved it here. It is an ErrConflict.
type ElsewhereError struct{ Call *record.Call }

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("call %s was %s already when it came here: nobody approved it here", NameOf(e.Call), StateOf(e.Call))
}

func (e *ElsewhereError) Unwrap() error { return chatctx.ErrConflict }

// UndecidedError means that nobody decided within the time limit.
type UndecidedError struct {
	Call   *record.Call
	Time   time.Duration
	Claims bool // it was to be claimed
}

// WithdrawnError means that whoever asked for a call is gone, so that nothing runs it.
type WithdrawnError struct{ Call *record.Call }

func (e *WithdrawnError) Error() string {
	return fmt.Sprintf("call %s is withdrawn: nobody waits for it any more", NameOf(e.Call))
}

// Unwrap returns ErrConflict.
func (e *WithdrawnError) Unwrap() error { return chatctx.ErrConflict }

func (e *UndecidedError) Error() string {
	return fmt.Sprintf("call %s still waits for a decision after %s", NameOf(e.Call), e.Time)
}

// AwaitedCalls names the calls whose decision is awaited.
type AwaitedCalls struct {
	Target
	Calls   []record.CallRef `json:"calls" arg:"CALL…"`
	Timeout time.Duration    `json:"timeout,omitempty" flag:"give-up" old:"timeout" doc:"give up after this {TIME}, with exit code 6, and with --then-claim 9"`
	Claim   bool             `json:"-" flag:"then-claim" doc:"take the call to run it as soon as it is approved, as calls claim does"`
	PID     *int             `json:"-" flag:"pid" doc:"the {PROCESS} whose end ends the claim"`
	Hold    *time.Duration   `json:"-" flag:"hold" doc:"how long the claim lasts without being renewed, as a {TIME}"`
}

// Awaited is a call that was decided. If it is claimed, it has what calls claim says.
type Awaited struct {
	contract.Call
	Token        chatctx.ID      `json:"token,omitzero"`
	RunArguments json.RawMessage `json:"run_arguments,omitempty"`
}

func waitForCalls(r *Request, in *AwaitedCalls) (out List[Awaited], err error) {
	if in.Claim && len(in.Calls) != 1 {
		return out, base.Invalid("calls wait --then-claim takes one CALL")
	}
	var calls []*record.Call
	for _, ref := range in.Calls {
		c, err := r.call(in.Target, CallName{ref})
		if err != nil {
			return out, err
		}
		calls = append(calls, c)
	}
	out.all = func(yield func(Awaited, error) bool) {
		ctx, cancel := context.WithCancel(r.Ctx)
		defer cancel()
		changes, err := r.Store.Watch(ctx)
		if err != nil {
			yield(Awaited{}, err)
			return
		}
		if in.Timeout > 0 { // a server may take longer to listen than the person wants to wait
			ctx, cancel = context.WithTimeout(ctx, in.Timeout)
			defer cancel()
		}
		for _, c := range calls {
			c, err := r.awaited(ctx, c, changes, in.Timeout)
			var late *UndecidedError
			if in.Claim && errors.As(err, &late) {
				late.Claims = true
			}
			var v Awaited
			if err == nil {
				v, err = r.decided(c, in)
			}
			if v.Call.Call != nil && !yield(v, nil) {
				return
			}
			if err != nil {
				yield(Awaited{}, err)
				return
			}
		}
	}
	return out, nil
}

// decided returns a call that was decided, and claims it if that is wanted. The error is that of one which was not approved.
func (r *Request) decided(c *record.Call, in *AwaitedCalls) (v Awaited, err error) {
	v.Call = contract.CallOf(c)
	if c.Status == pool.Withdrawn && in.Claim {
		return v, &WithdrawnError{c}
	}
	if err := verdictOf(c); err != nil || !in.Claim {
		return v, err
	}
	pid := -1
	if in.PID != nil {
		pid = *in.PID
	}
	if c.Gate != nil {
		said, err := toolcall.Collect(r.Ctx, base.Of(r.Store), &toolcall.Asked{Gate: *c.Gate, AgentPID: max(pid, 0)}, c, toolcall.EndNot, "")
		if err != nil || said.Say != toolcall.SayAllow {
			return Awaited{}, cmp.Or(err, error(&record.ConflictError{Text: said.Reason}))
		}
		return Awaited{contract.CallOf(said.Call), said.Token, said.Call.RunArguments()}, nil
	}
	o := record.ClaimOptions{PID: pid, Name: r.By}
	if in.Hold != nil {
		o.Hold = *in.Hold
	}
	k, err := r.Store.ClaimCall(r.Ctx, c.Context.String(), c.Branch, c.Ref(), o)
	if err != nil {
		return Awaited{}, err
	}
	return Awaited{contract.CallOf(k.Call), k.Token, k.Call.RunArguments()}, nil
}

// verdictOf returns an error if a decided call was not approved here.
func verdictOf(c *record.Call) error {
	switch {
	case c.Status == pool.Denied:
		return &DeniedError{c}
	case c.Status == pool.Withdrawn, c.Status == pool.Left:
		return &ElsewhereError{c}
	case !slices.ContainsFunc(c.Decisions, func(d record.Decision) bool { return !d.Said }):
		return &ElsewhereError{c}
	}
	return nil
}

// applied lets the rules, or an expiry, decide about a call, and returns its new state.
func (r *Request) applied(c *record.Call) (*record.Call, error) {
	cc, err := r.Store.Context(r.Ctx, c.Context.String())
	if err != nil {
		return nil, err
	}
	if c.Branch != "" {
		if err := toolcall.SettleBranch(r.Ctx, base.ContextOf(cc.Store(), cc.ID), c.Branch); err != nil {
			return nil, err
		}
	}
	now, err := r.Store.Call(r.Ctx, c.Context.String(), c.Branch, c.Ref())
	if err != nil || now.Status != pool.Pending {
		return now, err
	}
	if _, err := r.Store.ApplyRules(r.Ctx, now); err != nil && !errors.Is(err, chatctx.ErrReadOnly) {
		return nil, err
	}
	return r.Store.Call(r.Ctx, c.Context.String(), c.Branch, c.Ref())
}

// awaited waits until a call is decided or its time is over. ctx ends after limit.
func (r *Request) awaited(ctx context.Context, c *record.Call, changes <-chan record.Change, limit time.Duration) (*record.Call, error) {
	for {
		now, err := r.applied(c)
		if err != nil || now.Status != pool.Pending {
			return now, err
		}
		expires := make(<-chan time.Time)
		if now.Expires != 0 {
			expires = time.After(time.Until(now.Expires.Time()) + time.Millisecond)
		}
		select {
		case change := <-changes:
			if change.Err != nil {
				return nil, change.Err
			}
		case <-expires:
		case <-ctx.Done():
			if r.Ctx.Err() != nil {
				return nil, context.Canceled
			}
			return nil, &UndecidedError{Call: now, Time: limit}
		}
	}
}

// CallWatching says which calls are followed.
type CallWatching struct {
	Existing bool `json:"existing,omitempty" flag:"existing" doc:"those that are open already first"`
	CallListing
}

func watchCalls(r *Request, in *CallWatching) (out List[contract.Call], err error) {
	f, err := in.Filter(r)
	if err != nil {
		return out, err
	}
	out.all = func(yield func(contract.Call, error) bool) {
		ctx, cancel := context.WithCancel(r.Ctx)
		defer cancel()
		calls, err := approval.Watch(ctx, r.Store, f, in.Existing)
		if err != nil {
			yield(contract.Call{}, err)
			return
		}
		n := 0
		for news := range calls {
			v, err := contract.Call{}, news.Err
			if err == nil {
				v, err = r.JudgedCall(news.Call)
			}
			if n++; !yield(v, err) || err != nil || in.Limit != nil && n == *in.Limit {
				return
			}
		}
		if err := r.Ctx.Err(); err != nil {
			yield(contract.Call{}, err)
		}
	}
	return out, nil
}
