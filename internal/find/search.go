package find

import (
	"context"
	"errors"
	"iter"
	"regexp"
	"slices"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/internal/words"
	"github.com/chatctx/chatctx/pool"
)

// hit is a Hit with its document.
type hit struct {
	record.Hit
	doc index.Doc
}

// Search yields the hits, reading in short transactions. It finds everything that was stored before it began: documents that are not in the index yet it
// reads. It yields ErrInvalid for a query without words and for a regular expression that does not compile.
func Search(ctx context.Context, s *base.Store, o record.SearchOptions) iter.Seq2[*record.Hit, error] {
	return func(yield func(*record.Hit, error) bool) {
		q, err := NewSearch(ctx, s, o)
		if err != nil {
			yield(nil, err)
			return
		}
		left := o.Limit
		q.Yield = func(h *record.Hit) bool {
			left--
			return yield(h, nil) && left != 0
		}
		if err = q.run(); err == errPassed || err == nil && q.passed > 0 {
			q.exact = nil
			err = q.run()
		}
		if version, ok := q.query.AsVersion(); ok && err == nil && q.clues == nil { // the exact form came first
			q.query, q.finder, q.exact = version, words.NewFinder(version), nil
			err = q.run()
		}
		if err != nil && err != kv.ErrStop {
			yield(nil, err)
		}
	}
}

// search is one search under way.
type search struct {
	ctx    context.Context
	store  *base.Store
	o      record.SearchOptions
	in     pool.ID // the context; zero: all
	query  words.Query
	finder *words.Finder
	re     *regexp.Regexp
	exact  *words.Finder      // not nil while only exact matches, accents included, are given
	passed int                // inexact matches that were passed over meanwhile
	given  map[index.Doc]bool // hits that were given, since a document may come twice

	clues    []words.Phrase   // with Any
	passages *words.Passages  // of the clues
	fitting  map[pool.ID]bool // whether a conversation is searched, of those that were asked about

	Yield func(*record.Hit) bool
}

func NewSearch(ctx context.Context, s *base.Store, o record.SearchOptions) (*search, error) {
	q := &search{ctx: ctx, store: s, o: o, given: map[index.Doc]bool{}}
	var err error
	if o.Regexp != "" {
		if q.re, err = regexp.Compile(o.Regexp); err != nil {
			return nil, base.Invalidf("the expression: %v", err)
		}
	} else if q.query = words.Parse(o.Text); len(q.query) == 0 {
		return nil, base.Invalidf("%q has no word to look for", o.Text)
	}
	if o.Any && o.Regexp == "" {
		q.clues = words.Clues(o.Text)
	} else if o.Parts {
		q.query = q.query.AsParts()
	} else if o.Beginnings {
		q.query, _ = q.query.AsBeginnings()
	} else if o.Regexp == "" {
		q.exact = words.NewExactFinder(o.Text)
	}
	q.finder = words.NewFinder(q.query)
	if o.Context != "" {
		err = s.DB.View(ctx, func(tx kv.Tx) (err error) {
			q.in, err = view.ResolveContext(s, tx, o.Context)
			return err
		})
	}
	return q, err
}

// maxPassed bounds the search for exact matches before matches with other accents are given.
const maxPassed = 2000

// errPassed ends the search for exact matches: too many others were passed over.
var errPassed = errors.New("too many were passed over")

// run searches the index and the waiting documents, or reads everything.
func (q *search) run() error {
	st, err := indexState(q.ctx, q.store)
	if err != nil {
		return err
	}
	switch {
	case q.clues != nil:
		return q.any()
	case st == nil || q.re != nil:
		return q.Everything()
	case q.o.Best:
		return q.best()
	}
	if err := q.waiting(); err != nil {
		return err
	}
	return q.newest(st.Made)
}

// indexState reads the state of the index; nil if there is no complete one.
func indexState(ctx context.Context, s *base.Store) (*index.State, error) {
	var st *index.State
	err := s.DB.View(ctx, func(tx kv.Tx) (err error) {
		if st, err = index.Load(tx, words.Version); st != nil && st.Building {
			st = nil
		}
		return err
	})
	return st, err
}

// Indexed reports whether there is a complete search index, and how many documents wait for it, counted up to 10,000.
func Indexed(ctx context.Context, s *base.Store) (whole bool, waiting int, err error) {
	st, err := indexState(ctx, s)
	if st == nil || err != nil {
		return false, 0, err
	}
	list, err := Waiting(ctx, s, 10_000)
	return true, len(list), err
}

