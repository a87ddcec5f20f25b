package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
	"github.com/chatctx/chatctx/subtask"
)

func subCommands() []*command {
	return []*command{{name: "sub", does: "sub-contexts: conversations that do one task and return a summary", scope: onBranch,
		subs: []*command{{name: "start"}, {name: "ls"}, {name: "show"}, {name: "run"}, {name: "return"}, {name: "abandon"}}}}
}

func init() { lookGroups = append(lookGroups, subLooks) }

func subLooks() map[string]look {
	return map[string]look{
		"tasks.list": preparing(func(r *run, in *operation.TaskListing) error {
			if in.Deep = true; in.All && r.contextRef() != "" {
				return usagef("sub ls takes --everywhere or --context, not both")
			}
			return nil
		}, as(func(r *run, _ *operation.TaskListing, v contract.Task) {
			r.printf("%s", strings.Repeat("    ", v.Below))
			r.subLine(v.Info)
		})).orNone(func(r *run) { r.note("no sub-contexts; %s", r.again("sub start GOAL")) }),
		"tasks.get": as(func(r *run, _ *operation.NamedTask, v contract.Task) {
			r.subLine(v.Info)
			if v.Goal != "" {
				r.printf("%s\n", clean(v.Goal))
			}
		}),
		"tasks.start":  taskLook(preparing((*run).readStarting, as((*run).started))),
		"tasks.run":    taskLook(as(func(r *run, _ *operation.TaskToRun, v operation.TaskRun) { r.wentOn(v) })),
		"tasks.return": orFails(preparing((*run).readReturning, as(func(r *run, _ *operation.Returning, v contract.Task) { r.printEnded(v, "") })), returnHint),
		"tasks.abandon": preparing(func(_ *run, in *operation.Abandoning) error { return validText(in.Reason) },
			as(func(r *run, _ *operation.Abandoning, v contract.Task) { r.printEnded(v, "") })),
	}
}

// parentEnded words the state of a task's parent that has ended.
var parentEnded = map[string]string{record.TaskReturned: "has returned", record.TaskFailed: "has failed", record.TaskAbandoned: "was abandoned"}

func (r *run) subLine(i *record.TaskInfo) {
	state := i.State
	if state == record.TaskRunning && i.Messages <= 1 { // the goal alone
		state = "not begun"
	}
	words := fmt.Sprintf("%s  %s  %s, from %s", r.paint(yellow, short(i.ID)), pad(state, 9), titled(i.Title, i.ID), clean(i.BranchName))
	if i.Message != (chatctx.ID{}) {
		words += fmt.Sprintf(", for the call %s:%d", short(i.Message), i.Index)
	}
	switch {
	case i.ParentState != "":
		words += ", its parent " + parentEnded[i.ParentState]
	case i.ParentGone:
		words += ", its parent is gone"
	case i.BranchGone:
		words += ", that branch is gone"
	}
	if i.Open > 0 {
		words += ", " + count(i.Open, "open call")
	}
	if i.Reason != "" {
		words += ": " + oneLine(i.Reason)
	}
	r.row(4, "%s", words)
}

// readStarting reads the goal and the settings of a task, and refuses numbers that are no limit.
func (r *run) readStarting(in *operation.Starting) (err error) {
	if in.System, err = r.systemText(in.System, in.Goal, rawFlag(in.RawInput)); err != nil {
		return err
	}
	if in.Goal, err = r.text(in.Goal, rawFlag(in.RawInput)); err != nil {
		return err
	}
	limits := in.Limits()
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if n := limits[name]; n != nil && *n < 1 {
			return usagef("--%s takes a number of 1 or more", name)
		}
	}
	set, show, err := parseSettings(in.Set)
	if err != nil {
		return err
	}
	if len(show) > 0 {
		return usagef("--setting takes KEY=VALUE")
	}
	maps.Copy(set, r.asked())
	if in.Mode != "" {
		set["mode"] = jsontree.Quote(in.Mode)
	}
	in.Settings = set
	return nil
}

// taskLook adds the error of a task that waits or failed.
func taskLook(l look) look {
	l.then = func(r *run, _, out any) error {
		v := out.(operation.TaskRun)
		switch {
		case v.TaskRunning == nil:
			return nil
		case v.Waits:
			return &waitsError{waits{v.Awaits}, []string{r.onStore("sub run " + short(v.Context))}}
		case v.Cause != nil:
			return &hinted{fmt.Errorf("the task failed: %w", v.Cause), "what helps: another model, sub start GOAL --model NAME, or a larger limit, --setting max_tokens=N"}
		case v.Failed:
			return errors.New("the task failed: " + v.Summary)
		}
		return nil
	}
	l.fails = func(_ *run, _ any, err error) error { return talkHint(err) }
	return l
}

