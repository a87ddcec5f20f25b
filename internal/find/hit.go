package find

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/words"
	"github.com/chatctx/chatctx/pool"
)

// hitReader looks into documents in one transaction.
type hitReader struct {
	*search
	tx       kv.Tx
	began    time.Time
	looked   int
	score    float64
	hits     []*hit
	contexts map[pool.ID]*base.ContextRecord
}

// view runs fn in a transaction and yields the hits that it found. It returns kv.ErrStop if the caller wants no more.
func (q *search) view(fn func(*hitReader) error) error {
	r, enough := &hitReader{search: q}, false
	err := q.store.DB.View(q.ctx, func(tx kv.Tx) error {
		*r = hitReader{search: q, tx: tx, began: time.Now(), contexts: map[pool.ID]*base.ContextRecord{}}
		err := fn(r)
		enough = err == errPassed
		if err != nil && !enough {
			return err
		}
		return r.places()
	})
	if err != nil {
		return err
	}
	for _, h := range r.hits {
		if h.What == "message" && len(h.Branches) == 0 && !q.o.Unheld || q.given[h.doc] {
			continue
		}
		q.given[h.doc] = true
		if !q.Yield(&h.Hit) {
			return kv.ErrStop
		}
	}
	if enough {
		return errPassed
	}
	return nil
}

// full reports whether the transaction should end: it has enough hits, or it took long enough.
func (r *hitReader) full() bool {
	return len(r.hits) >= searchBatch || r.o.Limit > 0 && len(r.hits) >= r.o.Limit || r.looked%16 == 15 && time.Since(r.began) > searchHold
}

// look looks into a document and keeps it if it is a hit.
func (r *hitReader) look(d index.Doc) error {
	r.looked++
	fits, err := r.fits(r.tx, d)
	if !fits || err != nil {
		return err
	}
	rec, err := r.context(docContext(d))
	if rec == nil || err != nil {
		return err
	}
	h := &hit{record.Hit{Context: docContext(d), Title: rec.Title, Trashed: rec.Trashed != 0, Score: r.score}, d}
	var texts []field
	switch d[0] {
	case TitleDoc:
		h.What, texts = "title", []field{{"title", rec.Title}}
	case PromptDoc:
		raw, err := r.tx.Get(branchstore.PromptBucket, base.Under(h.Context, d[17:]...))
		if raw == nil || err != nil {
			return err
		}
		h.What, texts = "prompt", []field{{"prompt", string(raw)}}
	default:
		m, err := poolstore.Get(r.tx, h.Context, docID(d))
		if errors.Is(err, kv.ErrDamaged) {
			return nil // check reports it
		}
		if m == nil || err != nil {
			return err
		}
		if texts, err = fieldsIn(r.tx, m); err != nil {
			return err
		}
		h.What, h.Message = "message", m
	}
	if !r.narrowed(h, rec) || !r.matches(h, texts) {
		return nil
	}
	if r.exact == nil || r.exactly(texts) {
		r.hits = append(r.hits, h)
		return nil
	}
	if r.passed++; r.passed >= maxPassed {
		return errPassed
	}
	return nil
}

func (r *hitReader) context(id pool.ID) (*base.ContextRecord, error) {
	if rec, ok := r.contexts[id]; ok {
		return rec, nil
	}
	rec, _, err := base.GetContext(r.tx, id)
	if err == nil {
		r.contexts[id] = rec
	}
	return rec, err
}

// narrowed reports whether a document fits all options but the words.
func (r *hitReader) narrowed(h *hit, rec *base.ContextRecord) bool {
	o, m, at := &r.o, h.Message, rec.Created
	if m != nil {
		at = m.Created
	}
	if o.Since != 0 && at < o.Since || o.Until != 0 && at >= o.Until {
		return false
	}
	if o.Role == "" && o.Model == "" && o.Tool == "" {
		return true
	}
	return m != nil && (o.Role == "" || m.Role == o.Role) && (o.Model == "" || sameFolded(m.Meta.Model, o.Model)) &&
		(o.Tool == "" || slices.ContainsFunc(toolsOf(m), func(name string) bool { return sameFolded(name, o.Tool) }))
}

