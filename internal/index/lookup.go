package index

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Want is a term to look for or, with Prefix, the beginning of terms or, with Part, what a word has somewhere.
type Want struct {
	Term         []byte
	Prefix, Part bool
}

// Word returns the Want of a word or, with prefix, of a beginning.
func Word(word []byte, prefix bool) Want {
	if prefix {
		return Want{Term: bytes.Clone(word), Prefix: true}
	}
	return Want{Term: bytes.Clone(Term(word))}
}

// Span is documents with numbers in a row whose lists are looked up together: those of a block, or of all blocks of the merge under way.
type Span struct {
	Block
	merge *Merge
}

// Spans returns all documents, in order.
func (s *State) Spans() []Span {
	var out []Span
	for _, b := range s.Blocks {
		switch m := s.Merge; {
		case m == nil || b.From < m.Out.From || b.From >= m.Out.To:
			out = append(out, Span{Block: b})
		case b.ID == m.In[0].ID:
			out = append(out, Span{m.Out, m})
		}
	}
	return out
}

// entries calls fn for the entries of the terms from lo to hi inclusive until it returns false, those of a term in the order of their documents. A nil hi
// means all further terms.
func (s Span) entries(tx kv.Tx, lo, hi []byte, fn func(*entry) bool) error {
	more := true
	err := entries(tx, s.ID, lo, hi, func(e *entry) bool {
		more = fn(e)
		return more
	})
	if s.merge == nil {
		return err
	}
	if rest := append([]byte(s.merge.After), 0); bytes.Compare(lo, rest) < 0 {
		lo = rest
	}
	for _, b := range s.merge.In {
		if err != nil || !more || hi != nil && bytes.Compare(lo, hi) > 0 {
			break
		}
		err = entries(tx, b.ID, lo, hi, func(e *entry) bool {
			e.move(uint32(b.From - s.From))
			more = fn(e)
			return more
		})
	}
	return err
}

// Found lists the documents of a span that have all terms, the highest number first. If counts were asked for, TF has for each document how often it has
// each term; else it is nil.
type Found struct {
	Docs []uint32 // counted from the span's first
	TF   [][]uint32
}

// firstOfWords is below the first byte of all words, and above that of all other terms, which have a control character there.
const firstOfWords = ' '

// Candidates returns the documents of a span that have all of wants. For long words they only may have them.
func Candidates(tx kv.Tx, s Span, wants []Want, counted bool) (*Found, error) {
	lists := make([]*list, len(wants))
	for i, w := range wants {
		l, err := read(tx, s, w)
		if err != nil {
			return nil, err
		}
		if len(l.postings) == 0 {
			return &Found{}, nil
		}
		lists[i] = l
	}
	return intersect(lists, counted), nil
}

// intersect finds the documents that are in all lists. It walks the shortest list from its end.
func intersect(lists []*list, counted bool) *Found {
	out := &Found{}
	lead := 0
	at := make([]int, len(lists))
	for i, l := range lists {
		at[i] = len(l.postings) - 1
		if len(l.postings) < len(lists[lead].postings) {
			lead = i
		}
	}
	for i := len(lists[lead].postings) - 1; i >= 0; i-- {
		doc := lists[lead].postings[i].doc
		all := true
		for j, l := range lists {
			for at[j] >= 0 && l.postings[at[j]].doc > doc {
				at[j]--
			}
			all = all && at[j] >= 0 && l.postings[at[j]].doc == doc
		}
		if !all {
			continue
		}
		out.Docs = append(out.Docs, doc)
		if counted {
			tf := make([]uint32, len(lists))
			for j, l := range lists {
				tf[j] = l.postings[at[j]].tf
			}
			out.TF = append(out.TF, tf)
		}
	}
	return out
}

// list is a term's documents in a span, in order.
type list struct{ postings []posting }

func (l *list) take(e *entry, size uint64) bool {
	fits := true
	whole := e.each(func(p posting) {
		fits = fits && uint64(p.doc) < size
		l.postings = append(l.postings, p)
	})
	return whole && fits
}

func read(tx kv.Tx, s Span, w Want) (*list, error) {
	l := &list{}
	whole := true
	if !w.Prefix && !w.Part {
		err := s.entries(tx, w.Term, w.Term, func(e *entry) bool {
			whole = l.take(e, s.To-s.From)
			return whole
		})
		return l, spoilt(err, !whole)
	}
	lo := w.Term[:min(len(w.Term), cutTerm)]
	hi, has := kv.Prefix(lo).To, func(term []byte) bool { return bytes.HasPrefix(term, w.Term) || isCut(term, w.Term) }
	if w.Part { // all words, which begin above the other terms
		lo, hi, has = []byte{firstOfWords}, nil, func(term []byte) bool { return bytes.Contains(term, w.Term) || bytes.IndexByte(term, 1) >= 0 }
	}
	err := s.entries(tx, lo, hi, func(e *entry) bool {
		if has(e.term) {
			whole = l.take(e, s.To-s.From)
		}
		return whole
	})
	l.order()
	return l, spoilt(err, !whole)
}

// order sorts the documents of several terms and joins those that occur more than once.
func (l *list) order() {
	slices.SortFunc(l.postings, func(a, b posting) int { return cmp.Compare(a.doc, b.doc) })
	kept := l.postings[:0]
	for _, p := range l.postings {
		if n := len(kept); n > 0 && kept[n-1].doc == p.doc {
			kept[n-1].tf += p.tf
			continue
		}
		kept = append(kept, p)
	}
	l.postings = kept
}

// isCut reports whether a term is that of a long word that may begin with prefix.
func isCut(term, prefix []byte) bool {
	at := bytes.IndexByte(term, 1)
	return at >= 0 && bytes.HasPrefix(prefix, term[:at])
}

func spoilt(err error, bad bool) error {
	if err == nil && bad {
		err = damaged("a list does not fit")
	}
	return err
}

// Frequency returns how many documents of a span have a term.
func Frequency(tx kv.Tx, s Span, w Want) (int, error) {
	l, err := read(tx, s, w)
	return len(l.postings), err
}
