package operation

import (
	"encoding/json"
	"errors"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/pool"
	"github.com/chatctx/chatctx/subtask"
)

func init() {
	Register(Group{Heading: "Tools and their calls", Command: "sub", Does: "sub-contexts: conversations that do one task and return a summary", Of: taskOperations})
}

func taskOperations() []*Operation {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("tasks.list", "GET "+in+"/tasks", Read, "show the sub-contexts of the conversation, and theirs, as a tree", listTasks).As("sub ls", "chatctx sub ls --ended").
			With("A task that runs below one that has ended is shown too, and says so. --everywhere also shows those whose conversation is in the trash or gone."),
		Define("tasks.get", "GET "+in+"/task", Read, "show how far a sub-context has come", getTask).As("sub show", "chatctx sub show \"Find out which tests are slow\""),
		Define("tasks.start", "POST "+at+"/tasks", Write, "start a sub-context of the branch for a task", startTask).Fails(asking...).
			As("sub start", "chatctx sub start \"Find out which tests are slow\" --mode research --rounds 10").
			With("It gets the branch's settings and the tools; the rules apply to it too, and its calls are in the parent's queue. Nothing is sent before sub run."),
		Define("tasks.run", "", Run, "let a sub-context talk with the model until it stops, and return its answer to the parent", runTask).Fails("not_found", "ambiguous", "purged", "empty").Fails(asking...).
			As("sub run", "chatctx sub run 1a2b3c4d").With("It continues from any state, also after a crash. Exit code 6: its calls wait for a decision."),
		Define("tasks.return", "POST "+in+"/return", Write, "end a task with a summary on the branch that started it", returnTask).Fails(asking...).
			As("sub return", "chatctx sub return 1a2b3c4d --summary \"Three tests wait for the network.\"").
			With("The summary becomes the result of the call that started the task, else a user message that names it. Without a flag the summary is the last answer."),
		Define("tasks.abandon", "POST "+in+"/abandon", Write, "give up a task, and the tasks that it started", abandonTask).
			As("sub abandon", "chatctx sub abandon 1a2b3c4d --reason \"no longer needed\"").
			With("Their calls are cancelled, and they go to the trash: undo and restore bring them back."),
	}
}

// TaskListing says which sub-contexts to list. The command line always lists those of sub-contexts, too.
type TaskListing struct {
	Conversation
	Deep  bool `json:"deep,omitempty" doc:"also list the sub-contexts of sub-contexts"`
	Ended bool `json:"ended,omitempty" flag:"ended" doc:"those in the trash too"`
	All   bool `json:"-" flag:"everywhere" old:"all" doc:"of all conversations and branches"`
}

func listTasks(r *Request, in *TaskListing) (out List[contract.Task], err error) {
	o := subtask.ListOptions{Deep: in.Deep, Ended: in.Ended}
	var tasks []*record.TaskInfo
	if in.All {
		tasks, err = subtask.All(r.Ctx, r.Store, o)
	} else if c, missing := r.Store.Context(r.Ctx, in.Context); missing != nil {
		err = missing
	} else {
		tasks, err = subtask.List(r.Ctx, c, o)
	}
	below := map[chatctx.ID]int{}
	return ListEach(tasks, err, func(i *record.TaskInfo) contract.Task {
		v := contract.TaskOf(i)
		if depth, listed := below[i.Parent]; listed {
			v.Below = depth + 1
		}
		below[i.ID] = v.Below
		return v
	})
}

// NamedTask names a sub-context.
type NamedTask struct {
	Context string `json:"context" arg:"CTX" doc:"the sub-context: its id, or its title if that is unique"`
}

func getTask(r *Request, in *NamedTask) (contract.Task, error) {
	c, err := r.Store.Context(r.Ctx, in.Context)
	return r.task(c, nil, err)
}

// Starting says what a task is, and how it is done.
type Starting struct {
	Change
	Goal string `json:"goal" arg:"GOAL|-" doc:"what the task has to do, with everything that it needs to know"`
	Whom
	Title    string   `json:"title,omitempty" flag:"title" doc:"its {TITLE}; else from the goal"`
	System   string   `json:"system,omitempty" flag:"system" doc:"the system prompt {TEXT}, - for standard input"`
	Mode     string   `json:"-" flag:"mode" doc:"the {MODE}, a word that tools and rules can ask for"`
	Set      []string `json:"-" flag:"setting" old:"set" doc:"another setting of its own: {KEY=VALUE}; may be given again"`
	OwnRules bool     `json:"-" flag:"own-rules" doc:"the parent's rules do not apply to it"`
	NoTools  bool     `json:"-" flag:"no-tools" doc:"it gets none of the parent's tools"`
	Depth    *int     `json:"-" flag:"depth" doc:"allow {N} levels of tasks; else 4"`
	Rounds   *int     `json:"-" flag:"rounds" doc:"fail after {N} rounds with the model"`
	Tokens   *int     `json:"-" flag:"tokens" doc:"fail after {N} tokens"`
	Keep     bool     `json:"keep,omitempty" flag:"keep" doc:"do not move the sub-context to the trash"`
	Run      bool     `json:"-" flag:"run" doc:"run it at once"`
	RawInput
	Settings map[string]json.RawMessage `json:"-"` // of its own
}

// Limits are the flags that take a number of one or more.
func (in *Starting) Limits() map[string]*int {
	return map[string]*int{"depth": in.Depth, "rounds": in.Rounds, "tokens": in.Tokens}
}

// TaskRun is a task that was started or went on.
type TaskRun struct {
	contract.Task
	*TaskRunning
}

// TaskRunning is what became of a task that went on.
type TaskRunning struct {
	Summary string        `json:"-"`
	Waits   bool          `json:"-"` // its calls wait
	Awaits  contract.Open `json:"-"`
	Failed  bool          `json:"-"`
	Cause   error         `json:"-"` // why it failed, if an answer was not whole
}