// started shows a task that was started, or what became of it if it ran at once.
func (r *run) started(_ *operation.Starting, v operation.TaskRun) {
	if v.TaskRunning != nil {
		r.wentOn(v)
		return
	}
	r.printf("started %s\n", named(v.Title, v.Context))
	r.note("let it run: %s   undo with: %s", r.onStore("sub run "+short(v.Context)), r.lineAbout("undo", subject{context: v.Context}))
}

// wentOn shows what became of a task that ran.
func (r *run) wentOn(v operation.TaskRun) {
	if v.Waits {
		r.subLine(v.Info)
		return
	}
	r.printEnded(v.Task, v.Summary)
}

// readReturning reads the summary of a task.
func (r *run) readReturning(in *operation.Returning) (err error) {
	ways := 0
	for _, on := range []bool{in.Summary != "", in.Digest, in.ByModel} {
		if on {
			ways++
		}
	}
	if ways > 1 {
		return usagef("sub return takes --summary, --digest or --by-model")
	}
	in.Summary, err = r.text(in.Summary, rawFlag(in.RawInput))
	return err
}

// returnHint says what to type after a task could not return.
func returnHint(_ *run, in *operation.Returning, err error) error {
	if errors.Is(err, pool.ErrNotWhole) && !in.ByModel {
		return &hinted{err, "nothing was returned; say what came of it with --summary TEXT, --digest or --by-model"}
	}
	return talkHint(err)
}

// carryOn goes on with the tasks below a branch, and reports what became of them.
func (r *run) carryOn(ctx context.Context, parent *chatctx.ChatContext, branchName string) (went int, err error) {
	all, err := r.runner().CarryOn(ctx, parent, branchName)
	r.tellCarried(all)
	return len(all), err
}

// tellCarried says what became of tasks that went on.
func (r *run) tellCarried(all []subtask.Carried) {
	for _, c := range all {
		switch {
		case c.Err != nil:
			r.note("sub-context %s broke off: %s", named(c.Task.Title, c.Task.ID), clean(c.Err.Error()))
		case c.Outcome.State == record.TaskWaiting:
			r.note("sub-context %s waits: %s", named(c.Task.Title, c.Task.ID), r.onStore("calls ls --context "+short(c.Task.ID)))
		case c.Outcome.State == record.TaskFailed:
			r.note("sub-context %s is failed: %s", named(c.Task.Title, c.Task.ID), clean(c.Outcome.Summary))
		default:
			r.note("sub-context %s is %s", named(c.Task.Title, c.Task.ID), c.Outcome.State)
		}
	}
}

// runner runs sub-contexts as send runs a branch.
func (r *run) runner() *subtask.Runner {
	return &subtask.Runner{Turn: func(child *chatctx.ChatContext) *turn.Turn { return r.turn(child, "") }}
}

func (r *run) printEnded(v contract.Task, summary string) {
	if summary != "" {
		r.printf("%s\n", clean(summary))
	}
	r.note("%s is %s", named(v.Title, v.Context), v.State)
	if e := v.End; e.Parent.Operation != "" {
		r.note("it is reported on %s, #%d; take that back: %s", placed(&e.Parent), e.Position, r.undoOf(&e.Parent))
	}
	if !v.End.Kept {
		r.note("the sub-context lies in the trash: %s", r.again("restore "+short(v.Context)))
	}
	r.note("let the task go on again: %s", r.undoOf(&v.End.Child))
}

// ownTools returns the tools that this program offers to a context: reading stored outputs, which needs no decision, and starting tasks.
func (r *run) ownTools(c *chatctx.ChatContext) map[string]approval.Function {
	return map[string]approval.Function{
		subtask.Tool().Name: r.runner().Spawn(c, subtask.Options{}),
		window.ArtifactTool.Name: func(ctx context.Context, in approval.Invocation) (pool.Result, error) {
			text, failed, err := window.ReadArtifact(ctx, window.BranchArtifacts(c, in.Call.Branch), in.Arguments)
			return pool.Result{Text: text, IsError: failed}, err
		},
	}
}
