package intake

import (
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
	"github.com/fxamacker/cbor/v2"
)

// noResult is the reason of a call that an import closed because its file had no result.
const noResult = "no result"

// answered closes the calls whose results come only now: they were imported as calls without a result.
func (g *graft) answered() error {
	waiting := map[string][]int{} // nodes that were there, by the ids of such calls
	for i, n := range g.in.Nodes {
		r := n.Message.Result
		if g.home[i].Segment == 0 && r != nil {
			nodes := waiting[r.RequestID]
			delete(waiting, r.RequestID)
			for _, j := range nodes {
				if !g.above(j, i) {
					continue
				}
				if err := g.closeImported(g.in.Nodes[j].Message, r); err != nil {
					return err
				}
			}
		}
		for _, c := range n.Message.Calls {
			if g.home[i].Segment != 0 && c.Status == pool.Denied && c.Reason == noResult {
				waiting[c.ID] = append(waiting[c.ID], i)
			}
		}
	}
	return nil
}

// above tells whether the node up is one of those above the node i.
func (g *graft) above(up, i int) bool {
	for i > up {
		i = g.in.Nodes[i].Parent - 1
	}
	return i == up
}

// closeImported notes in a stored message that a call of it was run.
func (g *graft) closeImported(m *pool.Message, r *pool.Result) error {
	for i := range m.Calls {
		c := &m.Calls[i]
		if c.ID != r.RequestID || c.Status != pool.Denied || c.Reason != noResult {
			continue
		}
		c.Status, c.Execution, c.Reason = pool.Approved, pool.Done, ""
		if r.IsError {
			c.Execution = pool.Failed
		}
	}
	key := record.Under(g.t.ID, m.ID[:]...)
	old, err := g.t.Tx.Get(pool.Bucket, key)
	if err != nil {
		return err
	}
	if err := g.t.Remember(pool.Bucket, key, old); err != nil {
		return err
	}
	return find.PutMessage(g.t.Tx, g.t.ID, m, g.t.Now)
}

// same is how far a branch's messages are those of a path, and fits how far they are if what has grown counts as the same.
func (g *graft) same(ids []pool.ID, path []int) (same, fits int) {
	for same < len(ids) && same < len(path) && ids[same] == g.in.Nodes[path[same]].Message.ID {
		same++
	}
	for fits = same; fits < len(ids) && fits < len(path); fits++ {
		if id := g.in.Nodes[path[fits]].Message.ID; ids[fits] != id && g.replaced[ids[fits]] != id {
			break
		}
	}
	return same, fits
}

// held is a branch that a path of a conversation extends, and how much of the path is on it already.
type held struct {
	*branch.Branch
	same, fits int // see graft.same
}

// wantedKey is the key of the note that a context belongs to a conversation that was not there when it was imported.
func wantedKey(to SourceLink, child pool.ID) []byte {
	key := record.SourceKey("wanted", to.Format, to.Conversation)
	if child != (pool.ID{}) {
		key = append(key, child[:]...)
	}
	return key
}

// link sets the parent of a sub-context, or notes that it is wanted where that conversation is not known yet.
func link(st *journal.StoreTxn, t *journal.Txn, to SourceLink) error {
	var src record.SourceRecord
	ok, err := record.GetRecord(st.Tx, record.SourceBucket, record.SourceKey(to.Format, to.Conversation, ""), &src)
	if err != nil {
		return err
	}
	if ok {
		t.Rec.Parent = src.Context
		return nil
	}
	return record.PutRecord(st.Tx, record.SourceBucket, wantedKey(to, t.ID), record.SourceRecord{Context: t.ID})
}

// adopt puts the contexts below a new one that were imported before it and belong to it.
func adopt(st *journal.StoreTxn, in *Incoming, parent pool.ID) error {
	var children []pool.ID
	err := st.Tx.Scan(record.SourceBucket, kv.Prefix(wantedKey(SourceLink{in.Format, in.Conversation}, pool.ID{})), func(key, _ []byte) error {
		children = append(children, pool.ID(key[len(key)-16:]))
		return nil
	})
	if err != nil || in.Conversation == "" {
		return err
	}
	for _, id := range children {
		rec, _, err := record.GetContext(st.Tx, id)
		if err != nil {
			return err
		}
		if rec == nil || rec.Parent != (pool.ID{}) {
			continue
		}
		if err := setParent(st, id, parent); err != nil {
			return err
		}
	}
	return nil
}

// parentField is the key of contextRecord.Parent.
const parentField = 3

func setParent(st *journal.StoreTxn, id, parent pool.ID) error {
	child, err := journal.BeginAt(st.Store, st.Tx, id)
	if err != nil {
		return err
	}
	was, err := record.EncMode.Marshal(child.Rec.Parent)
	if err != nil {
		return err
	}
	child.Rec.Parent = parent
	st.Changes = append(st.Changes, journal.ContextChange(id, map[uint64]cbor.RawMessage{parentField: was}))
	st.Subjects = append(st.Subjects, child)
	return child.PutRecord()
}
