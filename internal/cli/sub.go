package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
	"github.com/chatctx/chatctx/subtask"
)

const subFields = "context, title, parent, branch, call, goal, state, depth, open_calls, summary, reason, parent_gone, parent_state, branch_gone, kept, started_at, ended_at"

func subCommands() []*command {
	ended := "; message, position, operation"
	return []*command{
		{name: "sub", does: "sub-contexts: conversations that do one task and return a summary", scope: onBranch, subs: []*command{
			{name: "start", args: "GOAL|-", does: "start a sub-context of the branch for a task", scope: onBranch, do: doSubStart,
				more: "It gets the branch's settings and the tools; the rules apply to it too, and its calls are in the parent's queue. Nothing is sent before sub run.",
				flags: append(modelFlags(),
					&flag{name: "title", usage: "its `TITLE`; else from the goal"},
					&flag{name: "system", usage: "its system prompt: `TEXT`"},
					&flag{name: "mode", usage: "its `MODE`"},
					&flag{name: "set", kind: several, usage: "another setting of its own: `KEY=VALUE`; may be given again"},
					&flag{name: "own-rules", kind: onOff, usage: "the parent's rules do not apply to it"},
					&flag{name: "no-tools", kind: onOff, usage: "it gets none of the parent's tools"},
					&flag{name: "depth", kind: number, usage: fmt.Sprintf("allow `N` levels of tasks; else %d", subtask.DefaultDepth)},
					&flag{name: "rounds", kind: number, usage: "fail after `N` rounds with the model"},
					&flag{name: "tokens", kind: number, usage: "fail after `N` tokens"},
					&flag{name: "keep", kind: onOff, usage: "do not move it to the trash when it has ended"},
					&flag{name: "run", kind: onOff, usage: "run it at once"},
					rawText()),
				json: subFields + "; with --run as sub run", example: "chatctx sub start \"Find out which tests are slow\" --mode research --rounds 10"},
			{name: "ls", does: "show the sub-contexts of the conversation, and theirs, as a tree", scope: onContext, do: doSubLs,
				more: "A task that runs below one that has ended is shown too, and says so.",
				flags: []*flag{{name: "ended", kind: onOff, usage: "those in the trash too"},
					{name: "all", kind: onOff, usage: "those of all conversations, also of ones that are in the trash or gone"}},
				json: subFields + "; a line each", example: "chatctx sub ls --ended"},
			{name: "show", args: "CTX", does: "show how far a sub-context has come", scope: onStore, do: doSubShow, json: subFields, example: "chatctx sub show \"Find out which tests are slow\""},
			{name: "run", args: "CTX", does: "let a sub-context talk with the model until it stops, and return its answer to the parent", scope: onStore, do: doSubRun,
				more: "It continues from any state, also after a crash. Exit code 6: its calls wait for a decision.", flags: modelFlags(),
				json: subFields + ended, example: "chatctx sub run 1a2b3c4d"},
			{name: "return", args: "CTX", does: "end a task with a summary on the branch that started it", scope: onStore, do: doSubReturn,
				more: "The summary becomes the result of the call that started the task, else a user message that names it. Without a flag the summary is the last answer.",
				flags: append(modelFlags(),
					&flag{name: "summary", usage: "the summary's `TEXT`, or - for standard input"},
					&flag{name: "digest", kind: onOff, usage: "a summary made by rules, without a model"},
					&flag{name: "by-model", kind: onOff, usage: "a summary written by the model"},
					&flag{name: "to", usage: "put it on another `BRANCH` of the parent"},
					&flag{name: "keep", kind: onOff, usage: "do not move the sub-context to the trash"},
					rawText()),
				json: subFields + ended, example: "chatctx sub return 1a2b3c4d --summary \"Three tests wait for the network.\""},
			{name: "abandon", args: "CTX", does: "give up a task, and the tasks that it started", scope: onStore, do: doSubAbandon,
				more:  "Their calls are cancelled, and they go to the trash: undo and restore bring them back.",
				flags: []*flag{{name: "reason", usage: "the `REASON`, which is the result of the call that started it"}},
				json:  subFields + ended, example: "chatctx sub abandon 1a2b3c4d --reason \"no longer needed\""},
		}},
	}
}

// parentEnded words the state of a task's parent that has ended.
var parentEnded = map[string]string{chatctx.TaskReturned: "has returned", chatctx.TaskFailed: "has failed", chatctx.TaskAbandoned: "was abandoned"}

