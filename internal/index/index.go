// Package index keeps which documents have which terms: functions on a transaction, in buckets of their own.
//
// New documents first wait as short keys in the waiting bucket. Now and then the waiting documents become one block. Drop takes documents out of
// a block. Blocks are merged into larger ones, a step at a time, so that their number grows with the digits of that of the documents; what a step has
// written anew, it deletes from the old blocks, so no list is stored twice. A lookup takes one seek a block. The caller has to look through the waiting documents, so that
// nothing is missed.
//
//	waiting  when (8), document (33)            8 bytes that change when the document is put again
//	doc      number of the first (8)            documents with the numbers from there on
//	term     block (8), term, 0, first (4)      entries: terms in order, each with a list of documents
//	meta     index                              the state: the blocks, the merge under way
//
// Documents are numbered in the order in which they come into blocks. Lists count from the block's first number.
package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// The names of the index's buckets.
const (
	WaitingBucket = "waiting"
	DocBucket     = "doc"
	TermBucket    = "term"
	metaBucket    = "meta"
)

var stateKey = []byte("index")

// Doc names a document: 1 byte of kind, from 1, then 16 bytes of a context's id and 16 bytes that name the document there. The zero Doc stands for one that
// was taken out.
type Doc [33]byte

// State is the state of the index. If Building is not set, the index is complete: each document is in a block or waits.
type State struct {
	Version  int     `cbor:"1,keyasint"`
	Building bool    `cbor:"2,keyasint,omitempty"`
	Next     uint64  `cbor:"3,keyasint,omitempty"` // number of the next document
	NextID   uint64  `cbor:"4,keyasint,omitempty"` // of the next block
	Blocks   []Block `cbor:"5,keyasint,omitempty"` // in the order of their documents
	Merge    *Merge  `cbor:"6,keyasint,omitempty"`
	Made     uint64  `cbor:"8,keyasint,omitempty"` // a new random number for each new index
}

// Block has the terms of the documents from From to To-1. Entries counts its entries.
type Block struct {
	_                     struct{} `cbor:",toarray"`
	ID, From, To, Entries uint64
}

// Merge is a merge under way. If Begun, Out has the terms up to After, and In has those behind it; a record of In that has both is still whole.
type Merge struct {
	_     struct{} `cbor:",toarray"`
	In    []Block
	Out   Block
	After string
	Begun bool
}

var encMode = must(cbor.CoreDetEncOptions().EncMode())

// crcs returns the table of CRC-32C. It is made at the first use, so that a program's start does not pay for it.
func crcs() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: the search index: %s", kv.ErrDamaged, fmt.Sprintf(format, args...))
}

// New returns the state of an empty index.
func New(version int, building bool) *State {
	return &State{Version: version, Building: building, Made: rand.Uint64()}
}

// Load reads the state. It returns nil if there is no index of this version.
func Load(tx kv.Tx, version int) (*State, error) {
	raw, err := tx.Get(metaBucket, stateKey)
	if raw == nil || err != nil {
		return nil, err
	}
	s := &State{}
	if err := cbor.Unmarshal(raw, s); err != nil {
		return nil, damaged("its state: %v", err)
	}
	if s.Version != version {
		return nil, nil
	}
	if s.Merge != nil && !s.Merge.fits(s.Blocks) {
		return nil, damaged("its merge is not of its blocks")
	}
	return s, nil
}

// fits reports whether the merge is of neighbouring blocks.
func (m *Merge) fits(blocks []Block) bool {
	at := slices.IndexFunc(blocks, func(b Block) bool { return len(m.In) > 0 && b.ID == m.In[0].ID })
	if at < 0 || m.Out.From != m.In[0].From || m.Out.To != m.In[len(m.In)-1].To {
		return false
	}
	return slices.EqualFunc(m.In, blocks[at:min(at+len(m.In), len(blocks))], func(a, b Block) bool { return a.ID == b.ID && a.From == b.From && a.To == b.To })
}

// Save writes the state.
func Save(tx kv.RwTx, s *State) error {
	raw, err := encMode.Marshal(s)
	if err != nil {
		return err
	}
	return tx.Put(metaBucket, stateKey, raw)
}

// Clear deletes up to n records of the index, the state last, and reports whether that was all.
func Clear(tx kv.RwTx, n int) (done bool, err error) {
	for _, bucket := range []string{WaitingBucket, DocBucket, TermBucket} {
		deleted, err := deleteFirst(tx, bucket, kv.Range{}, n)
		if err != nil {
			return false, err
		}
		if n -= deleted; n <= 0 {
			return false, nil
		}
	}
	return true, tx.Delete(metaBucket, stateKey)
}

