package index

import (
	"bytes"
	"encoding/binary"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// fanout is how many blocks of about the same size become one.
const fanout = 8

// Step merges blocks for about budget bytes, or deletes what a merge left behind, and reports whether there is more to do.
func Step(tx kv.RwTx, s *State, budget int) (more bool, err error) {
	if err := s.bury(tx, budget/maxChunk+fanout); err != nil {
		return false, err
	}
	if s.Merge == nil && !s.plan() {
		return len(s.Gone) > 0, nil
	}
	if err := s.merge(tx, budget); err != nil {
		return false, err
	}
	return true, nil
}

// bury deletes up to n records of unused blocks.
func (s *State) bury(tx kv.RwTx, n int) error {
	for n > 0 && len(s.Gone) > 0 {
		deleted, err := deleteFirst(tx, TermBucket, kv.Prefix(binary.BigEndian.AppendUint64(nil, s.Gone[0].ID)), n)
		if err != nil {
			return err
		}
		if n -= deleted; n > 0 {
			s.Gone = s.Gone[1:]
		}
	}
	return nil
}

// plan chooses neighbouring blocks to merge. None of them is larger than all others together, so that a document is rewritten only a few times.
func (s *State) plan() bool {
	for end := len(s.Blocks); end >= fanout; end-- {
		in := s.Blocks[end-fanout : end]
		var all, largest uint64
		for _, b := range in {
			all += b.To - b.From
			largest = max(largest, b.To-b.From)
		}
		if largest*2 <= all {
			s.Merge = &Merge{In: append([]Block(nil), in...), Out: Block{ID: s.NextID, From: in[0].From, To: in[fanout-1].To}}
			s.NextID++
			return true
		}
	}
	return false
}

// merge goes on with the planned merge.
func (s *State) merge(tx kv.RwTx, budget int) error {
	m := s.Merge
	w := &writer{tx: tx, block: m.Out.ID}
	inputs := make([]*input, len(m.In))
	for i, b := range m.In {
		inputs[i] = &input{tx: tx, block: b.ID, base: uint32(b.From - m.Out.From), after: []byte(m.After), begun: m.Begun}
		if err := inputs[i].fill(); err != nil {
			return err
		}
	}
	defer func() { m.Out.Entries += w.count }()
	for w.bytes+len(w.buf) < budget {
		term := least(inputs)
		if term == nil {
			if err := w.flush(); err != nil {
				return err
			}
			m.Out.Entries, w.count = m.Out.Entries+w.count, 0
			s.merged()
			return nil
		}
		m.After, m.Begun = string(term), true
		if err := mergeTerm(w, inputs, m.After); err != nil {
			return err
		}
	}
	return w.flush()
}

// merged replaces the old blocks by the new one.
func (s *State) merged() {
	var blocks []Block
	for _, b := range s.Blocks {
		switch {
		case b.ID == s.Merge.In[0].ID:
			blocks = append(blocks, s.Merge.Out)
		case b.From < s.Merge.Out.From || b.From >= s.Merge.Out.To:
			blocks = append(blocks, b)
		}
	}
	s.Gone = append(s.Gone, s.Merge.In...)
	s.Blocks, s.Merge = blocks, nil
}

func least(inputs []*input) []byte {
	var term []byte
	for _, in := range inputs {
		if len(in.entries) > 0 && (term == nil || bytes.Compare(in.entries[0].term, term) < 0) {
			term = in.entries[0].term
		}
	}
	return term
}

// mergeTerm writes the entries of a term from all inputs and joins short ones.
func mergeTerm(w *writer, inputs []*input, term string) error {
	var open *entry
	for _, in := range inputs {
		for len(in.entries) > 0 && string(in.entries[0].term) == term {
			e := in.entries[0]
			in.entries = in.entries[1:]
			switch {
			case open == nil:
				open = &e
			case len(open.list)+len(e.list) <= maxList:
				open.join(&e)
			default:
				if err := w.put(open); err != nil {
					return err
				}
				open = &e
			}
			if err := in.fill(); err != nil {
				return err
			}
		}
	}
	return w.put(open)
}

// input reads the entries of a block, a record at a time.
type input struct {
	tx      kv.Tx
	block   uint64
	base    uint32
	after   []byte // if begun: skip the terms up to this one
	begun   bool
	at      []byte // the next record begins here or later; nil: nothing was read yet
	entries []entry
	ended   bool
}

// fill reads the next record if no entries are left.
func (in *input) fill() error {
	for len(in.entries) == 0 && !in.ended {
		r := kv.Prefix(binary.BigEndian.AppendUint64(nil, in.block))
		if in.at != nil {
			r.From = in.at
		} else if in.begun {
			if err := in.seek(&r); err != nil {
				return err
			}
		}
		in.ended = true
		err := in.tx.Scan(TermBucket, r, func(key, value []byte) error {
			in.ended, in.at = false, append(bytes.Clone(key), 0)
			err := decode(value, func(e *entry) bool {
				if in.begun && bytes.Compare(e.term, in.after) <= 0 {
					return true
				}
				c := *e
				c.term, c.list = bytes.Clone(e.term), bytes.Clone(e.list)
				c.move(in.base)
				in.entries = append(in.entries, c)
				return true
			})
			if err == nil {
				err = kv.ErrStop
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// seek finds the record that holds what comes after the term.
func (in *input) seek(r *kv.Range) error {
	back := kv.Range{From: r.From, To: append(termKey(in.block, in.after, ^uint32(0)), 0), Reverse: true}
	return in.tx.Scan(TermBucket, back, func(key, _ []byte) error {
		r.From = bytes.Clone(key)
		return kv.ErrStop
	})
}
