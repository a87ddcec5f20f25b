package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
	"github.com/chatctx/chatctx/subtask"
)

const subFields = "context, title, parent, branch, call, goal, state, depth, open_calls, summary, reason, parent_gone, parent_state, branch_gone, kept, started_at, ended_at"

func subCommands() []*command {
	ended := "; message, position, operation"
	return []*command{
		{name: "sub", does: "sub-contexts: conversations that do one task and return a summary", scope: onBranch, subs: []*command{
			{name: "start", does: "start a sub-context of the branch for a task", scope: onBranch, run: in(doSubStart),
				more: "It gets the branch's settings and the tools; the rules apply to it too, and its calls are in the parent's queue. Nothing is sent before sub run.",
				json: subFields + "; with --run as sub run", example: "chatctx sub start \"Find out which tests are slow\" --mode research --rounds 10"},
			{name: "ls"}, {name: "show"},
			{name: "run", does: "let a sub-context talk with the model until it stops, and return its answer to the parent", scope: onStore, run: in(doSubRun),
				more: "It continues from any state, also after a crash. Exit code 6: its calls wait for a decision.",
				json: subFields + ended, example: "chatctx sub run 1a2b3c4d"},
			{name: "return", does: "end a task with a summary on the branch that started it", scope: onStore, run: in(doSubReturn),
				more: "The summary becomes the result of the call that started the task, else a user message that names it. Without a flag the summary is the last answer.",
				json: subFields + ended, example: "chatctx sub return 1a2b3c4d --summary \"Three tests wait for the network.\""},
			{name: "abandon"},
		}},
	}
}

func init() { lookGroups = append(lookGroups, subLooks) }

