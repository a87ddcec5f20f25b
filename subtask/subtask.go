// Package subtask runs sub-contexts: a context starts a child for a task, the child talks with a model on its own, and comes back with one summary.
//
// A task is in one of these states: running; waiting, while some of its calls are open; and in the end returned, failed or abandoned. Its end and the
// message on the parent branch are one transaction, so that the parent has the summary once or not at all, whatever dies. A child that has ended goes to
// the trash, unless it is to be kept. A child whose parent or parent branch is gone says so, and loses nothing.
//
// Its calls are in the parent's queue of open calls, with their origin. The parent's rules hold for it unless it was started with rules of its own.
package subtask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

// Options are options of Start. Only Goal is needed.
type Options struct {
	Goal  string // what the task is; the child's first message
	Title string // "": made from the goal
	// System is the child's system prompt. Settings take precedence over those of the parent branch, which the child inherits: model, provider, mode …
	System   string
	Settings map[string]json.RawMessage
	// Tools, if not nil, replaces the copies of the parent's tools. OwnRules: the parent's rules do not hold.
	Tools    []record.Tool
	OwnRules bool
	// MaxDepth limits the levels of tasks, counted from the first context that is no task; 0 means DefaultDepth. MaxRounds limits the rounds with the model
	// and MaxTokens the tokens; 0 means no limit.
	MaxDepth, MaxRounds int
	MaxTokens           int64
	Keep                bool // do not move it to the trash when it ends
}

// DefaultDepth is the default number of levels of tasks.
const DefaultDepth = record.DefaultDepth

// ErrLimit means that a task reached its limit of rounds or tokens.
var ErrLimit = errors.New("the task's limit is reached")

// Start makes a sub-context of a branch ("" means the active one). If call is given, which must be claimed and running, the child answers it. The child has
// the goal as its first message; Start sends nothing.
func Start(ctx context.Context, parent *chatctx.ChatContext, branchName string, o Options, call *chatctx.CallClaim) (*chatctx.ChatContext, error) {
	if strings.TrimSpace(o.Goal) == "" {
		return nil, base.Invalid("a task needs a goal")
	}
	have, err := inherited(ctx, parent, branchName)
	if err != nil {
		return nil, err
	}
	// As between any two places of settings, another address or provider inherits nothing of the parent's, least of all its key.
	all := settings.InForce(have, o.Settings)
	for name, value := range o.Settings {
		all[name] = value // also unknown settings, which are refused below
	}
	n := record.NewTask{Tools: o.Tools}
	if call != nil {
		n.Call = &call.Claimed
	}
	n.NewContext = record.NewContext{Title: o.Title, System: o.System, Settings: all, Messages: []*chatctx.Message{pool.NewText(pool.User, o.Goal)}}
	n.Task = record.Task{Goal: o.Goal, MaxDepth: o.MaxDepth, MaxRounds: o.MaxRounds, MaxTokens: o.MaxTokens, OwnRules: o.OwnRules, Keep: o.Keep}
	if n.Title == "" {
		n.Title = view.TitleFrom(o.Goal)
	}
	info, err := parent.Info(ctx)
	if err != nil {
		return nil, err
	}
	if n.Task.MaxDepth == 0 && info.Parent == (chatctx.ID{}) {
		n.Task.MaxDepth = DefaultDepth
	}
	return parent.StartTask(ctx, branchName, n)
}

// inherited returns the settings of the parent's branch that differ from the store's.
func inherited(ctx context.Context, parent *chatctx.ChatContext, branchName string) (map[string]json.RawMessage, error) {
	inForce, err := parent.Effective(ctx, branchName)
	if err != nil {
		return nil, err
	}
	defaults, err := parent.Store().Settings(ctx)
	if err != nil {
		return nil, err
	}
	for k, v := range defaults {
		if string(inForce[k]) == string(v) {
			delete(inForce, k)
		}
	}
	return inForce, nil
}

// Runner runs tasks. If several tasks run, several goroutines call its functions.
type Runner struct {
	// Turn says how a child talks: with which client, and which tools run. nil means a turn.Turn with the stored tools.
	Turn func(child *chatctx.ChatContext) *turn.Turn
	// Summary makes the summary that a finished task returns; nil means Answer.
	Summary Summariser
}

