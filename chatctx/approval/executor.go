package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
	"golang.org/x/sync/semaphore"
)

// Function is a tool of the program itself. An error becomes a failed result with its text; ErrHandedOver leaves the call running.
type Function func(ctx context.Context, in Invocation) (pool.Result, error)

// Invocation is a running call.
type Invocation struct {
	Call      *record.Call
	Arguments json.RawMessage // the arguments to use
	Claim     *chatctx.CallClaim
}

// ErrHandedOver means that a Function gave its call to another program, which will answer it.
var ErrHandedOver = errors.New("the call was handed over")

// Executor runs the approved calls of a branch. A call whose arguments do not fit its tool does not run, and its result says so. Several goroutines may use
// an Executor at the same time. An Executor with only a Context is ready to use.
type Executor struct {
	Context *chatctx.ChatContext
	// Functions are the program's own tools by name. They take precedence over tools in the store.
	Functions map[string]Function
	// Allowed names the tools that need no decision if no rule is about them.
	Allowed map[string]bool
	// Limit is how many calls run at the same time; 0 means DefaultLimit.
	Limit int
	// Timeout is for commands and MCP servers without a time limit of their own; 0 means DefaultTimeout. Functions have no limit.
	Timeout time.Duration
	// Dir is the folder for commands without one of their own, if the setting calls.folder names none; "" means the current folder.
	Dir string
	// Helper is a program, by its whole path, with arguments; with further arguments it must call Reap with these. On Linux commands and MCP servers run
	// under it if they cannot have a cgroup: so everything that they start ends with them, even outside their process group. nil: only the process group is
	// ended.
	Helper []string
	// Show, if not nil, is called with each Event, from several goroutines.
	Show func(Event)

	servers servers
}

// The defaults of Executor.
const (
	DefaultLimit   = 4
	DefaultTimeout = 2 * time.Minute
)

// Event is one step of a call: claimed before its tool starts, ended after it, resolved when its result is stored.
type Event struct {
	Step     string
	Call     *record.Call
	Older    bool              // of claimed: the approval was stored before approvals held what the tool runs
	Answered *record.Committed // of resolved
}

// The steps of an Event.
const (
	StepClaimed  = "claimed"
	StepEnded    = "ended"
	StepResolved = "resolved"
)

// Report is the result of Run.
type Report struct {
	Ran     []*record.Committed // one for each call, with the call and its result's place
	Decided int                 // calls that rules decided
	Handed  int                 // calls that were handed over
	Waiting []Waiting
}

// Waiting is a call that is still open, and why.
type Waiting struct {
	Call *record.Call
	Why  string
}

// Close ends the MCP servers that the Executor started.
func (e *Executor) Close() { e.servers.close() }

// Run lets the rules decide about the waiting calls of a branch ("" means the active one) and runs the approved ones, until it may run no more. Cancelling
// ctx ends the tools; their calls fail as interrupted. The error says what stopped Run itself; a tool that fails gives a result, not an error.
func (e *Executor) Run(ctx context.Context, branchName string) (*Report, error) {
	w := &working{Executor: e, report: &Report{}, started: map[record.CallRef]bool{}, slots: semaphore.NewWeighted(int64(e.limit()))}
	err := w.all(ctx, branchName)
	return w.report, err
}

func (e *Executor) limit() int {
	if e.Limit > 0 {
		return e.Limit
	}
	return DefaultLimit
}

// Calls decides and runs the calls of a reply; it fits turn.Turn's field Calls. named lists the tools of the request: a call of any other is answered at
// once with an error, since the model made the tool up. nil means that the tools are not known. goOn reports whether each of the calls has its result.
func (e *Executor) Calls(ctx context.Context, branchName string, reply *chatctx.Message, named []string) (goOn bool, err error) {
	if named != nil {
		if err := e.refuseMadeUp(ctx, branchName, reply, named); err != nil {
			return false, err
		}
	}
	report, err := e.Run(ctx, branchName)
	if err != nil {
		return false, err
	}
	for _, w := range report.Waiting {
		if w.Call.Message == reply.ID {
			return false, nil
		}
	}
	return ctx.Err() == nil, ctx.Err()
}

