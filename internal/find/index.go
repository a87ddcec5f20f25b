package find

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/charset"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/internal/words"
	"github.com/chatctx/chatctx/pool"
)

// The kinds of documents in the search index: messages by id, a context's title with the zero id, prompts by id.
const (
	MessageDoc = 1
	TitleDoc   = 2
	PromptDoc  = 3
)

func DocOf(kind byte, ctx, id pool.ID) (d index.Doc) {
	d[0] = kind
	copy(d[1:], ctx[:])
	copy(d[17:], id[:])
	return d
}

func docContext(d index.Doc) pool.ID { return pool.ID(d[1:17]) }
func docID(d index.Doc) pool.ID      { return pool.ID(d[17:]) }

// Portions in which documents go into the index: small ones beside programs that store messages, large ones for a caller who waits for the index.
const (
	EnoughWaiting = 1000 // fewer waiting documents make no block, unless Index asks for one
	smallPortion  = 2000
	largePortion  = 8192
	portionBytes  = 16 << 20
	portionTime   = 50 * time.Millisecond
	mergeBytes    = 2 << 20
)

// Wait notes that the search index has yet to take in a document. at is the time by which waiting documents are ordered.
func Wait(tx kv.RwTx, at pool.Time, d index.Doc) error {
	var stamp [8]byte
	binary.BigEndian.PutUint64(stamp[:], rand.Uint64())
	if stamp[0] == 0 { // one in 256, so that many programs that store one message each count as one program that stores many
		base.IndexLot(tx)
	}
	return index.Wait(tx, uint64(max(at, 0)), d, stamp)
}

// PutMessage writes a message's record and lists it for the search index.
func PutMessage(tx kv.RwTx, ctx pool.ID, m *pool.Message, now pool.Time) error {
	if err := poolstore.Put(tx, ctx, m); err != nil {
		return err
	}
	at := now
	if m.Created > 0 {
		at = min(at, m.Created)
	}
	return Wait(tx, at, DocOf(MessageDoc, ctx, m.ID))
}

// field is a searchable text of a message.
type field struct{ name, text string }

// fieldsOf returns the texts of a message.
func fieldsOf(m *pool.Message) []field {
	var out []field
	add := func(name string, texts ...string) {
		if text := strings.Join(texts, " "); strings.TrimSpace(text) != "" {
			out = append(out, field{name, text})
		}
	}
	parts := func(name string, parts []pool.Part) {
		for i := range parts {
			switch p := &parts[i]; p.Type {
			case pool.TextPart:
				add(name, p.Text)
			case pool.ThinkingPart:
				add("thinking", p.Text)
			case pool.ImagePart, pool.DocumentPart:
				add("file", p.Name, p.URL)
			case pool.CallPart:
			default:
				add(name, words.FromJSON(p.Raw))
			}
		}
	}
	parts("text", m.Content)
	for i := range m.Calls {
		add("call", m.Calls[i].Tool, words.FromJSON(m.Calls[i].Arguments))
	}
	if r := m.Result; r != nil {
		add("result", r.Tool, r.Text)
		add("result", words.FromJSON(r.JSON))
		parts("result", r.Parts)
		add("summary", r.CompactSummary)
	}
	if m.Source != nil {
		kept := []string{words.FromJSON(m.Source.Raw)}
		for _, name := range slices.Sorted(maps.Keys(m.Meta.ProviderData)) {
			if name == m.Source.Format || strings.HasPrefix(name, m.Source.Format+" ") || strings.HasPrefix(name, "again") {
				kept = append(kept, words.FromJSON(m.Meta.ProviderData[name]))
			}
		}
		add("kept", kept...)
	}
	return out
}

// Terms that are not words: the context, role, model or tool. A byte 2 keeps them apart from words.
func contextTerm(id pool.ID) []byte {
	return []byte("\x02c" + strings.ReplaceAll(id.String(), "-", ""))
}
func roleTerm(role pool.Role) []byte { return []byte("\x02r" + string(role)) }
func modelTerm(model string) []byte  { return []byte("\x02m" + words.Fold(model)) }
func toolTerm(tool string) []byte    { return []byte("\x02t" + words.Fold(tool)) }
func sameFolded(a, b string) bool    { return words.Fold(a) == words.Fold(b) }
func toolsOf(m *pool.Message) (names []string) {
	for i := range m.Calls {
		names = append(names, m.Calls[i].Tool)
	}
	if m.Result != nil && m.Result.Tool != "" {
		names = append(names, m.Result.Tool)
	}
	return names
}

// indexer puts documents into a block.
type indexer struct {
	*index.Builder
	segment *words.Segmenter
	waiting []index.Waiting
	bytes   int
}

// document is the content of a waiting document. If the document is gone, text and message are nil.
type document struct {
	index.Doc
	text    *string
	message *pool.Message
	fields  []field // of message
}