// Outcome is the result of Run.
type Outcome struct {
	State   string // one of chatctx's Task… constants
	Ended   *record.TaskEnded
	Summary string
	Cause   error // why the task failed: an ErrLimit, or a *pool.OutcomeError of its last answer
	Waiting int   // number of open calls
}

// Run lets a child talk with the model until it stops, and returns its summary to the parent. It continues from the child's present state. If calls wait
// for a person, the outcome is TaskWaiting; call Run again later. Reaching a limit of the task ends it as failed. Another error leaves the task running,
// and Run returns the error.
func (r *Runner) Run(ctx context.Context, child *chatctx.ChatContext) (*Outcome, error) {
	info, err := child.TaskInfo(ctx)
	if err != nil {
		return nil, err
	}
	if !isRunning(&info.Task) {
		return nil, base.Says(chatctx.ErrConflict, "%q is %s already", info.Title, info.State)
	}
	rounds, spent, err := soFar(ctx, child)
	if err != nil {
		return nil, err
	}
	answered, err := finished(ctx, child)
	if err != nil {
		return nil, err
	}
	if !answered {
		out, err := r.send(ctx, child, info, rounds, spent)
		if out != nil || err != nil {
			return out, err
		}
	}
	return r.giveBack(ctx, child)
}

// send asks the model until it stops. A non-nil Outcome says why the task does not return now.
func (r *Runner) send(ctx context.Context, child *chatctx.ChatContext, info *record.TaskInfo, rounds int, spent int64) (*Outcome, error) {
	t := r.turn(child)
	if err := bound(t, info, rounds, spent); err != nil {
		return r.fail(ctx, child, err)
	}
	out, err := t.Send(ctx)
	switch {
	case errors.Is(err, turn.ErrTokens), errors.Is(err, turn.ErrRounds) && info.MaxRounds > 0:
		return r.fail(ctx, child, fmt.Errorf("%w: %w", ErrLimit, err))
	case err != nil:
		return nil, err
	case out.Queued:
		return nil, base.Says(chatctx.ErrConflict, "%s (process %d) runs the task already", out.Holder.Program, out.Holder.PID)
	case out.Waiting > 0:
		return &Outcome{State: record.TaskWaiting, Waiting: out.Waiting}, nil
	}
	return nil, nil
}

func (r *Runner) turn(child *chatctx.ChatContext) *turn.Turn {
	if r.Turn != nil {
		return r.Turn(child)
	}
	e := &approval.Executor{Context: child}
	return &turn.Turn{Context: child, Calls: r.Calls(child, e.Calls)}
}

// Calls wraps run for a turn.Turn's field Calls in a context that may have sub-contexts: these go on first, so that the calls that started them get their
// answers.
func (r *Runner) Calls(parent *chatctx.ChatContext, run func(context.Context, string, *chatctx.Message, []string) (bool, error)) func(context.Context, string, *chatctx.Message, []string) (bool, error) {
	return func(ctx context.Context, branchName string, reply *chatctx.Message, named []string) (bool, error) {
		if _, err := r.CarryOn(ctx, parent, branchName); err != nil {
			return false, err
		}
		return run(ctx, branchName, reply, named)
	}
}

// Carried is a task with which CarryOn went on. With Err its run failed, and the task can run again.
type Carried struct {
	Task    *record.TaskInfo
	Outcome *Outcome
	Err     error
}

// CarryOn goes on with the tasks that a branch ("" means the active one) has started and that have begun, and with their own tasks, the deepest first:
// calls that were decided by now run, and a finished task returns. It leaves tasks alone that another program runs. Its error is what kept it from looking,
// or ctx's.
func (r *Runner) CarryOn(ctx context.Context, parent *chatctx.ChatContext, branchName string) ([]Carried, error) {
	b, err := parent.Branch(ctx, branchName)
	if err != nil {
		return nil, err
	}
	tasks, err := List(ctx, parent, ListOptions{})
	if err != nil {
		return nil, err
	}
	var out []Carried
	for _, info := range tasks {
		if !isRunning(&info.Task) || info.Branch != b.ID {
			continue
		}
		child, err := parent.Store().Context(ctx, info.ID.String())
		if err != nil {
			return out, err
		}
		if ok, err := begun(ctx, child, info); err != nil || !ok {
			if err != nil {
				return out, err
			}
			continue
		}
		done, err := r.Run(ctx, child)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case errors.Is(err, chatctx.ErrConflict): // another program runs it, or has ended it
		default:
			out = append(out, Carried{info, done, err})
		}
	}
	return out, nil
}

