package index

import (
	"bytes"
	"encoding/binary"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Check reads the whole index and calls have for each document in a block or waiting. Its error wraps kv.ErrDamaged if something does not fit.
func Check(tx kv.Tx, s *State, have func(Doc)) error {
	if err := ScanWaiting(tx, false, func(w Waiting) error { have(w.Doc); return nil }); err != nil {
		return err
	}
	next := uint64(0)
	err := ScanDocs(tx, func(from uint64, docs []Doc) error {
		if from != next {
			return damaged("documents %d to %d are missing", next, from)
		}
		next += uint64(len(docs))
		for _, d := range docs {
			if d != (Doc{}) {
				have(d)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if next != s.Next {
		return damaged("it has %d documents of %d", next, s.Next)
	}
	blocks := map[uint64]Block{}
	at := uint64(0)
	for _, b := range s.Blocks {
		if b.From != at || b.To < b.From {
			return damaged("block %d begins at %d after %d", b.ID, b.From, at)
		}
		at, blocks[b.ID] = b.To, b
	}
	if at != s.Next {
		return damaged("its blocks end at %d of %d", at, s.Next)
	}
	if s.Merge != nil {
		blocks[s.Merge.Out.ID] = s.Merge.Out
	}
	if err := checkTerms(tx, blocks); err != nil {
		return err
	}
	return checkTotals(tx, s.Spans())
}

// checkTerms reads all lists. It checks that a list has only documents of its block and that entries are in order and complete.
func checkTerms(tx kv.Tx, blocks map[uint64]Block) error {
	var last entry
	var block uint64
	count := map[uint64]uint64{}
	err := tx.Scan(TermBucket, kv.Range{}, func(key, value []byte) error {
		if len(key) < 13 {
			return damaged("a key of %d bytes is in %s", len(key), TermBucket)
		}
		id := binary.BigEndian.Uint64(key)
		b, ok := blocks[id]
		if !ok {
			return damaged("there are terms of block %d, which is missing", id)
		}
		if id != block {
			block, last = id, entry{}
		}
		first, fits := true, true
		err := decode(value, func(e *entry) bool {
			fits = !first || bytes.Equal(termKey(id, e.term, e.first), key)
			first = false
			order := bytes.Compare(last.term, e.term)
			fits = fits && (order < 0 || order == 0 && last.last < e.first)
			end := uint32(0)
			fits = e.each(func(p posting) { end = p.doc }) && fits && end == e.last && uint64(end) < b.To-b.From
			count[id]++
			last = entry{term: bytes.Clone(e.term), last: e.last}
			return fits
		})
		if err == nil && !fits {
			err = damaged("the terms of block %d do not fit", id)
		}
		return err
	})
	if err != nil {
		return err
	}
	for id, b := range blocks {
		if count[id] != b.Entries {
			return damaged("the block %d has %d entries of %d", id, count[id], b.Entries)
		}
	}
	return nil
}

// checkTotals checks that each span's lists name each of its documents by kind once.
func checkTotals(tx kv.Tx, spans []Span) error {
	live := make(map[uint64]uint64)
	err := ScanDocs(tx, func(from uint64, docs []Doc) error {
		for _, s := range spans {
			for i := max(from, s.From); i < min(from+uint64(len(docs)), s.To); i++ {
				if docs[i-from] != (Doc{}) {
					live[s.ID]++
				}
			}
		}
		return nil
	})
	for _, s := range spans {
		named := uint64(0)
		if err == nil {
			err = s.entries(tx, []byte(kindTerm), kv.Prefix([]byte(kindTerm)).To, func(e *entry) bool {
				named += uint64(e.n)
				return true
			})
		}
		if err == nil && live[s.ID] != named {
			err = damaged("the block %d names %d documents of %d", s.ID, named, live[s.ID])
		}
	}
	return err
}
