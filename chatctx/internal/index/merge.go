package index

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// fanout is how many blocks of about the same size become one.
const fanout = 8

// Step merges blocks for about budget bytes, and reports whether there is more to do.
func Step(tx kv.RwTx, s *State, budget int) (more bool, err error) {
	if s.Merge == nil && !s.plan() {
		return false, nil
	}
	return true, s.merge(tx, budget)
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
