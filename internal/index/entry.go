package index

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Limits in bytes at which a term's list is cut into entries, and at which entries fill a record.
const (
	maxList  = 2 << 10
	maxChunk = 2 << 10
)

// entry is a piece of a term's list: n documents from first to last. Each is a varint: twice its distance from the one before (from first for the first
// one), plus one if another varint follows with the term's count in the document. Without that varint the count is one.
type entry struct {
	term        []byte
	first, last uint32
	n           uint32
	list        []byte
}

// posting is one document of a list.
type posting struct {
	doc uint32 // counted from the block's first
	tf  uint32
}

// each calls fn for the postings of an entry. It reports whether the list is complete.
func (e *entry) each(fn func(posting)) bool {
	doc, b := e.first, e.list
	for range e.n {
		v, k := binary.Uvarint(b)
		if k <= 0 {
			return false
		}
		b = b[k:]
		doc += uint32(v >> 1)
		tf := uint64(1)
		if v&1 == 1 {
			if tf, k = binary.Uvarint(b); k <= 0 {
				return false
			}
			b = b[k:]
		}
		fn(posting{doc, uint32(tf)})
	}
	return len(b) == 0
}

// add appends a document.
func (e *entry) add(p posting) {
	if e.n == 0 {
		e.first, e.last = p.doc, p.doc
	}
	v := uint64(p.doc-e.last) << 1
	if p.tf > 1 {
		v |= 1
	}
	e.list = binary.AppendUvarint(e.list, v)
	if p.tf > 1 {
		e.list = binary.AppendUvarint(e.list, uint64(p.tf))
	}
	e.last = p.doc
	e.n++
}

// join appends the documents of next, which come after e's. Only the first of them has to be encoded again.
func (e *entry) join(next *entry) {
	flag := next.list[0] & 1
	e.list = binary.AppendUvarint(e.list, uint64(next.first-e.last)<<1|uint64(flag))
	e.list = append(e.list, next.list[1:]...)
	e.n += next.n
	e.last = next.last
}

// move adds by to the documents' numbers.
func (e *entry) move(by uint32) { e.first, e.last = e.first+by, e.last+by }

// writer packs entries, which come in order, into records of one block.
type writer struct {
	tx    kv.RwTx
	block uint64
	key   []byte
	last  []byte
	buf   []byte
	bytes int    // bytes written so far
	count uint64 // entries written so far
}

func (w *writer) put(e *entry) error {
	if w.key == nil {
		w.key = termKey(w.block, e.term, e.first)
		w.last = w.last[:0]
	}
	shared := 0
	for shared < len(w.last) && shared < len(e.term) && w.last[shared] == e.term[shared] {
		shared++
	}
	for _, v := range []uint64{uint64(shared), uint64(len(e.term) - shared)} {
		w.buf = binary.AppendUvarint(w.buf, v)
	}
	w.buf = append(w.buf, e.term[shared:]...)
	w.buf = binary.AppendUvarint(binary.AppendUvarint(w.buf, uint64(e.first)), uint64(e.n))
	if e.n > 1 { // most terms are in one document, whose list says itself where it ends
		w.buf = binary.AppendUvarint(binary.AppendUvarint(w.buf, uint64(e.last-e.first)), uint64(len(e.list)))
	}
	w.buf = append(w.buf, e.list...)
	w.last = append(w.last[:0], e.term...)
	w.count++
	if len(w.buf) >= maxChunk {
		return w.flush()
	}
	return nil
}

func (w *writer) flush() error {
	if w.key == nil {
		return nil
	}
	value := seal(bytes.Clone(w.buf))
	w.bytes += len(value)
	err := w.tx.Put(TermBucket, w.key, value)
	w.key, w.buf = nil, w.buf[:0]
	return err
}

// decode calls fn for the entries of a record until it returns false. An entry's list lives as long as value, its term until fn returns.
func decode(value []byte, fn func(*entry) bool) error {
	b, err := unseal(value)
	if err != nil {
		return damaged("a record %v", err)
	}
	var e entry
	next := func() (v int) {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > math.MaxInt32 {
			b, err = nil, damaged("a record does not fit")
			return 0
		}
		b = b[k:]
		return int(n)
	}
	for len(b) > 0 && err == nil {
		shared, more := next(), next()
		if err != nil || shared > len(e.term) || more > len(b) {
			return damaged("a record does not fit")
		}
		e.term = append(e.term[:shared], b[:more]...)
		b = b[more:]
		first, n := next(), next()
		span, size := 0, listOfOne(b)
		if n > 1 {
			span, size = next(), next()
		}
		if err != nil || size > len(b) || n == 0 || size == 0 {
			return damaged("a record does not fit")
		}
		e.first, e.last, e.n, e.list = uint32(first), uint32(first+span), uint32(n), b[:size:size]
		b = b[size:]
		if !fn(&e) {
			return nil
		}
	}
	return err
}

// listOfOne returns the length of the list of one document at the beginning of b.
func listOfOne(b []byte) int {
	if len(b) == 0 || b[0]&1 == 0 {
		return 1
	}
	_, k := binary.Uvarint(b[1:])
	return 1 + max(k, 0)
}

// entries calls fn for a block's entries of the terms from lo to hi inclusive, in order, until it returns false. A nil hi means the end of the block.
func entries(tx kv.Tx, block uint64, lo, hi []byte, fn func(*entry) bool) error {
	prefix := binary.BigEndian.AppendUint64(nil, block)
	r := kv.Prefix(prefix)
	// The record before lo's place may end with lo.
	back := kv.Range{From: prefix, To: termKey(block, lo, 0), Reverse: true}
	err := tx.Scan(TermBucket, back, func(key, _ []byte) error {
		r.From = bytes.Clone(key)
		return kv.ErrStop
	})
	if err != nil {
		return err
	}
	return tx.Scan(TermBucket, r, func(key, value []byte) error {
		ended := false
		err := decode(value, func(e *entry) bool {
			if bytes.Compare(e.term, lo) < 0 {
				return true
			}
			if hi != nil && bytes.Compare(e.term, hi) > 0 || !fn(e) {
				ended = true
				return false
			}
			return true
		})
		if err == nil && ended {
			err = kv.ErrStop
		}
		return err
	})
}
