package find

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/words"
)

// ranked is a document that may be a hit, with its number and score.
type ranked struct {
	doc   index.Doc
	n     uint64
	score float64
}

// best gives the hits with the best score first. It ranks all candidates by what the index says and then looks into them in that order.
func (q *search) best() error {
	docs, err := q.waitingDocs()
	if err != nil {
		return err
	}
	all, err := q.rank(docs)
	if errors.Is(err, errChanged) {
		return q.Everything()
	}
	if err != nil {
		return err
	}
	for len(all) > 0 {
		err := q.view(func(r *hitReader) error {
			for len(all) > 0 && !r.full() {
				one := all[0]
				all = all[1:]
				r.score = one.score
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

// rank scores the candidates of the index. The waiting documents, which the index does not know, all get the score 1.
func (q *search) rank(waiting []index.Doc) ([]ranked, error) {
	var all []ranked
	wants := q.wants()
	nWords := 0
	for _, p := range q.query {
		nWords += len(p.Words)
	}
	err := q.store.DB.View(q.ctx, func(tx kv.Tx) error {
		all = all[:0]
		st, err := index.Load(tx, words.Version)
		if err != nil {
			return err
		}
		if st == nil || st.Building {
			return errChanged
		}
		docs := index.NewDocs(tx)
		having := make([]float64, nWords)
		var counts [][]uint32
		for _, s := range st.Spans() {
			found, err := index.Candidates(tx, s, wants, true)
			if err != nil {
				return err
			}
			for i, doc := range found.Docs {
				one := ranked{n: s.From + uint64(doc)}
				if one.doc, err = docs.At(one.n); err != nil {
					return err
				}
				if one.doc == (index.Doc{}) {
					continue
				}
				all = append(all, one)
				counts = append(counts, found.TF[i][:nWords])
			}
		}
		for i := range having {
			for _, s := range st.Spans() {
				n, err := index.Frequency(tx, s, wants[i])
				if err != nil {
					return err
				}
				having[i] += float64(n)
			}
		}
		weigh(all, counts, having, float64(st.Next))
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, d := range waiting {
		all = append(all, ranked{doc: d, n: math.MaxUint64, score: 1})
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.n, a.n)) })
	return all, nil
}

// weigh scores each document by the sum over the words: a rare word counts more, and the tenth occurrence counts less than the first (BM25 without the
// lengths).
func weigh(all []ranked, counts [][]uint32, having []float64, total float64) {
	for i := range all {
		for j, n := range having {
			tf := float64(counts[i][j])
			all[i].score += math.Log(1+(total-n+0.5)/(n+0.5)) * tf * 2.2 / (tf + 1.2)
		}
	}
}
