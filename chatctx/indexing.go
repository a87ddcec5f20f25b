package chatctx

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/chatctx/internal/words"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// The kinds of documents in the search index: messages by their ids, a context's title (the zero id), prompts by theirs.
const (
	messageDoc = 1
	titleDoc   = 2
	promptDoc  = 3
)

func docOf(kind byte, ctx, id ID) (d index.Doc) {
	d[0] = kind
	copy(d[1:], ctx[:])
	copy(d[17:], id[:])
	return d
}

func docContext(d index.Doc) ID { return ID(d[1:17]) }
func docID(d index.Doc) ID      { return ID(d[17:]) }

// How much is put into the index at once: beside those who store something, and by whoever asks for it.
const (
	enoughWaiting = 1000 // nobody but a reindexing begins with less
	smallPortion  = 2000
	largePortion  = 8192
	portionBytes  = 16 << 20
	portionTime   = 50 * time.Millisecond // of a small one
	mergeBytes    = 2 << 20
)

// wait notes that the search index is to take a document in.
func wait(tx kv.RwTx, at pool.Time, d index.Doc) error {
	var stamp [8]byte
	binary.BigEndian.PutUint64(stamp[:], rand.Uint64())
	return index.Wait(tx, uint64(max(at, 0)), d, stamp)
}

// putMessage writes a message's record and tells the search index.
func putMessage(tx kv.RwTx, ctx ID, m *Message, now pool.Time) error {
	if err := pool.Put(tx, ctx, m); err != nil {
		return err
	}
	at := now
	if m.Created > 0 {
		at = min(at, m.Created)
	}
	return wait(tx, at, docOf(messageDoc, ctx, m.ID))
}

// putPrompt writes a prompt's text and tells the search index.
func (t *txn) putPrompt(text string) (string, error) {
	id, err := branch.PutPrompt(t.tx, t.id, text)
	if id == "" || err != nil {
		return id, err
	}
	return id, wait(t.tx, t.now, docOf(promptDoc, t.id, ID([]byte(id))))
}

// putRecord writes the context's record. Of a new title it tells the search index.
func (t *txn) putRecord() error {
	if t.rec.Title != t.was.Title {
		if err := wait(t.tx, t.now, docOf(titleDoc, t.id, ID{})); err != nil {
			return err
		}
	}
	return putRecord(t.tx, contextBucket, under(t.id), t.rec)
}

// field is a text of a message that can be searched.
type field struct{ name, text string }

// fieldsOf gives the texts of a message.
func fieldsOf(m *Message) []field {
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
	return out
}

// The terms that are no words: whose, in which context. A byte 2 keeps them apart.
func contextTerm(id ID) []byte       { return []byte("\x02c" + strings.ReplaceAll(id.String(), "-", "")) }
func roleTerm(role pool.Role) []byte { return []byte("\x02r" + string(role)) }
func modelTerm(model string) []byte  { return []byte("\x02m" + words.Fold(model)) }
func toolTerm(tool string) []byte    { return []byte("\x02t" + words.Fold(tool)) }
func sameFolded(a, b string) bool    { return words.Fold(a) == words.Fold(b) }
func toolsOf(m *Message) (names []string) {
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
	message *Message
}

// readDocument reads what a document holds.
func readDocument(tx kv.Tx, doc index.Doc) (document, error) {
	d := document{Doc: doc}
	ctx, id := docContext(doc), docID(doc)
	switch doc[0] {
	case titleDoc:
		rec, _, err := getContext(tx, ctx)
		if rec == nil || err != nil {
			return d, err
		}
		d.text = &rec.Title
	case promptDoc:
		text, err := tx.Get(branch.PromptBucket, under(ctx, id[:]...))
		if text == nil || err != nil {
			return d, err
		}
		copied := string(text)
		d.text = &copied
	case messageDoc:
		m, err := pool.Get(tx, ctx, id)
		if errors.Is(err, kv.ErrDamaged) {
			return d, nil // check tells of it
		}
		d.message = m
		return d, err
	}
	return d, nil
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
			x.message(d.message)
		}
	}
	return nil
}

