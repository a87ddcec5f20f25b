package intake

import (
	"crypto/sha256"
	"strings"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// gatedCall is a call that an agent's hook brought, and that no message of the session has yet.
type gatedCall struct {
	key []byte
	rec *record.CallRecord
}

// onlyGated reports whether the conversation has nothing yet but calls of an agent's hook: its empty branch is then the first of the file.
func (g *graft) onlyGated(src base.SourceRecord) (bool, error) {
	if g.t.Rec.Gated == "" || src.Fingerprint != (pool.Hash{}) || g.t.Rec.Branches != 1 || len(g.in.Branches) == 0 {
		return false, nil
	}
	b, err := g.t.Branch(g.t.Rec.Active.String())
	if err != nil || branchstore.Len(b) > 0 {
		return false, err
	}
	g.t.Touch(b)
	g.t.Target = b
	return true, nil
}

// begins gives a conversation of which only a hook's calls were known what a new one gets of its file.
func (g *graft) begins(res *record.Imported) error {
	res.Notes = nil
	first, err := g.t.Branch(g.in.Branches[0].Name)
	if err != nil {
		return err
	}
	if main := g.t.Target; main.ID != first.ID && branchstore.Len(main) == 0 {
		g.t.Rec.Active = first.ID
		return g.t.Remove(main)
	}
	return nil
}

// gated makes the calls that the agent's hook brought and those of the session's messages one: the record, its decisions and its state become the message's.
func (g *graft) gated() error {
	if g.t.Rec.Gated == "" {
		return nil
	}
	waiting := map[string][]gatedCall{} // by the provider's id, or by what tells the calls of agents without ids
	err := g.t.Tx.Scan(base.CallBucket, kv.Prefix(g.t.ID[:]), func(key, value []byte) error {
		rec, err := base.DecodeCall(key, value)
		if err == nil && base.IsApart(rec) {
			name := base.HookName(rec)
			waiting[name] = append(waiting[name], gatedCall{append([]byte(nil), key...), rec})
		}
		return err
	})
	if err != nil || len(waiting) == 0 {
		return err
	}
	for i := range g.in.Nodes {
		m := g.in.Nodes[i].Message
		for k := range m.Calls {
			c := &m.Calls[k]
			name := c.ID
			if len(waiting[name]) == 0 {
				name = base.HookID(c.Tool, sha256.Sum256(jsontree.Canonical(c.Arguments)))
			}
			if found := waiting[name]; len(found) > 0 && g.home[i].Segment != 0 {
				waiting[name] = found[1:]
				if err := g.becomes(found[0], i, k); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// becomes moves the record of a hook's call to a call of a message.
func (g *graft) becomes(was gatedCall, node, index int) error {
	t, m, rec := g.t, g.in.Nodes[node].Message, was.rec
	message, _ := base.CallOfKey(was.key)
	brought, err := poolstore.Get(t.Tx, t.ID, message)
	if err != nil || brought == nil {
		return err
	}
	if err := t.Forget(brought); err != nil {
		return err
	}
	if rec.Result != (pool.ID{}) {
		result, err := poolstore.Get(t.Tx, t.ID, rec.Result)
		if err == nil && result != nil {
			err = t.Forget(result)
		}
		if err != nil {
			return err
		}
	}
	c := &m.Calls[index]
	if c.Tool != rec.Tool || rec.Gate.Hash != sha256.Sum256(jsontree.Canonical(c.Arguments)) {
		rec.Gate.Tool, rec.Gate.Arguments = rec.Tool, brought.Calls[0].Arguments
	}
	rec.CallID, rec.Tool, rec.Home, rec.Result = c.ID, c.Tool, g.home[node], pool.ID{}
	if r := g.resultOf(c.ID, node); r != nil {
		base.Outlived(rec, r, t.Now)
	}
	return t.MoveCall(was.key, m.ID, index, rec)
}

// resultOf returns what the file has as a call's result, nil for none.
func (g *graft) resultOf(call string, node int) *pool.Result {
	for i := node + 1; i < len(g.in.Nodes); i++ {
		if r := g.in.Nodes[i].Message.Result; r != nil && r.RequestID == call && strings.TrimSpace(call) != "" && g.above(node, i) {
			return r
		}
	}
	return nil
}