// refuseMadeUp answers the calls of a reply whose tools the request did not name.
func (e *Executor) refuseMadeUp(ctx context.Context, branchName string, reply *chatctx.Message, named []string) error {
	for i := range reply.Calls {
		tool := reply.Calls[i].Tool
		if slices.Contains(named, tool) || e.Functions[tool] != nil {
			continue
		}
		ref := record.CallRef(fmt.Sprintf("%s:%d", reply.ID, i+1))
		why := fmt.Sprintf("there is no tool %q", tool)
		if len(named) > 0 {
			why += ": there are " + strings.Join(named, ", ")
		}
		if err := e.refuse(ctx, branchName, ref, why); err != nil {
			return err
		}
	}
	return nil
}

// refuse answers a call that cannot run with an error that says why.
func (e *Executor) refuse(ctx context.Context, branchName string, ref record.CallRef, why string) error {
	return e.decideOnce(ctx, branchName, ref, record.Verdict{Status: pool.Denied, Kind: record.ByCheck, Reason: why})
}

// decideOnce decides a call. A decision that came first stays.
func (e *Executor) decideOnce(ctx context.Context, branchName string, ref record.CallRef, v record.Verdict) error {
	b := e.Context.Begin(branchName)
	b.Decide(ref, v)
	_, err := b.Commit(ctx)
	if errors.Is(err, chatctx.ErrConflict) {
		return nil
	}
	return err
}

// working is one Run.
type working struct {
	*Executor
	slots   *semaphore.Weighted
	mu      sync.Mutex
	report  *Report
	started map[record.CallRef]bool
	failed  error
}

// all goes on while there is something to start.
func (w *working) all(ctx context.Context, branchName string) error {
	for {
		if err := toolcall.SettleBranch(ctx, base.ContextOf(w.Context.Store(), w.Context.ID), branchName); err != nil {
			return err
		}
		calls, err := toolcall.OpenCalls(ctx, base.ContextOf(w.Context.Store(), w.Context.ID), branchName)
		if err != nil {
			return err
		}
		tools, err := w.tools(ctx, branchName)
		if err != nil {
			return err
		}
		w.report.Waiting = nil
		begun, err := w.round(ctx, calls, tools)
		if err != nil || !begun || ctx.Err() != nil {
			return err
		}
	}
}

// tools returns the store's tools by name, each with the folder in which it runs.
func (e *Executor) tools(ctx context.Context, branchName string) (map[string]*record.Tool, error) {
	folder, err := runFolder(ctx, e.Context, branchName, e.Dir)
	if err != nil {
		return nil, err
	}
	list, err := view.OfferedTools(ctx, base.Of(e.Context.Store()), e.Context.ID)
	if err != nil {
		return nil, err
	}
	out := make(map[string]*record.Tool, len(list))
	for i := range list {
		if list[i].Dir == "" {
			list[i].Dir = folder
		}
		out[list[i].Name] = &list[i]
	}
	return out, nil
}

// runFolder returns the folder for tools without one of their own: that of the setting calls.folder, else dir.
func runFolder(ctx context.Context, c *chatctx.ChatContext, branchName, dir string) (string, error) {
	own, err := c.Effective(ctx, branchName)
	if set := settings.Values(settings.WithEnv(own, os.Getenv)).Text("calls.folder"); filepath.IsAbs(set) {
		dir = set
	}
	return dir, err
}

// round decides, starts the calls that may run, and waits for them. begun reports whether anything changed.
func (w *working) round(ctx context.Context, calls []*record.Call, tools map[string]*record.Tool) (begun bool, err error) {
	var wg sync.WaitGroup
	for _, c := range calls {
		if ctx.Err() != nil {
			break
		}
		if w.started[c.Ref()] {
			w.wait(c, "it did not run to its end")
			continue
		}
		if c, err = w.decide(ctx, c, tools[c.Tool]); err != nil {
			break
		}
		if run, why := w.runnerFor(c, tools); run == nil {
			if c.Open() {
				w.wait(c, why)
			}
			continue
		}
		if w.slots.Acquire(ctx, 1) != nil {
			break
		}
		begun, w.started[c.Ref()] = true, true
		wg.Go(func() {
			defer w.slots.Release(1)
			w.one(ctx, c)
		})
	}
	wg.Wait()
	return begun, errors.Join(err, w.failed)
}

