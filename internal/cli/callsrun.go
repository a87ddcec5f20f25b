package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

// checkClaim refuses values that no claim has.
func checkClaim(_ *run, in *operation.Claiming) error {
	if in.PID != nil && *in.PID < 1 || in.For != nil && *in.For <= 0 {
		return usagef("--pid takes a process and --hold a time")
	}
	return nil
}

func (r *run) answeredCall(done *chatctx.Committed) error {
	v := contract.AnsweredOf(done)
	if r.executors.older[v.Ref()] {
		v.Note = approval.OlderNote
	}
	return r.emit(v, func() { r.printAnswered(v) })
}

func (r *run) printAnswered(v contract.Answered) {
	where := fmt.Sprintf("its result is #%d of %s", v.Position, placed(v.Done))
	if v.Position == 0 {
		where = "no branch holds its message any more; its result is " + short(v.Result)
	}
	r.printf("%s %s is %s: %s\n", callName(v.Call.Call), clean(v.Tool), callState(v.Call.Call), where)
}

// readResult reads the result of a call, which may stand on standard input.
func readResult(r *run, in *operation.Resolving) (err error) {
	if in.Result == nil {
		return &usageError{"calls resolve needs --result", "usage: chatctx calls resolve CALL --result TEXT, or - for standard input"}
	}
	if in.Text, err = r.text(*in.Result, rawFlag(in.RawInput)); err != nil || !in.AsJSON {
		return err
	}
	if in.JSON = json.RawMessage(in.Text); !json.Valid(in.JSON) {
		return usagef("the result is not JSON")
	}
	in.Text = ""
	return nil
}

// ownAllowed are tools of the program itself that need no decision.
var ownAllowed = map[string]bool{window.ArtifactTool.Name: true}

// executor returns an executor for a context with the stored tools and those of the program. It ends with the command.
func (r *run) executor(c *chatctx.ChatContext) *approval.Executor {
	dir, _ := os.Getwd()
	e := &approval.Executor{Context: c, Dir: dir, Helper: r.con.helper, Functions: r.ownTools(c), Allowed: ownAllowed}
	e.Show = func(ev approval.Event) {
		if r.showOlder(ev); ev.Step == approval.StepEnded || ev.Step == approval.StepClaimed {
			return
		}
		r.executors.telling.Lock()
		defer r.executors.telling.Unlock()
		if r.name == "calls run" {
			_ = r.answeredCall(ev.Answered) // if the reader has gone, the command itself reports it
			return
		}
		r.note("%s %s is %s", callName(ev.Call), clean(ev.Call.Tool), callState(ev.Call))
	}
	r.executors.add(func() { e.Close() })
	return e
}

// showOlder says of a call that it runs under an approval that holds nothing of what the tool runs. Commands that report themselves what ran show only that.
func (r *run) showOlder(ev approval.Event) {
	if ev.Step == approval.StepClaimed && ev.Older {
		r.executors.telling.Lock()
		defer r.executors.telling.Unlock()
		if r.executors.older == nil {
			r.executors.older = map[record.CallRef]bool{}
		}
		r.executors.older[ev.Call.Ref()] = true
		r.note("%s %s %s", callName(ev.Call), clean(ev.Call.Tool), approval.OlderNote)
	}
}

// executors are the executors of a command, which end with it.
type executors struct {
	closers
	telling sync.Mutex              // orders the reports of what they did
	older   map[record.CallRef]bool // ran under approvals that hold nothing of what the tool runs
}

type callsRunIn struct {
	Calls   []record.CallRef `arg:"[CALL…]"`
	Again   bool             `flag:"again" doc:"run uncertain calls again: their program died while they ran"`
	Limit   *int             `flag:"limit" doc:"run at most {N} at a time"`
	Timeout time.Duration    `flag:"timeout" doc:"the {TIME} after which a tool without a limit of its own is ended"`
}

