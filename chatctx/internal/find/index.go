package find

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/internal/words"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// The kinds of documents in the search index: messages by their ids, a context's title (the zero id), prompts by theirs.
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

// How much is put into the index at once: beside those who store something, and by whoever asks for it.
const (
	EnoughWaiting = 1000 // nobody but a reindexing begins with less
	smallPortion  = 2000
	largePortion  = 8192
	portionBytes  = 16 << 20
	portionTime   = 50 * time.Millisecond // of a small one
	mergeBytes    = 2 << 20
)

// Wait notes that the search index is to take a document in.
func Wait(tx kv.RwTx, at pool.Time, d index.Doc) error {
	var stamp [8]byte
	binary.BigEndian.PutUint64(stamp[:], rand.Uint64())
	return index.Wait(tx, uint64(max(at, 0)), d, stamp)
}

// PutMessage writes a message's record and tells the search index.
func PutMessage(tx kv.RwTx, ctx pool.ID, m *pool.Message, now pool.Time) error {
	if err := pool.Put(tx, ctx, m); err != nil {
		return err
	}
	at := now
	if m.Created > 0 {
		at = min(at, m.Created)
	}
	return Wait(tx, at, DocOf(MessageDoc, ctx, m.ID))
}

// field is a text of a message that can be searched.
type field struct{ name, text string }

// fieldsOf gives the texts of a message.
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
		add("kept", words.FromJSON(m.Source.Raw), words.FromJSON(m.Meta.ProviderData[m.Source.Format]))
	}
	return out
}

// The terms that are no words: whose, in which context. A byte 2 keeps them apart.
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

// document is what one that waits holds. One that is gone has neither text nor message.
type document struct {
	index.Doc
	text    *string
	message *pool.Message
	fields  []field // of the message
}