// matches reports whether the texts match the query, and makes the snippet of the first match.
func (r *hitReader) matches(h *hit, texts []field) bool {
	if r.clues != nil {
		return r.anyMatches(h, texts)
	}
	if r.re != nil {
		for _, f := range texts {
			if at := r.re.FindStringIndex(f.text); at != nil {
				h.Field = f.name
				h.Snippet, h.Match = snippet(f.text, words.Match{From: at[0], To: at[1]})
				return true
			}
		}
		return false
	}
	r.finder.Begin()
	for _, f := range texts {
		if at, ok := r.finder.Text(f.text); ok && h.Field == "" {
			h.Field = f.name
			h.Snippet, h.Match = snippet(f.text, at)
		}
	}
	return r.finder.All()
}

// exactly reports whether the texts have all words as they were typed, accents included.
func (r *hitReader) exactly(texts []field) bool {
	if r.exact.Plain() && !slices.ContainsFunc(texts, func(f field) bool { return !words.ASCII(f.text) }) {
		return true
	}
	r.exact.Begin()
	for _, f := range texts {
		r.exact.Text(f.text)
	}
	return r.exact.All()
}

// around is about how many bytes a snippet shows on each side of a match, longest how many bytes of the match itself.
const (
	around  = 60
	longest = 200
)

// snippet cuts out the surroundings of a match. White space becomes single spaces, and an ellipsis marks what was left out.
func snippet(text string, at words.Match) (string, words.Match) {
	at.To = min(at.To, at.From+longest)
	from, to := max(at.From-around, 0), min(at.To+around, len(text))
	if from > 0 {
		if i := strings.IndexFunc(text[from:at.From], unicode.IsSpace); i >= 0 {
			from += i
		}
	}
	if to < len(text) {
		if i := strings.LastIndexFunc(text[at.To:to], unicode.IsSpace); i > 0 {
			to = at.To + i
		}
	}
	from, at.From, at.To, to = runeStart(text, from), runeStart(text, at.From), runeStart(text, at.To), runeStart(text, to)
	var b strings.Builder
	if from > 0 {
		b.WriteString("…")
	}
	squeeze(&b, text[from:at.From])
	found := words.Match{From: b.Len()}
	squeeze(&b, text[at.From:at.To])
	found.To = b.Len()
	squeeze(&b, text[at.To:to])
	s := strings.TrimRight(b.String(), " ")
	if to < len(text) {
		s += "…"
	}
	found.To = min(found.To, len(s))
	found.From = min(found.From, found.To)
	return s, found
}

func runeStart(text string, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}

// squeeze writes text with each run of white space as one space, and none at the beginning of b.
func squeeze(b *strings.Builder, text string) {
	for _, c := range text {
		if unicode.IsSpace(c) {
			if s := b.String(); s != "" && s != "…" && s[len(s)-1] != ' ' {
				b.WriteByte(' ')
			}
			continue
		}
		b.WriteRune(c)
	}
}

// places finds the branches that hold the hits of this transaction.
func (r *hitReader) places() error {
	byContext := map[pool.ID][]*hit{}
	for _, h := range r.hits {
		byContext[h.Context] = append(byContext[h.Context], h)
	}
	for id, hits := range byContext {
		if r.o.First {
			var err error
			if hits, err = r.onMain(id, hits); err != nil {
				return err
			}
		}
		if len(hits) == 0 {
			continue
		}
		var branches []*branch.Branch
		if err := branchstore.List(r.tx, id, func(b *branch.Branch) error { branches = append(branches, b); return nil }); err != nil {
			return err
		}
		if err := r.placesIn(id, branches, hits); err != nil {
			return err
		}
	}
	return nil
}