func (r *run) subLine(i *chatctx.TaskInfo) {
	state := i.State
	if state == chatctx.TaskRunning && i.Messages <= 1 { // the goal alone
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

// subOptions returns the options from the flags of sub start.
func (r *run) subOptions() (o subtask.Options, err error) {
	if o.Goal, err = r.text(r.arg(0)); err != nil {
		return o, err
	}
	o.Title, o.System, o.OwnRules, o.Keep = r.flag("title"), r.flag("system"), r.is("own-rules"), r.is("keep")
	o.MaxDepth, o.MaxRounds, o.MaxTokens = r.number("depth"), r.number("rounds"), int64(r.number("tokens"))
	for _, name := range []string{"depth", "rounds", "tokens"} {
		if r.given(name) && (o.MaxDepth < 0 || o.MaxRounds < 0 || o.MaxTokens < 0 || r.flag(name) == "0") {
			return o, usagef("--%s takes a number of 1 or more", name)
		}
	}
	if r.is("no-tools") {
		o.Tools = []chatctx.Tool{}
	}
	set, show, err := parseSettings(r.texts("set"))
	if err != nil {
		return o, err
	}
	if len(show) > 0 {
		return o, usagef("--set takes KEY=VALUE")
	}
	maps.Copy(set, r.asked())
	if v := r.flag("mode"); v != "" {
		set["mode"] = wire.String(v)
	}
	o.Settings = set
	return o, nil
}

func doSubStart(r *run) error {
	o, err := r.subOptions()
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
	if r.is("run") {
		r.note("started %s", short(child.ID))
		return r.runSub(child)
	}
	info, err := child.TaskInfo(r.ctx)
	if err != nil {
		return err
	}
	return r.emit(subToJSON(info), func() {
		r.printf("started %s\n", named(info.Title, info.ID))
		r.note("let it run: %s   take it back: %s", r.onStore("sub run "+short(child.ID)), r.lineAbout("undo", subject{context: child.ID}))
	})
}

// tasks returns those that sub ls shows, each after its parent.
func (r *run) tasks() ([]*chatctx.TaskInfo, error) {
	o := subtask.ListOptions{Deep: true, Ended: r.is("ended")}
	if r.is("all") {
		if r.given("context") {
			return nil, usagef("sub ls takes --all or --context, not both")
		}
		st, err := r.reader()
		if err != nil {
			return nil, err
		}
		return subtask.All(r.ctx, st, o)
	}
	c, err := r.conversation()
	if err != nil {
		return nil, err
	}
	return subtask.List(r.ctx, c, o)
}

func doSubLs(r *run) error {
	tasks, err := r.tasks()
	if err != nil {
		return err
	}
	below := map[chatctx.ID]int{}
	for _, i := range tasks {
		if depth, listed := below[i.Parent]; listed {
			below[i.ID] = depth + 1
		} else {
			below[i.ID] = 0
		}
		err := r.emit(subToJSON(i), func() {
			r.printf("%s", strings.Repeat("    ", below[i.ID]))
			r.subLine(i)
		})
		if err != nil {
			return err
		}
	}
	if len(tasks) == 0 {
		r.note("no sub-contexts; %s", r.again("sub start GOAL"))
	}
	return nil
}

// child opens the store and finds the sub-context that the first argument names.
func (r *run) child(open func() (*chatctx.Store, error)) (*chatctx.ChatContext, *chatctx.TaskInfo, error) {
	st, err := open()
	if err != nil {
		return nil, nil, err
	}
	c, err := st.Context(r.ctx, r.arg(0))
	if err != nil {
		return nil, nil, err
	}
	info, err := c.TaskInfo(r.ctx)
	return c, info, err
}

func doSubShow(r *run) error {
	_, info, err := r.child(r.reader)
	if err != nil {
		return err
	}
	return r.emit(subToJSON(info), func() {
		r.subLine(info)
		if info.Goal != "" {
			r.printf("%s\n", clean(info.Goal))
		}
	})
}

func doSubRun(r *run) error {
	c, _, err := r.child(r.writer)
	if err != nil {
		return err
	}
	return r.runSub(c)
}

// carryOn goes on with the tasks below a branch, and reports what became of them.
func (r *run) carryOn(ctx context.Context, parent *chatctx.ChatContext, branchName string) (went int, err error) {
	all, err := r.runner().CarryOn(ctx, parent, branchName)
	for _, c := range all {
		switch {
		case c.Err != nil:
			r.note("sub-context %s broke off: %s", named(c.Task.Title, c.Task.ID), clean(c.Err.Error()))
		case c.Outcome.State == chatctx.TaskWaiting:
			r.note("sub-context %s waits: %s", named(c.Task.Title, c.Task.ID), r.onStore("calls ls --context "+short(c.Task.ID)))
		case c.Outcome.State == chatctx.TaskFailed:
			r.note("sub-context %s is failed: %s", named(c.Task.Title, c.Task.ID), clean(c.Outcome.Summary))
		default:
			r.note("sub-context %s is %s", named(c.Task.Title, c.Task.ID), c.Outcome.State)
		}
	}
	return len(all), err
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
	if out.State == chatctx.TaskWaiting {
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
	if out.State == chatctx.TaskFailed {
		if errors.Is(out.Cause, pool.ErrNotWhole) {
			return &hinted{fmt.Errorf("the task failed: %w", out.Cause), "what helps: another model, sub start GOAL --model NAME, or a larger limit, --set max_tokens=N"}
		}
		return errors.New("the task failed: " + out.Summary)
	}
	return nil
}

// subEnded reports the end of a task.
func (r *run) subEnded(child *chatctx.ChatContext, e *chatctx.TaskEnded, summary string) error {
	info, err := child.TaskInfo(r.ctx)
	if err != nil {
		return err
	}
	v := subToJSON(info)
	v.Message, v.Position, v.Operation = idOrNull(e.Message), e.Position, e.Parent.Operation
	return r.emit(v, func() {
		if summary != "" {
			r.printf("%s\n", clean(summary))
		}
		r.note("%s is %s", named(info.Title, info.ID), info.State)
		if e.Parent.Operation != "" {
			r.note("it is reported on %s, #%d; take that back: %s", placed(&e.Parent), e.Position, r.undoOf(&e.Parent))
		}
		if !e.Kept {
			r.note("the sub-context lies in the trash: %s", r.again("restore "+short(info.ID)))
		}
	})
}

func doSubReturn(r *run) error {
	ways := 0
	for _, on := range []bool{r.given("summary"), r.is("digest"), r.is("by-model")} {
		if on {
			ways++
		}
	}
	if ways > 1 {
		return usagef("sub return takes --summary, --digest or --by-model")
	}
	text, err := r.text(r.flag("summary"))
	if err != nil {
		return err
	}
	c, _, err := r.child(r.writer)
	if err != nil {
		return err
	}
	summary := subtask.Answer
	switch {
	case r.given("summary"):
		summary = subtask.Given(text)
	case r.is("digest"):
		summary = subtask.Digest
	case r.is("by-model"):
		completer, err := r.turn(c, "").Completer(r.ctx)
		if err != nil {
			return talkHint(err)
		}
		summary = subtask.ByModel(completer)
	}
	e, err := subtask.Return(r.ctx, c, summary, r.flag("to"), r.is("keep"))
	if errors.Is(err, pool.ErrNotWhole) && !r.is("by-model") {
		return &hinted{err, "nothing was returned; say what came of it with --summary TEXT, --digest or --by-model"}
	}
	if err != nil {
		return talkHint(err)
	}
	return r.subEnded(c, e, "")
}

func doSubAbandon(r *run) error {
	if err := validText(r.flag("reason")); err != nil {
		return err
	}
	c, _, err := r.child(r.writer)
	if err != nil {
		return err
	}
	e, err := subtask.Abandon(r.ctx, c, r.flag("reason"))
	if err != nil {
		return err
	}
	return r.subEnded(c, e, "")
}

// ownTools returns the tools that this program offers to a context: reading stored outputs, which needs no decision, and starting tasks.
func (r *run) ownTools(c *chatctx.ChatContext) map[string]approval.Function {
	return map[string]approval.Function{
		subtask.Tool.Name: r.runner().Spawn(c, subtask.Options{}),
		enhancer.ArtifactTool.Name: func(ctx context.Context, in approval.Invocation) (pool.Result, error) {
			text, failed, err := enhancer.ReadArtifact(ctx, enhancer.BranchArtifacts(c, in.Call.Branch), in.Arguments)
			return pool.Result{Text: text, IsError: failed}, err
		},
	}
}

// known completes a tool that is added by its name alone and that this program knows.
func known(t *chatctx.Tool) {
	if t.Name != subtask.Tool.Name || len(t.Command) > 0 || t.MCP {
		return
	}
	if t.Schema == nil {
		t.Schema = json.RawMessage(subtask.Tool.Schema)
	}
	t.Description = cmp.Or(t.Description, subtask.Tool.Description)
}
