package chatctx

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// DefaultDepth is the default limit of the levels of sub-contexts.
const DefaultDepth = record.DefaultDepth

// Task makes a context a sub-context: it says what the context does for its parent and how far it has come. Package subtask runs it.
type Task = record.Task

// The states of a task. A running task whose calls wait is shown as waiting.
const (
	TaskRunning   = record.TaskRunning
	TaskWaiting   = record.TaskWaiting
	TaskReturned  = record.TaskReturned
	TaskFailed    = record.TaskFailed
	TaskAbandoned = record.TaskAbandoned
)

// NewTask describes the sub-context that StartTask makes.
type NewTask struct {
	NewContext
	Task
	// Tools, if not nil, replaces the copies of the parent's tools.
	Tools []Tool
	// Call is the claim of the call that starts it, nil for none. The call then runs until the task ends, whatever becomes of this process.
	Call *CallClaim
}

// StartTask makes a sub-context of a context, from one of its branches ("" means the active one). It does not become the current context.
func (c *ChatContext) StartTask(ctx context.Context, branchName string, n NewTask) (*ChatContext, error) {
	if err := n.NewContext.Ready(c.store.at); err != nil {
		return nil, err
	}
	if err := c.store.at.Texts("goal", &n.Goal); err != nil {
		return nil, err
	}
	n.Tools = slices.Clone(n.Tools)
	for i := range n.Tools {
		if err := n.Tools[i].Ready(c.store.at); err != nil {
			return nil, err
		}
	}
	id := pool.NewID()
	_, err := journal.StoreOperation(ctx, c.store.at, "sub start", func(st *journal.StoreTxn) error {
		parent, err := journal.Begin(c.store.at, st.Tx, c.ID.String(), branchName)
		if err != nil {
			return err
		}
		return startTask(st, parent, id, &n)
	})
	if err != nil {
		return nil, err
	}
	return &ChatContext{ID: id, store: c.store}, nil
}

func startTask(st *journal.StoreTxn, parent *journal.Txn, id ID, n *NewTask) error {
	task := n.Task
	task.Branch, task.BranchName, task.State, task.Depth = parent.Target.ID, parent.Target.Name, TaskRunning, 1
	if up := parent.Rec.Task; up != nil {
		task.Depth = up.Depth + 1
		if task.MaxDepth == 0 {
			task.MaxDepth = up.MaxDepth
		}
		if up.State != TaskRunning {
			return record.Conflict("the sub-context %q is %s: it can start no other", parent.Rec.Title, up.State)
		}
	}
	if task.MaxDepth > 0 && task.Depth > task.MaxDepth {
		return record.Conflict("a sub-context here would be at level %d; the limit is %d", task.Depth, task.MaxDepth)
	}
	if n.Call != nil {
		task.Message, task.Index = n.Call.Call.Message, n.Call.Call.Index
		claim, err := n.Call.Owned(st.Tx)
		if err != nil {
			return err
		}
		claim.Task = id
		if err := record.PutRecord(st.Tx, record.ClaimBucket, record.CallKey(parent.ID, task.Message, task.Index-1), claim); err != nil {
			return err
		}
	}
	t, err := st.NewContext(id, n.Title, parent.ID, n.Settings)
	if err != nil {
		return err
	}
	t.Rec.Task = &task
	if err := st.BeginWith(t, &n.NewContext); err != nil {
		return err
	}
	if n.Tools == nil {
		if err := copyTools(st.Tx, parent.ID, id); err != nil {
			return err
		}
	}
	for _, tool := range n.Tools {
		if err := record.PutRecord(st.Tx, record.ToolBucket, record.Under(id, []byte(tool.Name)...), tool); err != nil {
			return err
		}
	}
	return st.Made(t, false)
}

// TaskInfo is a sub-context in its present state.
type TaskInfo struct {
	*ContextInfo
	Task
	State      string // as stored, or TaskWaiting
	Open       int    // its calls that wait or run
	ParentGone bool   // the parent was removed for good, or is in the trash
	BranchGone bool   // the branch from which it was started no longer exists
}

// TaskInfo returns the state of a sub-context. It returns ErrInvalid if the context is none.
func (c *ChatContext) TaskInfo(ctx context.Context) (*TaskInfo, error) {
	var out *TaskInfo
	err := view.At(ctx, c.at(), func(tx kv.Tx, rec *record.ContextRecord) error {
		if rec.Task == nil {
			return record.Invalidf("%q is no sub-context", rec.Title)
		}
		info, err := view.InfoOf(c.store.at, tx, c.ID, rec)
		if err != nil {
			return err
		}
		out = &TaskInfo{ContextInfo: info, Task: *rec.Task, State: rec.Task.State}
		if err := out.lookUp(tx, rec); err != nil {
			return err
		}
		if out.Open, err = openIn(tx, c.ID); err == nil && out.Open > 0 && out.State == TaskRunning {
			out.State = TaskWaiting
		}
		return err
	})
	return out, err
}