// begun reports whether a task was begun here: the call that started it runs for it, or somebody ran it. A task that only a file describes does not start
// by itself.
func begun(ctx context.Context, child *chatctx.ChatContext, info *record.TaskInfo) (bool, error) {
	if info.Message != (chatctx.ID{}) {
		call, err := child.Store().Call(ctx, info.Parent.String(), "", record.CallRef(fmt.Sprintf("%s:%d", info.Message, info.Index)))
		if err != nil || call.Claim == nil {
			return false, err
		}
		return call.Claim.Task == child.ID, nil
	}
	for op, err := range child.Store().Operations(ctx, child.ID.String()) {
		if err != nil || op.What == "reply" {
			return err == nil, err
		}
	}
	return false, nil
}

// bound sets the rest of the task's limits in a turn.
func bound(t *turn.Turn, info *record.TaskInfo, rounds int, spent int64) error {
	if info.MaxRounds > 0 {
		if rounds >= info.MaxRounds {
			return fmt.Errorf("%w: %d rounds", ErrLimit, info.MaxRounds)
		}
		t.Rounds = info.MaxRounds - rounds
	}
	if info.MaxTokens > 0 {
		if spent >= info.MaxTokens {
			return fmt.Errorf("%w: %d tokens", ErrLimit, info.MaxTokens)
		}
		t.Tokens = info.MaxTokens - spent
	}
	return nil
}

// soFar counts the rounds with the model and the tokens that a task has used.
func soFar(ctx context.Context, child *chatctx.ChatContext) (rounds int, spent int64, err error) {
	snap, err := child.Snapshot(ctx, "")
	if err != nil {
		return 0, 0, err
	}
	for e, err := range snap.Entries(ctx, 1, 0) {
		if err != nil {
			return 0, 0, err
		}
		if e.Role != pool.Assistant {
			continue
		}
		rounds++
		for _, n := range []*int64{e.Meta.InputTokens, e.Meta.OutputTokens} {
			if n != nil {
				spent += *n
			}
		}
	}
	return rounds, spent, nil
}

// finished reports whether the child's branch ends with a complete answer. Then a task whose program died only has to return.
func finished(ctx context.Context, child *chatctx.ChatContext) (bool, error) {
	snap, err := child.Snapshot(ctx, "")
	if err != nil || snap.Len() == 0 {
		return false, err
	}
	e, err := snap.Find(ctx, "@")
	if err != nil {
		return false, err
	}
	return e.Role == pool.Assistant && !e.Unfinished && len(e.Calls) == 0, nil
}

// fail ends a task as failed. If its last answer is not whole, the parent gets it as far as it came.
func (r *Runner) fail(ctx context.Context, child *chatctx.ChatContext, why error) (*Outcome, error) {
	end := record.TaskEnd{State: record.TaskFailed, Summary: why.Error()}
	var part *pool.OutcomeError
	if end.Unfinished = errors.As(why, &part); end.Unfinished {
		end.Partial = part.Text
	}
	ended, err := child.EndTask(context.WithoutCancel(ctx), end)
	if err != nil {
		return nil, errors.Join(why, err)
	}
	return &Outcome{State: record.TaskFailed, Ended: ended, Summary: why.Error(), Cause: why}, nil
}

