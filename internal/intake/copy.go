package intake

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Copy makes a new context with everything of another except its journal, and returns its id. With the name of a branch it has that one alone. An empty title means
// the other's. With use, the copy becomes the current one.
func Copy(ctx context.Context, s *base.Store, ref, name, title string, use bool) (pool.ID, error) {
	if err := s.Title(&title); err != nil {
		return pool.ID{}, err
	}
	id := pool.NewID()
	_, err := journal.StoreOperation(base.AsGate(ctx), s, "copy", func(st *journal.StoreTxn) error {
		from, err := view.ResolveContext(st.Store, st.Tx, ref)
		if err != nil {
			return err
		}
		return copyContext(st, from, id, name, title, use)
	})
	return id, err
}

// copier takes the stream of a context and makes another one of it, with ids of its own.
type copier struct {
	st     *journal.StoreTxn
	id     pool.ID // of the copy
	title  string  // "": the other's
	t      *journal.Txn
	head   *record.Native
	copies []copied
	pieces []branch.Piece            // the history of the last copy so far
	ids    map[pool.ID]pool.ID       // the copy of each message
	homes  map[pool.ID]pool.Home     // where the copy of each message of a history is
	loose  map[pool.ID]*pool.Message // messages on no branch, which are copied when something names them
}

// copied is a branch and its copy.
type copied struct {
	*record.NativeBranch
	copy *branch.Branch
}

func copyContext(st *journal.StoreTxn, from, id pool.ID, name, title string, use bool) error {
	rec, _, err := base.GetContext(st.Tx, from)
	if err != nil {
		return err
	}
	c := &copier{st: st, id: id, title: title, ids: map[pool.ID]pool.ID{}, homes: map[pool.ID]pool.Home{}, loose: map[pool.ID]*pool.Message{}}
	at := func(fn func(kv.Tx, *base.ContextRecord) error) error { return fn(st.Tx, rec) }
	if err := view.Stream(from, name, false, at, c.put); err != nil {
		return err
	}
	if err := c.tools(from); err != nil {
		return err
	}
	if err := c.rules(from); err != nil {
		return err
	}
	return st.Made(c.t, use)
}

// put takes a record of the stream. Of calls the messages say enough.
func (c *copier) put(r record.Streamed) (err error) {
	var id pool.ID
	switch r := r.(type) {
	case *record.Native:
		return c.begin(r)
	case *record.NativeBranch:
		return c.branch(r)
	case *record.NativeMessage:
		return c.message(r)
	case record.NativeAgain:
		for _, id := range r {
			c.hold(c.homes[id])
		}
	case *record.NativeTag:
		if id, err = c.copyOf(r.Message); err == nil {
			err = c.t.Tx.Put(base.TagBucket, base.Under(c.id, []byte(r.Name)...), id[:])
		}
	case *record.NativeMark:
		if id, err = c.copyOf(r.Message); err == nil {
			err = c.t.Tx.Put(base.MarkBucket, base.Under(c.id, id[:]...), []byte(r.Mark))
		}
	case *record.NativeEnd:
		return c.end()
	}
	return err
}

func (c *copier) begin(n *record.Native) (err error) {
	c.head = n
	title := cmp.Or(c.title, n.Title)
	if c.t, err = c.st.NewContext(c.id, title, n.Parent, n.Settings); err == nil {
		c.t.Rec.Derived, c.t.Rec.AppData, c.t.Rec.Labels, c.t.Rec.Gated = n.Derived && title == n.Title, n.AppData, n.Labels, n.Gated
	}
	return err
}

func (c *copier) branch(n *record.NativeBranch) (err error) {
	if err := c.close(); err != nil {
		return err
	}
	b := c.t.Target
	if n.Name != base.MainBranch {
		if b, err = c.t.Create(n.Name, nil); err != nil {
			return err
		}
	}
	if like := c.named(n.Like); like != nil {
		c.pieces = branchstore.Slice(like.Pieces, 0, n.Shared)
	}
	b.Settings, b.AppData, b.Tokens = n.Settings, n.AppData, n.Tokens
	c.copies = append(c.copies, copied{n, b})
	if b.System, err = c.t.PutPrompt(n.System); err == nil {
		b.Prompt, err = c.t.PutPrompt(n.Prompt)
	}
	return err
}

