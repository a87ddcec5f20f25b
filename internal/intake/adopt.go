package intake

import (
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// noResult is the reason of a call that an import closed because its file has no result for it.
const noResult = "no result"

// answered closes calls that were imported without a result and whose results are new in the file.
func (g *graft) answered() error {
	waiting := map[string][]int{} // nodes that were imported before, by the ids of such calls
	for i, n := range g.in.Nodes {
		r := n.Message.Result
		if g.home[i].Segment == 0 && r != nil {
			nodes := waiting[r.RequestID]
			delete(waiting, r.RequestID)
			for _, j := range nodes {
				if !g.above(j, i) {
					continue
				}
				if err := g.closeImported(g.in.Nodes[j].Message.ID, n.Message); err != nil {
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

// above reports whether the node up is an ancestor of the node i, or i itself.
func (g *graft) above(up, i int) bool {
	for i > up {
		i = g.in.Nodes[i].Parent - 1
	}
	return i == up
}

// closeImported records in a stored message that one of its calls was run, or denied.
func (g *graft) closeImported(id pool.ID, answer *pool.Message) error {
	r := answer.Result
	m, err := poolstore.Get(g.t.Tx, g.t.ID, id)
	if err != nil || m == nil {
		return err
	}
	for i := range m.Calls {
		c := &m.Calls[i]
		if c.ID != r.RequestID || c.Status != pool.Denied || c.Reason != noResult {
			continue
		}
		switch c.Status, c.Execution, c.Reason = pool.Approved, pool.Done, ""; {
		case answer.Kind == "denied":
			c.Status, c.Execution, c.Reason = pool.Denied, pool.NotRun, "denied in the file"
		case r.IsError:
			c.Execution = pool.Failed
		}
	}
	return g.t.Rewrite(m)
}

// same returns how many messages at the beginning of a branch are those of a path.
func (g *graft) same(ids []pool.ID, path []int) int {
	n := 0
	for n < len(ids) && n < len(path) && ids[n] == g.in.Nodes[path[n]].Message.ID {
		n++
	}
	return n
}

// held is a branch that a path of a conversation extends. same counts the path's nodes that are on it already.
type held struct {
	*branch.Branch
	same int
}