func subLooks() map[string]look {
	return map[string]look{
		"tasks.list": preparing(func(r *run, in *operation.TaskListing) error {
			if in.Deep = true; in.All && r.contextRef() != "" {
				return usagef("sub ls takes --all or --context, not both")
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

type subStartIn struct {
	Goal string `arg:"GOAL|-"`
	whomFlags
	Title    string   `flag:"title" doc:"its {TITLE}; else from the goal"`
	System   string   `flag:"system" doc:"its system prompt: {TEXT}"`
	Mode     string   `flag:"mode" doc:"the {MODE}, a word that tools and rules can ask for"`
	Set      []string `flag:"set" doc:"another setting of its own: {KEY=VALUE}; may be given again"`
	OwnRules bool     `flag:"own-rules" doc:"the parent's rules do not apply to it"`
	NoTools  bool     `flag:"no-tools" doc:"it gets none of the parent's tools"`
	Depth    *int     `flag:"depth" doc:"allow {N} levels of tasks; else 4"`
	Rounds   *int     `flag:"rounds" doc:"fail after {N} rounds with the model"`
	Tokens   *int     `flag:"tokens" doc:"fail after {N} tokens"`
	Keep     bool     `flag:"keep" doc:"do not move the sub-context to the trash"`
	Run      bool     `flag:"run" doc:"run it at once"`
	rawFlag
}

// subOptions returns the options from the parameters of sub start.
func (r *run) subOptions(in *subStartIn) (o subtask.Options, err error) {
	if o.Goal, err = r.text(in.Goal, in.rawFlag); err != nil {
		return o, err
	}
	o.Title, o.System, o.OwnRules, o.Keep = in.Title, in.System, in.OwnRules, in.Keep
	o.MaxDepth, o.MaxRounds, o.MaxTokens = valueOf(in.Depth), valueOf(in.Rounds), int64(valueOf(in.Tokens))
	for _, limit := range []struct {
		name  string
		given *int
	}{{"depth", in.Depth}, {"rounds", in.Rounds}, {"tokens", in.Tokens}} {
		if limit.given != nil && *limit.given < 1 {
			return o, usagef("--%s takes a number of 1 or more", limit.name)
		}
	}
	if in.NoTools {
		o.Tools = []record.Tool{}
	}
	set, show, err := parseSettings(in.Set)
	if err != nil {
		return o, err
	}
	if len(show) > 0 {
		return o, usagef("--set takes KEY=VALUE")
	}
	maps.Copy(set, r.asked())
	if in.Mode != "" {
		set["mode"] = wire.String(in.Mode)
	}
	o.Settings = set
	return o, nil
}

func doSubStart(r *run, in *subStartIn) error {
	o, err := r.subOptions(in)
	if err != nil {
		return err
	}
	c, name, err := r.talkOn(r.writer)
	if err != nil {
		return err
	}
	child, err := subtask.Start(r.ctx, c, name, o, nil)
	if err != nil {
		return err
	}
	if in.Run {
		r.note("started %s", short(child.ID))
		return r.runSub(child)
	}
	info, err := child.TaskInfo(r.ctx)
	if err != nil {
		return err
	}
	return r.emit(subToJSON(info), func() {
		r.printf("started %s\n", named(info.Title, info.ID))
		r.note("let it run: %s   undo with: %s", r.onStore("sub run "+short(child.ID)), r.lineAbout("undo", subject{context: child.ID}))
	})
}

// subIn has the sub-context that a command is about.
type subIn struct {
	Context string `arg:"CTX"`
}

// child opens the store and finds a sub-context.
func (r *run) child(open func() (*chatctx.Store, error), in subIn) (*chatctx.ChatContext, *record.TaskInfo, error) {
	st, err := open()
	if err != nil {
		return nil, nil, err
	}
	c, err := st.Context(r.ctx, in.Context)
	if err != nil {
		return nil, nil, err
	}
	info, err := c.TaskInfo(r.ctx)
	return c, info, err
}

type subRunIn struct {
	subIn
	whomFlags
}

func doSubRun(r *run, in *subRunIn) error {
	c, _, err := r.child(r.writer, in.subIn)
	if err != nil {
		return err
	}
	return r.runSub(c)
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

func (r *run) runSub(child *chatctx.ChatContext) error {
	out, err := r.runner().Run(r.ctx, child)
	if err != nil {
		return talkHint(err)
	}
	if out.State == record.TaskWaiting {
		info, err := child.TaskInfo(r.ctx)
		if err != nil {
			return err
		}
		if err := r.emit(subToJSON(info), func() { r.subLine(info) }); err != nil {
			return err
		}
		_, open, err := r.openOn(child, "")
		if err != nil {
			return err
		}
		return &waitsError{open, []string{r.onStore("sub run " + short(child.ID))}}
	}
	if err := r.subEnded(child, out.Ended, out.Summary); err != nil {
		return err
	}
	if out.State == record.TaskFailed {
		if errors.Is(out.Cause, pool.ErrNotWhole) {
			return &hinted{fmt.Errorf("the task failed: %w", out.Cause), "what helps: another model, sub start GOAL --model NAME, or a larger limit, --set max_tokens=N"}
		}
		return errors.New("the task failed: " + out.Summary)
	}
	return nil
}

// subEnded reports the end of a task.
func (r *run) subEnded(child *chatctx.ChatContext, e *record.TaskEnded, summary string) error {
	info, err := child.TaskInfo(r.ctx)
	if err != nil {
		return err
	}
	v := subToJSON(info)
	v.Message, v.Position, v.Operation, v.End = e.Message, e.Position, e.Parent.Operation, e
	return r.emit(v, func() { r.printEnded(v, summary) })
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

type subReturnIn struct {
	subIn
	whomFlags
	Summary string `flag:"summary" doc:"the summary's {TEXT}; - for standard input"`
	Digest  bool   `flag:"digest" doc:"a summary made by rules, without a model"`
	ByModel bool   `flag:"by-model" doc:"a summary written by the model"`
	To      string `flag:"to" doc:"put it on another {BRANCH} of the parent"`
	Keep    bool   `flag:"keep" doc:"do not move the sub-context to the trash"`
	rawFlag
}

func doSubReturn(r *run, in *subReturnIn) error {
	ways := 0
	for _, on := range []bool{in.Summary != "", in.Digest, in.ByModel} {
		if on {
			ways++
		}
	}
	if ways > 1 {
		return usagef("sub return takes --summary, --digest or --by-model")
	}
	text, err := r.text(in.Summary, in.rawFlag)
	if err != nil {
		return err
	}
	c, _, err := r.child(r.writer, in.subIn)
	if err != nil {
		return err
	}
	summary := subtask.Answer
	switch {
	case in.Summary != "":
		summary = subtask.Given(text)
	case in.Digest:
		summary = subtask.Digest
	case in.ByModel:
		completer, err := r.turn(c, "").Completer(r.ctx)
		if err != nil {
			return talkHint(err)
		}
		summary = subtask.ByModel(completer)
	}
	e, err := subtask.Return(r.ctx, c, summary, in.To, in.Keep)
	if errors.Is(err, pool.ErrNotWhole) && !in.ByModel {
		return &hinted{err, "nothing was returned; say what came of it with --summary TEXT, --digest or --by-model"}
	}
	if err != nil {
		return talkHint(err)
	}
	return r.subEnded(c, e, "")
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
