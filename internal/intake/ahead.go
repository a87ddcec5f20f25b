package intake

import (
	"context"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// A large new conversation is stored in several transactions before the one that makes it visible. Until then its context lies in the trash, like one of
// NativeImport. If the import is given up, it stays there.
//
// aheadBytes is about how many bytes of a conversation one transaction stores.

// aheadBytes is how much of a conversation, about, is stored in one transaction.
const aheadBytes = 4 << 20

// storeAhead stores the messages and branches of a new conversation that is too large for memory.
func (r *ImportRun) storeAhead(ctx context.Context, in *Incoming) error {
	if in.ahead != nil || in.wiped || !in.large() {
		return nil
	}
	var known pool.ID
	err := r.store.DB.View(ctx, func(tx kv.Tx) (err error) {
		known, err = knownContext(tx, in)
		return err
	})
	if err != nil || known != (pool.ID{}) {
		return err
	}
	set, _, err := view.ChangeSettings(nil, in.Settings)
	if err != nil {
		return err
	}
	labels, err := base.WithLabels(nil, in.Labels...)
	if err != nil {
		return err
	}
	i := &NativeImport{run: r, context: Native{ID: pool.NewID(), Updated: in.Updated}}
	i.rec = base.ContextRecord{Title: in.Title, Derived: in.Derived, Settings: set, AppData: in.AppData, Labels: labels, Created: in.Created, NextOperation: 1}
	if i.rec.Created == 0 {
		i.rec.Created = r.store.Now()
	}
	g, now := &graft{in: in, home: make([]pool.Home, len(in.Nodes))}, r.store.Now()
	for n := range in.Branches {
		if err := i.branchAhead(ctx, g, &in.Branches[n], now); err != nil {
			return err
		}
	}
	in.ahead = i
	return nil
}

// largeAlone gives each large conversation a round of its own.
func largeAlone(in []*Incoming, rounds [][]int) [][]int {
	var out [][]int
	for _, round := range rounds {
		from := 0
		for k, i := range round {
			if !in[i].large() {
				continue
			}
			if from < k {
				out = append(out, round[from:k])
			}
			out, from = append(out, round[k:k+1]), k+1
		}
		if from < len(round) || len(round) == 0 {
			out = append(out, round[from:])
		}
	}
	return out
}

// large reports whether Contents keeps a message of the conversation.
func (in *Incoming) large() bool {
	for i := 0; in.Contents != nil && i < len(in.Nodes); i++ {
		if in.Contents.Has(in.Nodes[i].Message) {
			return true
		}
	}
	return false
}

// branchAhead stores a branch and the messages on it that are not stored yet, some in each transaction.
func (i *NativeImport) branchAhead(ctx context.Context, g *graft, want *record.IncomingBranch, now pool.Time) error {
	if i.named(want.Name) != nil {
		return base.Invalidf("two branches are named %q", want.Name)
	}
	set, _, err := view.MergeValues(nil, want.Settings)
	if err != nil {
		return err
	}
	b := &branch.Branch{ID: pool.NewID(), Name: want.Name, Settings: set, Created: now}
	err = i.write(ctx, b, func(t *journal.Txn, b *branch.Branch) (err error) {
		t.Rec.Branches++
		g.t = t
		if b.System, err = g.prompt(want.System, g.in.System); err != nil {
			return err
		}
		if b.Prompt, err = g.prompt(want.Prompt, g.in.Prompt); err != nil {
			return err
		}
		return branchstore.PutName(t.Tx, t.ID, b.Name, b.ID)
	})
	if err != nil {
		return err
	}
	i.branches = append(i.branches, b)
	for path := g.path(want.Leaf); len(path) > 0; {
		n, err := i.someAhead(ctx, g, b, path)
		if err != nil {
			return err
		}
		path = path[n:]
	}
	return nil
}

// someAhead puts the next messages of a path on a branch and returns how many.
func (i *NativeImport) someAhead(ctx context.Context, g *graft, b *branch.Branch, path []int) (int, error) {
	n, size := 0, 0
	for n < len(path) && n < 10_000 && size < aheadBytes {
		if g.home[path[n]].Segment == 0 {
			m, err := g.in.whole(path[n])
			if err != nil {
				return 0, err
			}
			size += poolstore.Weight(m)
		}
		n++
	}
	homes := make([]pool.Home, n)
	err := i.write(ctx, b, func(t *journal.Txn, b *branch.Branch) error {
		st := &journal.StoreTxn{Tx: t.Tx, Store: t.Store, Now: t.Now}
		for k, node := range path[:n] {
			homes[k] = g.home[node]
			if homes[k].Segment == 0 {
				m, err := g.oneAhead(st, t, b, node)
				if err != nil {
					return err
				}
				homes[k] = m.Home
			}
			h := homes[k]
			b.Pieces = branchstore.Join(b.Pieces, branch.Piece{Segment: h.Segment, From: h.Position, To: h.Position + 1})
		}
		return nil
	})
	for k, node := range path[:n] {
		g.home[node] = homes[k]
	}
	return n, err
}

// oneAhead stores the message of a node and records its source. That record has no effect until the conversation has one.
func (g *graft) oneAhead(st *journal.StoreTxn, t *journal.Txn, b *branch.Branch, node int) (*pool.Message, error) {
	n := &g.in.Nodes[node]
	if err := linkCopy(st, g.in, t.ID, n); err != nil {
		return nil, err
	}
	m, err := g.in.whole(node)
	if err != nil {
		return nil, err
	}
	if _, err := t.Put(b, []*pool.Message{m}); err != nil || n.ID == "" || g.in.Conversation == "" {
		return m, err
	}
	return m, st.Tx.Put(base.SourceBucket, g.in.nodeKey(node), sourceNode(t.ID, m.ID, g.in.words[node]).Value())
}

// finishIncoming makes a conversation visible that was stored ahead.
func (i *NativeImport) finishIncoming(st *journal.StoreTxn, in *Incoming, key []byte) (record.Imported, error) {
	id, rec := i.context.ID, i.rec
	res := record.Imported{Context: id, Title: rec.Title, Created: true, Branches: len(i.branches), NewBranches: len(i.branches)}
	t := &journal.Txn{Tx: st.Tx, Store: st.Store, Now: st.Now, ID: id, Rec: &rec, Was: i.rec, Branches: map[pool.ID]*journal.Loaded{}}
	if err := linkAll(st, t, in); err != nil {
		return res, err
	}
	for n := range in.Nodes {
		countNode(&res, &in.Nodes[n])
	}
	g := &graft{t: t, in: in}
	if err := g.loose(); err != nil {
		return res, err
	}
	for n, want := range in.Branches {
		b := *i.branches[n]
		var err error
		if b.Sessions, err = g.sessions(want.Sessions, 0); err != nil {
			return res, err
		}
		if err := branchstore.Put(t.Tx, id, &b); err != nil {
			return res, err
		}
	}
	if err := g.tags(); err != nil {
		return res, err
	}
	if err := writeSources(st, in, key, base.SourceRecord{Context: id, Dated: in.dated(), About: in.about(), Labels: in.Labels}, nil); err != nil {
		return res, err
	}
	if err := t.Tx.Delete(base.RecentBucket, base.RecentKey(rec.ListedAt(), id)); err != nil {
		return res, err
	}
	rec.Active, rec.Trashed, rec.Updated = i.branches[0].ID, 0, 0
	if in.Updated != 0 && in.Updated < t.Now {
		t.Now, t.Dated = in.Updated, in.Updated
	}
	if err := takeIn(st, in, id); err != nil {
		return res, err
	}
	return res, st.Made(t, false)
}
