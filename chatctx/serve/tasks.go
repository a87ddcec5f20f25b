package serve

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/subtask"
)

func taskMethods() []*method {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*method{
		define("tasks.list", "GET "+in+"/tasks", Read, "the sub-contexts of a conversation", listTasks),
		define("tasks.start", "POST "+at+"/tasks", Write, "start a sub-context for a task; nothing is sent yet", startTask),
		define("tasks.return", "POST "+in+"/return", Write, "end a task with a summary for its parent", returnTask),
		define("tasks.abandon", "POST "+in+"/abandon", Write, "end a task that is not to go on", abandonTask),
	}
}

type tasksParams struct {
	conversation
	Deep  bool `json:"deep,omitempty" doc:"those of its sub-contexts too"`
	Ended bool `json:"ended,omitempty" doc:"those in the trash too"`
}

func listTasks(r *request, in *tasksParams) (list[contract.Task], error) {
	c, err := r.store.Context(r.ctx, in.Context)
	if err != nil {
		return list[contract.Task]{}, err
	}
	tasks, err := subtask.List(r.ctx, c, subtask.ListOptions{Deep: in.Deep, Ended: in.Ended})
	if err != nil {
		return list[contract.Task]{}, err
	}
	var items []contract.Task
	for _, t := range tasks {
		items = append(items, contract.TaskOf(t))
	}
	return listOf(items), nil
}

type startParams struct {
	change
	Goal   string `json:"goal" doc:"what is to be done, with all that has to be known"`
	Title  string `json:"title,omitempty" doc:"the title; else from the goal"`
	System string `json:"system,omitempty" doc:"its system prompt"`
	Keep   bool   `json:"keep,omitempty" doc:"do not move it to the trash when it has ended"`
}

func startTask(r *request, in *startParams) (contract.Task, error) {
	c, err := r.store.Context(r.ctx, in.Context)
	if err != nil {
		return contract.Task{}, err
	}
	child, err := subtask.Start(r.ctx, c, in.Branch, subtask.Options{Goal: in.Goal, Title: in.Title, System: in.System, Keep: in.Keep}, nil)
	if err != nil {
		return contract.Task{}, err
	}
	return r.task(child, nil)
}

// task returns a sub-context as it is now, with the result of its end.
func (r *request) task(child *chatctx.ChatContext, end *chatctx.TaskEnded) (contract.Task, error) {
	info, err := child.TaskInfo(r.ctx)
	if err != nil {
		return contract.Task{}, err
	}
	v := contract.TaskOf(info)
	if end != nil {
		v.Message, v.Position, v.Operation = contract.ID(end.Message), end.Position, end.Child.Operation
	}
	return v, nil
}

type returnParams struct {
	contextChange
	Summary string `json:"summary,omitempty" doc:"what the parent gets; else the task's last answer"`
	Branch  string `json:"branch,omitempty" doc:"the parent's branch that takes it; else the one that it was started from"`
	Keep    bool   `json:"keep,omitempty" doc:"do not move it to the trash"`
}

func returnTask(r *request, in *returnParams) (contract.Task, error) {
	child, err := r.store.Context(r.ctx, in.Context)
	if err != nil {
		return contract.Task{}, err
	}
	summary := subtask.Answer
	if in.Summary != "" {
		summary = subtask.Given(in.Summary)
	}
	end, err := subtask.Return(r.ctx, child, summary, in.Branch, in.Keep)
	if err != nil {
		return contract.Task{}, err
	}
	return r.task(child, end)
}

type abandonParams struct {
	contextChange
	Reason string `json:"reason,omitempty" doc:"why"`
}

func abandonTask(r *request, in *abandonParams) (contract.Task, error) {
	child, err := r.store.Context(r.ctx, in.Context)
	if err != nil {
		return contract.Task{}, err
	}
	end, err := subtask.Abandon(r.ctx, child, in.Reason)
	if err != nil {
		return contract.Task{}, err
	}
	return r.task(child, end)
}
