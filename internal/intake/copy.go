package intake

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Copy makes a new context with everything of another except its journal, and returns its id. An empty title means the other's. With use, the copy becomes the current one.
func Copy(ctx context.Context, s *base.Store, ref, title string, use bool) (pool.ID, error) {
	if err := s.Title(&title); err != nil {
		return pool.ID{}, err
	}
	id := pool.NewID()
	_, err := journal.StoreOperation(ctx, s, "copy", func(st *journal.StoreTxn) error {
		from, err := view.ResolveContext(st.Store, st.Tx, ref)
		if err != nil {
			return err
		}
		return copyContext(st, from, id, title, use)
	})
	return id, err
}

// copier copies a context. branches and ids map each branch and message to its copy, home maps each place.
type copier struct {
	t        *journal.Txn
	from     view.Reader
	branches map[pool.ID]*branch.Branch
	ids      map[pool.ID]pool.ID
	home     map[pool.Home]pool.Home
}

func copyContext(st *journal.StoreTxn, from, id pool.ID, title string, use bool) error {
	rec, _, err := base.GetContext(st.Tx, from)
	if err != nil {
		return err
	}
	title = cmp.Or(title, rec.Title)
	t, err := st.NewContext(id, title, rec.Parent, rec.Settings)
	if err != nil {
		return err
	}
	t.Rec.Derived, t.Rec.AppData, t.Rec.Labels = rec.Derived && title == rec.Title, rec.AppData, rec.Labels
	c := &copier{t: t, from: view.Reader{Tx: st.Tx, ID: from}, branches: map[pool.ID]*branch.Branch{}, ids: map[pool.ID]pool.ID{}, home: map[pool.Home]pool.Home{}}
	infos, err := view.BranchInfos(st.Tx, from, rec)
	if err != nil {
		return err
	}
	for _, info := range infos {
		if err := c.branch(info); err != nil {
			return err
		}
	}
	if err := c.lineage(infos, rec.Active); err != nil {
		return err
	}
	if err := c.named(); err != nil {
		return err
	}
	if err := c.rules(); err != nil {
		return err
	}
	if err := t.PutBranches(); err != nil {
		return err
	}
	return st.Made(t, use)
}

// lineage links the copies of branches to each other once all exist, and removes the branch main that every context has, unless the original has a branch
// of that name.
func (c *copier) lineage(infos []*view.BranchInfo, active pool.ID) error {
	hasMain := false
	for _, info := range infos {
		c.branches[info.ID].From = c.copyOf(info.Branch.From)
		hasMain = hasMain || info.Name == base.MainBranch
	}
	c.t.Rec.Active = c.copyOf(active)
	if hasMain {
		return nil
	}
	return c.t.Unmake(c.t.Target)
}

// copyOf returns the id of a branch's copy, the zero id if it has none.
func (c *copier) copyOf(id pool.ID) pool.ID {
	if b := c.branches[id]; b != nil {
		return b.ID
	}
	return pool.ID{}
}

func (c *copier) branch(info *view.BranchInfo) error {
	b := c.t.Target
	if info.Name != base.MainBranch {
		var err error
		if b, err = c.t.Create(info.Name, nil); err != nil {
			return err
		}
	}
	pieces, err := c.pieces(b, info.Pieces)
	if err != nil {
		return err
	}
	if err := c.t.Splice(b, 0, 0, pieces); err != nil {
		return err
	}
	c.branches[info.ID] = b
	b.Settings, b.AppData, b.At, b.Tokens = info.Settings, info.AppData, c.ids[info.At], info.Tokens
	if b.System, err = c.t.PutPrompt(info.SystemText); err != nil {
		return err
	}
	if b.Prompt, err = c.t.PutPrompt(info.PromptText); err != nil {
		return err
	}
	for _, s := range info.Sessions {
		if s.Summary, err = c.loose(s.Summary); err != nil {
			return err
		}
		s.Digests = slices.Clone(s.Digests)
		for i := range s.Digests {
			s.Digests[i].Message = pool.ID{} // the copy cost nothing
		}
		b.Sessions = append(b.Sessions, s)
	}
	return nil
}

