package index

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Builder collects documents in memory for a new block.
type Builder struct {
	docs  []Doc
	terms map[string]int
	lists []building
	names []string
}

// building is the list of a term under construction. The last document is not in it yet, since the term may occur there again.
type building struct {
	entry
	doc, tf uint32
	done    []entry // full pieces
}

// NewBuilder returns an empty Builder.
func NewBuilder() *Builder { return &Builder{terms: map[string]int{}} }

// kindTerm begins the terms of a document's kind. Each document has exactly one of them.
const kindTerm = "\x02k"

// Begin begins the next document.
func (b *Builder) Begin(d Doc) {
	b.docs = append(b.docs, d)
	b.Add(append([]byte(kindTerm), d[0]))
}

// Add adds a word to the document.
func (b *Builder) Add(word []byte) {
	term := Term(word)
	i, ok := b.terms[string(term)]
	doc := uint32(len(b.docs) - 1)
	if !ok {
		i = len(b.lists)
		name := string(term)
		b.terms[name] = i
		b.names = append(b.names, name)
		b.lists = append(b.lists, building{doc: doc})
	}
	l := &b.lists[i]
	if l.doc != doc {
		l.settle()
		l.doc = doc
	}
	l.tf++
}

// settle puts the last document into the list.
func (l *building) settle() {
	if l.tf == 0 {
		return
	}
	l.add(posting{l.doc, l.tf})
	l.tf = 0
	if len(l.list) >= maxList {
		l.done = append(l.done, l.entry)
		l.entry = entry{}
	}
}

// maxDocs is the number of documents in one record of the doc bucket: about a kilobyte, so that pages are full.
const maxDocs = 64

// Write writes the documents as a block and adds it to the state. In another transaction it can run again and writes the same.
func (b *Builder) Write(tx kv.RwTx, s *State) error {
	if len(b.docs) == 0 {
		return nil
	}
	block := Block{ID: s.NextID, From: s.Next, To: s.Next + uint64(len(b.docs))}
	for at := 0; at < len(b.docs); at += maxDocs {
		if err := putDocs(tx, block.From+uint64(at), b.docs[at:min(at+maxDocs, len(b.docs))]); err != nil {
			return err
		}
	}
	slices.Sort(b.names)
	w := &writer{tx: tx, block: block.ID}
	for _, name := range b.names {
		l := &b.lists[b.terms[name]]
		l.settle()
		all := slices.Clone(l.done)
		if l.n > 0 {
			all = append(all, l.entry)
		}
		for _, e := range all {
			e.term = []byte(name)
			if err := w.put(&e); err != nil {
				return err
			}
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	block.Entries = w.count
	s.Next, s.NextID = block.To, s.NextID+1
	s.Blocks = append(s.Blocks, block)
	return nil
}

func docKey(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// putDocs writes one record of documents. Neighbours of one kind and context are stored together: their number, kind and context, the length of the
// beginning that they share and that beginning, then the rest of each.
func putDocs(tx kv.RwTx, from uint64, docs []Doc) error {
	var b []byte
	for i := 0; i < len(docs); {
		j := i + 1
		for j < len(docs) && bytes.Equal(docs[i][:docHead], docs[j][:docHead]) {
			j++
		}
		b = append(binary.AppendUvarint(b, uint64(j-i)), docs[i][:docHead]...)
		same := sharedStart(docs[i:j])
		b = append(append(b, byte(same)), docs[i][docHead:docHead+same]...)
		for ; i < j; i++ {
			b = append(b, docs[i][docHead+same:]...)
		}
	}
	return tx.Put(DocBucket, docKey(from), seal(b))
}

// docHead is the length of a document's kind and context in bytes.
const docHead = 17

// sharedStart returns how many bytes after the head all documents share.
func sharedStart(docs []Doc) int {
	first := docs[0][docHead:]
	n := len(first)
	for i := range docs {
		id := docs[i][docHead:]
		for j := range n {
			if id[j] != first[j] {
				n = j
				break
			}
		}
	}
	return n
}

func parseDocs(value []byte) ([]Doc, error) {
	b, err := unseal(value)
	if err != nil {
		return nil, damaged("a record of documents %v", err)
	}
	var docs []Doc
	for len(b) > 0 {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > maxDocs || n == 0 || len(b) < k+docHead+1 {
			return nil, damaged("a record of documents does not fit")
		}
		var d Doc
		copy(d[:], b[k:k+docHead])
		same := int(b[k+docHead])
		rest := len(d) - docHead - same
		if b = b[k+docHead+1:]; rest < 0 || len(b) < same+rest*int(n) {
			return nil, damaged("a record of documents does not fit")
		}
		copy(d[docHead:], b[:same])
		b = b[same:]
		for range n {
			copy(d[docHead+same:], b)
			docs, b = append(docs, d), b[rest:]
		}
	}
	return docs, nil
}

// Docs finds documents by number, in one transaction. It caches the last record.
type Docs struct {
	tx   kv.Tx
	from uint64
	docs []Doc
}

// NewDocs returns a Docs for tx.
func NewDocs(tx kv.Tx) *Docs { return &Docs{tx: tx} }

// At returns the document with number n, or the zero Doc if it was taken out.
func (d *Docs) At(n uint64) (Doc, error) {
	if n < d.from || n >= d.from+uint64(len(d.docs)) {
		d.docs = nil
		err := d.tx.Scan(DocBucket, kv.Range{To: docKey(n + 1), Reverse: true}, func(key, value []byte) (err error) {
			if len(key) != 8 {
				return damaged("a key of %d bytes is in %s", len(key), DocBucket)
			}
			d.from = binary.BigEndian.Uint64(key)
			if d.docs, err = parseDocs(value); err != nil {
				return err
			}
			return kv.ErrStop
		})
		if err != nil {
			return Doc{}, err
		}
	}
	if n < d.from || n-d.from >= uint64(len(d.docs)) {
		return Doc{}, damaged("document %d is missing", n)
	}
	return d.docs[n-d.from], nil
}

// ScanDocs calls fn for each record of documents with the number of its first document.
func ScanDocs(tx kv.Tx, fn func(from uint64, docs []Doc) error) error {
	return tx.Scan(DocBucket, kv.Range{}, func(key, value []byte) error {
		docs, err := parseDocs(value)
		if err == nil && len(key) != 8 {
			err = damaged("a key of %d bytes is in %s", len(key), DocBucket)
		}
		if err != nil {
			return err
		}
		return fn(binary.BigEndian.Uint64(key), docs)
	})
}