func doCallsRun(r *run, in *callsRunIn) error {
	if in.Limit != nil && *in.Limit < 1 {
		return usagef("calls run --limit takes a number of 1 or more")
	}
	if len(in.Calls) == 0 && in.Again {
		return &usageError{"calls run --again needs CALL", "each call whose program died is looked at on its own: chatctx calls ls --state uncertain"}
	}
	st, err := r.writer()
	if err != nil {
		return err
	}
	if len(in.Calls) > 0 {
		return r.runNamed(st, in)
	}
	c, name, err := r.talk()
	if err != nil {
		return err
	}
	e := r.executor(c)
	e.Limit, e.Timeout, e.Show = valueOf(in.Limit), in.Timeout, r.showOlder // the report has the rest
	went, err := r.carryOn(r.ctx, c, name)
	if err != nil {
		return err
	}
	report, err := e.Run(r.ctx, name)
	if report != nil {
		for _, a := range report.Ran {
			if err := r.answeredCall(a); err != nil {
				return err
			}
		}
	}
	if err != nil {
		return err
	}
	if r.ctx.Err() != nil {
		return context.Canceled
	}
	if went+len(report.Ran)+report.Handed+len(report.Waiting) == 0 {
		if err := r.nothingToRun(st, c, name); err != nil {
			return err
		}
	}
	return r.stillWaiting(report, c, name)
}

// nothingToRun says that nothing is approved on a branch, and names an approved call of another one.
func (r *run) nothingToRun(st *chatctx.Store, c *chatctx.ChatContext, name string) error {
	for call, err := range st.Calls(r.ctx, record.CallFilter{Context: c.ID, State: contract.CallStates["approved"]}) {
		if err != nil {
			return err
		}
		if call.Context == c.ID && call.Branch != name {
			r.note("there is nothing to run on %s; %s %s is approved on %s: %s", clean(name), callName(call), clean(call.Tool), clean(call.Branch), r.again("calls run "+callName(call)))
			return nil
		}
	}
	r.note("there is nothing to run")
	return nil
}

// stillWaiting returns an error that names the calls that are open after a run.
func (r *run) stillWaiting(report *approval.Report, c *chatctx.ChatContext, name string) error {
	if len(report.Waiting) == 0 {
		return nil
	}
	var open waits
	for _, w := range report.Waiting {
		r.note("%s %s waits for %s", callName(w.Call), clean(w.Call.Tool), w.Why)
		open.add(w.Call.WaitsFor())
	}
	return &waitsError{open, []string{r.toAsk("send --continue", c, name)}}
}

func (r *run) runNamed(st *chatctx.Store, in *callsRunIn) error {
	done := 0
	for _, ref := range in.Calls {
		err := r.runOne(st, ref, in)
		switch {
		case err != nil && done > 0:
			return contract.Partly(err, fmt.Sprintf("%s %s run", count(done, "call"), are(done)))
		case err != nil:
			return err
		}
		done++
	}
	return nil
}

func (r *run) runOne(st *chatctx.Store, ref record.CallRef, in *callsRunIn) error {
	call, err := r.callByRef(st, ref)
	if err != nil {
		return err
	}
	c, err := st.Context(r.ctx, call.Context.String())
	if err != nil {
		return err
	}
	e := r.executor(c)
	e.Timeout, e.Show = in.Timeout, r.showOlder
	a, err := e.RunCall(r.ctx, call, in.Again)
	if err != nil {
		return err
	}
	return r.answeredCall(a)
}

// deniedError means that an awaited call was denied.
type deniedError struct{ call *record.Call }

func (e *deniedError) Error() string {
	s := fmt.Sprintf("call %s is denied", callName(e.call))
	if e.call.Reason != "" {
		s += ": " + e.call.Reason
	}
	return s
}

// elsewhereError means that a call had ended before this command got it, so nobody approved it here. It is an ErrConflict.
type elsewhereError struct{ call *record.Call }

func (e *elsewhereError) Error() string {
	return fmt.Sprintf("call %s was %s already when it came here: nobody approved it here", callName(e.call), callState(e.call))
}

func (e *elsewhereError) Unwrap() error { return chatctx.ErrConflict }