// readDocument reads what a document holds.
func readDocument(tx kv.Tx, doc index.Doc) (document, error) {
	d := document{Doc: doc}
	ctx, id := docContext(doc), docID(doc)
	switch doc[0] {
	case TitleDoc:
		rec, _, err := record.GetContext(tx, ctx)
		if rec == nil || err != nil {
			return d, err
		}
		d.text = &rec.Title
	case PromptDoc:
		text, err := tx.Get(branch.PromptBucket, record.Under(ctx, id[:]...))
		if text == nil || err != nil {
			return d, err
		}
		copied := string(text)
		d.text = &copied
	case MessageDoc:
		m, err := pool.Get(tx, ctx, id)
		if errors.Is(err, kv.ErrDamaged) {
			return d, nil // check tells of it
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

// maxFileText is how much of an attachment's text can be found.
const maxFileText = 1 << 20

// fieldsIn are the texts of a message with those of its attachments, which lie beside it.
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
		data, _, err := pool.Artifact(tx, p.SHA256)
		if errors.Is(err, kv.ErrDamaged) {
			continue // check tells of it
		}
		if err != nil {
			return nil, err
		}
		out = append(out, field{"file", strings.ToValidUTF8(string(data[:min(len(data), maxFileText)]), " ")})
	}
	return out, nil
}

// add reads documents in one short transaction, and gives the block their words after it, when nobody waits for it.
func (x *indexer) add(ctx context.Context, db kv.DB, batch []index.Waiting) error {
	var docs []document
	err := db.View(ctx, func(tx kv.Tx) error {
		docs = docs[:0]
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

// IndexAfter has what waits put into the index, if it is enough by now. It is called after something was stored, and does something for a few of all messages. Who stores does not wait for
// it, unless much more came than it could take in.
func IndexAfter(ctx context.Context, s *record.Store, stored []pool.ID) {
	lots := 0
	for _, id := range stored {
		if id[15] == 0 { // one of 256
			lots++
		}
	}
	if lots == 0 {
		return
	}
	step := func() (bool, error) {
		return IndexSome(context.Background(), s, EnoughWaiting, smallPortion, portionTime)
	}
	if ended := s.Indexing.Ask(lots, step); ended != nil {
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
}

// changedOften is how often in a row Index takes it for the doing of others that what it read is no longer so.
const changedOften = 100

// errChanged ends a transaction for which the index was prepared from what is no longer so.
var errChanged = errors.New("changed meanwhile")

// IndexSome puts up to most documents that wait into a block, if there are at least as many as least, and reports whether more wait. It reads no more of them after
// the time within.
func IndexSome(ctx context.Context, s *record.Store, least, most int, within time.Duration) (more bool, err error) {
	more, err = indexSome(ctx, s, least, most, within)
	if errors.Is(err, errChanged) {
		return true, nil
	}
	return more, err
}

func indexSome(ctx context.Context, s *record.Store, least, most int, within time.Duration) (more bool, err error) {
	waiting, err := Waiting(ctx, s, most+1)
	if err != nil || len(waiting) < max(least, 1) {
		return false, err
	}
	more = len(waiting) > most
	x := &indexer{Builder: index.NewBuilder(), segment: words.NewSegmenter()}
	begun := time.Now()
	for _, batch := range batches(waiting[:min(most, len(waiting))], view.EntryBatch/4) {
		if x.bytes >= portionBytes || time.Since(begun) > within {
			more = true
			break
		}
		if err := x.add(ctx, s.DB, batch); err != nil {
			return false, err
		}
	}
	return more, s.DB.Update(ctx, x.store)
}

// Waiting lists up to n documents that wait, the oldest first; none where there is no index.
func Waiting(ctx context.Context, s *record.Store, n int) ([]index.Waiting, error) {
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

// store writes the block. It fails with errChanged where one of its documents is not as it was.
func (x *indexer) store(tx kv.RwTx) error {
	st, err := index.Load(tx, words.Version)
	if err != nil {
		return err
	}
	if st == nil || st.Building {
		return errChanged
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
	if _, err := index.Step(tx, st, mergeBytes); err != nil {
		return err
	}
	return index.Save(tx, st)
}

// Index puts all that waits into the search index, in portions, and calls progress, if it is not nil, after each with how many documents are done.
func Index(ctx context.Context, s *record.Store, progress func(done int)) error {
	ctx = kv.WithPurpose(ctx, "index")
	for done, changed := 0, 0; ; {
		more, err := indexSome(ctx, s, 1, largePortion, time.Minute)
		if errors.Is(err, errChanged) && changed < changedOften {
			changed++
			continue
		}
		if errors.Is(err, errChanged) {
			return record.Damaged("what waits for the search index is not found where it stands")
		}
		if changed = 0; err != nil || !more {
			return err
		}
		if done += largePortion; progress != nil {
			progress(done)
		}
	}
}

// Reindex makes the search index anew from what the store holds. Others go on meanwhile; until it is done searches look through everything. One that breaks off is
// to be begun again.
func Reindex(ctx context.Context, s *record.Store, progress func(done int)) error {
	ctx = kv.WithPurpose(ctx, "index")
	if k, ok := s.DB.(kv.Keeper); ok {
		if err := k.CheckPages(ctx, func(string) {}); err != nil {
			return err
		}
	}
	building := func(tx kv.RwTx, on bool) error {
		return index.Save(tx, index.New(words.Version, on))
	}
	for done := false; !done; {
		err := s.DB.Update(ctx, func(tx kv.RwTx) (err error) {
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
	if err := s.DB.Update(ctx, func(tx kv.RwTx) error { return building(tx, false) }); err != nil {
		return err
	}
	return Index(ctx, s, progress)
}

// waitAll notes all documents of a context.
func waitAll(ctx context.Context, s *record.Store, id pool.ID) error {
	for after, more := (pool.ID{}), true; more; {
		var last pool.ID
		err := s.DB.Update(ctx, func(tx kv.RwTx) error {
			last = after
			if after == (pool.ID{}) {
				if err := waitNamed(tx, id, s.Now()); err != nil {
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

// waitNamed notes a context's title and prompts.
func waitNamed(tx kv.RwTx, id pool.ID, now pool.Time) error {
	rec, _, err := record.GetContext(tx, id)
	if rec == nil || err != nil {
		return err
	}
	if err := Wait(tx, rec.Created, DocOf(TitleDoc, id, pool.ID{})); err != nil {
		return err
	}
	keys, err := view.KeysWith(tx, branch.PromptBucket, id[:])
	for _, key := range keys {
		if err == nil && len(key) == 32 {
			err = Wait(tx, rec.Created, DocOf(PromptDoc, id, pool.ID(key[16:])))
		}
	}
	return err
}

func waitMessages(s *record.Store, tx kv.RwTx, id, after pool.ID, last *pool.ID) error {
	type found struct {
		id pool.ID
		at pool.Time
	}
	var all []found
	err := pool.ScanAfter(tx, id, after, func(mid pool.ID, m *pool.Message, err error) error {
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

// DropFromIndex takes what is gone out of the search index: documents of these contexts that the store no longer has, and those that were rewritten, as their titles
// may have been; they wait anew.
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
		there, getErr := tx.Get(record.ContextBucket, id[:])
		if err = errors.Join(err, getErr); err == nil && there != nil {
			err = Wait(tx, now, DocOf(TitleDoc, id, pool.ID{}))
		}
	}
	return err
}

// dropDocs takes documents out of the search index so that no word of them is left.
func dropDocs(tx kv.RwTx, dead func(index.Doc) (bool, error)) error {
	st, err := index.Load(tx, words.Version)
	if err != nil {
		return err
	}
	if st == nil { // perhaps one of another version: all of it goes
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
		raw, err := tx.Get(branch.PromptBucket, record.Under(ctx, id[:]...))
		return raw != nil, err
	}
	return pool.Has(tx, ctx, id)
}
