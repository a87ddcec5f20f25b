package branchstore

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// In stores of format 2 the two numbers in the key of an entry have 8 bytes each, in all or in some segments. No short key has such a form, since its first
// number would be 0.

const longKey = 32

// isLong reports whether an entry's key has the form of before.
func isLong(key []byte) bool { return len(key) == longKey && key[16] == 0 }

// Shortened returns an entry's key in today's form.
func Shortened(key []byte) []byte {
	if !isLong(key) {
		return key
	}
	return EntryKey(pool.ID(key[:16]), binary.BigEndian.Uint64(key[16:]), binary.BigEndian.Uint64(key[24:]))
}

// lengthened returns a key, or a bound of a range, in the form of before. Both forms have the same order.
func lengthened(key []byte) []byte {
	segment, position, ok := EntryAt(key)
	if !ok {
		return key
	}
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(bytes.Clone(key[:16]), segment), position)
}

// WithLongKeys returns a transaction that shows entries with keys of both forms as if all had short ones.
func WithLongKeys(tx kv.Tx) kv.Tx { return bothForms{tx} }

type bothForms struct{ kv.Tx }

func (t bothForms) Fetch(keys []kv.Key) error {
	for _, k := range keys[:len(keys):len(keys)] {
		if k.Bucket != EntryBucket {
			continue
		}
		if k.Key = lengthened(k.Key); k.Range != nil {
			r := lengthenedRange(*k.Range)
			k.Range = &r
		}
		keys = append(keys, k)
	}
	return kv.Fetch(t.Tx, keys...)
}

func lengthenedRange(r kv.Range) kv.Range {
	r.From, r.To = lengthened(r.From), lengthened(r.To)
	return r
}

func (t bothForms) Get(bucket string, key []byte) ([]byte, error) {
	value, err := t.Tx.Get(bucket, key)
	if value != nil || err != nil || bucket != EntryBucket {
		return value, err
	}
	return t.Tx.Get(bucket, lengthened(key))
}

func (t bothForms) GetMany(bucket string, keys [][]byte, fn func(i int, value []byte) error) error {
	return t.Tx.GetMany(bucket, keys, func(i int, value []byte) (err error) {
		if value == nil && bucket == EntryBucket {
			if value, err = t.Tx.Get(bucket, lengthened(keys[i])); err != nil {
				return err
			}
		}
		return fn(i, value)
	})
}

// Scan merges the entries of both forms. An entry that has both counts once, with its short key.
func (t bothForms) Scan(bucket string, r kv.Range, fn func(key, value []byte) error) error {
	if bucket != EntryBucket {
		return t.Tx.Scan(bucket, r, fn)
	}
	old, stopped := &longEntries{tx: t.Tx, left: lengthenedRange(r), more: true}, false
	// pass gives fn the old entries that come before a key, all for nil.
	pass := func(key []byte) error {
		for {
			e, err := old.first()
			if e == nil || err != nil {
				return err
			}
			order := -1
			if key != nil {
				order = bytes.Compare(Shortened(e.key), key)
			}
			if key != nil && order != 0 && (order > 0) != r.Reverse {
				return nil
			}
			old.page = old.page[1:]
			if order == 0 {
				continue
			}
			if err := fn(Shortened(e.key), e.value); err != nil {
				return err
			}
		}
	}
	err := t.Tx.Scan(bucket, r, func(key, value []byte) error {
		if isLong(key) {
			return nil
		}
		err := pass(key)
		if err == nil {
			err = fn(key, value)
		}
		stopped = err != nil
		return err
	})
	if err == nil && !stopped {
		err = pass(nil)
	}
	if errors.Is(err, kv.ErrStop) {
		err = nil
	}
	return err
}

// longEntries reads the entries of a range that have long keys, a page at a time.
type longEntries struct {
	tx   kv.Tx
	left kv.Range
	more bool // there may be some in left
	page []longEntry
}

type longEntry struct{ key, value []byte }

// longPage is how many entries with long keys are held in memory.
const longPage = 1024

// first returns the next entry without taking it off; nil after the last.
func (l *longEntries) first() (*longEntry, error) {
	for len(l.page) == 0 && l.more {
		l.more, l.page = false, l.page[:0]
		err := l.tx.Scan(EntryBucket, l.left, func(key, value []byte) error {
			if !isLong(key) {
				return nil
			}
			if l.more = len(l.page) == longPage; l.more {
				return kv.ErrStop
			}
			l.page = append(l.page, longEntry{bytes.Clone(key), bytes.Clone(value)})
			return nil
		})
		if err != nil {
			return nil, err
		}
		if last := len(l.page) - 1; l.left.Reverse && l.more {
			l.left.To = l.page[last].key
		} else if l.more {
			l.left.From = append(bytes.Clone(l.page[last].key), 0)
		}
	}
	if len(l.page) == 0 {
		return nil, nil
	}
	return &l.page[0], nil
}

// ShortenKeys gives each entry with a long key its short one.
func ShortenKeys(tx kv.RwTx) error {
	old := &longEntries{tx: tx, more: true}
	for {
		e, err := old.first()
		if e == nil || err != nil {
			return err
		}
		old.page = old.page[1:]
		if err := e.shorten(tx); err != nil {
			return err
		}
	}
}

// shorten moves one entry. One that has a short key too keeps the value under that.
func (e *longEntry) shorten(tx kv.RwTx) error {
	short := Shortened(e.key)
	has, err := tx.Get(EntryBucket, short)
	if err == nil && has == nil {
		err = tx.Put(EntryBucket, short, e.value)
	}
	if err != nil {
		return err
	}
	return tx.Delete(EntryBucket, e.key)
}
