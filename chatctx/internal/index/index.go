// Package index keeps which documents have which terms: functions on a transaction, in buckets of their own.
//
// What is new only waits: a short key in the waiting bucket. From time to time whatever waits is put into one block, immutable but for what Drop takes out, and
// blocks are merged by eights into larger ones, a step at a time, so that there are never many. A term is looked up with one seek a block. What waits still is
// for the caller to look through, so that nothing is missed.
//
//	waiting  when (8), document (33)            8 bytes that change when the document is put again
//	doc      number of the first (8)            documents of the numbers from there on
//	term     block (8), term, 0, first (4)      entries: terms in order, each with a list of documents
//	meta     index                              the state: the blocks, the merge that is under way
//
// A document has a number, in the order they came into blocks. Lists count from the block's first number.
package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"math/rand/v2"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// The buckets.
const (
	WaitingBucket = "waiting"
	DocBucket     = "doc"
	TermBucket    = "term"
	metaBucket    = "meta"
)

var stateKey = []byte("index")

// Doc names a document: 1 byte of kind, from 1, then a context's id and what it is there. The zero Doc was taken out.
type Doc [33]byte

// State says what is in the index. It is complete where Building is not set: everything is in a block or waits.
type State struct {
	Version  int     `cbor:"1,keyasint"`
	Building bool    `cbor:"2,keyasint,omitempty"`
	Next     uint64  `cbor:"3,keyasint,omitempty"` // number of the next document
	NextID   uint64  `cbor:"4,keyasint,omitempty"` // of a block
	Blocks   []Block `cbor:"5,keyasint,omitempty"` // in the order of their documents
	Merge    *Merge  `cbor:"6,keyasint,omitempty"`
	Gone     []Block `cbor:"7,keyasint,omitempty"` // what is left of them is to be deleted
	Made     uint64  `cbor:"8,keyasint,omitempty"` // another number each time that the index is made anew
}

// Block holds the terms of the documents From to To, the last not included, in so many entries.
type Block struct {
	_                     struct{} `cbor:",toarray"`
	ID, From, To, Entries uint64
}

// Merge is one under way: terms up to After are in Out.
type Merge struct {
	_     struct{} `cbor:",toarray"`
	In    []Block
	Out   Block
	After string
	Begun bool
}

var encMode = must(cbor.CoreDetEncOptions().EncMode())

// crcs is the table of CRC-32C. It is made at the first use, not at the start of every program.
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

// New is the state of an index with nothing in it.
func New(version int, building bool) *State {
	return &State{Version: version, Building: building, Made: rand.Uint64()}
}

// Load reads the state; nil where there is no index of this version.
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
	return s, nil
}

// Save writes the state.
func Save(tx kv.RwTx, s *State) error {
	raw, err := encMode.Marshal(s)
	if err != nil {
		return err
	}
	return tx.Put(metaBucket, stateKey, raw)
}

// Clear takes up to n records of the index away, and reports whether that was all. The state goes last.
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

// deleteFirst deletes up to n records and says how many. What cannot be deleted, since it is not found where it is looked for, is damage: who deletes until nothing is left would go on for ever.
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

// Wait notes that a document is new or changed. Of documents that come into one block later ones by at, in any unit, get higher numbers. stamp differs from
// that of any other Wait for the same document.
func Wait(tx kv.RwTx, at uint64, d Doc, stamp [8]byte) error {
	return tx.Put(WaitingBucket, waitingKey(at, d), stamp[:])
}

func waitingKey(at uint64, d Doc) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(d)), at), d[:]...)
}

// Waiting is a document that waits.
type Waiting struct {
	Doc   Doc
	at    uint64
	stamp [8]byte
}

// ScanWaiting calls fn for those that wait, the oldest or the newest first. kv.ErrStop ends it without an error.
func ScanWaiting(tx kv.Tx, newest bool, fn func(Waiting) error) error {
	return tx.Scan(WaitingBucket, kv.Range{Reverse: newest}, func(key, value []byte) error {
		w, ok := waitingOf(key, value)
		if !ok {
			return damaged("a key of %d bytes in %s", len(key), WaitingBucket)
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

// Served takes a document off those that wait, and reports whether it still waited as it was.
func Served(tx kv.RwTx, w Waiting) (bool, error) {
	key := waitingKey(w.at, w.Doc)
	value, err := tx.Get(WaitingBucket, key)
	if err != nil || !bytes.Equal(value, w.stamp[:]) {
		return false, err
	}
	return true, tx.Delete(WaitingBucket, key)
}

// maxTerm is the length in bytes up to which a word is a term as it is.
const maxTerm = 32

// cutTerm is how much of a longer one is kept, before a byte 1 and a hash.
const cutTerm = 16

// Term is a word as it stands in the index. A long one is cut: whoever looks it up has to look into the documents too.
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

// seal appends a checksum, unseal takes it off.
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