func (x *indexer) begin(d index.Doc) {
	x.Begin(d)
	x.Add(contextTerm(docContext(d)))
}

func (x *indexer) message(m *Message) {
	x.Add(roleTerm(m.Role))
	if m.Meta.Model != "" {
		x.Add(modelTerm(m.Meta.Model))
	}
	for _, name := range toolsOf(m) {
		x.Add(toolTerm(name))
	}
	for _, f := range fieldsOf(m) {
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

// maxBehind times 256 messages may come while the goroutine runs, before who stores waits for it.
const maxBehind = 64

// beside is a goroutine that does work in steps beside those who store and not in their way: puts what waits into the search index. There is at most one for a Store.
type beside struct {
	mu     sync.Mutex
	runs   chan struct{} // closed when it ends; nil while there is none
	behind int           // how often somebody asked for it since it began
	closed bool
}

// indexAfter has what waits put into the index, if it is enough by now. It is called after something was stored, and does something for a few of all messages. Who stores does not wait for
// it, unless much more came than it could take in.
func (s *Store) indexAfter(ctx context.Context, stored []ID) {
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
		return s.indexSome(context.Background(), enoughWaiting, smallPortion, portionTime)
	}
	if ended := s.indexing.ask(lots, step); ended != nil {
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}
}

// ask sees that the goroutine runs, a step after the other. It gives what ends with it where that is too far behind.
func (i *beside) ask(lots int, step func() (more bool, err error)) <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.behind += lots
	if i.runs == nil {
		i.runs = make(chan struct{})
		go i.run(step)
	}
	if i.behind <= maxBehind {
		return nil
	}
	return i.runs
}

// run ends when no more is to be done, a step fails or the store is closed. Where no index can be made, nothing fails for it: what waits is found all the same.
func (i *beside) run(step func() (more bool, err error)) {
	for more := true; more && !i.ending(); {
		var err error
		if more, err = step(); err != nil {
			break
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.runs)
	i.runs, i.behind = nil, 0
}

func (i *beside) ending() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.closed
}

// close waits for the step that is under way.
func (i *beside) close() {
	i.mu.Lock()
	i.closed = true
	runs := i.runs
	i.mu.Unlock()
	if runs != nil {
		<-runs
	}
}

// errChanged ends a transaction for which the index was prepared from what is no longer so.
var errChanged = errors.New("changed meanwhile")

// indexSome puts up to most documents that wait into a block, if there are at least as many as least, and reports whether more wait. It reads no more of them after
// the time within.
func (s *Store) indexSome(ctx context.Context, least, most int, within time.Duration) (more bool, err error) {
	waiting, err := s.waiting(ctx, most+1)
	if err != nil || len(waiting) < max(least, 1) {
		return false, err
	}
	more = len(waiting) > most
	x := &indexer{Builder: index.NewBuilder(), segment: words.NewSegmenter()}
	begun := time.Now()
	for _, batch := range batches(waiting[:min(most, len(waiting))], entryBatch/4) {
		if x.bytes >= portionBytes || time.Since(begun) > within {
			more = true
			break
		}
		if err := x.add(ctx, s.db, batch); err != nil {
			return false, err
		}
	}
	err = s.db.Update(ctx, x.store)
	if errors.Is(err, errChanged) {
		return true, nil
	}
	return more, err
}

