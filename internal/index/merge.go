package index

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// slack is how many small blocks may stand at the end before they are merged.
const slack = 3

// Due reports whether there is something to merge.
func (s *State) Due() bool { return s.Merge != nil || s.ripe() < len(s.Blocks) }

// Step merges blocks for about budget bytes, if there is something to merge.
func Step(tx kv.RwTx, s *State, budget int) error {
	if !s.Due() {
		return nil
	}
	if s.Merge == nil {
		in := slices.Clone(s.Blocks[s.ripe():])
		s.Merge = &Merge{In: in, Out: Block{ID: s.NextID, From: in[0].From, To: in[len(in)-1].To}}
		s.NextID++
	}
	return s.merge(tx, budget)
}

// ripe returns the first of the blocks to merge, up to the last: the longest row whose first block is no larger than all behind it together. So each block,
// but for the last slack, is larger than all behind it, whatever sizes came: a thousand documents have at most 12 blocks, and a million 22. A document is
// rewritten when its block at least doubles, and once more if it came in a block that was larger than those before it.
func (s *State) ripe() int {
	var behind uint64
	first := len(s.Blocks)
	for i := len(s.Blocks) - 1; i >= 0; i-- {
		size := s.Blocks[i].To - s.Blocks[i].From
		if size <= behind && i+slack < len(s.Blocks) {
			first = i
		}
		behind += size
	}
	return first
}

// merge goes on with the planned merge. It deletes the records whose entries are all in the new block.
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
	var term []byte
	for w.bytes+len(w.buf) < budget {
		if term = least(inputs); term == nil {
			break
		}
		m.After, m.Begun = string(term), true
		if err := mergeTerm(w, inputs, m.After); err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	m.Out.Entries += w.count
	for _, in := range inputs {
		if err := s.delete(tx, in); err != nil {
			return err
		}
	}
	if term == nil {
		s.merged()
	}
	return nil
}

// delete deletes the records of an input that were read to their ends.
func (s *State) delete(tx kv.RwTx, in *input) error {
	b := &s.Blocks[slices.IndexFunc(s.Blocks, func(b Block) bool { return b.ID == in.block })]
	for _, r := range in.read {
		if err := tx.Delete(TermBucket, r.key); err != nil {
			return err
		}
		b.Entries -= r.entries
	}
	return nil
}

// merged replaces the old blocks, of which nothing is left, by the new one.
func (s *State) merged() {
	at := slices.IndexFunc(s.Blocks, func(b Block) bool { return b.ID == s.Merge.In[0].ID })
	s.Blocks[at] = s.Merge.Out
	s.Blocks = append(s.Blocks[:at+1], s.Blocks[at+len(s.Merge.In):]...)
	s.Merge = nil
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
	ahead   []pair // records that were read and not decoded yet
	at      record // the record that the entries are from
	entries []entry
	read    []record // the records before it
	ended   bool
}

// record is the key of a record and how many entries it has.
type record struct {
	key     []byte
	entries uint64
}

// pair is a record with its value.
type pair struct{ key, value []byte }

// readAhead is how many records are read at once: a scan for each of them would ask a server as often.
const readAhead = 32

// fill reads the next record if no entries are left.
func (in *input) fill() error {
	for len(in.entries) == 0 && !in.ended {
		if err := in.more(); err != nil || in.ended {
			return err
		}
		next := in.ahead[0]
		in.ahead, in.at = in.ahead[1:], record{key: next.key}
		err := decode(next.value, func(e *entry) bool {
			in.at.entries++
			if in.begun && bytes.Compare(e.term, in.after) <= 0 {
				return true
			}
			c := *e
			c.term, c.list = bytes.Clone(e.term), bytes.Clone(e.list)
			c.move(in.base)
			in.entries = append(in.entries, c)
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// more notes that the present record was read to its end, and reads the next ones if none is left.
func (in *input) more() error {
	r := kv.Prefix(binary.BigEndian.AppendUint64(nil, in.block))
	if in.at.key != nil {
		in.read = append(in.read, in.at)
		r.From = append(in.at.key[:len(in.at.key):len(in.at.key)], 0)
	}
	if len(in.ahead) > 0 {
		return nil
	}
	err := in.tx.Scan(TermBucket, r, func(key, value []byte) error {
		in.ahead = append(in.ahead, pair{bytes.Clone(key), bytes.Clone(value)})
		if len(in.ahead) == readAhead {
			return kv.ErrStop
		}
		return nil
	})
	in.ended = len(in.ahead) == 0
	return err
}
