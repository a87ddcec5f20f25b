package journal

import (
	"bytes"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// An id names one content in its context. A message that comes a second time is not stored again, whatever way it comes: Place and Stored are the ways in
// for messages that come with ids, and Store1 refuses to overwrite a message.
//
// Stored reads the message that the context has under m's id, nil if there is none. It returns ErrConflict if the two differ.

// Stored reads the message that the context has under m's id, nil for none. ErrConflict where that says something else.
func (t *Txn) Stored(m *pool.Message) (*pool.Message, error) {
	if t.Fresh[m.ID] {
		return nil, nil
	}
	was, err := poolstore.Get(t.Tx, t.ID, m.ID)
	if was == nil || err != nil {
		return nil, err
	}
	same, err := poolstore.Same(was, m)
	if err == nil && !same {
		err = taken(m.ID)
	}
	return was, err
}

func taken(id pool.ID) error {
	return base.Conflict("message %s is there already and says something else: a message never changes; leave its id out to add it as a new one", id)
}

// Store1 puts a message into the pool. It returns ErrConflict if the context has one with its id.
func (t *Txn) Store1(m *pool.Message) error {
	if t.Fresh[m.ID] {
		return t.KeepNew(m)
	}
	has, err := poolstore.Has(t.Tx, t.ID, m.ID)
	if err != nil {
		return err
	}
	if has {
		return taken(m.ID)
	}
	return t.KeepNew(m)
}

// KeepNew puts a message into the pool that is known to be new.
func (t *Txn) KeepNew(m *pool.Message) error {
	if poolstore.Counts(m) {
		t.Rec.Messages++
	}
	return t.keepMessage(m)
}

// keepMessage writes a message, new or with a new home, and lists it for the search index.
func (t *Txn) keepMessage(m *pool.Message) error {
	t.wrote = true
	delete(t.Fresh, m.ID)
	return find.PutMessage(t.Tx, t.ID, m, t.Now)
}

// Rewrite replaces the record of a stored message: of one that an import brought and that its source has more of now. The old record goes on the journal.
func (t *Txn) Rewrite(m *pool.Message) error {
	key := base.Under(t.ID, m.ID[:]...)
	old, err := t.Tx.Get(poolstore.Bucket, key)
	if err != nil {
		return err
	}
	if err := t.Remember(poolstore.Bucket, key, old); err != nil {
		return err
	}
	if err := t.uncount(m.ID); err != nil {
		return err
	}
	return find.PutMessage(t.Tx, t.ID, m, t.Now)
}

// uncount drops the token counts of a message whose words change.
func (t *Txn) uncount(id pool.ID) error {
	var keys [][]byte
	err := t.Tx.Scan(base.CountBucket, kv.Prefix(base.Under(t.ID, id[:]...)), func(key, _ []byte) error {
		keys = append(keys, bytes.Clone(key))
		return nil
	})
	for _, key := range keys {
		if err == nil {
			err = t.Tx.Delete(base.CountBucket, key)
		}
	}
	return err
}

// StoreLoose puts a message into the pool but on no branch, unless it is there. If it records what a question took, that ends the question.
func (t *Txn) StoreLoose(m *pool.Message) error {
	if err := t.EndAsking(m.ID); err != nil {
		return err
	}
	was, err := t.Stored(m)
	if was != nil || err != nil {
		return err
	}
	return t.KeepNew(m)
}

// placing puts messages on a branch one after the other.
type placing struct {
	t   *Txn
	b   *branch.Branch
	at  int // the place of the next message, from 0
	out []record.Placement
}

// Place puts messages on a branch, before the place at (from 0), and returns where each is. A message that the context has already is not stored again: if
// the branch holds it, it stays where it is, else the branch gets it as a fork would.
func (t *Txn) Place(b *branch.Branch, at int, msgs []*pool.Message) ([]record.Placement, error) {
	p := &placing{t: t, b: b, at: at}
	for len(msgs) > 0 {
		n, err := p.run(msgs)
		if err != nil {
			return nil, err
		}
		msgs = msgs[n:]
	}
	return p.out, nil
}

// run places the first of msgs and those after it of the same kind, and returns how many these are.
func (p *placing) run(msgs []*pool.Message) (int, error) {
	var fresh []*pool.Message
	var pieces []branch.Piece
	var known []pool.ID
	seen := map[pool.ID]bool{}
	for _, m := range msgs {
		was, err := p.t.Stored(m)
		if err != nil {
			return 0, err
		}
		if seen[m.ID] || was == nil && len(known) > 0 || was != nil && len(fresh) > 0 {
			break
		}
		seen[m.ID] = true
		if was == nil {
			fresh = append(fresh, m)
			continue
		}
		at, err := p.t.Standing(p.b, was)
		if err != nil {
			return 0, err
		}
		if at.Position > 0 || was.Home.Segment == 0 {
			if len(known) > 0 {
				break
			}
			return 1, p.one(was, at)
		}
		known = append(known, m.ID)
		pieces = append(pieces, branch.Piece{Segment: was.Home.Segment, From: was.Home.Position, To: was.Home.Position + 1})
	}
	if len(fresh) > 0 {
		return len(fresh), p.fresh(fresh)
	}
	return len(known), p.shared(pieces)
}

// one places a stored message that the branch holds already, or that was on no branch so far.
func (p *placing) one(was *pool.Message, at record.Placement) error {
	if at.Position > 0 {
		at.Known = true
		p.out = append(p.out, at)
		return nil
	}
	piece, err := p.t.writeAs(p.b, []*pool.Message{was}, p.t.keepMessage)
	if err != nil {
		return err
	}
	return p.insert([]branch.Piece{piece}, []pool.ID{was.ID})
}

// fresh stores new messages. A result at the end of the branch answers its call.
func (p *placing) fresh(msgs []*pool.Message) error {
	msgs = slices.Clone(msgs)
	ids := make([]pool.ID, len(msgs))
	for i, m := range msgs {
		ids[i] = m.ID
		if m.Result == nil || p.at != branchstore.Len(p.b) {
			continue
		}
		late, err := p.t.answer(p.b, m.Result)
		if err != nil {
			return err
		}
		if late {
			marked := *m
			marked.Kind = pool.Late
			msgs[i] = &marked
		}
	}
	piece, err := p.t.writeAs(p.b, msgs, p.t.KeepNew)
	if err != nil {
		return err
	}
	return p.insert([]branch.Piece{piece}, ids)
}

// shared places messages of other branches. Messages that no branch holds any more come back as they are, with calls that wait.
func (p *placing) shared(pieces []branch.Piece) error {
	held := false
	for _, piece := range pieces {
		holders, err := p.t.Holders(pool.Home{Segment: piece.Segment, Position: piece.From})
		if err != nil {
			return err
		}
		held = held || len(holders) > 0
	}
	if held {
		var err error
		if pieces, err = p.t.share(p.b, pieces, true); err != nil {
			return err
		}
	}
	ids, err := branchstore.IDs(p.t.Tx, p.t.ID, pieces)
	if err != nil {
		return err
	}
	return p.insert(pieces, ids)
}

func (p *placing) insert(pieces []branch.Piece, ids []pool.ID) error {
	if err := p.t.Splice(p.b, p.at, 0, pieces); err != nil {
		return err
	}
	for i := range p.out {
		if p.out[i].Position > p.at { // it stood behind
			p.out[i].Position += len(ids)
		}
	}
	for _, id := range ids {
		p.at++
		p.out = append(p.out, record.Placement{Message: id, Position: p.at})
	}
	return nil
}

// Standing returns where a branch holds a stored message, or the copy that it got because calls of the message waited. Position 0 means nowhere.
func (t *Txn) Standing(b *branch.Branch, was *pool.Message) (record.Placement, error) {
	pos, err := t.Reader().StandsAt(b, was)
	at := record.Placement{Message: was.ID, Position: pos}
	for i := 0; i < len(was.Calls) && at.Position == 0 && err == nil; i++ { // copies made for waiting calls are found by the calls' ids
		at, err = t.copyStanding(b, was, was.Calls[i].ID)
	}
	return at, err
}

// copyStanding returns where a branch holds an unedited copy of a message in which the call waited. Position 0 means nowhere.
func (t *Txn) copyStanding(b *branch.Branch, was *pool.Message, call string) (at record.Placement, err error) {
	prefix := base.CallIDKey(t.ID, call)
	err = t.Tx.Scan(base.CallIDBucket, kv.Prefix(prefix), func(key, _ []byte) error {
		if len(key) != len(prefix)+18 {
			return nil
		}
		m, err := poolstore.Get(t.Tx, t.ID, pool.ID(key[len(prefix):][:16]))
		if err != nil || m == nil || m.CopiedFrom == nil || *m.CopiedFrom != was.ID {
			return err
		}
		if same, err := poolstore.Same(was, m); err != nil || !same { // it was edited
			return err
		}
		pos, err := t.Reader().StandsAt(b, m)
		if pos > 0 && err == nil {
			at, err = record.Placement{Message: m.ID, Position: pos}, kv.ErrStop
		}
		return err
	})
	return at, err
}

// CopyIDs makes new ids for messages that may be of other contexts: for those that were read from a store, or with all for each that comes with an id. It is called before the
// transaction, which may run again.
func CopyIDs(msgs []*pool.Message, all bool) map[pool.ID]pool.ID {
	fresh := map[pool.ID]pool.ID{}
	for _, m := range msgs {
		if m != nil && m.ID != (pool.ID{}) && (all || m.Home != (pool.Home{})) && fresh[m.ID] == (pool.ID{}) {
			fresh[m.ID] = pool.NewID()
		}
	}
	return fresh
}

// copyAs is a message of another context as one of this.
func copyAs(m *pool.Message, id pool.ID) *pool.Message {
	c, from := *m, m.ID
	c.ID, c.CopiedFrom, c.Home = id, &from, pool.Home{}
	return &c
}

// Copies gives ids of their own to messages that came from another context: fresh has the new id for each id that this context does not have.
func (t *Txn) Copies(msgs []*pool.Message, fresh map[pool.ID]pool.ID) ([]*pool.Message, error) {
	out := make([]*pool.Message, len(msgs))
	for i, m := range msgs {
		out[i] = m
		id, given := fresh[m.ID]
		if !given {
			continue
		}
		has, err := poolstore.Has(t.Tx, t.ID, m.ID)
		if err != nil {
			return nil, err
		}
		if !has {
			out[i] = copyAs(m, id)
		}
	}
	return out, nil
}
