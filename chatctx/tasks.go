package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/task"
)

// StartTask makes a sub-context of a context, from one of its branches ("" means the active one). It does not become the current context.
func (c *ChatContext) StartTask(ctx context.Context, branchName string, n record.NewTask) (*ChatContext, error) {
	id, err := task.Start(ctx, c.at(), branchName, n)
	return c.store.made(id, err)
}

// TaskInfo returns the state of a sub-context. It returns ErrInvalid if the context is none.
func (c *ChatContext) TaskInfo(ctx context.Context) (*record.TaskInfo, error) {
	return task.Read(ctx, c.at())
}

// EndTask ends the task. If it is abandoned, its calls are cancelled; it then goes to the trash, as a task that returned does, unless it is kept. The
// message on the parent branch and the child's end are one transaction. If a call started the task, the summary is its result; else a task that returned
// adds a user's message there that names it, and so does one that failed since its answer is not whole (Unfinished). Any other adds nothing. It returns ErrConflict if the task has ended already, or if the parent or its
// branch is gone: then nothing is lost, and the task can return to another branch or be abandoned.
func (c *ChatContext) EndTask(ctx context.Context, e record.TaskEnd) (*record.TaskEnded, error) {
	return task.Finish(ctx, c.at(), e)
}