// lookUp checks the parent.
func (i *TaskInfo) lookUp(tx kv.Tx, rec *record.ContextRecord) error {
	parent, _, err := record.GetContext(tx, rec.Parent)
	if err != nil {
		return err
	}
	if i.ParentGone = parent == nil || parent.Trashed != 0; i.ParentGone {
		return nil
	}
	b, err := view.BranchByID(tx, rec.Parent, rec.Task.Branch)
	i.BranchGone = b == nil
	return err
}

// openIn counts the open calls on a context's branches.
func openIn(tx kv.Tx, id ID) (int, error) {
	n := 0
	err := branch.List(tx, id, func(b *branch.Branch) error {
		calls, err := view.UnansweredIn(tx, id, b.Pieces)
		n += len(calls)
		return err
	})
	return n, err
}

// TaskEnd is how a task ends.
type TaskEnd struct {
	State   string // TaskReturned, TaskFailed or TaskAbandoned
	Summary string // what the parent gets; for a task that did not return, the reason
	// Branch is the parent's branch that gets the summary; "" means the one from which the task was started.
	Branch string
	Keep   bool // do not move it to the trash, even if the task does not say so
}

// TaskEnded is the result of EndTask.
type TaskEnded struct {
	Parent    Committed // on the parent's journal; Operation is "" if it got no message
	Child     Committed // on the store's
	Message   ID        // zero: none
	Position  int
	Kept      bool
	CallState string // of the call that started it; "": none
}

// EndTask ends the task. If it is abandoned, its calls are cancelled; it then goes to the trash, as a task that returned does, unless it is kept. The
// message on the parent branch and the child's end are one transaction. If a call started the task, the summary is its result; else a task that returned
// adds a user's message there that names it, and any other adds nothing. It returns ErrConflict if the task has ended already, or if the parent or its
// branch is gone: then nothing is lost, and the task can return to another branch or be abandoned.
func (c *ChatContext) EndTask(ctx context.Context, e TaskEnd) (*TaskEnded, error) {
	if err := c.store.at.Texts("summary", &e.Summary); err != nil {
		return nil, err
	}
	m, err := c.endMessage(ctx, &e)
	if err != nil {
		return nil, err
	}
	if err := c.store.at.Ready([]*Message{m}); err != nil {
		return nil, err
	}
	var out *TaskEnded
	child, err := journal.StoreOperation(ctx, c.store.at, "sub "+map[string]string{TaskReturned: "return", TaskFailed: "fail", TaskAbandoned: "abandon"}[e.State], func(st *journal.StoreTxn) error {
		out = &TaskEnded{}
		message, result := *m, m.Result
		if result != nil {
			r := *result
			message.Result = &r
		}
		return c.store.endTask(st, c.ID, &e, &message, out)
	})
	if err != nil {
		return nil, err
	}
	out.Child = *child
	return out, nil
}

// endMessage returns the message that the parent gets.
func (c *ChatContext) endMessage(ctx context.Context, e *TaskEnd) (*Message, error) {
	if e.State != TaskReturned && e.State != TaskFailed && e.State != TaskAbandoned {
		return nil, record.Invalidf("a task does not end as %q", e.State)
	}
	info, err := c.TaskInfo(ctx)
	if err != nil {
		return nil, err
	}
	link, err := json.Marshal(map[string]any{"context": c.ID, "state": e.State})
	if err != nil {
		return nil, err
	}
	m := pool.NewText(pool.User, "The task \""+info.Title+"\" returned:\n"+e.Summary)
	if info.Message != (ID{}) {
		text := e.Summary
		if text == "" && e.State != TaskReturned {
			text = "the task was " + e.State
		}
		m = &Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "call", Text: text, IsError: e.State != TaskReturned}}
	}
	m.Kind, m.AppData = "summary", map[string]json.RawMessage{"subtask": link}
	return m, nil
}

func (s *Store) endTask(st *journal.StoreTxn, id ID, e *TaskEnd, m *Message, out *TaskEnded) error {
	child, err := journal.BeginAt(s.at, st.Tx, id)
	if err != nil {
		return err
	}
	task := child.Rec.Task
	if task == nil || task.State != TaskRunning {
		state := "no sub-context"
		if task != nil {
			state = task.State
		}
		return record.Conflict("%q is %s: it cannot be %s", child.Rec.Title, state, e.State)
	}
	if err := s.tellParent(st, child, e, m, out); err != nil {
		return err
	}
	if e.State == TaskAbandoned {
		if child, err = giveUp(s, st, id, e.Summary); err != nil {
			return err
		}
	}
	ended := *task
	ended.State, ended.Summary, ended.Ended, ended.Reason = e.State, out.Message, st.Now, ""
	if e.State != TaskReturned {
		ended.Reason = e.Summary
	}
	child.Rec.Task = &ended
	if out.Kept = e.Keep || task.Keep || e.State == TaskFailed; out.Kept {
		return child.WriteContext()
	}
	return st.Trash(child, st.Now)
}

