package operation

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/subtask"
)

func init() { Register(Group{Heading: "Tools and their calls", Of: taskOperations}) }

func taskOperations() []*Operation {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("tasks.list", "GET "+in+"/tasks", Read, "list the sub-contexts of a conversation", listTasks),
		Define("tasks.start", "POST "+at+"/tasks", Write, "start a sub-context for a task; nothing is sent yet", startTask),
		Define("tasks.return", "POST "+in+"/return", Write, "end a task and give its parent a summary", returnTask),
		Define("tasks.abandon", "POST "+in+"/abandon", Write, "end a task without a result", abandonTask),
	}
}

type tasksParams struct {
	Conversation
	Deep  bool `json:"deep,omitempty" doc:"also list the sub-contexts of sub-contexts"`
	Ended bool `json:"ended,omitempty" doc:"also list those in the trash"`
}

func listTasks(r *Request, in *tasksParams) (List[contract.Task], error) {
	c, err := r.Store.Context(r.Ctx, in.Context)
	if err != nil {
		return List[contract.Task]{}, err
	}
	tasks, err := subtask.List(r.Ctx, c, subtask.ListOptions{Deep: in.Deep, Ended: in.Ended})
	return ListEach(tasks, err, contract.TaskOf)
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
func (r *Request) task(child *chatctx.ChatContext, end *chatctx.TaskEnded, err error) (contract.Task, error) {
	if err != nil {
		return contract.Task{}, err
	}
	info, err := child.TaskInfo(r.Ctx)
	if err != nil {
		return contract.Task{}, err
	}
	v := contract.TaskOf(info)
	if end != nil {
		v.Message, v.Position, v.Operation = end.Message, end.Position, end.Child.Operation
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

type abandonParams struct {
	ContextChange
	Reason string `json:"reason,omitempty" doc:"why, for the parent"`
}

func abandonTask(r *Request, in *abandonParams) (contract.Task, error) {
	child, err := r.Store.Context(r.Ctx, in.Context)
	if err != nil {
		return contract.Task{}, err
	}
	end, err := subtask.Abandon(r.Ctx, child, in.Reason)
	return r.task(child, end, err)
}
