package find

import (
	"cmp"
	"math"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/words"
	"github.com/chatctx/chatctx/pool"
)

// Bounds of a search for any of its words: how many documents it reads to compare their passages, how much of the text of each, in bytes, and how many documents
// that have a clue it ranks. A clue that more have says little of each.
const (
	maxCompared = 300
	maxPassage  = 256 << 10
	maxRanked   = 200_000
)

// clued is a document with what it may be an answer by.
type clued struct {
	ranked
	has []bool // for each clue, whether the document has it
}

// any gives the hits that have any of the clues, those first whose best passage has the most and rarest of them. What else the document and its conversation have
// counts less.
func (q *search) any() error {
	all, having, total, err := q.sightings()
	if err != nil {
		return err
	}
	weights := make([]float64, len(q.clues))
	for i, n := range having {
		weights[i] = math.Log(1 + (total-n+0.5)/(n+0.5))
		if q.clues[i].Prefix {
			weights[i] /= 2
		}
	}
	q.passages = words.NewPassages(q.clues, weights)
	for i := range all {
		all[i].score = weigh1(all[i].has, weights)
	}
	best := func(a, b clued) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.n, a.n)) }
	slices.SortStableFunc(all, best)
	all = all[:min(len(all), maxCompared)]
	if err := q.compare(all); err != nil {
		return err
	}
	beside(all, weights)
	slices.SortStableFunc(all, best)
	return q.inOrder(all)
}

func weigh1(has []bool, weights []float64) (sum float64) {
	for i, is := range has {
		if is {
			sum += weights[i]
		}
	}
	return sum
}

