package intake

import (
	"crypto/sha256"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// Links between conversations. A link to something that is not known yet is noted in the source bucket and made when that arrives, so that the order of
// imports makes no difference. The notes stay, since what they name may go and come again.

// linkAll makes the links of a conversation that was not there, or whose context has no parent yet, and those that wait for it.
func linkAll(st *journal.StoreTxn, t *journal.Txn, in *Incoming) error {
	if in.Parent == nil && in.Follows == "" || t.Rec.Parent != (pool.ID{}) && in.Answers == "" {
		return nil
	}
	var parent pool.ID
	key := followsKey(in.Format, in.Follows)
	if in.Parent != nil {
		key = parentKey(*in.Parent)
		var src base.SourceRecord
		if _, err := base.GetRecord(st.Tx, base.SourceBucket, base.SourceKey(in.Parent.Format, in.Parent.Conversation, ""), &src); err != nil {
			return err
		}
		parent = src.Context
	} else {
		var err error
		if parent, err = in.awaited.contextOf(st.Tx, in); err != nil {
			return err
		}
	}
	circle, err := below(st.Tx, parent, t.ID)
	if err != nil {
		return err
	}
	note, err := noteOf(st.Tx, append(key, t.ID[:]...), in)
	if err != nil {
		return err
	}
	if note.Context = t.ID; parent != (pool.ID{}) && !circle {
		task, changed, err := placed(st.Tx, t.Rec, parent, note)
		if err != nil {
			return err
		}
		if changed {
			t.Rec.Parent, t.Rec.Task, t.OnContext = parent, task, true
		}
	}
	in.awaited.note(in)
	return base.PutRecord(st.Tx, base.SourceBucket, append(key, t.ID[:]...), note)
}

// noteOf returns what is noted of a conversation that names its parent. Of several states of it the newest says when it ended.
func noteOf(tx kv.Tx, key []byte, in *Incoming) (note base.SourceRecord, err error) {
	if in.Answers == "" {
		return note, nil
	}
	_, err = base.GetRecord(tx, base.SourceBucket, key, &note)
	note.Call, note.Dated = in.Answers, max(note.Dated, in.dated(), 1)
	return note, err
}

// placed returns the task that a context has below a parent, by the note about it, and reports whether it stands there otherwise. A context that is somewhere
// else, or a task that was started here, stays as it is.
func placed(tx kv.Tx, rec *base.ContextRecord, parent pool.ID, note base.SourceRecord) (task *record.Task, changed bool, err error) {
	task = rec.Task
	if rec.Parent != (pool.ID{}) && rec.Parent != parent || task != nil && !task.Linked {
		return task, false, nil
	}
	found, err := answering(tx, parent, note)
	if found == nil || err != nil {
		return task, rec.Parent != parent, err
	}
	if rec.Task != nil {
		found.Unknown = rec.Task.Unknown
	}
	return found, rec.Parent != parent || rec.Task == nil || *rec.Task != *found, nil
}

// answering returns the task of a context that answered a call of its parent, nil if the note names no call, or one that the parent does not have.
func answering(tx kv.Tx, parent pool.ID, note base.SourceRecord) (*record.Task, error) {
	if note.Call == "" {
		return nil, nil
	}
	task := &record.Task{State: record.TaskAbandoned, Reason: noResult, Depth: 1, MaxDepth: record.DefaultDepth, Keep: true, Linked: true, Ended: note.Dated}
	var home pool.Home
	err := poolstore.Scan(tx, parent, func(id pool.ID, m *pool.Message, err error) error {
		if err != nil {
			return err
		}
		if r := m.Result; r != nil && r.RequestID == note.Call && task.Summary == (pool.ID{}) {
			task.State, task.Reason, task.Summary = record.TaskReturned, "", id
			if r.IsError {
				task.State = record.TaskFailed
			}
		}
		for i := range m.Calls {
			if m.Calls[i].ID == note.Call && task.Index == 0 {
				task.Message, task.Index, home = id, i+1, m.Home
			}
		}
		return nil
	})
	if err != nil || task.Index == 0 {
		return nil, err
	}
	rec, _, err := base.GetContext(tx, parent)
	if err != nil {
		return nil, err
	}
	var active pool.ID // of a parent that comes in just now, the branch that was made first
	if rec != nil {
		active = rec.Active
		if up := rec.Task; up != nil {
			task.Depth, task.MaxDepth = up.Depth+1, up.MaxDepth
		}
	}
	return task, onBranch(tx, parent, active, home, task)
}

// onBranch sets the branch of a task: the first that holds the call, the active one before others.
func onBranch(tx kv.Tx, parent, active pool.ID, call pool.Home, task *record.Task) error {
	holds := false
	return branchstore.List(tx, parent, func(b *branch.Branch) error {
		has := branchstore.Place(b.Pieces, call.Segment, call.Position) >= 0
		if has && (!holds || b.ID == active) || !holds && b.ID == active {
			task.Branch, task.BranchName, holds = b.ID, b.Name, holds || has
		}
		return nil
	})
}

// below reports whether a context is top or lies below it.
func below(tx kv.Tx, id, top pool.ID) (bool, error) {
	for range 1000 {
		if id == top || id == (pool.ID{}) {
			return id == top, nil
		}
		rec, _, err := base.GetContext(tx, id)
		if err != nil || rec == nil {
			return false, err
		}
		id = rec.Parent
	}
	return true, nil
}

// parentKey begins the keys of notes about contexts that belong to a conversation, followsKey those about contexts that continue a message.
func parentKey(to record.SourceLink) []byte {
	return base.SourceKey("wanted", to.Format, to.Conversation)
}
func followsKey(format, node string) []byte {
	return base.SourceKey("followed", format, node)
}

// adopt puts contexts below the one they belong to, if they were imported before it.
func adopt(st *journal.StoreTxn, to record.SourceLink, parent pool.ID) error {
	if to.Conversation == "" {
		return nil
	}
	children, err := waiting(st.Tx, parentKey(to), nil)
	if err != nil {
		return err
	}
	return putBelow(st, children, parent)
}

// adoptFollowers puts the contexts that continue a message of a context below it.
func adoptFollowers(st *journal.StoreTxn, in *Incoming, parent pool.ID) error {
	var children []base.SourceRecord
	var err error
	for _, n := range in.Nodes {
		if children, err = waiting(st.Tx, followsKey(in.Format, n.ID), children); err != nil {
			return err
		}
	}
	return putBelow(st, children, parent)
}

// has reports whether a key of the source bucket has the prefix.
func has(tx kv.Tx, prefix []byte) (any bool, err error) {
	err = tx.Scan(base.SourceBucket, kv.Prefix(prefix), func(_, _ []byte) error {
		any = true
		return kv.ErrStop
	})
	return any, err
}

// waiting appends the notes about contexts that stand under a key.
func waiting(tx kv.Tx, key []byte, children []base.SourceRecord) ([]base.SourceRecord, error) {
	err := tx.Scan(base.SourceBucket, kv.Prefix(key), func(k, value []byte) error {
		if len(k) != len(key)+16 {
			return nil
		}
		var note base.SourceRecord
		err := base.DecodeKept(base.SourceBucket, value, &note)
		children = append(children, note)
		return err
	})
	return children, err
}

// putBelow gives a parent to those contexts that have none, and their tasks to those that answered a call of it.
func putBelow(st *journal.StoreTxn, children []base.SourceRecord, parent pool.ID) error {
	for _, note := range children {
		rec, _, err := base.GetContext(st.Tx, note.Context)
		if err != nil {
			return err
		}
		if rec == nil || rec.Parent != (pool.ID{}) && note.Call == "" {
			continue
		}
		if circle, err := below(st.Tx, parent, note.Context); err != nil || circle {
			return err
		}
		task, changed, err := placed(st.Tx, rec, parent, note)
		if err == nil && changed {
			err = setParent(st, note.Context, parent, task)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parentFields are the keys of a context's record for its parent and its task.
var parentFields = map[uint64]bool{3: true, 20: true}

// setParent puts a context below another, with a task where it has one there.
func setParent(st *journal.StoreTxn, id, parent pool.ID, task *record.Task) error {
	for _, made := range st.Subjects {
		if made.ID == id && made.Rec.Updated == 0 { // it came in just now, and is written at the end
			if made.Rec.Parent = parent; task != nil {
				made.Rec.Task = task
			}
			return made.PutRecord()
		}
	}
	child, err := journal.BeginAt(st.Store, st.Tx, id)
	if err != nil {
		return err
	}
	if child.Rec.Parent = parent; task != nil {
		child.Rec.Task = task
	}
	now, err := base.EncodeRecord(child.Rec)
	if err != nil {
		return err
	}
	was, err := base.ChangedFields(child.RecRaw, now, parentFields)
	if err != nil {
		return err
	}
	st.Changes = append(st.Changes, journal.ContextChange(id, was))
	st.Subjects = append(st.Subjects, child)
	if err := st.Tx.Delete(base.RecentBucket, base.RecentKey(child.Rec.ListedAt(), id)); err != nil {
		return err
	}
	child.Dated, child.Rec.Updated = child.Rec.Updated, 0 // where it stands is no change of what it says: Finish puts it back where it was
	return child.PutRecord()
}

// linkCopy links a node's message to the message that it is a copy of. It also notes that, for when that message arrives later.
func linkCopy(st *journal.StoreTxn, in *Incoming, context pool.ID, n *record.Node) error {
	if n.CopyOf == (record.NodeLink{}) || n.CopyOf.Conversation == in.Conversation {
		return nil
	}
	at, err := st.Tx.Get(base.SourceBucket, base.SourceKey(in.Format, n.CopyOf.Conversation, n.CopyOf.Node))
	if err != nil {
		return err
	}
	n.Message.CopiedFrom = nil // an earlier run of the transaction may have set it
	if of, ok := base.ParseSourceNode(at); ok {
		n.Message.CopiedFrom = &of.Message
	}
	if in.awaited != nil {
		in.awaited.copied[record.SourceLink{Format: in.Format, Conversation: n.CopyOf.Conversation}] = true
	}
	key := slices.Concat(copyKey(in.Format, n.CopyOf), context[:], n.Message.ID[:])
	return st.Tx.Put(base.SourceBucket, key, base.SourceNode{Context: context, Message: n.Message.ID}.Value())
}

// copyKey begins the keys of notes about copies of a message or, without a node, of any message of a conversation.
func copyKey(format string, of record.NodeLink) []byte {
	key := base.SourceKey("copy", format, of.Conversation)
	if of.Node != "" {
		sum := sha256.Sum256([]byte(of.Node))
		key = append(key, sum[:16]...)
	}
	return key
}

// linkCopies links copies that were imported before to this conversation's messages.
func linkCopies(st *journal.StoreTxn, in *Incoming) error {
	if in.Conversation == "" {
		return nil
	}
	for i := range in.Nodes {
		n := &in.Nodes[i]
		if n.ID == "" {
			continue
		}
		var copies []base.SourceNode
		err := st.Tx.Scan(base.SourceBucket, kv.Prefix(copyKey(in.Format, record.NodeLink{Conversation: in.Conversation, Node: n.ID})), func(_, value []byte) error {
			if c, ok := base.ParseSourceNode(value); ok {
				copies = append(copies, c)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, c := range copies {
			if err := setCopy(st, c, n.Message.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// setCopy makes a stored message name its original. It is on no journal, since it stays true whatever becomes of the original.
func setCopy(st *journal.StoreTxn, c base.SourceNode, of pool.ID) error {
	m, err := poolstore.Get(st.Tx, c.Context, c.Message)
	if err != nil || m == nil || m.CopiedFrom != nil && *m.CopiedFrom == of {
		return err
	}
	m.CopiedFrom = &of
	return find.PutMessage(st.Tx, c.Context, m, st.Now)
}