func (w *working) wait(c *record.Call, why string) {
	w.report.Waiting = append(w.report.Waiting, Waiting{c, why})
}

// decide lets the rules decide about a waiting call and returns its new state. If the tool would run here but does not take the arguments, the call is
// answered first.
func (w *working) decide(ctx context.Context, c *record.Call, t *record.Tool) (*record.Call, error) {
	if c.Status != pool.Pending {
		return w.takeBack(ctx, c, t)
	}
	if w.runnerOf(c.Tool, t) != nil {
		if err := checkCall(c, t); err != nil {
			if err := w.refuse(ctx, c.Branch, c.Ref(), err.Error()); err != nil {
				return c, err
			}
			return w.Context.Store().Call(ctx, c.Context.String(), c.Branch, c.Ref())
		}
	}
	j, err := w.Context.Store().ApplyRules(ctx, c)
	if err != nil {
		return c, err
	}
	switch {
	case j.Rule == nil && w.Allowed[c.Tool]:
		if err := w.allow(ctx, c); err != nil {
			return c, err
		}
	case j.Rule == nil:
		return c, nil
	case j.Effect != record.Ask:
		w.report.Decided++
	}
	return w.Context.Store().Call(ctx, c.Context.String(), c.Branch, c.Ref())
}

// reconsider lets a call whose tool was replaced after its approval wait for a decision again, and lets the rules decide.
func (w *working) reconsider(ctx context.Context, c *record.Call, t *record.Tool) (*record.Call, error) {
	store := w.Context.Store()
	if _, err := toolcall.Reconsider(ctx, base.Of(store), c); err != nil {
		return c, err
	}
	is, err := store.Call(ctx, c.Context.String(), c.Branch, c.Ref())
	if err != nil || is.Status != pool.Pending {
		return is, err
	}
	return w.decide(ctx, is, t)
}

// takeBack takes back the approval of a call if its tool was replaced, or denies the call if a newer rule does: it would wait for ever, since nobody may claim
// it.
func (w *working) takeBack(ctx context.Context, c *record.Call, t *record.Tool) (*record.Call, error) {
	store := w.Context.Store()
	if c.State() != record.CallState(pool.Approved, pool.NotRun) {
		return c, nil
	}
	if why, err := toolcall.Replaced(ctx, base.Of(store), c); err != nil {
		return c, err
	} else if why != "" {
		return w.reconsider(ctx, c, t)
	}
	r, err := toolcall.Judge(ctx, base.Of(store), c)
	if err != nil || r.Effect != record.Deny || r.Rule.Default || r.Untold {
		return c, err
	}
	b := w.Context.Begin(c.Branch)
	b.Decide(c.Ref(), record.Verdict{Status: pool.Denied, Kind: record.ByRule, Name: r.Rule.ID.String(), Reason: r.Rule.Reason})
	if _, err := b.Commit(ctx); err != nil && !errors.Is(err, chatctx.ErrConflict) {
		return c, err
	}
	w.report.Decided++
	return store.Call(ctx, c.Context.String(), c.Branch, c.Ref())
}

// checkCall returns an error if a tool does not take the arguments of a call. A tool that the store does not have takes any object.
func checkCall(c *record.Call, t *record.Tool) error {
	if t == nil {
		return checkArguments(nil, c.RunArguments())
	}
	return checkArguments(t.Schema, c.RunArguments())
}

// allow approves a call of a tool that needs no decision.
func (w *working) allow(ctx context.Context, c *record.Call) error {
	return w.decideOnce(ctx, c.Branch, c.Ref(), record.Verdict{Status: pool.Approved, Kind: record.ByProgram, Reason: "it needs no decision"})
}