// allFields returns the texts of a document.
func (d *document) allFields() []field {
	if d.text != nil {
		return []field{{"text", *d.text}}
	}
	return d.fields
}

// contentKeys names the records that readDocument reads first.
func contentKeys(batch []index.Waiting) []kv.Key {
	keys := make([]kv.Key, len(batch))
	for i, w := range batch {
		ctx, id := docContext(w.Doc), docID(w.Doc)
		switch w.Doc[0] {
		case TitleDoc:
			keys[i] = kv.Key{Bucket: base.ContextBucket, Key: ctx[:]}
		case PromptDoc:
			keys[i] = kv.Key{Bucket: branchstore.PromptBucket, Key: base.Under(ctx, id[:]...)}
		default:
			keys[i] = kv.Key{Bucket: poolstore.Bucket, Key: base.Under(ctx, id[:]...)}
		}
	}
	return keys
}

// readDocument reads the content of a document.
func readDocument(tx kv.Tx, doc index.Doc) (document, error) {
	d := document{Doc: doc}
	ctx, id := docContext(doc), docID(doc)
	switch doc[0] {
	case TitleDoc:
		rec, _, err := base.GetContext(tx, ctx)
		if rec == nil || err != nil {
			return d, err
		}
		d.text = &rec.Title
	case PromptDoc:
		text, err := tx.Get(branchstore.PromptBucket, base.Under(ctx, id[:]...))
		if text == nil || err != nil {
			return d, err
		}
		copied := string(text)
		d.text = &copied
	case MessageDoc:
		m, err := poolstore.Get(tx, ctx, id)
		if errors.Is(err, kv.ErrDamaged) {
			return d, nil // check reports it
		}
		if m == nil || err != nil {
			return d, err
		}
		d.message = m
		d.fields, err = fieldsIn(tx, m)
		return d, err
	}
	return d, nil
}

// maxFileText bounds the searchable beginning of an attachment's text, in bytes.
const maxFileText = 1 << 20

// fieldsIn returns the texts of a message and of its attachments, which lie beside it.
func fieldsIn(tx kv.Tx, m *pool.Message) ([]field, error) {
	out := fieldsOf(m)
	parts := m.Content
	if m.Result != nil {
		parts = append(parts[:len(parts):len(parts)], m.Result.Parts...)
	}
	for i := range parts {
		p := &parts[i]
		kind, _, _ := strings.Cut(p.MediaType, "/")
		if p.Type != pool.DocumentPart || kind != "text" && p.MediaType != "application/json" || p.SHA256 == (pool.Hash{}) {
			continue
		}
		data, _, err := poolstore.Artifact(tx, p.SHA256)
		if errors.Is(err, kv.ErrDamaged) {
			continue // check reports it
		}
		if err != nil {
			return nil, err
		}
		if text, ok := charset.Decode(data, p.MediaType); ok {
			data = []byte(text.Text)
		}
		out = append(out, field{"file", strings.ToValidUTF8(string(data[:min(len(data), maxFileText)]), " ")})
	}
	return out, nil
}

// add reads documents in one short transaction. It hands their words to the block afterwards, so that nobody waits for that.
func (x *indexer) add(ctx context.Context, db kv.DB, batch []index.Waiting) error {
	var docs []document
	err := db.View(ctx, func(tx kv.Tx) error {
		docs = docs[:0]
		if err := kv.Fetch(tx, contentKeys(batch)...); err != nil {
			return err
		}
		for _, w := range batch {
			d, err := readDocument(tx, w.Doc)
			if err != nil {
				return err
			}
			docs = append(docs, d)
		}
		return nil
	})
	if err != nil {
		return err
	}
	x.waiting = append(x.waiting, batch...)
	for _, d := range docs {
		switch {
		case d.text != nil:
			x.begin(d.Doc)
			x.text(*d.text)
		case d.message != nil:
			x.begin(d.Doc)
			x.message(d.message, d.fields)
		}
	}
	return nil
}

func (x *indexer) begin(d index.Doc) {
	x.Begin(d)
	x.Add(contextTerm(docContext(d)))
}

func (x *indexer) message(m *pool.Message, fields []field) {
	x.Add(roleTerm(m.Role))
	if m.Meta.Model != "" {
		x.Add(modelTerm(m.Meta.Model))
	}
	for _, name := range toolsOf(m) {
		x.Add(toolTerm(name))
	}
	for _, f := range fields {
		x.text(f.text)
	}
}

func (x *indexer) text(text string) {
	x.bytes += len(text)
	x.segment.Each(text, func(w []byte, _, _ int) bool {
		x.Add(w)
		return true
	})
}

