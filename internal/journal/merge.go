package journal

import (
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// SummaryKind is the kind of the message that a merge puts in the place of a branch's messages.
const SummaryKind = "summary"

// MergeBranch appends to the target what src holds after their common ancestor and the target does not hold yet, or, if summary is not nil, that one message
// in its place. It changes nothing if there is nothing to bring.
func (t *Txn) MergeBranch(src *branch.Branch, summary *pool.Message, res *record.Step) error {
	n, err := branchstore.Shared(t.Tx, t.ID, src.Pieces, t.Target.Pieces)
	if err != nil {
		return err
	}
	news, err := t.lacking(src, n)
	if err != nil || len(news) == 0 {
		return err
	}
	if summary == nil {
		return t.Bring(news, res)
	}
	head, err := branchstore.Head(t.Tx, t.ID, src.Pieces)
	if err != nil {
		return err
	}
	if known, err := t.summed(head, branchstore.Slice(t.Target.Pieces, n, branchstore.Len(t.Target))); err != nil || known {
		return err
	}
	m := *summary
	m.CopiedFrom = &head
	res.Placed, err = t.Append(t.Target, []*pool.Message{&m})
	return err
}

// lacking returns what src holds after the first n messages, which are the target's too, and the target does not. A message whose calls wait was copied when
// it came; the copy has its own decisions and results, so that the original's results are left out with it.
func (t *Txn) lacking(src *branch.Branch, n int) ([]branch.Piece, error) {
	there := branchstore.Slice(src.Pieces, n, branchstore.Len(src))
	held, err := t.heldAfter(n)
	if err != nil || len(held) == 0 {
		return there, err
	}
	ids, err := branchstore.IDs(t.Tx, t.ID, there)
	if err != nil {
		return nil, err
	}
	if err := kv.Fetch(t.Tx, poolstore.MessageKeys(t.ID, ids)...); err != nil {
		return nil, err
	}
	copied := map[string]bool{} // calls of messages that the target has as copies
	var news []branch.Piece
	for i, id := range ids {
		known := held[id]
		if !known {
			if known, err = t.knownCopy(id, n, copied); err != nil {
				return nil, err
			}
		}
		if !known {
			news = branchstore.Splice(news, branchstore.Count(news), 0, branchstore.Slice(there, i, i+1))
		}
	}
	return news, nil
}

// knownCopy reports whether the target has, after the first n messages, an unedited copy of a message whose calls waited, or the message is a result of one
// of the calls of such a message.
func (t *Txn) knownCopy(id pool.ID, n int, copied map[string]bool) (bool, error) {
	m, err := poolstore.Get(t.Tx, t.ID, id)
	if err != nil || m == nil {
		return false, err
	}
	if m.Result != nil {
		return copied[m.Result.RequestID], nil
	}
	known := false
	for i := 0; i < len(m.Calls) && !known; i++ {
		at, err := t.copyStanding(t.Target, m, m.Calls[i].ID)
		if err != nil {
			return false, err
		}
		known = at.Position > n
	}
	for _, c := range m.Calls {
		copied[c.ID] = known
	}
	return known, nil
}

// heldAfter returns the ids of the target's messages after the first n.
func (t *Txn) heldAfter(n int) (map[pool.ID]bool, error) {
	held := map[pool.ID]bool{}
	err := branchstore.Read(t.Tx, t.ID, branchstore.Slice(t.Target.Pieces, n, branchstore.Len(t.Target)), func(_ int, id pool.ID) error {
		held[id] = true
		return nil
	})
	return held, err
}

// summed reports whether the pieces hold a merge's summary of a branch up to the message head. Of a head that is a summary itself nobody can say, since an edited
// copy of it names it in the same way: then it is put again.
func (t *Txn) summed(head pool.ID, pieces []branch.Piece) (known bool, err error) {
	if m, err := poolstore.Get(t.Tx, t.ID, head); err != nil || m == nil || m.Kind == SummaryKind {
		return false, err
	}
	ids, err := branchstore.IDs(t.Tx, t.ID, pieces)
	if err != nil {
		return false, err
	}
	var summaries []pool.ID
	err = poolstore.Heads(t.Tx, t.ID, ids, func(i int, h poolstore.Head) error {
		if h.Kind == SummaryKind {
			summaries = append(summaries, ids[i])
		}
		return nil
	})
	for i := 0; i < len(summaries) && !known && err == nil; i++ {
		var m *pool.Message
		if m, err = poolstore.Get(t.Tx, t.ID, summaries[i]); m != nil {
			known = m.CopiedFrom != nil && *m.CopiedFrom == head
		}
	}
	return known, err
}
