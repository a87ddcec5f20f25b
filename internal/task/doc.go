// Package task starts and ends tasks: contexts that do something for another one and return to it.
//
// It owns the record of a task in its context, and the link to the call that started it. It changes contexts through the journal and calls through
// toolcall. It never runs a task: package subtask does.
package task