// waiting lists up to n documents that wait, the oldest first; none where there is no index.
func (s *Store) waiting(ctx context.Context, n int) ([]index.Waiting, error) {
	var list []index.Waiting
	err := s.db.View(ctx, func(tx kv.Tx) error {
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
func (s *Store) Index(ctx context.Context, progress func(done int)) error {
	ctx = kv.WithPurpose(ctx, "index")
	for done := 0; ; {
		more, err := s.indexSome(ctx, 1, largePortion, time.Minute)
		if err != nil || !more {
			return err
		}
		if done += largePortion; progress != nil {
			progress(done)
		}
	}
}

// Reindex makes the search index anew from what the store holds. Others go on meanwhile; until it is done searches look through everything. One that breaks off is
// to be begun again.
func (s *Store) Reindex(ctx context.Context, progress func(done int)) error {
	ctx = kv.WithPurpose(ctx, "index")
	building := func(tx kv.RwTx, on bool) error {
		return index.Save(tx, index.New(words.Version, on))
	}
	for done := false; !done; {
		err := s.db.Update(ctx, func(tx kv.RwTx) (err error) {
			if done, err = index.Clear(tx, largePortion); err != nil {
				return err
			}
			return building(tx, true)
		})
		if err != nil {
			return err
		}
	}
	ids, err := s.recent(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.waitAll(ctx, id); err != nil {
			return err
		}
	}
	if err := s.db.Update(ctx, func(tx kv.RwTx) error { return building(tx, false) }); err != nil {
		return err
	}
	return s.Index(ctx, progress)
}

// waitAll notes all documents of a context.
func (s *Store) waitAll(ctx context.Context, id ID) error {
	for after, more := (ID{}), true; more; {
		var last ID
		err := s.db.Update(ctx, func(tx kv.RwTx) error {
			last = after
			if after == (ID{}) {
				if err := waitNamed(tx, id, s.now()); err != nil {
					return err
				}
			}
			return s.waitMessages(tx, id, after, &last)
		})
		if err != nil {
			return err
		}
		after, more = last, last != after
	}
	return nil
}

// waitNamed notes a context's title and prompts.
func waitNamed(tx kv.RwTx, id ID, now pool.Time) error {
	rec, _, err := getContext(tx, id)
	if rec == nil || err != nil {
		return err
	}
	if err := wait(tx, rec.Created, docOf(titleDoc, id, ID{})); err != nil {
		return err
	}
	keys, err := keysWith(tx, branch.PromptBucket, id[:])
	for _, key := range keys {
		if err == nil && len(key) == 32 {
			err = wait(tx, rec.Created, docOf(promptDoc, id, ID(key[16:])))
		}
	}
	return err
}

func (s *Store) waitMessages(tx kv.RwTx, id, after ID, last *ID) error {
	type found struct {
		id ID
		at pool.Time
	}
	var all []found
	err := pool.ScanAfter(tx, id, after, func(mid ID, m *Message, err error) error {
		f := found{id: mid, at: s.now()}
		if err == nil && m.Created > 0 {
			f.at = m.Created
		}
		if all = append(all, f); len(all) == entryBatch*4 {
			return kv.ErrStop
		}
		return nil
	})
	for _, f := range all {
		if err == nil {
			err = wait(tx, f.at, docOf(messageDoc, id, f.id))
		}
		*last = f.id
	}
	return err
}

// dropFromIndex takes what is gone out of the search index: documents of these contexts that the store no longer has, and those that were rewritten, as their titles
// may have been; they wait anew.
func dropFromIndex(tx kv.RwTx, contexts map[ID]bool, rewritten map[index.Doc]bool, now pool.Time) error {
	err := dropDocs(tx, func(d index.Doc) (bool, error) {
		if !contexts[docContext(d)] || d[0] == titleDoc || rewritten[d] {
			return contexts[docContext(d)], nil
		}
		there, err := docExists(tx, d)
		return !there, err
	})
	for d := range rewritten {
		if err == nil && d[0] == messageDoc {
			err = wait(tx, now, d)
		}
	}
	for id := range contexts {
		there, getErr := tx.Get(contextBucket, id[:])
		if err = errors.Join(err, getErr); err == nil && there != nil {
			err = wait(tx, now, docOf(titleDoc, id, ID{}))
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
	case promptDoc:
		raw, err := tx.Get(branch.PromptBucket, under(ctx, id[:]...))
		return raw != nil, err
	}
	return pool.Has(tx, ctx, id)
}