// undecidedError means that nobody decided within the time limit.
type undecidedError struct {
	call *record.Call
	time time.Duration
}

func (e *undecidedError) Error() string {
	return fmt.Sprintf("call %s still waits for a decision after %s", callName(e.call), e.time)
}

type waitIn struct {
	Calls   []record.CallRef `arg:"CALL…"`
	Timeout time.Duration    `flag:"timeout" doc:"give up after this {TIME}, with exit code 6"`
}

func doCallsWait(r *run, in *waitIn) error {
	st, err := r.callStore()
	if err != nil {
		return err
	}
	var calls []*record.Call
	for _, ref := range in.Calls {
		c, err := r.callByRef(st, ref)
		if err != nil {
			return err
		}
		calls = append(calls, c)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	changes, err := st.Watch(ctx)
	if err != nil {
		return err
	}
	if in.Timeout > 0 { // a server may take longer to listen than the person wants to wait
		ctx, cancel = context.WithTimeout(ctx, in.Timeout)
		defer cancel()
	}
	for _, c := range calls {
		c, err := r.decided(ctx, st, c, changes, in.Timeout)
		if err != nil {
			return err
		}
		if err := r.emit(callToJSON(c), func() { r.printf("%s is %s\n", callName(c), callState(c)) }); err != nil {
			return err
		}
		if c.Status == pool.Denied {
			return &deniedError{c}
		}
		if !slices.ContainsFunc(c.Decisions, func(d record.Decision) bool { return !d.Said }) {
			return &elsewhereError{c}
		}
	}
	return nil
}

// ruled lets the rules, or an expiry, decide about a call, and returns its new state.
func (r *run) ruled(st *chatctx.Store, c *record.Call) (*record.Call, error) {
	cc, err := st.Context(r.ctx, c.Context.String())
	if err != nil {
		return nil, err
	}
	if c.Branch != "" {
		if err := toolcall.SettleBranch(r.ctx, base.ContextOf(cc.Store(), cc.ID), c.Branch); err != nil {
			return nil, err
		}
	}
	now, err := st.Call(r.ctx, c.Context.String(), c.Branch, c.Ref())
	if err != nil || now.Status != pool.Pending {
		return now, err
	}
	if _, err := st.ApplyRules(r.ctx, now); err != nil && !errors.Is(err, chatctx.ErrReadOnly) {
		return nil, err
	}
	return st.Call(r.ctx, c.Context.String(), c.Branch, c.Ref())
}

// decided waits until a call is decided or its time is over. ctx ends after limit.
func (r *run) decided(ctx context.Context, st *chatctx.Store, c *record.Call, changes <-chan record.Change,
	limit time.Duration) (*record.Call, error) {
	for {
		now, err := r.ruled(st, c)
		if err != nil {
			return nil, err
		}
		if now.Status != pool.Pending {
			return now, nil
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
			if r.ctx.Err() != nil {
				return nil, context.Canceled
			}
			return nil, &undecidedError{now, limit}
		}
	}
}

type callsWatchIn struct {
	Existing bool `flag:"existing" doc:"those that are open already first"`
	operation.CallListing
}

func doCallsWatch(r *run, in *callsWatchIn) error {
	if err := r.atLeastOne(in.Limit); err != nil {
		return err
	}
	st, err := r.reader()
	if err != nil {
		return err
	}
	operation.Locate(&in.CallListing, r.contextRef(), r.branchName())
	f, err := in.Filter(r.request())
	if err != nil {
		return contextHint(err)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	calls, err := approval.Watch(ctx, st, f, in.Existing)
	if err != nil {
		return err
	}
	n := 0
	for news := range calls {
		if news.Err != nil {
			return news.Err
		}
		v, err := r.request().JudgedCall(news.Call)
		if err != nil {
			return err
		}
		if err := r.emit(v, func() { r.judgedLine(v) }); err != nil {
			return err
		}
		r.con.out.flush()
		if n++; in.Limit != nil && n == *in.Limit || r.stopped() {
			return nil
		}
	}
	return r.ctx.Err()
}
