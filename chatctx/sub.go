package chatctx

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Task is what makes a context a sub-context: what it is to do for its parent, and how far it has come. Package subtask runs it.
type Task struct {
	Goal       string `cbor:"1,keyasint,omitempty"`
	Branch     ID     `cbor:"2,keyasint"` // of the parent, that it was started from
	BranchName string `cbor:"3,keyasint"` // its name then
	// Message and Index (from 1) are the call that started it; its summary is that call's result. Zero: no call did.
	Message ID     `cbor:"4,keyasint,omitzero"`
	Index   int    `cbor:"5,keyasint,omitempty"`
	State   string `cbor:"6,keyasint"` // one of the Task… constants
	// Depth is how many parents it has. The limits are on how deep tasks of it may go, on rounds with the model and on tokens; 0: none.
	Depth     int   `cbor:"7,keyasint"`
	MaxDepth  int   `cbor:"8,keyasint,omitempty"`
	MaxRounds int   `cbor:"9,keyasint,omitempty"`
	MaxTokens int64 `cbor:"10,keyasint,omitempty"`
	// OwnRules: the rules of the parent do not hold. Keep: it stays when it has ended, instead of going to the trash.
	OwnRules bool      `cbor:"11,keyasint,omitempty"`
	Keep     bool      `cbor:"12,keyasint,omitempty"`
	Summary  ID        `cbor:"13,keyasint,omitzero"` // the message on the parent branch that it ended with; zero: none
	Reason   string    `cbor:"14,keyasint,omitempty"`
	Ended    pool.Time `cbor:"15,keyasint,omitempty"`
}

// The states of a task. One that runs and whose calls wait is shown as waiting.
const (
	TaskRunning   = "running"
	TaskWaiting   = "waiting" // never stored
	TaskReturned  = "returned"
	TaskFailed    = "failed"
	TaskAbandoned = "abandoned"
)

// NewTask is what a sub-context begins with.
type NewTask struct {
	NewContext
	Task
	// Tools, if not nil, are the tools in place of copies of the parent's.
	Tools []Tool
	// Call is the claim of the call that starts it, nil for none. The call then runs until the task ends, whatever becomes of this process.
	Call *CallClaim
}

// StartTask makes a sub-context of a context, from one of its branches ("" the active one). It does not become the current context.
func (c *ChatContext) StartTask(ctx context.Context, branchName string, n NewTask) (*ChatContext, error) {
	if err := n.NewContext.ready(c.store); err != nil {
		return nil, err
	}
	if err := c.store.texts("goal", &n.Goal); err != nil {
		return nil, err
	}
	n.Tools = slices.Clone(n.Tools)
	for i := range n.Tools {
		if err := n.Tools[i].ready(c.store); err != nil {
			return nil, err
		}
	}
	id := pool.NewID()
	_, err := c.store.storeOperation(ctx, "sub start", func(st *storeTxn) error {
		parent, err := c.store.begin(st.tx, c.ID.String(), branchName)
		if err != nil {
			return err
		}
		return st.startTask(parent, id, &n)
	})
	if err != nil {
		return nil, err
	}
	return &ChatContext{ID: id, store: c.store}, nil
}

func (st *storeTxn) startTask(parent *txn, id ID, n *NewTask) error {
	task := n.Task
	task.Branch, task.BranchName, task.State, task.Depth = parent.target.ID, parent.target.Name, TaskRunning, 1
	if up := parent.rec.Task; up != nil {
		task.Depth = up.Depth + 1
		if task.MaxDepth == 0 {
			task.MaxDepth = up.MaxDepth
		}
		if up.State != TaskRunning {
			return conflict("the sub-context %q is %s: it starts no more", parent.rec.Title, up.State)
		}
	}
	if task.MaxDepth > 0 && task.Depth > task.MaxDepth {
		return conflict("a sub-context here would be the %d. level, the limit is %d", task.Depth, task.MaxDepth)
	}
	if n.Call != nil {
		task.Message, task.Index = n.Call.Call.Message, n.Call.Call.Index
		claim, err := n.Call.held(st.tx)
		if err != nil {
			return err
		}
		claim.Task = id
		if err := putRecord(st.tx, claimBucket, callKey(parent.id, task.Message, task.Index-1), claim); err != nil {
			return err
		}
	}
	t, err := st.newContext(id, n.Title, parent.id, n.Settings)
	if err != nil {
		return err
	}
	t.rec.Task = &task
	if err := st.beginWith(t, &n.NewContext); err != nil {
		return err
	}
	if n.Tools == nil {
		if err := copyTools(st.tx, parent.id, id); err != nil {
			return err
		}
	}
	for _, tool := range n.Tools {
		if err := putRecord(st.tx, toolBucket, under(id, []byte(tool.Name)...), tool); err != nil {
			return err
		}
	}
	return st.made(t, false)
}