// IndexStep puts a small portion of the waiting documents into the index, if there are enough, and else goes on with a merge. It is the step of
// base.Beside.
func IndexStep(ctx context.Context, s *base.Store) (more bool, err error) {
	return IndexSome(ctx, s, EnoughWaiting, smallPortion, portionTime)
}

// changedOften is how many failures in a row Index blames on changes by other programs.
const changedOften = 100

// errChanged ends a transaction whose preparation is outdated.
var errChanged = errors.New("changed meanwhile")

// IndexSome puts up to most waiting documents into a block if at least least are waiting; else it does a step of a merge under way. It stops reading
// documents, but for the first few, after the time within. It reports whether there is more to do.
func IndexSome(ctx context.Context, s *base.Store, least, most int, within time.Duration) (more bool, err error) {
	_, more, err = indexSome(ctx, s, least, most, within)
	if errors.Is(err, errChanged) {
		return true, nil
	}
	return more, err
}

// indexSome is IndexSome, and counts the documents that it put into a block.
func indexSome(ctx context.Context, s *base.Store, least, most int, within time.Duration) (n int, more bool, err error) {
	waiting, err := Waiting(ctx, s, most+1)
	if err != nil {
		return 0, false, err
	}
	if len(waiting) < max(least, 1) {
		more, err = mergeSome(ctx, s)
		return 0, more, err
	}
	x := &indexer{Builder: index.NewBuilder(), segment: words.NewSegmenter()}
	begun := time.Now()
	for _, batch := range batches(waiting[:min(most, len(waiting))], view.EntryBatch/4) {
		if len(x.waiting) > 0 && (x.bytes >= portionBytes || time.Since(begun) > within) {
			break
		}
		if err := x.add(ctx, s.DB, batch); err != nil {
			return 0, false, err
		}
	}
	return len(x.waiting), true, s.Update(ctx, x.store)
}

// mergeSome does a step of merging, and reports whether one was due.
func mergeSome(ctx context.Context, s *base.Store) (bool, error) {
	st, err := indexState(ctx, s)
	if st == nil || !st.Due() || err != nil {
		return false, err
	}
	return true, s.Update(ctx, func(tx kv.RwTx) error {
		st, err := index.Load(tx, words.Version)
		if st == nil || st.Building || err != nil {
			return err
		}
		return stepIn(tx, st)
	})
}

// stepIn merges for a while, and saves the state.
func stepIn(tx kv.RwTx, st *index.State) error {
	if err := index.Step(tx, st, mergeBytes); err != nil {
		return err
	}
	return index.Save(tx, st)
}

// Waiting lists up to n waiting documents, the oldest first. It lists none if there is no complete index.
func Waiting(ctx context.Context, s *base.Store, n int) ([]index.Waiting, error) {
	var list []index.Waiting
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		list = nil
		st, err := index.Load(tx, words.Version)
		if st == nil || st.Building || err != nil {
			return err
		}
		return index.ScanWaiting(tx, false, func(w index.Waiting) error {
			list = append(list, w)
			if len(list) == n {
				return kv.ErrStop
			}
			return nil
		})
	})
	return list, err
}

func batches[T any](all []T, n int) [][]T {
	var out [][]T
	for len(all) > 0 {
		k := min(n, len(all))
		out, all = append(out, all[:k]), all[k:]
	}
	return out
}

// store writes the block. It fails with errChanged if one of its documents has changed since.
func (x *indexer) store(tx kv.RwTx) error {
	st, err := index.Load(tx, words.Version)
	if err != nil {
		return err
	}
	if st == nil || st.Building {
		return errChanged
	}
	if err := index.FetchWaiting(tx, x.waiting); err != nil {
		return err
	}
	for _, w := range x.waiting {
		ok, err := index.Served(tx, w)
		if err != nil {
			return err
		}
		if !ok {
			return errChanged
		}
	}
	if err := x.Write(tx, st); err != nil {
		return err
	}
	return stepIn(tx, st)
}

// Index puts all waiting documents into the search index, in portions, and then merges what is due. After each portion it calls progress, if
// that is not nil, with the number of documents done.
func Index(ctx context.Context, s *base.Store, progress func(done int)) error {
	ctx = engine.WithPurpose(ctx, "index")
	for done, changed := 0, 0; ; {
		n, more, err := indexSome(ctx, s, 1, largePortion, time.Minute)
		if errors.Is(err, errChanged) && changed < changedOften {
			changed++
			continue
		}
		if errors.Is(err, errChanged) {
			return base.Damaged("documents that wait for the search index are not found where they are listed")
		}
		if changed = 0; err != nil || !more {
			return err
		}
		if done += n; n > 0 && progress != nil {
			progress(done)
		}
	}
}

