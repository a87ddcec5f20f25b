package boltkv

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	bolt "go.etcd.io/bbolt"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/internal/watch"
)

// session is one transaction of bbolt. The functions of several Updates may share it, one after the other.
type session struct {
	file       *opened
	bolt       *bolt.Tx
	buckets    map[string]*bucket
	sequential []string
	wrote      []watch.Key
	// base and end bound the mapped pages in use; mapEnd is the end of the map.
	base, end, mapEnd uintptr
	// damage is the first panic of bbolt. A session with damage is never committed.
	damage error
}

func newSession(o *opened, tx *bolt.Tx, sequential []string) *session {
	base, size := o.db.Info().Data, tx.Size()
	return &session{
		file: o, bolt: tx, buckets: make(map[string]*bucket), sequential: sequential,
		base: base, end: base + uintptr(size), mapEnd: base + uintptr(mapped(size)),
	}
}

// mapped is the least that bbolt maps of a file of that size.
func mapped(size int64) int64 {
	if size > mapSize {
		return (size + mapSize - 1) / mapSize * mapSize
	}
	n := int64(32 << 10)
	for n < size {
		n *= 2
	}
	return n
}

// sound refuses a key or value whose address is in the map but that leads out of the pages in use. Others are in Go's memory: values that the transaction
// put, and those of small buckets.
func (s *session) sound(b []byte) error {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	if len(b) == 0 || at < s.base || at >= s.mapEnd || at+uintptr(len(b)) <= s.end {
		return nil
	}
	s.damage = damaged(s.file.path, "a value leads out of the file")
	return s.damage
}

// wrong turns an error of bbolt that can have no other cause into damage.
func (s *session) wrong(err error) error {
	if err == nil {
		return nil
	}
	s.damage = &spoiled{s.file.path, err}
	return s.damage
}

// caught turns a panic of bbolt over damaged pages into an error. It must be deferred, by functions that call bbolt but no function of the caller.
func (s *session) caught(err *error) {
	if r := recover(); r != nil {
		*err = &spoiled{s.file.path, r}
		if s.damage == nil {
			s.damage = *err
		}
	}
}

// bucket is a bucket of bbolt with a cursor that finds keys: bbolt's own Get makes one each time.
type bucket struct {
	*bolt.Bucket
	finder *bolt.Cursor
}

func (s *session) bucket(name string) (b *bucket, err error) {
	if b, known := s.buckets[name]; known {
		return b, nil
	}
	defer s.caught(&err)
	if is := s.bolt.Bucket([]byte(name)); is != nil {
		b = s.keep(name, is)
	}
	return b, nil
}

// makeBucket makes a bucket. One whose keys come in order gets its tail.
func (s *session) makeBucket(name string) (*bucket, error) {
	b, err := s.bolt.CreateBucket([]byte(name))
	if err == nil && slices.Contains(s.sequential, name) {
		err = addTail(b)
	}
	if err != nil {
		return nil, err
	}
	return s.keep(name, b), nil
}

// tail has the names of two empty buckets that come after all keys of a bucket whose keys come in order. When bbolt splits a full page, it always moves the
// last two keys to the next page: if these are real ones, a page with room for 14 records keeps 12.
var tail = [][]byte{bytes.Repeat([]byte{0xff}, 41), bytes.Repeat([]byte{0xff}, 42)}

