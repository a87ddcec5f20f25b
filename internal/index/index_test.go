package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/internal/testkit"
)

func doc(n int) (d Doc) {
	d[0] = 1
	d[16] = byte(n / 1000)
	binary.BigEndian.PutUint32(d[17:], uint32(n)+1)
	return d
}

// model is the index as plain maps.
type model struct {
	t     *testing.T
	db    kv.DB
	rnd   *rand.Rand
	words map[int]map[string]uint32 // of each document
	next  int
}

func (m *model) update(fn func(kv.RwTx, *State) error) {
	m.t.Helper()
	err := kvtest.Twice{DB: m.db}.Update(context.Background(), func(tx kv.RwTx) error {
		st, err := Load(tx, 7)
		if err != nil {
			return err
		}
		if st == nil {
			st = &State{Version: 7}
		}
		if err := fn(tx, st); err != nil {
			return err
		}
		return Save(tx, st)
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// block puts n new documents into a block. Some words are in nearly all of them, some in one, some are too long.
func (m *model) block(n int) {
	b := NewBuilder()
	for range n {
		id := m.next
		m.next++
		b.Begin(doc(id))
		m.words[id] = map[string]uint32{}
		for range 1 + m.rnd.IntN(12) {
			w := fmt.Sprintf("w%d", int(m.rnd.ExpFloat64()*20))
			switch m.rnd.IntN(20) {
			case 0:
				w = fmt.Sprintf("rare%d", id)
			case 1:
				w = strings.Repeat("long", 10) + fmt.Sprint(m.rnd.IntN(5))
			}
			b.Add([]byte(w))
			m.words[id][w]++
		}
	}
	m.update(func(tx kv.RwTx, st *State) error { return b.Write(tx, st) })
}

func (m *model) drop() {
	gone := map[Doc]bool{}
	for range 1 + m.rnd.IntN(30) {
		id := m.rnd.IntN(m.next)
		gone[doc(id)] = true
		delete(m.words, id)
	}
	m.update(func(tx kv.RwTx, st *State) error {
		_, err := Drop(tx, st, func(d Doc) (bool, error) { return gone[d], nil })
		return err
	})
}

func (m *model) compare() {
	m.t.Helper()
	m.view(func(tx kv.Tx, st *State) error { return Check(tx, st, func(Doc) {}) })
	for _, q := range [][]Want{
		{Word([]byte("w0"), false)}, {Word([]byte("w1"), false), Word([]byte("w2"), false)}, {Word([]byte("w1"), true)},
		{Word(fmt.Appendf(nil, "rare%d", m.rnd.IntN(m.next)), false)}, {Word([]byte("rare1"), true), Word([]byte("w0"), false)},
		{Word([]byte(strings.Repeat("long", 10)+"3"), false)}, {Word([]byte("longlonglonglonglong"), true)}, {Word([]byte("none"), false)},
	} {
		want := m.want(q)
		var got []string
		m.view(func(tx kv.Tx, st *State) error {
			docs := NewDocs(tx)
			for _, b := range slices.Backward(st.Spans()) {
				found, err := Candidates(tx, b, q, true)
				if err != nil {
					return err
				}
				for i, n := range found.Docs {
					d, err := docs.At(b.From + uint64(n))
					if err != nil {
						return err
					}
					got = append(got, fmt.Sprint(binary.BigEndian.Uint32(d[17:])-1, found.TF[i]))
				}
			}
			return nil
		})
		if !slices.Equal(got, want) {
			m.t.Fatalf("%q gave %d documents, want %d\n%.300v\n%.300v", fmt.Sprint(q), len(got), len(want), got, want)
		}
	}
}

func (m *model) want(q []Want) []string {
	var out []string
	for id := m.next - 1; id >= 0; id-- {
		var tf []uint32
		for _, w := range q {
			n := uint32(0)
			for word, k := range m.words[id] {
				term := string(Term([]byte(word)))
				if !w.Prefix && term == string(w.Term) || w.Prefix && strings.HasPrefix(word, string(w.Term)) {
					n += k
				}
			}
			if n > 0 {
				tf = append(tf, n)
			}
		}
		if len(tf) == len(q) {
			out = append(out, fmt.Sprint(id, tf))
		}
	}
	return out
}

func (m *model) view(fn func(kv.Tx, *State) error) {
	m.t.Helper()
	err := m.db.View(context.Background(), func(tx kv.Tx) error {
		st, err := Load(tx, 7)
		if st == nil || err != nil {
			return err
		}
		return fn(tx, st)
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// TestIndexIsAMap writes, merges a little at a time and drops, and looks everything up.
func TestIndexIsAMap(t *testing.T) {
	for seed := range testkit.Seeds(t, 4) {
		m := &model{t: t, db: memkv.New(), rnd: rand.New(rand.NewPCG(seed, 2)), words: map[int]map[string]uint32{}}
		m.block(10)
		merged := 0
		for range 60 {
			switch m.rnd.IntN(8) {
			case 0:
				m.drop()
			case 1, 2, 3, 4:
				m.block(5 + m.rnd.IntN(int(10+50*(seed%4))))
			default:
				m.update(func(tx kv.RwTx, st *State) error {
					err := Step(tx, st, 1+m.rnd.IntN(2500))
					if st.Merge != nil && st.Merge.Begun {
						merged++
					}
					return err
				})
			}
			m.compare()
		}
		if seed%4 > 1 && merged < 5 {
			t.Errorf("only %d merges were seen under way", merged)
		}
		m.all()
	}
}

// all drops every document: nothing of a term is left.
func (m *model) all() {
	m.update(func(tx kv.RwTx, st *State) error {
		_, err := Drop(tx, st, func(Doc) (bool, error) { return true, nil })
		return err
	})
	m.view(func(tx kv.Tx, _ *State) error {
		return tx.Scan(TermBucket, kv.Range{}, func(key, _ []byte) error {
			m.t.Errorf("%q is left", key)
			return kv.ErrStop
		})
	})
}

// TestMergesKeepBlocksFew: whatever sizes the blocks come in and whenever a merge pauses, at rest each block but for the last few is larger than all behind
// it, so that their number grows with the logarithm of that of the documents; and a document was rewritten as seldom.
func TestMergesKeepBlocksFew(t *testing.T) {
	uneven := func(r *rand.Rand, _ int) int { return 1 + int(100*math.Pow(r.Float64(), 4)) }
	for name, size := range map[string]func(r *rand.Rand, i int) int{
		"alike":                 func(*rand.Rand, int) int { return 5 },
		"one large, then seven": func(_ *rand.Rand, i int) int { return 1 + 99*(1-min(i%8, 1)) },
		"doubling":              func(_ *rand.Rand, i int) int { return 1 << (i % 7) },
		"halving":               func(_ *rand.Rand, i int) int { return 64 >> (i % 7) },
		"uneven":                uneven,
		"uneven, after a large": func(r *rand.Rand, i int) int { return uneven(r, i) + 1000*(1-min(i, 1)) },
	} {
		m := &model{t: t, db: memkv.New(), rnd: rand.New(rand.NewPCG(1, 2)), words: map[int]map[string]uint32{}}
		var rewritten, docs uint64
		for i := range 300 {
			m.block(size(m.rnd, i))
			due, n := m.step()
			rewritten += n
			if i%10 < 9 {
				continue // the next block comes while the merge is under way
			}
			for ; due; rewritten += n {
				due, n = m.step()
			}
			m.view(func(_ kv.Tx, st *State) error {
				docs = st.Next
				behind := uint64(0)
				for k, b := range slices.Backward(st.Blocks) {
					if k+slack < len(st.Blocks) && b.To-b.From <= behind {
						t.Errorf("%s: block %d of %d has %d documents, and %d are behind it", name, k, len(st.Blocks), b.To-b.From, behind)
					}
					behind += b.To - b.From
				}
				return nil
			})
		}
		if rewritten > docs*uint64(1+bits.Len64(docs)) {
			t.Errorf("%s: of %d documents %d were rewritten", name, docs, rewritten)
		}
		m.compare()
	}
}

// step merges a little. It reports whether more is due, and counts the documents of a block that it ended.
func (m *model) step() (due bool, ended uint64) {
	m.update(func(tx kv.RwTx, st *State) error {
		before := slices.Clone(st.Blocks)
		err := Step(tx, st, 1<<10)
		due, ended = st.Due(), 0
		for _, b := range st.Blocks {
			if len(st.Blocks) < len(before) && !slices.ContainsFunc(before, func(a Block) bool { return a.ID == b.ID }) {
				ended = b.To - b.From
			}
		}
		return err
	})
	return due, ended
}

// TestMergeTakesNoSpace: what a merge writes anew it takes away, so no step of it makes the index larger than by the records it reads just then.
func TestMergeTakesNoSpace(t *testing.T) {
	m := &model{t: t, db: memkv.New(), rnd: rand.New(rand.NewPCG(1, 2)), words: map[int]map[string]uint32{}}
	const blocks = 8
	for range blocks {
		m.block(2000)
	}
	size := func() (n int) {
		m.view(func(tx kv.Tx, _ *State) error {
			return tx.Scan(TermBucket, kv.Range{}, func(key, value []byte) error {
				n += len(key) + len(value)
				return nil
			})
		})
		return n
	}
	before, steps := size(), 0
	for more := true; more; steps++ {
		m.update(func(tx kv.RwTx, st *State) (err error) {
			err = Step(tx, st, 4<<10)
			more = st.Due()
			return err
		})
		if now := size(); now > before+blocks*maxChunk {
			t.Fatalf("after step %d the terms have %d bytes; they had %d", steps, now, before)
		}
	}
	m.view(func(_ kv.Tx, st *State) error {
		if len(st.Blocks) != 1 || steps < 10 || before < 2*blocks*maxChunk {
			t.Errorf("%d blocks after %d steps, of %d bytes", len(st.Blocks), steps, before)
		}
		return nil
	})
	m.compare()
}

// TestMergeIsOfItsBlocks: a state whose merge is of other blocks than it has is damage.
func TestMergeIsOfItsBlocks(t *testing.T) {
	blocks := []Block{{ID: 1, To: 5}, {ID: 2, From: 5, To: 9}, {ID: 4, From: 9, To: 10}}
	for _, c := range []struct {
		merge Merge
		bad   bool
	}{
		{Merge{In: blocks[:2], Out: Block{ID: 5, To: 9}}, false},
		{Merge{In: blocks[1:], Out: Block{ID: 5, From: 5, To: 10}}, false},
		{Merge{Out: Block{ID: 5, To: 9}}, true},
		{Merge{In: []Block{{ID: 3, To: 5}}, Out: Block{ID: 5, To: 5}}, true},
		{Merge{In: []Block{blocks[0], blocks[2]}, Out: Block{ID: 5, To: 10}}, true},
		{Merge{In: append(slices.Clone(blocks), Block{ID: 6, From: 10, To: 12}), Out: Block{ID: 5, To: 12}}, true},
		{Merge{In: blocks[:2], Out: Block{ID: 5, To: 10}}, true},
	} {
		m := &model{t: t, db: memkv.New()}
		m.update(func(_ kv.RwTx, st *State) error {
			st.Blocks, st.Merge = blocks, &c.merge
			return nil
		})
		err := m.db.View(t.Context(), func(tx kv.Tx) error {
			_, err := Load(tx, 7)
			return err
		})
		if errors.Is(err, kv.ErrDamaged) != c.bad {
			t.Errorf("%+v: %v", c.merge, err)
		}
	}
}

// FuzzRecords: whatever stands in a record, reading it ends, with an error or not.
func FuzzRecords(f *testing.F) {
	w := &writer{tx: nil, block: 1}
	e := &entry{term: []byte("word")}
	e.add(posting{3, 1})
	e.add(posting{9, 4})
	if err := w.put(e); err != nil {
		f.Fatal(err)
	}
	f.Add(w.buf)
	f.Fuzz(func(t *testing.T, b []byte) {
		value := seal(slices.Clone(b))
		err := decode(value, func(e *entry) bool {
			e.each(func(posting) {})
			return true
		})
		if err != nil && !errors.Is(err, kv.ErrDamaged) {
			t.Error(err)
		}
		if _, err := parseDocs(value); err != nil && !errors.Is(err, kv.ErrDamaged) {
			t.Error(err)
		}
		if len(value) > 4 {
			value[len(value)/2] ^= 4
			if decode(value, func(*entry) bool { return true }) == nil {
				t.Error("a spoilt record is read")
			}
		}
	})
}