// Reindex builds the search index anew from the store. Other programs can go on; until it is done, their searches read everything. If it is interrupted, it
// has to be started again from the beginning.
func Reindex(ctx context.Context, s *base.Store, progress func(done int)) error {
	ctx = engine.WithPurpose(ctx, "index")
	if k, ok := s.Engine.(kv.Keeper); ok {
		if err := k.CheckPages(ctx, func(string) {}); err != nil {
			return err
		}
	}
	building := func(tx kv.RwTx, on bool) error {
		return index.Save(tx, index.New(words.Version, on))
	}
	for done := false; !done; {
		err := s.Update(ctx, func(tx kv.RwTx) (err error) {
			if done, err = index.Clear(tx, largePortion); err != nil {
				return err
			}
			return building(tx, true)
		})
		if err != nil {
			return err
		}
	}
	ids, err := view.Recent(ctx, s)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := waitAll(ctx, s, id); err != nil {
			return err
		}
	}
	if err := s.Update(ctx, func(tx kv.RwTx) error { return building(tx, false) }); err != nil {
		return err
	}
	return Index(ctx, s, progress)
}

// waitAll lists all documents of a context for the index.
func waitAll(ctx context.Context, s *base.Store, id pool.ID) error {
	for after, more := (pool.ID{}), true; more; {
		var last pool.ID
		err := s.Update(ctx, func(tx kv.RwTx) error {
			last = after
			if after == (pool.ID{}) {
				if err := waitNamed(tx, id); err != nil {
					return err
				}
			}
			return waitMessages(s, tx, id, after, &last)
		})
		if err != nil {
			return err
		}
		after, more = last, last != after
	}
	return nil
}

// waitNamed lists a context's title and prompts for the index.
func waitNamed(tx kv.RwTx, id pool.ID) error {
	rec, _, err := base.GetContext(tx, id)
	if rec == nil || err != nil {
		return err
	}
	if err := Wait(tx, rec.Created, DocOf(TitleDoc, id, pool.ID{})); err != nil {
		return err
	}
	keys, err := view.KeysWith(tx, branchstore.PromptBucket, id[:])
	for _, key := range keys {
		if err == nil && len(key) == 32 {
			err = Wait(tx, rec.Created, DocOf(PromptDoc, id, pool.ID(key[16:])))
		}
	}
	return err
}

func waitMessages(s *base.Store, tx kv.RwTx, id, after pool.ID, last *pool.ID) error {
	type found struct {
		id pool.ID
		at pool.Time
	}
	var all []found
	err := poolstore.ScanAfter(tx, id, after, func(mid pool.ID, m *pool.Message, err error) error {
		f := found{id: mid, at: s.Now()}
		if err == nil && m.Created > 0 {
			f.at = m.Created
		}
		if all = append(all, f); len(all) == view.EntryBatch*4 {
			return kv.ErrStop
		}
		return nil
	})
	for _, f := range all {
		if err == nil {
			err = Wait(tx, f.at, DocOf(MessageDoc, id, f.id))
		}
		*last = f.id
	}
	return err
}

// DropFromIndex removes documents of the given contexts from the search index: those that the store no longer has, those in rewritten, and titles, since a
// title may have been rewritten too. Rewritten messages and the titles of contexts that remain then wait to be indexed again.
func DropFromIndex(tx kv.RwTx, contexts map[pool.ID]bool, rewritten map[index.Doc]bool, now pool.Time) error {
	err := dropDocs(tx, func(d index.Doc) (bool, error) {
		if !contexts[docContext(d)] || d[0] == TitleDoc || rewritten[d] {
			return contexts[docContext(d)], nil
		}
		there, err := docExists(tx, d)
		return !there, err
	})
	for d := range rewritten {
		if err == nil && d[0] == MessageDoc {
			err = Wait(tx, now, d)
		}
	}
	for id := range contexts {
		there, getErr := tx.Get(base.ContextBucket, id[:])
		if err = errors.Join(err, getErr); err == nil && there != nil {
			err = Wait(tx, now, DocOf(TitleDoc, id, pool.ID{}))
		}
	}
	return err
}

// dropDocs removes documents from the search index so that no word of them is left.
func dropDocs(tx kv.RwTx, dead func(index.Doc) (bool, error)) error {
	st, err := index.Load(tx, words.Version)
	if err != nil {
		return err
	}
	if st == nil { // perhaps an index of another version: all of it goes
		_, err := index.Clear(tx, math.MaxInt)
		return err
	}
	n, err := index.Drop(tx, st, dead)
	if err != nil || n == 0 {
		return err
	}
	return index.Save(tx, st)
}

func docExists(tx kv.Tx, d index.Doc) (bool, error) {
	ctx, id := docContext(d), docID(d)
	switch d[0] {
	case PromptDoc:
		raw, err := tx.Get(branchstore.PromptBucket, base.Under(ctx, id[:]...))
		return raw != nil, err
	}
	return poolstore.Has(tx, ctx, id)
}