func startTask(r *Request, in *Starting) (v TaskRun, err error) {
	c, name, err := r.branchOf(in.Target)
	if err != nil {
		return v, err
	}
	o := subtask.Options{Goal: in.Goal, Title: in.Title, System: in.System, Keep: in.Keep, OwnRules: in.OwnRules, Settings: in.Settings}
	for of, n := range map[*int]*int{&o.MaxDepth: in.Depth, &o.MaxRounds: in.Rounds} {
		if n != nil {
			*of = *n
		}
	}
	if in.Tokens != nil {
		o.MaxTokens = int64(*in.Tokens)
	}
	if in.NoTools {
		o.Tools = []record.Tool{}
	}
	child, err := subtask.Start(r.Ctx, c, name, o, nil)
	if err == nil && in.Run {
		r.progress("started " + record.Short(child.ID))
		return r.runChild(child)
	}
	v.Task, err = r.task(child, nil, err)
	return v, err
}

// TaskToRun names a sub-context to run.
type TaskToRun struct {
	NamedTask
	Whom
}

func runTask(r *Request, in *TaskToRun) (v TaskRun, err error) {
	child, err := r.Store.Context(r.Ctx, in.Context)
	if err == nil {
		_, err = child.TaskInfo(r.Ctx)
	}
	if err != nil {
		return v, err
	}
	return r.runChild(child)
}

// runner runs tasks as this request makes turns.
func (r *Request) runner() *subtask.Runner {
	return &subtask.Runner{Turn: func(child *chatctx.ChatContext) *turn.Turn { return r.turnOn(child, "") }}
}

func (r *Request) runChild(child *chatctx.ChatContext) (v TaskRun, err error) {
	out, err := r.runner().Run(r.Ctx, child)
	if err != nil {
		return v, err
	}
	v.TaskRunning = &TaskRunning{Summary: out.Summary, Failed: out.State == record.TaskFailed, Waits: out.State == record.TaskWaiting}
	if v.Waits {
		if _, v.Awaits, err = r.OpenOn(child, ""); err == nil {
			v.Task, err = r.task(child, nil, nil)
		}
		return v, err
	}
	if errors.Is(out.Cause, pool.ErrNotWhole) {
		v.Cause = out.Cause
	}
	v.Task, err = r.task(child, out.Ended, nil)
	return v, err
}

// task returns a sub-context as it is now, with the result of its end, unless err says what went wrong with it.
func (r *Request) task(child *chatctx.ChatContext, end *record.TaskEnded, err error) (contract.Task, error) {
	if err != nil {
		return contract.Task{}, err
	}
	info, err := child.TaskInfo(r.Ctx)
	if err != nil {
		return contract.Task{}, err
	}
	v := contract.TaskOf(info)
	if end != nil {
		v.Message, v.Position, v.Operation, v.End = end.Message, end.Position, end.Parent.Operation, end
	}
	return v, nil
}

// Returning says what a task's parent gets, and where.
type Returning struct {
	NamedTask
	Expect *uint64 `json:"expect,omitempty" doc:"the revision that the conversation must have; any other is a conflict. Over HTTP also If-Match"`
	Keyed
	Whom
	Summary string `json:"summary,omitempty" flag:"summary" doc:"the summary's {TEXT}; - for standard input"`
	Digest  bool   `json:"-" flag:"digest" doc:"a summary made by rules, without a model"`
	ByModel bool   `json:"-" flag:"by-model" doc:"a summary written by the model"`
	Branch  string `json:"branch,omitempty" flag:"to-branch" old:"to" doc:"put it on another {BRANCH} of the parent"`
	Keep    bool   `json:"keep,omitempty" flag:"keep" doc:"do not move the sub-context to the trash"`
	RawInput
}

// Expected returns what a change is about, and the revision that it must have.
func (in *Returning) Expected() (context, branch string, revision *uint64) {
	return in.Context, "", in.Expect
}

func returnTask(r *Request, in *Returning) (contract.Task, error) {
	child, err := r.Store.Context(r.Ctx, in.Context)
	if err == nil {
		_, err = child.TaskInfo(r.Ctx)
	}
	if err != nil {
		return contract.Task{}, err
	}
	summary := subtask.Answer
	switch {
	case in.Summary != "":
		summary = subtask.Given(in.Summary)
	case in.Digest:
		summary = subtask.Digest
	case in.ByModel:
		completer, err := r.turnOn(child, "").Completer(r.Ctx)
		if err != nil {
			return contract.Task{}, err
		}
		summary = subtask.ByModel(completer)
	}
	end, err := subtask.Return(r.Ctx, child, summary, in.Branch, in.Keep)
	return r.task(child, end, err)
}

// Abandoning gives up a task.
type Abandoning struct {
	NamedTask
	Reason string  `json:"reason,omitempty" flag:"reason" doc:"the {REASON}, which goes to the model word for word when a call is denied or a task given up"`
	Expect *uint64 `json:"expect,omitempty" doc:"the revision that the conversation must have; any other is a conflict. Over HTTP also If-Match"`
	Keyed
}

// Expected returns what a change is about, and the revision that it must have.
func (in *Abandoning) Expected() (context, branch string, revision *uint64) {
	return in.Context, "", in.Expect
}

func abandonTask(r *Request, in *Abandoning) (contract.Task, error) {
	child, err := r.Store.Context(r.Ctx, in.Context)
	if err == nil {
		_, err = child.TaskInfo(r.Ctx)
	}
	if err != nil {
		return contract.Task{}, err
	}
	end, err := subtask.Abandon(r.Ctx, child, in.Reason)
	return r.task(child, end, err)
}