// deleteFirst deletes up to n records and returns how many. It reports a record that is still there after its deletion as damage, since a caller that
// deletes until nothing is left would never end.
func deleteFirst(tx kv.RwTx, bucket string, r kv.Range, n int) (int, error) {
	keys, err := firstKeys(tx, bucket, r, n)
	for _, key := range keys {
		if err == nil {
			err = tx.Delete(bucket, key)
		}
	}
	if err != nil || len(keys) == 0 {
		return 0, err
	}
	left, err := firstKeys(tx, bucket, r, 1)
	if err == nil && len(left) > 0 && bytes.Compare(left[0], keys[len(keys)-1]) <= 0 {
		err = damaged("a record in %s cannot be deleted", bucket)
	}
	return len(keys), err
}

func firstKeys(tx kv.Tx, bucket string, r kv.Range, n int) ([][]byte, error) {
	var keys [][]byte
	err := tx.Scan(bucket, r, func(key, _ []byte) error {
		if len(keys) == n {
			return kv.ErrStop
		}
		keys = append(keys, bytes.Clone(key))
		return nil
	})
	return keys, err
}

// Wait notes that a document is new or changed. Of the documents that come into one block those with a larger at get higher numbers; at may have any unit.
// stamp must differ from that of any other Wait for the same document.
func Wait(tx kv.RwTx, at uint64, d Doc, stamp [8]byte) error {
	return tx.Put(WaitingBucket, waitingKey(at, d), stamp[:])
}

func waitingKey(at uint64, d Doc) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(d)), at), d[:]...)
}

// Waiting is a document that waits for the index.
type Waiting struct {
	Doc   Doc
	at    uint64
	stamp [8]byte
}

// ScanWaiting calls fn for the waiting documents, the oldest or the newest first. If fn returns kv.ErrStop, it ends without an error.
func ScanWaiting(tx kv.Tx, newest bool, fn func(Waiting) error) error {
	return tx.Scan(WaitingBucket, kv.Range{Reverse: newest}, func(key, value []byte) error {
		w, ok := waitingOf(key, value)
		if !ok {
			return damaged("a key of %d bytes is in %s", len(key), WaitingBucket)
		}
		return fn(w)
	})
}

func waitingOf(key, value []byte) (w Waiting, ok bool) {
	if len(key) != 8+len(w.Doc) || len(value) != len(w.stamp) {
		return w, false
	}
	w.at = binary.BigEndian.Uint64(key)
	copy(w.Doc[:], key[8:])
	copy(w.stamp[:], value)
	return w, true
}

// FetchWaiting has a server send at once what Served reads of some documents.
func FetchWaiting(tx kv.Tx, list []Waiting) error {
	keys := make([]kv.Key, len(list))
	for i, w := range list {
		keys[i] = kv.Key{Bucket: WaitingBucket, Key: waitingKey(w.at, w.Doc)}
	}
	return kv.Fetch(tx, keys...)
}

// Served takes a document off the waiting list. It reports false and changes nothing if the document was put again meanwhile.
func Served(tx kv.RwTx, w Waiting) (bool, error) {
	key := waitingKey(w.at, w.Doc)
	value, err := tx.Get(WaitingBucket, key)
	if err != nil || !bytes.Equal(value, w.stamp[:]) {
		return false, err
	}
	return true, tx.Delete(WaitingBucket, key)
}

// maxTerm is the longest word, in bytes, that is a term as it is.
const maxTerm = 32

// cutTerm is how many bytes of a longer word its term keeps, before a byte 1 and a hash.
const cutTerm = 16

// Term returns the term of a word. A long word is cut, so a lookup has to look into the documents too.
func Term(word []byte) []byte {
	if len(word) <= maxTerm && bytes.IndexByte(word, 0) < 0 {
		return word
	}
	h := fnv.New32a()
	h.Write(word)
	head := word[:min(len(word), cutTerm)]
	if zero := bytes.IndexByte(head, 0); zero >= 0 {
		head = head[:zero]
	}
	return fmt.Appendf(bytes.Clone(head), "\x01%08x", h.Sum32())
}

func termKey(block uint64, term []byte, first uint32) []byte {
	key := append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(term)+5), block), term...)
	return binary.BigEndian.AppendUint32(append(key, 0), first)
}

// seal appends a checksum; unseal checks it and takes it off.
func seal(b []byte) []byte { return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crcs())) }

func unseal(b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, errors.New("is cut short")
	}
	body := b[:len(b)-4]
	if binary.BigEndian.Uint32(b[len(body):]) != crc32.Checksum(body, crcs()) {
		return nil, errors.New("has a wrong checksum")
	}
	return body, nil
}
