package operation

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/subtask"
)

func init() {
	Register(Group{Heading: "Tools and their calls", Command: "sub", Does: "sub-contexts: conversations that do one task and return a summary", Of: taskOperations})
}

func taskOperations() []*Operation {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("tasks.list", "GET "+in+"/tasks", Read, "show the sub-contexts of the conversation, and theirs, as a tree", listTasks).As("sub ls", "chatctx sub ls --ended").
			With("A task that runs below one that has ended is shown too, and says so."),
		Define("tasks.get", "GET "+in+"/task", Read, "show how far a sub-context has come", getTask).As("sub show", "chatctx sub show \"Find out which tests are slow\""),
		Define("tasks.start", "POST "+at+"/tasks", Write, "start a sub-context for a task; nothing is sent yet", startTask),
		Define("tasks.return", "POST "+in+"/return", Write, "end a task and give its parent a summary", returnTask),
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
	All   bool `json:"-" flag:"all" doc:"those of all conversations, also of ones that are in the trash or gone"`
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

type startParams struct {
	Change
	Goal   string `json:"goal" doc:"what the task has to do, with everything that it needs to know"`
	Title  string `json:"title,omitempty" doc:"the title; by default the first words of the goal"`
	System string `json:"system,omitempty" doc:"the system prompt of the sub-context"`
	Keep   bool   `json:"keep,omitempty" doc:"keep the sub-context when the task ends; by default it moves to the trash"`
}

func startTask(r *Request, in *startParams) (contract.Task, error) {
	c, err := r.Store.Context(r.Ctx, in.Context)
	if err != nil {
		return contract.Task{}, err
	}
	child, err := subtask.Start(r.Ctx, c, in.Branch, subtask.Options{Goal: in.Goal, Title: in.Title, System: in.System, Keep: in.Keep}, nil)
	return r.task(child, nil, err)
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

type returnParams struct {
	ContextChange
	Summary string `json:"summary,omitempty" doc:"the summary for the parent; by default the task's last answer"`
	Branch  string `json:"branch,omitempty" doc:"the parent's branch that gets the summary; by default the one that started the task"`
	Keep    bool   `json:"keep,omitempty" doc:"keep the sub-context; by default it moves to the trash"`
}

func returnTask(r *Request, in *returnParams) (contract.Task, error) {
	child, err := r.Store.Context(r.Ctx, in.Context)
	if err != nil {
		return contract.Task{}, err
	}
	summary := subtask.Answer
	if in.Summary != "" {
		summary = subtask.Given(in.Summary)
	}
	end, err := subtask.Return(r.Ctx, child, summary, in.Branch, in.Keep)
	return r.task(child, end, err)
}

// Abandoning gives up a task.
type Abandoning struct {
	NamedTask
	Reason string  `json:"reason,omitempty" flag:"reason" doc:"the {REASON}, which is the result of the call that started it"`
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