// pieces copies the entries that are not copied yet into the branch's segment, and returns the history.
func (c *copier) pieces(b *branch.Branch, from []branch.Piece) ([]branch.Piece, error) {
	var out []branch.Piece
	for _, p := range from {
		for at := p.From; at < p.To; at++ {
			old := pool.Home{Segment: p.Segment, Position: at}
			home, ok := c.home[old]
			if !ok {
				var err error
				if home, err = c.entry(b, old); err != nil {
					return nil, err
				}
				c.home[old] = home
			}
			out = branchstore.Join(out, branch.Piece{Segment: home.Segment, From: home.Position, To: home.Position + 1})
		}
	}
	return out, nil
}

func (c *copier) entry(b *branch.Branch, at pool.Home) (pool.Home, error) {
	id, err := branchstore.IDAt(c.from.Tx, c.from.ID, []branch.Piece{{Segment: at.Segment, From: at.Position, To: at.Position + 1}}, 0)
	if err != nil {
		return pool.Home{}, err
	}
	m, err := c.message(id)
	if err != nil {
		return pool.Home{}, err
	}
	if p := c.ids[id]; p != (pool.ID{}) { // the same message at another place
		out, err := c.t.Write(b, []branchstore.Item{{ID: p, Turn: branchstore.ItemOf(m).Turn}})
		return pool.Home{Segment: out.Segment, Position: out.From}, err
	}
	c.ids[id] = m.ID
	p, err := c.t.Put(b, []*pool.Message{m})
	return pool.Home{Segment: p.Segment, Position: p.From}, err
}

// message reads a message and gives it a new id.
func (c *copier) message(id pool.ID) (*pool.Message, error) {
	m, err := poolstore.Get(c.from.Tx, c.from.ID, id)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, base.Damaged("message %s is missing", id)
	}
	if err := view.FillCalls(c.from.Tx, c.from.ID, m); err != nil {
		return nil, err
	}
	m.ID, m.CopiedFrom = pool.NewID(), &id
	for i := range m.Calls {
		if call := &m.Calls[i]; call.Open() {
			call.Status, call.Execution, call.Reason = pool.Pending, pool.NotRun, ""
		}
	}
	return m, nil
}

// loose copies a message that is on no branch.
func (c *copier) loose(id pool.ID) (pool.ID, error) {
	if id == (pool.ID{}) {
		return id, nil
	}
	m, err := c.message(id)
	if err != nil {
		return pool.ID{}, err
	}
	c.ids[id] = m.ID
	return m.ID, c.t.Store1(m)
}

// named copies tags, marks and tools.
func (c *copier) named() error {
	type pair struct{ bucket, key, value []byte }
	var all []pair
	for _, bucket := range []string{base.TagBucket, base.MarkBucket, base.ToolBucket} {
		err := c.from.Tx.Scan(bucket, kv.Prefix(c.from.ID[:]), func(key, value []byte) error {
			all = append(all, pair{[]byte(bucket), bytes.Clone(key[16:]), bytes.Clone(value)})
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, r := range all {
		switch string(r.bucket) {
		case base.TagBucket:
			id, ok := c.ids[pool.ID(r.value)]
			if !ok {
				continue
			}
			r.value = id[:]
		case base.MarkBucket:
			id, ok := c.ids[pool.ID(r.key)]
			if !ok {
				continue
			}
			r.key = id[:]
		}
		if err := c.t.Tx.Put(string(r.bucket), base.Under(c.t.ID, r.key...), r.value); err != nil {
			return err
		}
	}
	return nil
}

// rules copies the rules, each with the copy of its subject.
func (c *copier) rules() error {
	all, err := view.RulesOf(c.from.Tx, c.from.ID)
	if err != nil {
		return err
	}
	for _, r := range all {
		to := c.copyOf(r.Branch)
		message := c.ids[r.Message]
		if r.Branch != (pool.ID{}) && to == (pool.ID{}) || r.Message != (pool.ID{}) && message == (pool.ID{}) {
			continue
		}
		r.ID, r.Branch, r.Message = pool.NewID(), to, message
		if err := base.PutRecord(c.t.Tx, base.RuleBucket, view.RuleKey(c.t.ID, r.ID), r); err != nil {
			return err
		}
	}
	return nil
}