// giveBack returns the summary to the parent. A task whose last answer is not whole fails.
func (r *Runner) giveBack(ctx context.Context, child *chatctx.ChatContext) (*Outcome, error) {
	text, err := r.Summary.of(ctx, child)
	if other := (*enhancer.UnusableError)(nil); errors.Is(err, pool.ErrNotWhole) && !errors.As(err, &other) { // not a summary by another model
		return r.fail(ctx, child, err)
	}
	if err != nil {
		return nil, err
	}
	ended, err := child.EndTask(ctx, record.TaskEnd{State: record.TaskReturned, Summary: text})
	if err != nil {
		return nil, err
	}
	return &Outcome{State: record.TaskReturned, Ended: ended, Summary: text}, nil
}

// Summariser makes the summary of a child's history. A nil Summariser is Answer.
type Summariser func(ctx context.Context, child *chatctx.ChatContext) (string, error)

func (s Summariser) of(ctx context.Context, child *chatctx.ChatContext) (string, error) {
	if s == nil {
		s = Answer
	}
	return s(ctx, child)
}

// Given returns a Summariser for a fixed text.
func Given(text string) Summariser {
	return func(context.Context, *chatctx.ChatContext) (string, error) { return text, nil }
}

// Answer returns the child's last answer, or its Digest if no answer is the last message. It is a *pool.OutcomeError if the answer is not whole.
func Answer(ctx context.Context, child *chatctx.ChatContext) (string, error) {
	snap, err := child.Snapshot(ctx, "")
	if err != nil {
		return "", err
	}
	if snap.Len() > 0 {
		e, err := snap.Find(ctx, "@")
		if err != nil {
			return "", err
		}
		if text, err := e.Whole(); e.Role == pool.Assistant && (err == nil || len(e.Calls) == 0) {
			return text, err
		}
	}
	return Digest(ctx, child)
}

// Digest returns the deterministic digest of the child's history.
func Digest(ctx context.Context, child *chatctx.ChatContext) (string, error) {
	d, err := child.Draft(ctx, "")
	if err != nil {
		return "", err
	}
	return window.Digest(d.Messages), nil
}

// mostSummed is how many bytes of a history a model summarises: of a longer one, its end.
const mostSummed = 200 << 10

// reportSystem and reportPrompt ask a model what came of a task.
const (
	reportSystem = "You report what came of a task. Say what was found and done, in as few words as carry it, with names and figures as they are."
	reportPrompt = "Sum up this work for whoever gave the task:\n\n"
)

// ByModel returns a Summariser that lets a model summarise the child's history. An answer of the model that is not whole is an *window.UnusableError.
func ByModel(c enhancer.Completer) Summariser {
	return func(ctx context.Context, child *chatctx.ChatContext) (string, error) {
		d, err := child.Draft(ctx, "")
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for _, m := range d.Messages {
			text := m.Text()
			if ending := m.Ending(); m.Role == pool.Assistant && ending != "" {
				text += " [this answer is " + ending + "]"
			}
			if m.Result != nil {
				text = m.Result.Text + string(m.Result.JSON)
			}
			for _, call := range m.Calls {
				text += "\n" + call.Tool + "(" + string(call.Arguments) + ")"
			}
			fmt.Fprintf(&b, "%s: %s\n\n", m.Role, text)
		}
		history := b.String()
		if cut := len(history) - mostSummed; cut > 0 {
			history = strings.ToValidUTF8(history[cut:], "")
		}
		answer, err := window.Ask(ctx, child, c, window.Question{Kind: "summary", System: reportSystem, Prompt: reportPrompt + history, Limit: 600, About: window.About(d.Messages)})
		if err != nil {
			return "", err
		}
		return answer.Text, answer.Lose(ctx, child) // the parent has the text, and the child the cost
	}
}

