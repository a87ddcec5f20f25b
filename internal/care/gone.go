package care

import (
	"bytes"
	"maps"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// What a purge or a redaction notes of what it removes, so that no import brings it back. It notes before it removes. A purge that is to
// leave no marks notes the same, to take back what earlier ones left.

// noteContext notes a context, the conversations of other programs that it is, and the messages that are known by their words alone.
func (p *purging) noteContext(tx kv.Tx, id pool.ID) error {
	if p.marks == nil {
		return nil
	}
	p.marks.Add(base.GoneContext, base.GoneID(id))
	made := p.forgets
	err := tx.Scan(base.SourceBucket, kv.Range{}, func(key, value []byte) error {
		if n, node := base.ParseSourceNode(value); node {
			p.forgetNode(key, n, id)
			return nil
		}
		var rec base.SourceRecord
		if base.DecodeKept(base.SourceBucket, value, &rec) == nil && rec.Context == id {
			p.marks.Source(base.GoneContext, key)
			made = made || bytes.Contains(key, []byte(base.MadeID))
		}
		return nil
	})
	if err != nil || !made {
		return err
	}
	return p.noteMessages(tx, id, base.GoneMessage, func(pool.ID) bool { return true })
}

// noteBranch notes a branch, and its messages that no other branch holds.
func (p *purging) noteBranch(tx kv.Tx, context pool.ID, b *branch.Branch) error {
	if p.marks == nil {
		return nil
	}
	p.marks.Add(base.GoneBranch, base.GoneID(b.ID))
	own, others := map[pool.ID]bool{}, map[pool.ID]bool{}
	err := branchstore.List(tx, context, func(o *branch.Branch) error {
		ids, err := branchstore.IDs(tx, context, o.Pieces)
		for _, id := range ids {
			if o.ID == b.ID {
				own[id] = true
			} else {
				others[id] = true
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.noteMessages(tx, context, base.GoneMessage, func(id pool.ID) bool { return own[id] && !others[id] })
}

// noteMessages notes those messages of a context that are wanted.
func (p *purging) noteMessages(tx kv.Tx, context pool.ID, kind int, wanted func(pool.ID) bool) error {
	if p.marks == nil {
		return nil
	}
	noted := map[pool.ID]bool{}
	err := branchstore.List(tx, context, func(b *branch.Branch) error {
		ids, err := branchstore.IDs(tx, context, b.Pieces)
		for i := 0; i < len(ids) && err == nil; i++ {
			if wanted(ids[i]) && !noted[ids[i]] {
				noted[ids[i]] = true
				err = p.noteMessage(tx, context, kind, ids, i)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return poolstore.Scan(tx, context, func(id pool.ID, m *pool.Message, err error) error {
		if err == nil && wanted(id) && !noted[id] {
			p.marks.Add(kind, p.marks.Keys(m, nil, nil)...)
		}
		return err
	})
}

// noteMessage notes the message at a place of a history.
func (p *purging) noteMessage(tx kv.Tx, context pool.ID, kind int, ids []pool.ID, i int) error {
	m, err := poolstore.Get(tx, context, ids[i])
	if err != nil || m == nil {
		return err
	}
	var before, after *pool.Message
	if m.Source != nil && base.MadeUp(m.Source.Conversation) {
		if i > 0 {
			before, err = poolstore.Get(tx, context, ids[i-1])
		}
		if i+1 < len(ids) && err == nil {
			after, err = poolstore.Get(tx, context, ids[i+1])
		}
	}
	if err == nil {
		p.marks.Add(kind, p.marks.Keys(m, before, after)...)
	}
	return err
}

// forgetNode notes what earlier purges may have noted of a node of a context, if this one is to leave nothing.
func (p *purging) forgetNode(key []byte, n base.SourceNode, context pool.ID) {
	if p.forgets && n.Context == context {
		p.marks.Source(base.GoneMessage, key)
		p.marks.Add(base.GoneMessage, base.GoneID(n.Message))
	}
}

// sourcesAnew makes the next import of the sources of some contexts read them, though they did not change: what it says of them would not be true any more. It takes
// each hash with which a text could be guessed that is not here: of nodes whose messages are gone or reworded, of titles and app data, of files.
func (p *purging) sourcesAnew(tx kv.RwTx, contexts, reworded map[pool.ID]bool) error {
	nodes, sources, notes := map[string]base.SourceNode{}, map[string]base.SourceRecord{}, [][]byte(nil)
	err := tx.Scan(base.SourceBucket, kv.Range{}, func(key, value []byte) error {
		if n, node := base.ParseSourceNode(value); node {
			if contexts[n.Context] {
				nodes[string(key)] = n
			}
			return nil
		}
		var rec base.SourceRecord
		switch {
		case intake.IsFileNote(key):
			if intake.SourceOf(value, func(id pool.ID) bool { return contexts[id] }) {
				notes = append(notes, bytes.Clone(key))
			}
		case base.DecodeKept(base.SourceBucket, value, &rec) == nil && contexts[rec.Context] && (rec.Fingerprint != (pool.Hash{}) || len(rec.About) > 0):
			sources[string(key)] = rec
		}
		return nil
	})
	for _, key := range notes {
		if err == nil {
			err = tx.Delete(base.SourceBucket, key)
		}
	}
	for key, rec := range sources {
		if err == nil {
			err = sourceAnew(tx, []byte(key), rec)
		}
	}
	for key, n := range nodes {
		if err == nil {
			err = p.wordless(tx, []byte(key), n, reworded[n.Message])
		}
	}
	return err
}

// sourceAnew takes the hashes of a conversation as a file has it, but for those of a title and app data that are here.
func sourceAnew(tx kv.RwTx, key []byte, src base.SourceRecord) error {
	rec, _, err := base.GetContext(tx, src.Context)
	if err != nil {
		return err
	}
	src.Fingerprint, src.Digest = pool.Hash{}, pool.Hash{}
	maps.DeleteFunc(src.About, func(name string, hash uint64) bool {
		if rec == nil {
			return true
		}
		text := string(rec.AppData[name])
		if name == "" {
			text = rec.Title
		}
		return intake.AboutHash(text) != hash
	})
	return base.PutRecord(tx, base.SourceBucket, key, src)
}

// journalWordless takes those hashes out of what the store's journal would put back of imports: one that was undone may have had the same texts.
func journalWordless(tx kv.RwTx) error {
	changed := map[uint64]*base.Operation{}
	err := base.EachOperation(tx, kv.Prefix(make([]byte, 16)), func(n uint64, op *base.Operation) error {
		for i := range op.Changes {
			c := &op.Changes[i]
			if c.Kind != base.RecordChange || c.Bucket != base.SourceBucket || c.Old == nil {
				continue
			}
			old, err := withoutHashes(c.Old)
			if err != nil {
				return err
			}
			if !bytes.Equal(old, c.Old) {
				c.Old, changed[n] = old, op
			}
		}
		return nil
	})
	for n, op := range changed {
		if err == nil {
			err = base.PutRecord(tx, base.OperationBucket, base.OperationKey(pool.ID{}, n), op)
		}
	}
	return err
}

// withoutHashes returns a record of an import without hashes of texts.
func withoutHashes(raw []byte) ([]byte, error) {
	if n, node := base.ParseSourceNode(raw); node {
		n.Words = [8]byte{}
		return n.Value(), nil
	}
	var rec base.SourceRecord
	if base.DecodeKept(base.SourceBucket, raw, &rec) != nil || rec.Fingerprint == (pool.Hash{}) && len(rec.About) == 0 {
		return raw, nil // what cannot be read is no hash that is known
	}
	rec.Fingerprint, rec.Digest, rec.About = pool.Hash{}, pool.Hash{}, nil
	return base.EncodeRecord(rec)
}

// wordless takes the hash of a node's words, also out of its key, if its message is gone or has other words now.
func (p *purging) wordless(tx kv.RwTx, key []byte, n base.SourceNode, reworded bool) error {
	has, err := poolstore.Has(tx, n.Context, n.Message)
	if err != nil || has && !reworded {
		return err
	}
	if !has {
		p.forgetNode(key, n, n.Context)
	}
	n.Words = [8]byte{}
	if first, further := base.CutSourceKey(key); further {
		if err := tx.Delete(base.SourceBucket, key); err != nil {
			return err
		}
		key = append(first, n.Message[8:]...)
	}
	return tx.Put(base.SourceBucket, key, n.Value())
}