// beginWith gives a new context its prompts and its first messages.
func (st *storeTxn) beginWith(t *txn, n *NewContext) (err error) {
	b := t.target
	if b.System, err = t.putPrompt(n.System); err != nil {
		return err
	}
	if b.Prompt, err = t.putPrompt(n.Prompt); err != nil {
		return err
	}
	if _, err := t.append(b, n.Messages); err != nil {
		return err
	}
	return branch.Put(t.tx, t.id, b)
}

// TaskInfo is a sub-context as it is now.
type TaskInfo struct {
	*ContextInfo
	Task
	State      string // as stored, or TaskWaiting
	Open       int    // its calls that wait or run
	ParentGone bool   // the parent was removed for good, or lies in the trash
	BranchGone bool   // the branch that it was started from is there no more
}

// TaskInfo says how far a sub-context has come. ErrInvalid for a context that is none.
func (c *ChatContext) TaskInfo(ctx context.Context) (*TaskInfo, error) {
	var out *TaskInfo
	err := c.view(ctx, func(tx kv.Tx, rec *contextRecord) error {
		if rec.Task == nil {
			return invalid("%q is no sub-context", rec.Title)
		}
		info, err := infoOf(tx, c.ID, rec)
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

// lookUp looks at the parent.
func (i *TaskInfo) lookUp(tx kv.Tx, rec *contextRecord) error {
	parent, _, err := getContext(tx, rec.Parent)
	if err != nil {
		return err
	}
	if i.ParentGone = parent == nil || parent.Trashed != 0; i.ParentGone {
		return nil
	}
	b, err := branchByID(tx, rec.Parent, rec.Task.Branch)
	i.BranchGone = b == nil
	return err
}

// branchByID finds a branch by its id, nil for none.
func branchByID(tx kv.Tx, ctx, id ID) (*branch.Branch, error) {
	b, err := branch.Get(tx, ctx, id)
	if b != nil && b.Removed != 0 {
		b = nil
	}
	return b, err
}

// openIn counts the open calls that a context's branches hold.
func openIn(tx kv.Tx, id ID) (int, error) {
	n := 0
	err := branch.List(tx, id, func(b *branch.Branch) error {
		calls, err := unansweredIn(tx, id, b.Pieces)
		n += len(calls)
		return err
	})
	return n, err
}

// TaskEnd is how a task ends.
type TaskEnd struct {
	State   string // TaskReturned, TaskFailed or TaskAbandoned
	Summary string // what the parent gets; of a task that did not return, why
	// Branch of the parent takes the summary, in place of the one that the task was started from; "": that one.
	Branch string
	Keep   bool // do not move it to the trash, also where the task does not say so
}

// TaskEnded is what the end of a task made.
type TaskEnded struct {
	Parent    Committed // on the parent's journal; Operation "" where it got no message
	Child     Committed // on the store's
	Message   ID        // zero: none
	Position  int
	Kept      bool
	CallState string // of the call that started it; "": none
}

// EndTask ends the task: the message on the parent branch and the child's end are one transaction. Where a call started the task, the summary is its result; else a task that returned
// puts a user's message there that names it, and one that did not puts nothing. ErrConflict where it has ended already, and where parent or branch are gone: then nothing is lost, and a task may
// return to another branch, or be abandoned.
func (c *ChatContext) EndTask(ctx context.Context, e TaskEnd) (*TaskEnded, error) {
	if err := c.store.texts("summary", &e.Summary); err != nil {
		return nil, err
	}
	m, err := c.endMessage(ctx, &e)
	if err != nil {
		return nil, err
	}
	if err := c.store.ready([]*Message{m}); err != nil {
		return nil, err
	}
	var out *TaskEnded
	child, err := c.store.storeOperation(ctx, "sub "+map[string]string{TaskReturned: "return", TaskFailed: "fail", TaskAbandoned: "abandon"}[e.State], func(st *storeTxn) error {
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

// endMessage is what the parent gets.
func (c *ChatContext) endMessage(ctx context.Context, e *TaskEnd) (*Message, error) {
	if e.State != TaskReturned && e.State != TaskFailed && e.State != TaskAbandoned {
		return nil, invalid("a task does not end as %q", e.State)
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

func (s *Store) endTask(st *storeTxn, id ID, e *TaskEnd, m *Message, out *TaskEnded) error {
	child, err := s.beginAt(st.tx, id)
	if err != nil {
		return err
	}
	task := child.rec.Task
	if task == nil || task.State != TaskRunning {
		state := "no sub-context"
		if task != nil {
			state = task.State
		}
		return conflict("%q is %s: it cannot be %s", child.rec.Title, state, e.State)
	}
	if err := s.tellParent(st, child, e, m, out); err != nil {
		return err
	}
	ended := *task
	ended.State, ended.Summary, ended.Ended, ended.Reason = e.State, out.Message, st.now, ""
	if e.State != TaskReturned {
		ended.Reason = e.Summary
	}
	child.rec.Task = &ended
	if out.Kept = e.Keep || task.Keep || e.State != TaskReturned; out.Kept {
		return child.writeContext()
	}
	return st.trash(child, st.now)
}

// tellParent puts the message about a task's end on the parent branch.
func (s *Store) tellParent(st *storeTxn, child *txn, e *TaskEnd, m *Message, out *TaskEnded) error {
	task := child.rec.Task
	parent, _, err := getContext(st.tx, child.rec.Parent)
	if err != nil {
		return err
	}
	if parent == nil || parent.Trashed != 0 {
		if e.State != TaskReturned {
			return nil
		}
		return conflict("the parent of %q is gone: nothing of it is lost, chatctx sub abandon ends it", child.rec.Title)
	}
	t, err := s.beginAt(st.tx, child.rec.Parent)
	if err != nil {
		return err
	}
	t.what = "sub " + e.State
	if task.Message != (ID{}) {
		if done, err := t.answerTask(child.id, task, e, m, out); done || err != nil {
			return err
		}
	}
	if e.State != TaskReturned {
		return nil
	}
	if t.target, err = t.taskBranch(child, e.Branch); err != nil {
		return err
	}
	if m.Result != nil { // its call was answered otherwise: the summary is told all the same
		m.Role, m.Content, m.Result = pool.User, []pool.Part{{Type: pool.TextPart, Text: "The task \"" + child.rec.Title + "\" returned:\n" + e.Summary}}, nil
	}
	placed, err := t.append(t.target, []*Message{m})
	if err != nil {
		return err
	}
	out.Message, out.Position = placed[0].Message, placed[0].Position
	done, err := t.finish()
	if err == nil {
		out.Parent = *done
	}
	return err
}

// taskBranch is the parent's branch that takes a summary.
func (t *txn) taskBranch(child *txn, name string) (*branch.Branch, error) {
	if name != "" {
		return t.branch(name)
	}
	b, err := branchByID(t.tx, t.id, child.rec.Task.Branch)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, conflict("the branch %q that %q was started from is gone: nothing of it is lost, chatctx sub return --to BRANCH returns to another", child.rec.Task.BranchName, child.rec.Title)
	}
	return t.branch(b.Name)
}

// answerTask answers the call that started a task, if that still runs for it or for nobody.
func (t *txn) answerTask(child ID, task *Task, e *TaskEnd, m *Message, out *TaskEnded) (bool, error) {
	at, err := t.reader().callOf(task.Message, task.Index-1, "")
	if err != nil {
		return false, err
	}
	if at.rec.Execution != pool.Running && at.rec.Execution != pool.Uncertain {
		return false, nil
	}
	claim := &Claim{}
	claimed, err := getRecord(t.tx, claimBucket, callKey(t.id, task.Message, task.Index-1), claim)
	if err != nil || claimed && claim.Task != child {
		return false, err
	}
	holders, err := t.holders(at.rec.Home)
	if err != nil || len(holders) == 0 && e.State == TaskReturned {
		return false, err
	}
	if err := t.tx.Delete(claimBucket, callKey(t.id, task.Message, task.Index-1)); err != nil {
		return false, err
	}
	execution := pool.Done
	if m.Result.IsError {
		execution = pool.Failed
	}
	if err := t.stepCall(at, pool.Approved, execution, Decision{ByKind: ByProgram, ByName: t.store.program, Reason: "its sub-context " + e.State}); err != nil {
		return false, err
	}
	out.CallState = at.rec.state()
	if len(holders) > 0 {
		m.Result.RequestID, m.Result.Tool = at.rec.CallID, at.rec.Tool
		p, err := t.resolveOn(holders[0], m)
		if err != nil {
			return false, err
		}
		out.Message, out.Position = p.Message, p.Position
	}
	done, err := t.finish()
	if err == nil {
		out.Parent = *done
	}
	return true, err
}