// wants returns the terms that each hit has in the index.
func (q *search) wants() []index.Want {
	var out []index.Want
	for _, p := range q.query {
		for i, w := range p.Words {
			want := index.Word([]byte(w), p.Prefix && i == len(p.Words)-1)
			want.Part = p.Part
			out = append(out, want)
		}
	}
	term := func(t []byte) { out = append(out, index.Word(t, false)) }
	if q.in != (pool.ID{}) {
		term(contextTerm(q.in))
	}
	if q.o.Role != "" {
		term(roleTerm(q.o.Role))
	}
	if q.o.Model != "" {
		term(modelTerm(q.o.Model))
	}
	if q.o.Tool != "" {
		term(toolTerm(q.o.Tool))
	}
	return out
}

// Bounds of one transaction of a search: the number of hits and the time.
const (
	searchBatch = 64
	searchHold  = 15 * time.Millisecond
)

// waiting gives the hits among the waiting documents, the newest first.
func (q *search) waiting() error {
	docs, err := q.waitingDocs()
	if err != nil {
		return err
	}
	return q.look(docs)
}

func (q *search) waitingDocs() ([]index.Doc, error) {
	var docs []index.Doc
	err := q.store.DB.View(q.ctx, func(tx kv.Tx) error {
		docs = docs[:0]
		return index.ScanWaiting(tx, true, func(w index.Waiting) error {
			if q.in == (pool.ID{}) || q.in == docContext(w.Doc) {
				docs = append(docs, w.Doc)
			}
			return nil
		})
	})
	return docs, err
}

// look gives the hits among documents, in their order.
func (q *search) look(docs []index.Doc) error {
	for len(docs) > 0 {
		err := q.view(func(r *hitReader) error {
			for len(docs) > 0 && !r.full() {
				d := docs[0]
				docs = docs[1:]
				if err := r.look(d); err != nil {
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

// newest gives the hits of the index, from the last document back. Blocks may be merged between two transactions, since documents keep their numbers. If
// the index is built anew meanwhile, newest reads everything, and gives no hit twice.
func (q *search) newest(made uint64) error {
	before, ended := ^uint64(0), false
	for !ended {
		anew := false
		err := q.view(func(r *hitReader) error {
			st, err := index.Load(r.tx, words.Version)
			if err != nil {
				return err
			}
			if anew = st == nil || st.Building || st.Made != made; anew {
				return nil
			}
			docs := index.NewDocs(r.tx)
			for _, s := range slices.Backward(st.Spans()) {
				if s.From >= before {
					continue
				}
				if err := q.span(r, docs, s, &before); err != nil || r.full() {
					return err
				}
			}
			ended = true
			return nil
		})
		if err != nil {
			return err
		}
		if anew {
			return q.Everything()
		}
	}
	return nil
}

// span looks into the candidates of a span with numbers below before, downwards, and lowers before as it goes.
func (q *search) span(r *hitReader, docs *index.Docs, s index.Span, before *uint64) error {
	found, err := index.Candidates(r.tx, s, q.wants(), false)
	if err != nil {
		return err
	}
	for _, doc := range found.Docs {
		n := s.From + uint64(doc)
		if n >= *before {
			continue
		}
		if r.full() {
			return nil
		}
		*before = n
		d, err := docs.At(n)
		if err == nil && d != (index.Doc{}) {
			err = r.look(d)
		}
		if err != nil {
			return err
		}
	}
	if !r.full() {
		*before = s.From
	}
	return nil
}

// Everything reads all contexts, the last changed first, and in each the newest messages first.
func (q *search) Everything() error {
	return q.eachContext(q.look)
}

// eachContext calls fn with the documents of each context, that of the last changed first.
func (q *search) eachContext(fn func([]index.Doc) error) error {
	ids, err := view.Recent(q.ctx, q.store)
	for _, id := range ids {
		if err != nil {
			break
		}
		if q.in != (pool.ID{}) && q.in != id {
			continue
		}
		var docs []index.Doc
		if docs, err = allDocs(q.ctx, q.store, id); err == nil {
			err = fn(docs)
		}
	}
	return err
}

// allDocs returns the documents of a context: its title, prompts and messages, each kind with the newest first.
func allDocs(ctx context.Context, s *base.Store, id pool.ID) ([]index.Doc, error) {
	var docs []index.Doc
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		docs = append(docs[:0], DocOf(TitleDoc, id, pool.ID{}))
		for _, of := range []struct {
			bucket string
			kind   byte
		}{{branchstore.PromptBucket, PromptDoc}, {poolstore.Bucket, MessageDoc}} {
			r := kv.Prefix(id[:])
			r.Reverse = true
			err := tx.Scan(of.bucket, r, func(key, _ []byte) error {
				if len(key) == 32 {
					docs = append(docs, DocOf(of.kind, id, pool.ID(key[16:])))
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return docs, err
}