// onMain places the messages that main holds where they were first put, and returns the other hits.
func (r *hitReader) onMain(id pool.ID, hits []*hit) (others []*hit, err error) {
	main, err := branchstore.Find(r.tx, id, base.MainBranch)
	if main == nil || err != nil {
		return hits, err
	}
	for _, h := range hits {
		at := -1
		if h.What == "title" { // titles are on no branch
			continue
		}
		if h.Message != nil {
			at = branchstore.Place(main.Pieces, h.Message.Home.Segment, h.Message.Home.Position)
		}
		if at < 0 {
			others = append(others, h)
			continue
		}
		h.Branches = []record.HitBranch{{Name: main.Name, Position: at + 1}}
	}
	return others, nil
}

func (r *hitReader) placesIn(id pool.ID, branches []*branch.Branch, hits []*hit) error {
	at, err := homes(r.tx, id, branches, hits, r.o.First)
	if err != nil {
		return err
	}
	slices.SortStableFunc(branches, func(a, b *branch.Branch) int { // main first
		switch {
		case a.Name == base.MainBranch && b.Name != base.MainBranch:
			return -1
		case b.Name == base.MainBranch && a.Name != base.MainBranch:
			return 1
		}
		return 0
	})
	for _, h := range hits {
		for _, b := range branches {
			if r.o.First && len(h.Branches) > 0 {
				break
			}
			switch h.What {
			case "prompt":
				if prompt := string(h.doc[17:]); b.System == prompt || b.Prompt == prompt {
					h.Branches = append(h.Branches, record.HitBranch{Name: b.Name})
				}
			case "message":
				for _, home := range at[h.Message.ID] {
					if i := branchstore.Place(b.Pieces, home.Segment, home.Position); i >= 0 {
						h.Branches = append(h.Branches, record.HitBranch{Name: b.Name, Position: i + 1})
						break
					}
				}
			}
		}
	}
	return nil
}

// homes returns all places where entries of the branches have the messages. A message mostly stands where it was first put; but in a context with several
// branches edits may have copied entries, so homes reads the entries. If one place is enough, it reads them only when some message's first place is on no
// branch.
func homes(tx kv.Tx, id pool.ID, branches []*branch.Branch, hits []*hit, one bool) (map[pool.ID][]pool.Home, error) {
	at := map[pool.ID][]pool.Home{}
	if len(branches) == 0 {
		return at, nil
	}
	away := len(branches) > 1 && !one
	for _, h := range hits {
		if m := h.Message; m != nil {
			at[m.ID] = []pool.Home{m.Home}
			away = away || !slices.ContainsFunc(branches, func(b *branch.Branch) bool { return branchstore.Place(b.Pieces, m.Home.Segment, m.Home.Position) >= 0 })
		}
	}
	if !away || len(at) == 0 {
		return at, nil
	}
	for _, p := range union(branches) {
		position := p.From
		err := branchstore.Read(tx, id, []branch.Piece{p}, func(_ int, mid pool.ID) error {
			if homes, ok := at[mid]; ok && homes[0] != (pool.Home{Segment: p.Segment, Position: position}) {
				at[mid] = append(homes, pool.Home{Segment: p.Segment, Position: position})
			}
			position++
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return at, nil
}

// union returns pieces that cover each entry of the branches once.
func union(branches []*branch.Branch) []branch.Piece {
	var all, out []branch.Piece
	for _, b := range branches {
		all = append(all, b.Pieces...)
	}
	slices.SortFunc(all, func(a, b branch.Piece) int {
		if a.Segment != b.Segment {
			return int(int64(a.Segment) - int64(b.Segment))
		}
		return int(int64(a.From) - int64(b.From))
	})
	for _, p := range all {
		if n := len(out); n > 0 && out[n-1].Segment == p.Segment && p.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, p.To)
			continue
		}
		out = append(out, p)
	}
	return out
}