// runner runs a claimed call. With an error the answer holds the output before it.
type runner func(ctx context.Context, in Invocation) (record.CallAnswer, error)

// runnerFor returns what runs a call, or nil and the reason why it does not run now.
func (e *Executor) runnerFor(c *record.Call, tools map[string]*record.Tool) (runner, string) {
	t := tools[c.Tool]
	repeatable := t != nil && t.Repeatable
	switch {
	case !c.Open():
		return nil, ""
	case c.Status == pool.Pending:
		return nil, "a decision"
	case c.Execution == pool.Running && c.Claim != nil && c.Claim.Task != (chatctx.ID{}):
		return nil, "its sub-context"
	case c.Execution == pool.Running:
		return nil, "the program that runs it"
	case c.Execution == pool.Uncertain && !repeatable:
		return nil, "a word about what became of it: its program died while it ran"
	}
	if run := e.runnerOf(c.Tool, t); run != nil {
		return run, ""
	}
	return nil, fmt.Sprintf("a program that has the tool %s", c.Tool)
}

// runnerOf returns what runs a tool, nil if this Executor cannot.
func (e *Executor) runnerOf(name string, t *record.Tool) runner {
	switch {
	case e.Functions[name] != nil:
		return e.Functions[name].run
	case t == nil:
		return nil
	case t.MCP:
		return func(ctx context.Context, in Invocation) (record.CallAnswer, error) {
			return e.servers.call(ctx, t, in, e.Helper)
		}
	case len(t.Command) > 0:
		return func(ctx context.Context, in Invocation) (record.CallAnswer, error) { return e.runCommand(ctx, t, in) }
	}
	return nil
}

// run calls a function of the program. If the function panics, the call fails, but the program goes on.
func (f Function) run(ctx context.Context, in Invocation) (a record.CallAnswer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the tool panicked: %v", p)
		}
	}()
	a.Result, err = f(ctx, in)
	return a, err
}

// RunCall runs one approved call, or with again an uncertain one.
func (e *Executor) RunCall(ctx context.Context, c *record.Call, again bool) (*record.Committed, error) {
	tools, err := e.tools(ctx, c.Branch)
	if err != nil {
		return nil, err
	}
	t := tools[c.Tool]
	claimable := c.Status == pool.Approved && c.Execution == pool.NotRun || again && c.Execution == pool.Uncertain
	if e.runnerOf(c.Tool, t) == nil && claimable {
		return nil, base.NotFound("tool that can be run here:", c.Tool)
	}
	return e.claimed(ctx, c, again)
}

// claimed claims a call and runs it, with the store's tool as the claim found it.
func (e *Executor) claimed(ctx context.Context, c *record.Call, again bool) (*record.Committed, error) {
	o := record.ClaimOptions{Again: again, Stored: e.Functions[c.Tool] == nil}
	claim, err := e.Context.Store().ClaimCall(ctx, c.Context.String(), c.Branch, c.Ref(), o)
	if err != nil {
		return nil, err
	}
	t := claim.Tool
	if t != nil && t.Dir == "" {
		t.Dir = e.Dir
	}
	return e.runClaimed(ctx, claim, t)
}

// one claims and runs a call. It is no error if another program has claimed the call.
func (w *working) one(ctx context.Context, c *record.Call) {
	a, err := w.claimed(ctx, c, c.Execution == pool.Uncertain)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, ErrHandedOver):
		w.report.Handed++
	case errors.Is(err, chatctx.ErrConflict), errors.Is(err, chatctx.ErrTaken):
	case err != nil && ctx.Err() == nil:
		w.failed = errors.Join(w.failed, err)
	case a != nil:
		w.report.Ran = append(w.report.Ran, a)
	}
}

