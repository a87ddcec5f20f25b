package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/window"
)

// checkClaim refuses values that no claim has.
func checkClaim(_ *run, in *operation.Claiming) error {
	if in.PID != nil && *in.PID < 1 || in.For != nil && *in.For <= 0 {
		return usagef("--pid takes a process and --hold a time")
	}
	return nil
}

func (r *run) answeredCall(done *record.Committed) error {
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

func init() { lookGroups = append(lookGroups, callRunLooks) }

func callRunLooks() map[string]look {
	ran := preparing(checkRunning, as(func(r *run, _ *operation.Running, v contract.Answered) { r.printAnswered(v) }))
	ran.asked = func(r *run, q *operation.Request) {
		q.Executor = func(c *chatctx.ChatContext) (*approval.Executor, func()) {
			e := r.executor(c)
			e.Show = r.showOlder // the report has the rest
			return e, func() {}
		}
	}
	ran.then = func(r *run, _, out any) error { return r.afterRuns(out.(operation.Ran).Runs) }
	return map[string]look{
		"calls.run": ran,
		"calls.wait": as(func(r *run, _ *operation.AwaitedCalls, v operation.Awaited) {
			r.printf("%s is %s\n", callName(v.Call.Call), callState(v.Call.Call))
			if v.RunArguments != nil {
				r.printf("%s\n", clean(string(v.RunArguments)))
				r.note("end it: %s", r.again("calls resolve "+callName(v.Call.Call)+" --token "+v.Token.String()+" --result TEXT"))
			}
		}),
		"calls.watch": preparing(func(r *run, in *operation.CallWatching) error { return r.atLeastOne(in.Limit) },
			as(func(r *run, _ *operation.CallWatching, v contract.Call) { r.judgedLine(v) })),
	}
}

// checkRunning refuses what no call can be run with.
func checkRunning(_ *run, in *operation.Running) error {
	if in.Limit != nil && *in.Limit < 1 {
		return usagef("calls run --limit takes a number of 1 or more")
	}
	if len(in.Calls) == 0 && in.Again {
		return &usageError{"calls run --again needs CALL", "each call whose program died is looked at on its own: chatctx calls ls --state uncertain"}
	}
	return nil
}

// afterRuns says what else became of a branch's calls, and returns an error that counts those that are open.
func (r *run) afterRuns(v *operation.Runs) error {
	if v.Context == nil { // the calls were named
		return nil
	}
	r.tellCarried(v.Carried)
	if c := v.Other; c != nil {
		r.note("there is nothing to run on %s; %s %s is approved on %s: %s", clean(v.Branch), callName(c), clean(c.Tool), clean(c.Branch), r.again("calls run "+callName(c)))
	} else if v.Nothing {
		r.note("there is nothing to run")
	}
	if len(v.Waiting) == 0 {
		return nil
	}
	var open waits
	for _, w := range v.Waiting {
		r.note("%s %s waits for %s", callName(w.Call), clean(w.Call.Tool), w.Why)
		open.Add(w.Call.WaitsFor())
	}
	return &waitsError{open, []string{r.toAsk("send --continue", v.Context, v.Branch)}}
}