func addTail(b *bolt.Bucket) error {
	for _, name := range tail {
		if _, err := b.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) inTail(bucket string, key []byte) bool {
	return slices.ContainsFunc(tail, func(name []byte) bool { return bytes.Equal(name, key) }) && slices.Contains(s.sequential, bucket)
}

// keep remembers a bucket and sets its fill, which bbolt forgets after each transaction.
func (s *session) keep(name string, b *bolt.Bucket) *bucket {
	if slices.Contains(s.sequential, name) {
		b.FillPercent = 1
	}
	s.buckets[name] = &bucket{b, b.Cursor()}
	return s.buckets[name]
}

// find leads the bucket's finder to a key and returns its value, nil if there is none.
func (s *session) find(b *bucket, key []byte) ([]byte, error) {
	at, value := b.finder.Seek(key)
	if err := s.sound(at); err != nil || !bytes.Equal(at, key) {
		return nil, err
	}
	return value, s.sound(value)
}

func (s *session) get(bucket string, key []byte) (value []byte, err error) {
	b, err := s.bucket(bucket)
	if b == nil || err != nil || len(key) == 0 {
		return nil, err
	}
	defer s.caught(&err)
	return s.find(b, key)
}

func (s *session) put(bucket string, key, value []byte) (err error) {
	if err := kv.Fits(bucket, key, value); err != nil {
		return err
	}
	b, err := s.bucket(bucket)
	if err != nil {
		return err
	}
	defer s.caught(&err)
	if b == nil {
		if b, err = s.makeBucket(bucket); err != nil {
			return s.wrong(err)
		}
	}
	if value == nil {
		value = []byte{} // bbolt takes nil for a bucket
	}
	if s.inTail(bucket, key) {
		return fmt.Errorf("a key of %d bytes 255 in bucket %s belongs to the engine; take another", len(key), bucket)
	}
	s.wrote = append(s.wrote, watch.Key{Bucket: bucket, Key: key})
	return s.wrong(b.Put(key, value))
}

func (s *session) delete(bucket string, key []byte) (err error) {
	b, err := s.bucket(bucket)
	if b == nil || err != nil || len(key) == 0 {
		return err
	}
	defer s.caught(&err)
	if value, err := s.find(b, key); value == nil || err != nil {
		return err
	}
	s.wrote = append(s.wrote, watch.Key{Bucket: bucket, Key: key})
	return s.wrong(b.finder.Delete())
}

// scan is one pass through a range.
type scan struct {
	*session
	bucket *bolt.Bucket
	cursor *bolt.Cursor
	kv.Range
	at []byte // the last key
}

func (s *scan) first() (key, value []byte, err error) {
	defer s.caught(&err)
	s.cursor = s.bucket.Cursor()
	switch {
	case !s.Reverse:
		key, value = s.cursor.Seek(s.From)
	case s.To == nil:
		key, value = s.cursor.Last()
	default:
		if s.at, _ = s.cursor.Seek(s.To); s.at == nil {
			key, value = s.cursor.Last()
		} else {
			key, value = s.back()
		}
	}
	return s.found(key, value)
}

// found refuses a key that is not beyond the one before, in the direction of the pass. So each pass ends.
func (s *scan) found(key, value []byte) ([]byte, []byte, error) {
	err := s.sound(key)
	if err == nil && key != nil && !s.behind(key) {
		err = s.wrong(errors.New("keys are out of order"))
	}
	s.at = key
	if err == nil {
		err = s.sound(value)
	}
	return key, value, err
}

func (s *scan) behind(key []byte) bool {
	switch {
	case s.at == nil && s.Reverse:
		return s.To == nil || bytes.Compare(key, s.To) < 0
	case s.at == nil:
		return bytes.Compare(key, s.From) >= 0
	case s.Reverse:
		return bytes.Compare(key, s.at) < 0
	}
	return bytes.Compare(key, s.at) > 0
}

func (s *scan) next() (key, value []byte, err error) {
	defer s.caught(&err)
	if s.Reverse {
		key, value = s.back()
	} else {
		key, value = s.cursor.Next()
	}
	return s.found(key, value)
}

// back goes to the key before s.at. bbolt's cursor takes a page that the transaction has emptied for the beginning of the bucket, so back goes on while
// there are smaller keys.
func (s *scan) back() (key, value []byte) {
	key, value = s.cursor.Prev()
	if key != nil || !s.bolt.Writable() {
		return key, value
	}
	if first, _ := s.bucket.Cursor().First(); first == nil || bytes.Compare(first, s.at) >= 0 {
		return nil, nil
	}
	for key == nil {
		key, value = s.cursor.Prev()
	}
	return key, value
}

func (s *scan) holds(key []byte) bool {
	if s.Reverse {
		return bytes.Compare(key, s.From) >= 0
	}
	return s.To == nil || bytes.Compare(key, s.To) < 0
}

// tx is the view that one function has of a session.
type tx struct {
	*session
	ended bool
}

// Doubt implements engine.Doubt.
func (t *tx) Doubt() bool { return t.file.doubt.Load() }

func (t *tx) Get(bucket string, key []byte) ([]byte, error) {
	if t.ended {
		return nil, kv.ErrEnded
	}
	return t.get(bucket, key)
}

func (t *tx) GetMany(bucket string, keys [][]byte, fn func(i int, value []byte) error) error {
	if t.ended {
		return kv.ErrEnded
	}
	get := func(key []byte) ([]byte, error) { return t.Get(bucket, key) }
	if b, err := t.bucket(bucket); err == nil && b != nil && !t.bolt.Writable() { // a write of fn would move a cursor
		get = (&walk{tx: t, cursor: b.Cursor()}).get
	}
	for i, key := range keys {
		value, err := get(key)
		if err == nil {
			err = fn(i, value)
		}
		if err != nil {
			return unlessStop(err)
		}
	}
	return nil
}

// walk gets keys of which many are neighbours.
type walk struct {
	*tx
	cursor *bolt.Cursor
	begun  bool
}

func (w *walk) get(key []byte) (value []byte, err error) {
	if w.ended {
		return nil, kv.ErrEnded
	}
	if len(key) == 0 {
		return nil, nil
	}
	defer w.caught(&err)
	var at []byte
	if w.begun {
		at, value = w.cursor.Next()
		if err := w.sound(at); err != nil {
			return nil, err
		}
	}
	if !bytes.Equal(at, key) {
		if at, value = w.cursor.Seek(key); at == nil {
			w.begun = false
			return nil, nil
		}
		w.begun = true
		if err := w.sound(at); err != nil || !bytes.Equal(at, key) {
			return nil, err
		}
	}
	return value, w.sound(value)
}

func (t *tx) Scan(bucket string, r kv.Range, fn func(key, value []byte) error) error {
	if t.ended {
		return kv.ErrEnded
	}
	b, err := t.bucket(bucket)
	if b == nil || err != nil {
		return err
	}
	s := &scan{session: t.session, bucket: b.Bucket, Range: r}
	key, value, err := s.first()
	for ; err == nil && key != nil && s.holds(key); key, value, err = s.next() {
		if value == nil {
			continue // a bucket within ours that another program made
		}
		if err := fn(key, value); err != nil {
			return unlessStop(err)
		}
	}
	return err
}

func unlessStop(err error) error {
	if errors.Is(err, kv.ErrStop) {
		return nil
	}
	return err
}

// rwTx is the view that the function of an Update has of a session.
type rwTx struct {
	tx
	wrote bool
}

func (t *rwTx) Put(bucket string, key, value []byte) error {
	if t.ended {
		return kv.ErrEnded
	}
	t.wrote = true
	return t.put(bucket, key, value)
}

func (t *rwTx) Delete(bucket string, key []byte) error {
	if t.ended {
		return kv.ErrEnded
	}
	t.wrote = true
	return t.delete(bucket, key)
}
