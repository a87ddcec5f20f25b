// Package shelf is an engine that keeps stores in memory, under names: a program that imports it opens shelf://NAME, and finds there what it left, until it ends.
//
// Each bucket is a sorted list that never changes. A transaction that writes copies the buckets that it writes to.
package shelf

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chatctx/chatctx/chatctx/kv"
)

func init() { kv.Register("shelf", kv.Driver{Open: open, Init: create}) }

// stores are the databases by their addresses.
var stores = struct {
	sync.Mutex
	of map[string]*data
}{of: map[string]*data{}}

func open(ctx context.Context, url string, o kv.OpenOptions) (kv.DB, error) {
	stores.Lock()
	d := stores.of[url]
	stores.Unlock()
	if d == nil {
		return nil, kv.ErrNotExist
	}
	db := d.open()
	db.readOnly = o.ReadOnly
	if o.Check == nil {
		return db, nil
	}
	return db, db.View(ctx, o.Check)
}

func create(ctx context.Context, url string, fill func(kv.RwTx) error) error {
	stores.Lock()
	defer stores.Unlock()
	if stores.of[url] != nil {
		return fs.ErrExist
	}
	d := newData()
	if err := d.open().Update(ctx, fill); err != nil {
		return err
	}
	stores.of[url] = d
	return nil
}

// New returns an empty database without a name.
func New() kv.DB { return newData().open() }

type pair struct{ key, value []byte }

// state is what one commit left.
type state map[string][]pair

// data is what a name stands for, however often it is opened.
type data struct {
	state  atomic.Pointer[state]
	writer chan struct{} // has a value while an Update runs

	mu       sync.Mutex
	watchers map[*watcher]bool
}

func newData() *data {
	d := &data{writer: make(chan struct{}, 1), watchers: map[*watcher]bool{}}
	d.state.Store(&state{})
	return d
}

func (d *data) open() *db { return &db{data: d, closing: make(chan struct{})} }

// db is a database that is open. It implements kv.DB.
type db struct {
	*data
	readOnly bool
	door     sync.Mutex
	closing  chan struct{} // is closed by Close
	inside   sync.WaitGroup
}

// enter lets a transaction in, which calls inside.Done at its end.
func (d *db) enter(ctx context.Context) error {
	d.door.Lock()
	defer d.door.Unlock()
	select {
	case <-d.closing:
		return kv.ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	d.inside.Add(1)
	return nil
}

func (d *db) View(ctx context.Context, fn func(kv.Tx) error) error {
	if err := d.enter(ctx); err != nil {
		return err
	}
	defer d.inside.Done()
	t := &tx{state: *d.state.Load()}
	defer t.end()
	return fn(t)
}

func (d *db) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	if d.readOnly {
		return kv.ErrReadOnly
	}
	if err := d.enter(ctx); err != nil {
		return err
	}
	defer d.inside.Done()
	select {
	case d.writer <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-d.writer }()
	t := &rwTx{tx: tx{state: maps.Clone(*d.state.Load())}, own: map[string]bool{}}
	defer t.end()
	if err := fn(t); err != nil {
		return err
	}
	d.state.Store(&t.state)
	d.tell(t.wrote)
	return nil
}

// Close waits for the transactions under way.
func (d *db) Close() error {
	d.door.Lock()
	select {
	case <-d.closing:
	default:
		close(d.closing)
	}
	d.door.Unlock()
	d.inside.Wait()
	return nil
}

// watcher waits for changes of keys with a prefix.
type watcher struct {
	bucket string
	prefix []byte
	signal chan struct{}
}

func (d *db) Watch(ctx context.Context, bucket string, prefix []byte) (<-chan struct{}, error) {
	if err := d.enter(ctx); err != nil {
		return nil, err
	}
	defer d.inside.Done()
	w := &watcher{bucket, bytes.Clone(prefix), make(chan struct{}, 1)}
	d.mu.Lock()
	d.watchers[w] = true
	d.mu.Unlock()
	go func() {
		select {
		case <-ctx.Done():
		case <-d.closing:
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watchers, w)
		close(w.signal)
	}()
	return w.signal, nil
}

// tell signals those who watch one of the keys.
func (d *data) tell(wrote map[string][][]byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.watchers {
		if slices.ContainsFunc(wrote[w.bucket], func(key []byte) bool { return bytes.HasPrefix(key, w.prefix) }) {
			select {
			case w.signal <- struct{}{}:
			default: // a signal waits already
			}
		}
	}
}

// tx implements kv.Tx.
type tx struct {
	state state
	ended bool
}

func (t *tx) end() { t.ended = true }

// find returns the place of a key in a bucket, or where it would stand.
func find(bucket []pair, key []byte) (int, bool) {
	return slices.BinarySearchFunc(bucket, key, func(p pair, key []byte) int { return bytes.Compare(p.key, key) })
}

func (t *tx) Get(bucket string, key []byte) ([]byte, error) {
	if t.ended {
		return nil, kv.ErrEnded
	}
	if i, there := find(t.state[bucket], key); there {
		return t.state[bucket][i].value, nil
	}
	return nil, nil
}

func (t *tx) GetMany(bucket string, keys [][]byte, fn func(i int, value []byte) error) error {
	for i, key := range keys {
		value, err := t.Get(bucket, key)
		if err == nil {
			err = fn(i, value)
		}
		if err != nil {
			return unlessStopped(err)
		}
	}
	return nil
}

func (t *tx) Scan(bucket string, r kv.Range, fn func(key, value []byte) error) error {
	if t.ended {
		return kv.ErrEnded
	}
	all := t.state[bucket]
	from, _ := find(all, r.From)
	to := len(all)
	if r.To != nil {
		to, _ = find(all, r.To)
	}
	part := slices.Clone(all[min(from, to):to]) // fn may write
	if r.Reverse {
		slices.Reverse(part)
	}
	for _, p := range part {
		if err := fn(p.key, p.value); err != nil {
			return unlessStopped(err)
		}
	}
	return nil
}

func unlessStopped(err error) error {
	if errors.Is(err, kv.ErrStop) {
		return nil
	}
	return err
}

// rwTx implements kv.RwTx.
type rwTx struct {
	tx
	own   map[string]bool // the buckets that were copied
	wrote map[string][][]byte
}

// bucket returns a bucket that may be changed in place.
func (t *rwTx) bucket(name string) []pair {
	if !t.own[name] {
		t.own[name], t.state[name] = true, slices.Clone(t.state[name])
	}
	return t.state[name]
}

func (t *rwTx) note(bucket string, key []byte) {
	if t.wrote == nil {
		t.wrote = map[string][][]byte{}
	}
	t.wrote[bucket] = append(t.wrote[bucket], key)
}

func (t *rwTx) Put(bucket string, key, value []byte) error {
	if t.ended {
		return kv.ErrEnded
	}
	if err := kv.Fits(bucket, key, value); err != nil {
		return err
	}
	p := pair{bytes.Clone(key), append([]byte{}, value...)} // an empty value is not nil
	all := t.bucket(bucket)
	i, there := find(all, key)
	if there {
		all[i] = p
	} else {
		t.state[bucket] = slices.Insert(all, i, p)
	}
	t.note(bucket, p.key)
	return nil
}

func (t *rwTx) Delete(bucket string, key []byte) error {
	if t.ended {
		return kv.ErrEnded
	}
	if i, there := find(t.state[bucket], key); there {
		t.note(bucket, bytes.Clone(key))
		t.state[bucket] = slices.Delete(t.bucket(bucket), i, i+1)
	}
	return nil
}