// close gives the last copy its history.
func (c *copier) close() error {
	if len(c.copies) == 0 {
		return nil
	}
	pieces := c.pieces
	c.pieces = nil
	return c.t.Splice(c.copies[len(c.copies)-1].copy, 0, 0, pieces)
}

// named returns the copy of a branch, nil if there is none.
func (c *copier) named(name string) *branch.Branch {
	for _, b := range c.copies {
		if b.Name == name {
			return b.copy
		}
	}
	return nil
}

// message gives a message a new id, and its open calls wait. It keeps the entry of one in a history.
func (c *copier) message(n *record.NativeMessage) error {
	m, was := n.Message, n.Message.ID
	m.ID, m.CopiedFrom = pool.NewID(), &was
	for i := range m.Calls {
		if call := &m.Calls[i]; call.Open() {
			call.Status, call.Execution, call.Reason = pool.Pending, pool.NotRun, ""
		}
	}
	if n.Loose {
		c.loose[was] = m
		return nil
	}
	c.ids[was] = m.ID
	p, err := c.t.Put(c.copies[len(c.copies)-1].copy, []*pool.Message{m})
	c.homes[was] = pool.Home{Segment: p.Segment, Position: p.From}
	c.hold(c.homes[was])
	return err
}

// hold puts an entry at the end of the history.
func (c *copier) hold(at pool.Home) {
	c.pieces = branchstore.Join(c.pieces, branch.Piece{Segment: at.Segment, From: at.Position, To: at.Position + 1})
}

// copyOf returns the id of a message's copy, and stores the copy of a message that no branch holds. It returns the zero id if there is none.
func (c *copier) copyOf(id pool.ID) (pool.ID, error) {
	m := c.loose[id]
	if m == nil {
		return c.ids[id], nil
	}
	delete(c.loose, id)
	c.ids[id] = m.ID
	return m.ID, c.t.Store1(m)
}

// end links the copies of branches to each other and to messages, and removes the branch main that every context has, unless the original has a branch of that name.
func (c *copier) end() error {
	if err := c.close(); err != nil {
		return err
	}
	for _, b := range c.copies {
		b.copy.At = c.ids[b.At]
		if from := c.named(b.From); from != nil {
			b.copy.From = from.ID
		}
		for _, s := range b.Sessions {
			var err error
			if s.Summary, err = c.copyOf(s.Summary); err != nil {
				return err
			}
			s.Digests = slices.Clone(s.Digests)
			for i := range s.Digests {
				s.Digests[i].Message = pool.ID{} // the copy cost nothing
			}
			b.copy.Sessions = append(b.copy.Sessions, s)
		}
	}
	c.t.Rec.Active = c.named(c.head.Active).ID
	if c.named(base.MainBranch) == nil {
		if err := c.t.Unmake(c.t.Target); err != nil {
			return err
		}
	}
	return c.t.PutBranches()
}

// tools copies the context's own tools.
func (c *copier) tools(from pool.ID) error {
	all := map[string][]byte{}
	err := c.t.Tx.Scan(base.ToolBucket, kv.Prefix(from[:]), func(key, value []byte) error {
		all[string(key[16:])] = bytes.Clone(value)
		return nil
	})
	for name, tool := range all {
		if err == nil {
			err = c.t.Tx.Put(base.ToolBucket, base.Under(c.id, []byte(name)...), tool)
		}
	}
	return err
}

// rules copies the rules, each with the copy of its subject.
func (c *copier) rules(from pool.ID) error {
	all, err := view.RulesOf(c.t.Tx, from)
	if err != nil {
		return err
	}
	for _, r := range all {
		var branch pool.ID
		for _, b := range c.copies {
			if b.ID == r.Branch {
				branch = b.copy.ID
			}
		}
		message := c.ids[r.Message]
		if r.Branch != (pool.ID{}) && branch == (pool.ID{}) || r.Message != (pool.ID{}) && message == (pool.ID{}) {
			continue
		}
		r.ID, r.Branch, r.Message = pool.NewID(), branch, message
		if err := base.PutRecord(c.t.Tx, base.RuleBucket, view.RuleKey(c.id, r.ID), r); err != nil {
			return err
		}
	}
	return nil
}
