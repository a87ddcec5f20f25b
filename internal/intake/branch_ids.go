package intake

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/pool"
)

// Branches of our own format are known by their ids. A branch that went on otherwise here and in the file becomes two: the one here stays, and the file's is a
// further line of the same id, on a branch of its own.

// lineID returns the id of the nth further line of a branch, the same for each import. Line 0 is the branch itself.
func lineID(context, id pool.ID, n int) pool.ID {
	if n == 0 {
		return id
	}
	h := sha256.Sum256(binary.BigEndian.AppendUint64(slices.Concat(context[:], id[:]), uint64(n)))
	out := id
	copy(out[6:], h[:]) // the first bytes are its time
	out[6], out[8] = 0x70|out[6]&0x0f, 0x80|out[8]&0x3f
	return out
}

// line is what the context has of a branch of the file.
type line struct {
	held
	id      pool.ID // of the branch to make, if none holds the path or ends inside it
	apart   bool    // the branch went on otherwise here
	removed bool    // a person removed it here
	off     []int   // the nodes that an operation that is in force took off the branch, or removed with it
}

// line finds the branch here that holds the path of a file's branch, or ends inside it.
func (g *graft) line(path []int, want *record.IncomingBranch) (line, error) {
	var out line
	for n := 0; ; n++ {
		out.id = lineID(g.t.ID, want.ID, n)
		l, err := g.t.Load(out.id)
		if err != nil || l == nil {
			return out, err
		}
		if l.Removed != 0 {
			if l.Last != 0 { // else its making was undone
				out.removed = true
				out.off = append(out.off, g.held(l.Pieces, path)...)
			}
			continue
		}
		out.removed = false
		ids, err := branchstore.IDs(g.t.Tx, g.t.ID, l.Pieces)
		if err != nil {
			return out, err
		}
		same := g.same(ids, path)
		off, err := g.takenOff(l.Branch, path[same:])
		if err != nil {
			return out, err
		}
		out.off = append(out.off, off...)
		if same == len(path) || same == len(ids) && len(off) == 0 {
			out.held = held{l.Branch, same}
			return out, nil
		}
		out.apart = true
	}
}

// news reports whether a path has a message that the store did not have, or that is on no branch though nobody took it off: its import was undone.
func (g *graft) news(path, off []int) (bool, error) {
	for _, n := range path {
		m := g.in.Nodes[n].Message
		if g.brought[m.ID] {
			return true, nil
		}
		if slices.Contains(off, n) {
			continue
		}
		holders, err := g.t.Holders(m.Home)
		if err != nil || len(holders) == 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// held returns the nodes of a path that pieces hold.
func (g *graft) held(pieces []branch.Piece, path []int) (out []int) {
	for _, n := range path {
		if h := g.home[n]; h.Segment != 0 && branchstore.Place(pieces, h.Segment, h.Position) >= 0 {
			out = append(out, n)
		}
	}
	return out
}

// takenOff returns the nodes of the path that operations that are in force took off the branch.
func (g *graft) takenOff(b *branch.Branch, path []int) (out []int, err error) {
	known := slices.ContainsFunc(path, func(n int) bool { return g.home[n].Segment != 0 })
	for n := b.Last; n != 0 && known; {
		op, err := base.GetOperation(g.t.Tx, g.t.ID, n)
		if err != nil || op == nil {
			return out, err
		}
		for _, c := range op.Changes {
			if c.Kind != base.SpliceChange || pool.ID(c.Key) != b.ID || op.Undone != 0 {
				continue
			}
			for _, node := range g.held(c.Removed, path) {
				if h := g.home[node]; branchstore.Place(c.Inserted, h.Segment, h.Position) < 0 {
					out = append(out, node)
				}
			}
		}
		at := slices.IndexFunc(op.Chains, func(c base.Chain) bool { return c.Branch == b.ID })
		if at < 0 {
			break
		}
		n = op.Chains[at].Prev
	}
	return out, nil
}

// extendByID brings a branch of our own format into the context. What a person removed, or took off, stays so until the file has something new.
func (g *graft) extendByID(i int, res *record.Imported) error {
	want := &g.in.Branches[i]
	path := g.path(want.Leaf)
	b, err := g.line(path, want)
	switch {
	case err != nil:
		return err
	case b.Branch != nil:
		return g.continueBranch(b.held, path, want, res)
	case g.erased[want.ID]:
		noteUntaken(res, "", want.Name, "it was purged here and stays so")
		return nil
	}
	news, err := g.news(path, b.off)
	if err != nil {
		return err
	}
	if (b.apart || b.removed) && !news {
		what := "its history is otherwise here and stays so"
		if b.removed {
			what = "it was removed here and stays so"
		}
		noteUntaken(res, "", want.Name, what)
		return nil
	}
	if err := g.holdResults(path, false, res); err != nil {
		return err
	}
	name, err := g.newBranch(i, false, b.id)
	if err != nil {
		return err
	}
	if b.apart {
		noteImported(res, "the branch %q went on otherwise here: what the file has of it is on %q", want.Name, name)
	}
	g.made(path, name, res)
	return nil
}

// holdResults makes those results of a file that another result may stand for late ones, which go to no model: those of calls that wait here, whose results
// come from here alone, and on a branch that grows also those of other calls that were decided here.
func (g *graft) holdResults(path []int, grows bool, res *record.Imported) error {
	type place struct {
		message pool.ID
		index   int
	}
	calls := map[string]place{}
	for _, n := range path {
		m := g.in.Nodes[n].Message
		for i := range m.Calls {
			calls[m.Calls[i].ID] = place{m.ID, i}
		}
		if m.Result == nil || m.Kind == pool.Late && !g.late[m.ID] || !g.brought[m.ID] {
			continue
		}
		of, called := calls[m.Result.RequestID]
		if !called || g.brought[of.message] {
			continue
		}
		var rec record.CallRecord
		waited, err := base.GetRecord(g.t.Tx, base.CallBucket, base.CallKey(g.t.ID, of.message, of.index), &rec)
		if err != nil {
			return err
		}
		if waited && (grows || base.IsOpen(&rec)) {
			m.Kind, m.Unsent, g.late[m.ID] = pool.Late, true, true
			noteImported(res, "the result of the call %q goes to no model: the call is %s here", m.Result.RequestID, base.StateOf(&rec))
		}
	}
	return nil
}

// made counts a new branch.
func (g *graft) made(path []int, name string, res *record.Imported) {
	res.NewBranches++
	if slices.ContainsFunc(path, func(n int) bool { return g.changed[n] }) {
		res.ChangedOn = append(res.ChangedOn, name)
	}
}

// noteImported adds a sentence about what an import did beside adding messages.
func noteImported(i *record.Imported, format string, args ...any) {
	i.Notes = append(i.Notes, fmt.Sprintf(format, args...))
}