// runClaimed runs a claimed call and stores its result.
func (e *Executor) runClaimed(ctx context.Context, claim *chatctx.CallClaim, t *record.Tool) (*record.Committed, error) {
	e.show(Event{Step: StepClaimed, Call: claim.Call, Older: claim.Older})
	answer, err := e.ended(ctx, claim, t)
	if err != nil {
		return nil, err
	}
	e.show(Event{Step: StepEnded, Call: claim.Call})
	a, err := claim.Resolve(context.WithoutCancel(ctx), answer)
	if err == nil {
		e.show(Event{Step: StepResolved, Call: a.Last().Call, Answered: a})
	}
	return a, err
}

// ErrTimeout ends a tool at its time limit.
var ErrTimeout = errors.New("ended at its time limit")

// ended runs a tool within its time limit and while its claim is held, and turns any outcome into an answer. Its error is ErrHandedOver, or ErrTaken if the
// tool was ended because the claim was lost, for example while the machine slept: then the new holder decides about the call, and this Executor records
// nothing.
func (e *Executor) ended(ctx context.Context, claim *chatctx.CallClaim, t *record.Tool) (record.CallAnswer, error) {
	run := e.runnerOf(claim.Call.Tool, t)
	if run == nil { // it was removed since it was looked for
		return record.CallAnswer{Result: pool.Result{Text: fmt.Sprintf("not run: there is no tool %q here any more", claim.Call.Tool), IsError: true}}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if limit := e.timeLimit(claim.Call.Tool, t); limit > 0 {
		var stop func()
		ctx, stop = context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w of %s", ErrTimeout, limit))
		defer stop()
	}
	if err := checkCall(claim.Call, t); err != nil {
		return record.CallAnswer{Result: pool.Result{Text: "not run: " + err.Error(), IsError: true}}, nil
	}
	stopKeeping := keep(ctx, claim, cancel)
	a, err := run(ctx, Invocation{Call: claim.Call, Arguments: claim.Call.RunArguments(), Claim: claim})
	stopKeeping()
	switch cause := context.Cause(ctx); {
	case errors.Is(err, ErrHandedOver), err == nil:
		return a, err
	case errors.Is(cause, chatctx.ErrTaken):
		return a, cause
	case errors.Is(cause, ErrTimeout):
		fail(&a, cause.Error())
	case cause != nil:
		fail(&a, "interrupted")
		a.Kind = "interrupted"
	default:
		fail(&a, err.Error())
	}
	return a, nil
}

// timeLimit returns how long a tool may run, 0 for no limit.
func (e *Executor) timeLimit(name string, t *record.Tool) time.Duration {
	switch {
	case e.Functions[name] != nil || t == nil:
		return 0
	case t.Timeout > 0:
		return t.Timeout
	case e.Timeout > 0:
		return e.Timeout
	}
	return DefaultTimeout
}

// fail turns a result into an error that gives the reason after the output so far.
func fail(a *record.CallAnswer, why string) {
	r := &a.Result
	r.IsError = true
	switch {
	case len(r.Parts) > 0:
		r.Parts = append(r.Parts, pool.Part{Type: pool.TextPart, Text: "[" + why + "]"})
	case r.Text != "":
		r.Text += "\n[" + why + "]"
	default:
		r.Text, r.JSON = why, nil
	}
}

// While a tool runs, the Executor checks its claim every lookAfter, and renews it at every renewEvery-th check.
const (
	lookAfter  = 500 * time.Millisecond
	renewEvery = 20
)

// keep watches a claim while a tool runs, and ends the tool if the claim is lost. The function that it returns ends the watch.
func keep(ctx context.Context, claim *chatctx.CallClaim, cancel context.CancelCauseFunc) func() {
	ticker := time.NewTicker(lookAfter)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for n := 1; ; n++ {
			select {
			case <-end:
				return
			case <-ticker.C:
			}
			look := claim.Held
			if n%renewEvery == 0 {
				look = claim.Renew
			}
			if err := look(ctx); errors.Is(err, chatctx.ErrStopped) {
				cancel(err)
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(end)
		<-ended
	}
}

func (e *Executor) show(ev Event) {
	if e.Show != nil {
		e.Show(ev)
	}
}
