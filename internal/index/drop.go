package index

import (
	"bytes"
	"encoding/binary"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Drop removes the documents for which dead returns true, so that nothing of them is left in the index, and returns how many it took out of blocks. It
// reads the blocks that have any in full.
func Drop(tx kv.RwTx, s *State, dead func(Doc) (bool, error)) (int, error) {
	if err := dropWaiting(tx, dead); err != nil {
		return 0, err
	}
	gone, err := dropDocs(tx, dead)
	if err != nil || len(gone) == 0 {
		return 0, err
	}
	for i := range s.Blocks {
		if err := dropFrom(tx, &s.Blocks[i], gone); err != nil {
			return 0, err
		}
	}
	if s.Merge != nil {
		if err := dropFrom(tx, &s.Merge.Out, gone); err != nil {
			return 0, err
		}
	}
	return len(gone), nil
}

func dropWaiting(tx kv.RwTx, dead func(Doc) (bool, error)) error {
	var keys [][]byte
	err := ScanWaiting(tx, false, func(w Waiting) error {
		is, err := dead(w.Doc)
		if is {
			keys = append(keys, waitingKey(w.at, w.Doc))
		}
		return err
	})
	for _, key := range keys {
		if err == nil {
			err = tx.Delete(WaitingBucket, key)
		}
	}
	return err
}

// dropDocs takes documents out of the doc bucket and returns their numbers.
func dropDocs(tx kv.RwTx, dead func(Doc) (bool, error)) (map[uint64]bool, error) {
	gone := map[uint64]bool{}
	type record struct {
		from uint64
		docs []Doc
	}
	var changed []record
	err := ScanDocs(tx, func(from uint64, docs []Doc) error {
		touched := false
		for i, d := range docs {
			if d == (Doc{}) {
				continue
			}
			is, err := dead(d)
			if err != nil {
				return err
			}
			if is {
				docs[i], touched = Doc{}, true
				gone[from+uint64(i)] = true
			}
		}
		if touched {
			changed = append(changed, record{from, docs})
		}
		return nil
	})
	for _, r := range changed {
		if err == nil {
			err = putDocs(tx, r.from, r.docs)
		}
	}
	return gone, err
}

// dropFrom takes documents out of a block's lists. It rewrites the records that have them.
func dropFrom(tx kv.RwTx, b *Block, gone map[uint64]bool) error {
	has := false
	for n := range gone {
		has = has || n >= b.From && n < b.To
	}
	if !has {
		return nil
	}
	type record struct{ key, value []byte }
	var changed []record
	err := tx.Scan(TermBucket, kv.Prefix(binary.BigEndian.AppendUint64(nil, b.ID)), func(key, value []byte) error {
		touched, whole := false, true
		err := decode(value, func(e *entry) bool {
			whole = e.each(func(p posting) { touched = touched || gone[b.From+uint64(p.doc)] }) && whole
			return true
		})
		if err == nil && !whole {
			err = damaged("a list is cut short")
		}
		if touched {
			changed = append(changed, record{bytes.Clone(key), bytes.Clone(value)})
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range changed {
		if err := tx.Delete(TermBucket, r.key); err != nil {
			return err
		}
		if err := rewrite(tx, b, r.value, gone); err != nil {
			return err
		}
	}
	return nil
}

// rewrite writes a record without some documents, under another key if its first entry is gone.
func rewrite(tx kv.RwTx, b *Block, value []byte, gone map[uint64]bool) error {
	w := &writer{tx: tx, block: b.ID}
	var failed error
	was := uint64(0)
	err := decode(value, func(e *entry) bool {
		was++
		left := entry{term: e.term}
		e.each(func(p posting) {
			if !gone[b.From+uint64(p.doc)] {
				left.add(p)
			}
		})
		if left.n > 0 {
			failed = w.put(&left)
		}
		return failed == nil
	})
	if failed != nil {
		err = failed
	}
	if err != nil {
		return err
	}
	b.Entries += w.count - was
	return w.flush()
}