// sightings returns the documents that have a clue, how many have each, and how many documents there are.
func (q *search) sightings() (all []clued, having []float64, total float64, err error) {
	waiting, err := q.unindexed()
	if err != nil {
		return nil, nil, 0, err
	}
	err = q.store.DB.View(q.ctx, func(tx kv.Tx) error {
		all, having, total = nil, make([]float64, len(q.clues)), 0
		st, err := index.Load(tx, words.Version)
		if st == nil || st.Building || err != nil {
			return err
		}
		total = float64(st.Next)
		docs := index.NewDocs(tx)
		for _, s := range st.Spans() {
			if all, err = q.spanSightings(tx, docs, s, all, having); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, 0, err
	}
	own, err := q.read(waiting, make([]float64, len(q.clues)))
	for _, d := range own {
		for i, is := range d.has {
			if is {
				having[i]++
			}
		}
	}
	return append(all, own...), having, total + float64(len(waiting)), err
}

// spanSightings adds to all the documents of a span that have a clue.
func (q *search) spanSightings(tx kv.Tx, docs *index.Docs, s index.Span, all []clued, having []float64) ([]clued, error) {
	at := map[uint32]int{}
	for i, c := range q.clues {
		found, err := index.Candidates(tx, s, wantsOf(c), false)
		if err != nil {
			return all, err
		}
		having[i] += float64(len(found.Docs))
		if len(found.Docs) > maxRanked {
			continue
		}
		for _, n := range found.Docs {
			k, known := at[n]
			if !known {
				d, err := docs.At(s.From + uint64(n))
				if err != nil {
					return all, err
				}
				if fits, err := q.fits(tx, d); err != nil || !fits {
					if err != nil {
						return all, err
					}
					continue
				}
				k = len(all)
				at[n] = k
				all = append(all, clued{ranked{doc: d, n: s.From + uint64(n)}, make([]bool, len(q.clues))})
			}
			all[k].has[i] = true
		}
	}
	return all, nil
}

func wantsOf(p words.Phrase) (out []index.Want) {
	for i, w := range p.Words {
		out = append(out, index.Word([]byte(w), p.Prefix && i == len(p.Words)-1))
	}
	return out
}

// unindexed returns the documents that the index does not have: those that wait for it, or all if there is none.
func (q *search) unindexed() ([]index.Doc, error) {
	st, err := indexState(q.ctx, q.store)
	if err != nil || st != nil {
		docs, waitErr := q.waitingDocs()
		return docs, cmp.Or(err, waitErr)
	}
	var all []index.Doc
	err = q.eachContext(func(docs []index.Doc) error { all = append(all, docs...); return nil })
	return all, err
}

// fits reports whether a document is one of a conversation that is searched.
func (q *search) fits(tx kv.Tx, d index.Doc) (bool, error) {
	id := docContext(d)
	if d == (index.Doc{}) || q.in != (pool.ID{}) && q.in != id {
		return false, nil
	}
	if fits, known := q.fitting[id]; known {
		return fits, nil
	}
	rec, _, err := base.GetContext(tx, id)
	if rec == nil || err != nil {
		return false, err
	}
	fits, err := q.takes(tx, rec)
	if q.fitting == nil {
		q.fitting = map[pool.ID]bool{}
	}
	q.fitting[id] = fits
	return fits, err
}

// takes reports whether a conversation is one that is searched.
func (q *search) takes(tx kv.Tx, rec *base.ContextRecord) (bool, error) {
	o := &q.o
	if rec.Trashed != 0 && !o.Trash || slices.ContainsFunc(o.Labels, func(l string) bool { return !slices.Contains(rec.Labels, l) }) {
		return false, nil
	}
	if len(o.Folders) == 0 {
		return true, nil
	}
	return base.InFolder(tx, rec, o.Folders)
}

// compare scores documents by their best passages, which it reads.
func (q *search) compare(all []clued) error {
	docs := make([]index.Doc, len(all))
	for i := range all {
		docs[i] = all[i].doc
	}
	read, err := q.read(docs, nil)
	byDoc := map[index.Doc]clued{}
	for _, d := range read {
		byDoc[d.doc] = d
	}
	for i := range all {
		d := byDoc[all[i].doc]
		all[i].score, all[i].has = d.score, d.has
	}
	return err
}

// read reads documents in short transactions, and returns those with a clue, with the weight of their best passage. Weights replace those of the search.
func (q *search) read(docs []index.Doc, weights []float64) (out []clued, err error) {
	passages := q.passages
	if weights != nil {
		passages = words.NewPassages(q.clues, weights)
	}
	for len(docs) > 0 && err == nil {
		n := min(len(docs), searchBatch)
		var some []document
		err = q.store.DB.View(q.ctx, func(tx kv.Tx) error {
			some = some[:0]
			for _, d := range docs[:n] {
				fits, err := q.fits(tx, d)
				if err != nil {
					return err
				}
				if !fits {
					continue
				}
				one, err := readDocument(tx, d)
				if err != nil {
					return err
				}
				some = append(some, one)
			}
			return nil
		})
		for _, d := range some {
			one := clued{ranked{doc: d.Doc, n: math.MaxUint64}, make([]bool, len(q.clues))}
			for _, f := range d.allFields() {
				if f.name == "kept" {
					continue // what only an import knows of
				}
				_, weight := passages.Best(f.text[:min(len(f.text), maxPassage)], one.has)
				one.score = max(one.score, weight)
			}
			if slices.Contains(one.has, true) {
				out = append(out, one)
			}
		}
		docs = docs[n:]
	}
	return out, err
}

// Shares of the weight of clues that count: outside of the best passage, and elsewhere in the conversation.
const (
	inDocument     = 0.3
	inConversation = 0.2
)

// beside adds to the weight of each document's best passage a share of those clues that the document has elsewhere, and that others of its conversation have, the
// larger the more of the clues the passage has: a long conversation has a word of everything.
func beside(all []clued, weights []float64) {
	has := map[pool.ID][]bool{}
	for _, d := range all {
		in := docContext(d.doc)
		if has[in] == nil {
			has[in] = make([]bool, len(weights))
		}
		for i, is := range d.has {
			has[in][i] = has[in][i] || is
		}
	}
	total := 0.0
	for _, w := range weights {
		total += w
	}
	for i := range all {
		d := &all[i]
		own, conversation := weigh1(d.has, weights), weigh1(has[docContext(d.doc)], weights)
		if d.score > 0 {
			d.score += (inDocument*(own-d.score) + inConversation*(conversation-own)) * d.score / total
		}
	}
}

// inOrder looks into documents in their order.
func (q *search) inOrder(all []clued) error {
	for len(all) > 0 {
		err := q.view(func(r *hitReader) error {
			for len(all) > 0 && !r.full() {
				one := all[0]
				all = all[1:]
				if r.score = one.score; one.score == 0 {
					continue
				}
				if err := r.look(one.doc); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// anyMatches reports whether texts have a clue, and makes the snippet of the best passage.
func (r *hitReader) anyMatches(h *hit, texts []field) bool {
	most := 0.0
	for _, f := range texts {
		if f.name == "kept" {
			continue
		}
		text := f.text[:min(len(f.text), maxPassage)]
		if at, weight := r.passages.Best(text, make([]bool, len(r.clues))); weight > most {
			most, h.Field = weight, f.name
			h.Snippet, h.Match = snippet(f.text, at)
		}
	}
	return most > 0
}