// Abandon ends a task that must not go on, and the tasks that it started. Their calls are cancelled, and the call that started it fails with the reason.
func Abandon(ctx context.Context, child *chatctx.ChatContext, reason string) (*record.TaskEnded, error) {
	below, err := List(ctx, child, ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, info := range below {
		if !isRunning(&info.Task) {
			continue
		}
		c, err := child.Store().Context(ctx, info.ID.String())
		if err != nil {
			return nil, err
		}
		if _, err := Abandon(ctx, c, reason); err != nil {
			return nil, err
		}
	}
	return child.EndTask(ctx, record.TaskEnd{State: record.TaskAbandoned, Summary: reason})
}

// Return ends a task with a summary. branchName is the branch of the parent that gets it; "" means the one from which the task was started. keep: it does
// not go to the trash.
func Return(ctx context.Context, child *chatctx.ChatContext, summary Summariser, branchName string, keep bool) (*record.TaskEnded, error) {
	text, err := summary.of(ctx, child)
	if err != nil {
		return nil, err
	}
	return child.EndTask(ctx, record.TaskEnd{State: record.TaskReturned, Summary: text, Branch: branchName, Keep: keep})
}

// ListOptions says which tasks List returns. The zero value means those of the context itself that are not in the trash. A task that runs below one in the trash,
// which has ended or was removed, is in the list of Deep.
type ListOptions struct {
	Deep  bool // also the tasks of tasks
	Ended bool // also those in the trash
}

// List returns the tasks of a context, the last changed first, each before its own.
func List(ctx context.Context, parent *chatctx.ChatContext, o ListOptions) ([]*record.TaskInfo, error) {
	return list(ctx, parent.Store(), parent.ID, o)
}

// All returns the tasks of all contexts of a store, also of those that are gone or in the trash. Deep counts as set.
func All(ctx context.Context, s *chatctx.Store, o ListOptions) ([]*record.TaskInfo, error) {
	o.Deep = true
	return list(ctx, s, chatctx.ID{}, o)
}

// list returns the tasks below a context, for a zero parent below all that are no tasks.
func list(ctx context.Context, s *chatctx.Store, parent chatctx.ID, o ListOptions) ([]*record.TaskInfo, error) {
	var out []*record.TaskInfo
	for _, trash := range []bool{false, true} {
		if trash && !o.Ended && !o.Deep {
			break
		}
		for info, err := range s.Contexts(ctx, record.ListOptions{Parent: parent, Trash: trash}) {
			if err != nil {
				return nil, err
			}
			if info.Parent == (chatctx.ID{}) {
				continue
			}
			child, err := s.Context(ctx, info.ID.String())
			if err != nil {
				return nil, err
			}
			task, err := child.TaskInfo(ctx)
			if errors.Is(err, chatctx.ErrInvalid) {
				continue // a context that an import put below another, and no task
			}
			if err != nil {
				return nil, err
			}
			if parent == (chatctx.ID{}) && !info.ParentGone && task.Depth > 1 {
				continue // it is below its parent
			}
			if !trash || o.Ended {
				out = append(out, task)
			}
			if !o.Deep {
				continue
			}
			more, err := list(ctx, s, task.ID, o)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
	}
	return out, nil
}

// Tool returns the tool with which a model starts tasks.
func Tool() record.Tool {
	return record.Tool{
		Name:        "spawn_task",
		Description: "Gives a task to a helper that works on it on its own, with the same tools, and comes back with a summary.",
		Schema: json.RawMessage(`{"type":"object","properties":{"goal":{"type":"string","description":"what is to be done, with all that the helper has to know"},` +
			`"title":{"type":"string","description":"a few words"}},"required":["goal"]}`),
	}
}

// Spawn returns the function that runs Tool on a parent's branch: it starts the task, runs it, and lets the task answer the call. A task that waits for a
// person, or whose run fails, goes on with another Run; until then the call runs.
func (r *Runner) Spawn(parent *chatctx.ChatContext, o Options) approval.Function {
	return func(ctx context.Context, in approval.Invocation) (pool.Result, error) {
		var a struct{ Goal, Title string }
		if err := json.Unmarshal(in.Arguments, &a); err != nil {
			return pool.Result{}, fmt.Errorf("the arguments: %w", err)
		}
		o.Goal, o.Title = a.Goal, a.Title
		child, err := Start(ctx, parent, in.Call.Branch, o, in.Claim)
		if err != nil {
			return pool.Result{}, err
		}
		if _, err := r.Run(ctx, child); err != nil && ctx.Err() != nil {
			_, ended := r.fail(ctx, child, errors.New("interrupted"))
			if ended != nil {
				return pool.Result{}, ended
			}
		}
		return pool.Result{}, approval.ErrHandedOver
	}
}