// giveUp cancels the calls of a task, as an operation of its own, and returns the task's new state.
func giveUp(s *Store, st *journal.StoreTxn, id ID, reason string) (*journal.Txn, error) {
	t, err := journal.BeginAt(s.at, st.Tx, id)
	if err != nil {
		return nil, err
	}
	t.What = "sub abandon"
	words := "the task was abandoned"
	if reason != "" {
		words += ": " + reason
	}
	if err := toolcall.GiveUp(t, words); err != nil {
		return nil, err
	}
	if _, err := t.Finish(); err != nil {
		return nil, err
	}
	return journal.BeginAt(s.at, st.Tx, id)
}

// tellParent puts the message about a task's end on the parent branch.
func (s *Store) tellParent(st *journal.StoreTxn, child *journal.Txn, e *TaskEnd, m *Message, out *TaskEnded) error {
	task := child.Rec.Task
	parent, _, err := record.GetContext(st.Tx, child.Rec.Parent)
	if err != nil {
		return err
	}
	if parent == nil || parent.Trashed != 0 {
		if e.State != TaskReturned {
			return nil
		}
		return record.Conflict("the parent of %q is gone: nothing of it is lost, chatctx sub abandon ends it", child.Rec.Title)
	}
	t, err := journal.BeginAt(s.at, st.Tx, child.Rec.Parent)
	if err != nil {
		return err
	}
	t.What = "sub " + e.State
	if task.Message != (ID{}) {
		if done, err := answerTask(t, child.ID, task, e, m, out); done || err != nil {
			return err
		}
	}
	if e.State != TaskReturned {
		return nil
	}
	if t.Target, err = taskBranch(t, child, e.Branch); err != nil {
		return err
	}
	if m.Result != nil { // its call was answered otherwise: the summary is reported all the same
		m.Role, m.Content, m.Result = pool.User, []pool.Part{{Type: pool.TextPart, Text: "The task \"" + child.Rec.Title + "\" returned:\n" + e.Summary}}, nil
	}
	placed, err := t.Append(t.Target, []*Message{m})
	if err != nil {
		return err
	}
	out.Message, out.Position = placed[0].Message, placed[0].Position
	done, err := t.Finish()
	if err == nil {
		out.Parent = *done
	}
	return err
}

// taskBranch returns the parent's branch that gets a summary.
func taskBranch(t *journal.Txn, child *journal.Txn, name string) (*branch.Branch, error) {
	if name != "" {
		return t.Branch(name)
	}
	b, err := view.BranchByID(t.Tx, t.ID, child.Rec.Task.Branch)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, record.Conflict("the branch %q that %q was started from is gone: nothing of it is lost, chatctx sub return --to BRANCH returns to another", child.Rec.Task.BranchName, child.Rec.Title)
	}
	return t.Branch(b.Name)
}

// answerTask answers the call that started a task, if that still runs for it or for nobody.
func answerTask(t *journal.Txn, child ID, task *Task, e *TaskEnd, m *Message, out *TaskEnded) (bool, error) {
	at, err := toolcall.CallOf(t.Reader(), task.Message, task.Index-1, "")
	if err != nil {
		return false, err
	}
	if at.Rec.Execution != pool.Running && at.Rec.Execution != pool.Uncertain {
		return false, nil
	}
	claim := &Claim{}
	claimed, err := record.GetRecord(t.Tx, record.ClaimBucket, record.CallKey(t.ID, task.Message, task.Index-1), claim)
	if err != nil || claimed && claim.Task != child {
		return false, err
	}
	holders, err := t.Holders(at.Rec.Home)
	if err != nil || len(holders) == 0 && e.State == TaskReturned {
		return false, err
	}
	if err := t.Tx.Delete(record.ClaimBucket, record.CallKey(t.ID, task.Message, task.Index-1)); err != nil {
		return false, err
	}
	execution := pool.Done
	if m.Result.IsError {
		execution = pool.Failed
	}
	if err := toolcall.StepCall(t, at, pool.Approved, execution, Decision{ByKind: ByProgram, ByName: t.Store.Program, Reason: "its sub-context " + e.State}); err != nil {
		return false, err
	}
	out.CallState = at.Rec.State()
	if len(holders) > 0 {
		m.Result.RequestID, m.Result.Tool = at.Rec.CallID, at.Rec.Tool
		p, err := toolcall.ResolveOn(t, holders[0], m)
		if err != nil {
			return false, err
		}
		out.Message, out.Position = p.Message, p.Position
	}
	done, err := t.Finish()
	if err == nil {
		out.Parent = *done
	}
	return true, err
}
