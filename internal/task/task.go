package task

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Start makes a sub-context of a context, from one of its branches ("" means the active one), and returns its id.
func Start(ctx context.Context, c *base.Conversation, branchName string, n record.NewTask) (pool.ID, error) {
	if err := journal.Ready(c.Store, &n.NewContext); err != nil {
		return pool.ID{}, err
	}
	if err := c.Store.Texts("goal", &n.Goal); err != nil {
		return pool.ID{}, err
	}
	n.Tools = slices.Clone(n.Tools)
	for i := range n.Tools {
		if err := c.Store.ReadyTool(&n.Tools[i]); err != nil {
			return pool.ID{}, err
		}
	}
	id := pool.NewID()
	_, err := journal.StoreOperation(ctx, c.Store, "sub start", func(st *journal.StoreTxn) error {
		parent, err := journal.Begin(c.Store, st.Tx, c.ID.String(), branchName)
		if err != nil {
			return err
		}
		return start(st, parent, id, &n)
	})
	return id, err
}

func start(st *journal.StoreTxn, parent *journal.Txn, id pool.ID, n *record.NewTask) error {
	task := n.Task
	task.Branch, task.BranchName, task.State, task.Depth = parent.Target.ID, parent.Target.Name, record.TaskRunning, 1
	if up := parent.Rec.Task; up != nil {
		task.Depth = up.Depth + 1
		task.MaxDepth = cmp.Or(task.MaxDepth, up.MaxDepth)
		if up.State != record.TaskRunning {
			return base.Conflict("the sub-context %q is %s: it cannot start another", parent.Rec.Title, up.State)
		}
	}
	if task.MaxDepth > 0 && task.Depth > task.MaxDepth {
		return base.Conflict("a sub-context here would be at level %d; the limit is %d", task.Depth, task.MaxDepth)
	}
	if n.Call != nil {
		task.Message, task.Index = n.Call.Call.Message, n.Call.Call.Index
		claim, err := toolcall.Owned(st.Tx, n.Call)
		if err != nil {
			return err
		}
		claim.Task = id
		if err := base.PutRecord(st.Tx, base.ClaimBucket, base.CallKey(parent.ID, task.Message, task.Index-1), claim); err != nil {
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
		if err := base.PutRecord(st.Tx, base.ToolBucket, base.Under(id, []byte(tool.Name)...), tool); err != nil {
			return err
		}
	}
	return st.Made(t, false)
}

// Read returns the state of a sub-context. It returns ErrInvalid if the context is none.
func Read(ctx context.Context, c *base.Conversation) (*record.TaskInfo, error) {
	var out *record.TaskInfo
	err := view.At(ctx, c, func(tx kv.Tx, rec *base.ContextRecord) error {
		if rec.Task == nil {
			return base.Invalidf("%q is not a sub-context", rec.Title)
		}
		info, err := view.InfoOf(c.Store, tx, c.ID, rec)
		if err != nil {
			return err
		}
		out = &record.TaskInfo{ContextInfo: info, Task: *rec.Task}
		if err := lookUpInfo(out, tx, rec); err != nil {
			return err
		}
		if out.Open, err = openIn(tx, c.ID); err == nil && out.Open > 0 && out.State == record.TaskRunning {
			out.State = record.TaskWaiting
		}
		return err
	})
	return out, err
}

// lookUpInfo checks the parent.
func lookUpInfo(i *record.TaskInfo, tx kv.Tx, rec *base.ContextRecord) error {
	parent, _, err := base.GetContext(tx, rec.Parent)
	if err != nil {
		return err
	}
	if parent != nil && parent.Task != nil && parent.Task.State != record.TaskRunning {
		i.ParentState = parent.Task.State
	}
	if i.ParentGone = parent == nil || parent.Trashed != 0; i.ParentGone {
		return nil
	}
	b, err := view.BranchByID(tx, rec.Parent, rec.Task.Branch)
	i.BranchGone = b == nil
	return err
}

// openIn counts the open calls on a context's branches.
func openIn(tx kv.Tx, id pool.ID) (int, error) {
	n := 0
	err := branchstore.List(tx, id, func(b *branch.Branch) error {
		calls, err := view.UnansweredIn(tx, id, b.Pieces)
		n += len(calls)
		return err
	})
	return n, err
}

// endWords returns what a model reads about the end.
func endWords(e *record.TaskEnd) string {
	switch {
	case e.Summary == "" && e.State != record.TaskReturned:
		return "the task was " + e.State
	case !e.Unfinished:
		return e.Summary
	case e.Partial == "":
		return "The task failed, and there is no result: " + e.Summary
	}
	return "The task failed: " + e.Summary + ". Its answer is not whole. As far as it came:\n" + e.Partial
}

// messageOf returns the user's message about the end of a task that no call waits for.
func messageOf(e *record.TaskEnd, title string) *pool.Message {
	if e.State == record.TaskReturned {
		return pool.NewText(pool.User, "The task \""+title+"\" returned:\n"+endWords(e))
	}
	return pool.NewText(pool.User, "The task \""+title+"\" "+e.State+":\n"+endWords(e))
}

// Finish ends the task, and tells the parent: both or neither.
func Finish(ctx context.Context, c *base.Conversation, e record.TaskEnd) (*record.TaskEnded, error) {
	if err := c.Store.Texts("summary", &e.Summary, &e.Partial); err != nil {
		return nil, err
	}
	m, err := endMessage(ctx, c, &e)
	if err != nil {
		return nil, err
	}
	if err := c.Store.Ready([]*pool.Message{m}); err != nil {
		return nil, err
	}
	what := map[string]string{record.TaskReturned: "sub return", record.TaskFailed: "sub fail", record.TaskAbandoned: journal.GiveUpWhat}[e.State]
	var out *record.TaskEnded
	var child *record.Committed
	command := journal.CommandOf(ctx)
	err = command.Store(func() (err error) {
		child, err = journal.StoreOperation(ctx, c.Store, what, func(st *journal.StoreTxn) error {
			out = &record.TaskEnded{}
			message, result := *m, m.Result
			if result != nil {
				r := *result
				message.Result = &r
			}
			return finish(st, c.ID, &e, &message, command, out)
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Child = *child
	return out, nil
}

// endMessage returns the message that the parent gets.
func endMessage(ctx context.Context, c *base.Conversation, e *record.TaskEnd) (*pool.Message, error) {
	if e.State != record.TaskReturned && e.State != record.TaskFailed && e.State != record.TaskAbandoned {
		return nil, base.Invalidf("a task cannot end as %q", e.State)
	}
	info, err := Read(ctx, c)
	if err != nil {
		return nil, err
	}
	link, err := json.Marshal(map[string]any{"context": c.ID, "state": e.State})
	if err != nil {
		return nil, err
	}
	m := messageOf(e, info.Title)
	if info.Message != (pool.ID{}) {
		m = &pool.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "call", Text: endWords(e), IsError: e.State != record.TaskReturned}}
	}
	m.Kind, m.AppData = "summary", map[string]json.RawMessage{"subtask": link}
	return m, nil
}

func finish(st *journal.StoreTxn, id pool.ID, e *record.TaskEnd, m *pool.Message, command *journal.Command, out *record.TaskEnded) error {
	child, err := journal.BeginAt(st.Store, st.Tx, id)
	if err != nil {
		return err
	}
	task := child.Rec.Task
	if task == nil || task.State != record.TaskRunning {
		state := "no sub-context"
		if task != nil {
			state = task.State
		}
		return base.Conflict("%q is %s: it cannot be %s", child.Rec.Title, state, e.State)
	}
	if err := tellParent(st, child, e, m, command, out); err != nil {
		return err
	}
	if e.State == record.TaskAbandoned {
		if child, err = giveUp(st, id, e.Summary); err != nil {
			return err
		}
	}
	ended := *task
	ended.State, ended.Summary, ended.Ended, ended.Reason = e.State, out.Message, st.Now, ""
	if e.State != record.TaskReturned {
		ended.Reason = e.Summary
	}
	out.Kept = e.Keep || task.Keep || e.State == record.TaskFailed
	return st.EndTask(child, &ended, out.Kept)
}

// giveUp cancels the calls of a task, as an operation of its own, and returns the task's new state.
func giveUp(st *journal.StoreTxn, id pool.ID, reason string) (*journal.Txn, error) {
	t, err := journal.BeginAt(st.Store, st.Tx, id)
	if err != nil {
		return nil, err
	}
	t.What, t.Now = journal.GiveUpWhat, st.Now
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
	return journal.BeginAt(st.Store, st.Tx, id)
}

// tellParent puts the message about a task's end on the parent branch.
func tellParent(st *journal.StoreTxn, child *journal.Txn, e *record.TaskEnd, m *pool.Message, command *journal.Command, out *record.TaskEnded) error {
	task := child.Rec.Task
	parent, _, err := base.GetContext(st.Tx, child.Rec.Parent)
	if err != nil {
		return err
	}
	if parent == nil || parent.Trashed != 0 {
		if e.State != record.TaskReturned {
			return nil
		}
		return base.Conflict("the parent of %q is gone: the sub-context is kept, and chatctx sub abandon ends it", child.Rec.Title)
	}
	t, err := journal.BeginAt(st.Store, st.Tx, child.Rec.Parent)
	if err != nil {
		return err
	}
	t.What = "sub " + e.State
	if task.Message != (pool.ID{}) {
		if done, err := answerTask(t, child.ID, task, e, m, command, out); done || err != nil {
			return err
		}
	}
	if e.State != record.TaskReturned && !e.Unfinished {
		return nil
	}
	if t.Target, err = taskBranch(t, child, e.Branch); err != nil {
		if e.State == record.TaskReturned {
			return err
		}
		return nil // it failed, and nobody is there to read it
	}
	if m.Result != nil { // its call was answered otherwise: the end is reported all the same
		m.Role, m.Content, m.Result = pool.User, messageOf(e, child.Rec.Title).Content, nil
	}
	placed, err := t.Append(t.Target, []*pool.Message{m})
	if err != nil {
		return err
	}
	out.Message, out.Position = placed[0].Message, placed[0].Position
	command.Join(t)
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
		return nil, base.Conflict("the branch %q, from which %q was started, is gone: chatctx sub return --to-branch BRANCH returns to another one", child.Rec.Task.BranchName, child.Rec.Title)
	}
	return t.Branch(b.Name)
}

// answerTask answers the call that started a task, if that still runs for it or for nobody.
func answerTask(t *journal.Txn, child pool.ID, task *record.Task, e *record.TaskEnd, m *pool.Message, command *journal.Command, out *record.TaskEnded) (bool, error) {
	at, err := toolcall.CallOf(t.Reader(), task.Message, task.Index-1, "")
	if err != nil {
		return false, err
	}
	if at.Rec.Execution != pool.Running && at.Rec.Execution != pool.Uncertain {
		return false, nil
	}
	claim := &record.Claim{}
	claimed, err := base.GetRecord(t.Tx, base.ClaimBucket, base.CallKey(t.ID, task.Message, task.Index-1), claim)
	if err != nil || claimed && claim.Task != child {
		return false, err
	}
	holders, err := t.Holders(at.Rec.Home)
	if err != nil || len(holders) == 0 && e.State == record.TaskReturned {
		return false, err
	}
	if err := t.Tx.Delete(base.ClaimBucket, base.CallKey(t.ID, task.Message, task.Index-1)); err != nil {
		return false, err
	}
	execution := pool.Done
	if m.Result.IsError {
		execution = pool.Failed
	}
	if err := toolcall.StepCall(t, at, pool.Approved, execution, record.Decision{Decider: pool.Decider{Kind: record.ByProgram, Name: t.Store.Program}, Reason: "its sub-context " + e.State}); err != nil {
		return false, err
	}
	out.CallState = base.StateOf(at.Rec)
	if len(holders) > 0 {
		m.Result.RequestID, m.Result.Tool = at.Rec.CallID, at.Rec.Tool
		p, err := toolcall.ResolveOn(t, holders[0], m)
		if err != nil {
			return false, err
		}
		out.Message, out.Position = p.Message, p.Position
	}
	command.Join(t)
	done, err := t.Finish()
	if err == nil {
		out.Parent = *done
	}
	return true, err
}

// copyTools copies the tools of one context to another.
func copyTools(tx kv.RwTx, from, to pool.ID) error {
	type pair struct{ name, value []byte }
	var all []pair
	err := tx.Scan(base.ToolBucket, kv.Prefix(from[:]), func(key, value []byte) error {
		all = append(all, pair{append([]byte(nil), key[16:]...), append([]byte(nil), value...)})
		return nil
	})
	for _, r := range all {
		if err == nil {
			err = tx.Put(base.ToolBucket, base.Under(to, r.name...), r.value)
		}
	}
	return err
}
