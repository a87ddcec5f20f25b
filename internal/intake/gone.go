package intake

import (
	"bytes"
	"context"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// What was purged here stays away, and a message of which parts were redacted comes without its text: the bucket gone has marks of both. What the store has
// again, since somebody asked for it, counts as here, whatever its mark says.

// goneMarks are the marks of a store, as they were when it was read last.
type goneMarks struct {
	raw   []byte // of the state
	state base.GoneState
	kinds map[base.GoneKey]int
}

// read reads the marks if they have changed.
func (g *goneMarks) read(tx kv.Tx) error {
	raw, err := tx.Get(base.MetaBucket, base.MetaGone)
	if err != nil || bytes.Equal(raw, g.raw) {
		return err
	}
	now := goneMarks{raw: bytes.Clone(raw), kinds: map[base.GoneKey]int{}}
	if err := base.DecodeKept(base.MetaBucket, raw, &now.state); err != nil {
		return err
	}
	err = tx.Scan(base.GoneBucket, kv.Range{}, func(key, value []byte) error {
		var mark base.GoneMark
		if len(key) != len(base.GoneKey{}) {
			return nil
		}
		err := base.DecodeKept(base.GoneBucket, value, &mark)
		now.kinds[base.GoneKey(key)] = mark.Kind
		return err
	})
	if err == nil {
		*g = now
	}
	return err
}

// id returns the kind of the mark of one of our ids, 0 for none.
func (g *goneMarks) id(id pool.ID) int {
	if len(g.kinds) == 0 {
		return 0
	}
	return g.kinds[base.GoneID(id)]
}

// source returns the kind of the mark of a node, or of its conversation.
func (g *goneMarks) source(format, conversation, node string) int {
	if kind := g.kinds[base.GoneSource(format, conversation, "")]; kind != 0 || node == "" {
		return kind
	}
	return g.kinds[base.GoneSource(format, conversation, node)]
}

// leaveOutGone takes what was purged here out of conversations that are about to be imported.
func (r *ImportRun) leaveOutGone(ctx context.Context, in []*Incoming) error {
	return r.store.DB.View(ctx, func(tx kv.Tx) error {
		if err := r.gone.read(tx); err != nil || len(r.gone.kinds) == 0 {
			return err
		}
		for _, c := range in {
			if err := r.leaveOut(tx, c); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *ImportRun) leaveOut(tx kv.Tx, in *Incoming) error {
	known, err := knownContext(tx, in)
	if err != nil {
		return err
	}
	whole := known == pool.ID{} && in.Conversation != "" && r.gone.source(in.Format, in.Conversation, "") == base.GoneContext
	if whole && !r.Purged {
		in.wiped, in.erased = true, in.counted()
		return nil
	}
	kinds, err := r.kindsOf(tx, known, in)
	if err != nil {
		return err
	}
	for i, kind := range kinds {
		if kind == base.GoneRedacted && !r.Purged { // as it was redacted
			if err := in.hide(i); err != nil {
				return err
			}
			in.untitle()
		}
	}
	erased := func(kind int) bool { return kind == base.GoneMessage || kind == base.GoneContext }
	if r.Purged {
		in.anew = true
		if whole {
			in.back = in.counted()
			return nil
		}
		for _, kind := range kinds {
			if kind != 0 {
				in.back++
			}
		}
		return nil
	}
	if !slices.ContainsFunc(kinds, erased) {
		return nil
	}
	in.prune(func(i int) bool { return erased(kinds[i]) })
	in.untitle()
	in.wiped = len(in.Nodes) == 0 && known == pool.ID{}
	return nil
}

// noteGone reports what was purged here: what was left out, and what was brought all the same.
func (in *Incoming) noteGone(res record.Imported) record.Imported {
	res.Purged = in.erased
	if in.back > 0 && res.Messages > 0 {
		noteImported(&res, "it has again what was purged here: %s", plural.Count(in.back, "message"))
	}
	return res
}

// counted returns how many nodes are messages of their own in the file.
func (in *Incoming) counted() (n int) {
	for i := range in.Nodes {
		if !in.Nodes[i].Further {
			n++
		}
	}
	return n
}

// kindsOf returns the kind of the mark of each node, 0 for none and for what the store has. known is the context that the conversation became.
func (r *ImportRun) kindsOf(tx kv.Tx, known pool.ID, in *Incoming) ([]int, error) {
	g := &r.gone
	out := make([]int, len(in.Nodes))
	made := base.MadeUp(in.Conversation)
	var words []nodeWords
	if made {
		words = in.neighbours()
	}
	for i := range in.Nodes {
		n := &in.Nodes[i]
		if n.ID != "" && in.Conversation != "" {
			out[i] = g.kinds[base.GoneSource(in.Format, in.Conversation, n.ID)]
		}
		if n.CopyOf.Node != "" && out[i] == 0 {
			out[i] = g.source(in.Format, n.CopyOf.Conversation, n.CopyOf.Node)
		}
		if made && out[i] == 0 {
			m, err := in.whole(i)
			if err != nil {
				return nil, err
			}
			out[i] = g.text(in.words[i], base.ShortWords(m), &words[i])
		}
		if out[i] == 0 || known == (pool.ID{}) || n.ID == "" {
			continue
		}
		have, err := variants(tx, known, in.nodeKey(i))
		if err != nil {
			return nil, err
		}
		for _, v := range have {
			has, err := poolstore.Has(tx, known, v.node.Message)
			if err != nil {
				return nil, err
			}
			if has {
				out[i] = 0
			}
		}
	}
	return out, nil
}

// nodeWords are the words of the nodes around a node.
type nodeWords struct {
	before pool.Hash
	after  []pool.Hash
}

// neighbours returns the words of the nodes around each node.
func (in *Incoming) neighbours() []nodeWords {
	out := make([]nodeWords, len(in.Nodes))
	for i := range in.Nodes {
		if up := in.Nodes[i].Parent; up > 0 {
			out[i].before = in.words[up-1]
			out[up-1].after = append(out[up-1].after, in.words[i])
		}
	}
	return out
}

// text returns the kind of the mark of a node that is known by its words alone.
func (g *goneMarks) text(words pool.Hash, short bool, around *nodeWords) int {
	after := around.after
	if len(after) == 0 || !short || around.before != (pool.Hash{}) {
		after = []pool.Hash{{}}
	}
	for _, next := range after {
		if kind := g.kinds[g.state.GoneWords(words, short, around.before, next)]; kind != 0 {
			return kind
		}
	}
	return 0
}

// untitle drops a title that was made from the messages, as they were in the file.
func (in *Incoming) untitle() {
	if in.Derived {
		in.Title, in.Derived = "", false
	}
}

// hide replaces the texts of a node that was redacted here.
func (in *Incoming) hide(i int) error {
	m, err := in.whole(i)
	if err != nil {
		return err
	}
	hidden := hiddenMessage(m)
	in.redacted, in.words[i] = true, pool.Hash{}
	if whole := m != in.Nodes[i].Message; whole {
		return in.Contents.Put(in.Nodes[i].Message, hidden)
	}
	in.Nodes[i].Message = hidden
	return nil
}

// hiddenMessage returns a message with the mark of a redaction in place of all that it says.
func hiddenMessage(m *pool.Message) *pool.Message {
	out := &pool.Message{ID: m.ID, Role: m.Role, Kind: m.Kind, Created: m.Created, Hidden: m.Hidden, Unsent: m.Unsent, Unfinished: m.Unfinished, CopiedFrom: m.CopiedFrom,
		Content: []pool.Part{{Type: pool.TextPart, Text: base.RedactedMark}}}
	for _, c := range m.Calls {
		out.Calls = append(out.Calls, pool.Call{ID: c.ID, Tool: c.Tool, Arguments: []byte("{}"), Status: c.Status, Execution: c.Execution, Reason: c.Reason})
	}
	if r := m.Result; r != nil {
		out.Content = nil
		out.Result = &pool.Result{RequestID: r.RequestID, Tool: r.Tool, IsError: r.IsError, Text: base.RedactedMark}
	}
	if s := m.Source; s != nil {
		out.Source = &pool.Source{Format: s.Format, Conversation: s.Conversation, Node: s.Node, Role: s.Role}
	}
	return out
}

// prune takes nodes out of the tree. What stands below one goes below its parent.
func (in *Incoming) prune(out func(i int) bool) {
	to := make([]int, len(in.Nodes)+1) // by the old numbers, from 1
	var nodes []record.Node
	var words []pool.Hash
	for i, n := range in.Nodes {
		n.Parent = to[n.Parent]
		if out(i) {
			if to[i+1] = n.Parent; !n.Further {
				in.erased++
			}
			continue
		}
		nodes, words = append(nodes, n), append(words, in.words[i])
		to[i+1] = len(nodes)
	}
	branches := slices.Clone(in.Branches)
	for i := range branches {
		before := in.path(branches[i].Leaf)
		first := slices.IndexFunc(before, out)
		branches[i].Leaf = to[branches[i].Leaf]
		branches[i].Sessions = sessionsBefore(branches[i].Sessions, first)
	}
	tags := map[string]int{}
	for name, n := range in.Tags {
		if !out(n - 1) {
			tags[name] = to[n]
		}
	}
	in.Nodes, in.words, in.Branches, in.Tags = nodes, words, branches, tags
}

// path returns the nodes from the root to a leaf.
func (in *Incoming) path(leaf int) []int {
	var out []int
	for n := leaf; n > 0; n = in.Nodes[n-1].Parent {
		out = append(out, n-1)
	}
	slices.Reverse(out)
	return out
}

// sessionsBefore returns the sessions that say nothing of the message at a place, from 0, or after it; place < 0: all.
func sessionsBefore(sessions []branch.Session, place int) []branch.Session {
	if place < 0 {
		return sessions
	}
	var out []branch.Session
	for _, s := range sessions {
		if s.Start > place+1 {
			break
		}
		s.PrunedTo = min(s.PrunedTo, place)
		s.Digests = slices.DeleteFunc(slices.Clone(s.Digests), func(d branch.Digest) bool { return d.To > place })
		out = append(out, s)
	}
	return out
}
