package subtask

import "github.com/chatctx/chatctx/chatctx/record"

// isRunning reports whether the task has not ended.
func isRunning(t *record.Task) bool {
	return t.State == record.TaskRunning || t.State == record.TaskWaiting
}
