// Package memkv is a kv engine that keeps everything in memory: for tests, trials and stores that need not last.
//
// A View reads the state at its begin for as long as it likes and blocks nobody; one Update runs at a time. Trees are copied
// on write, so neither copies the data. It keeps no file, so it is no kv.Keeper.
package memkv

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/internal/door"
	"github.com/chatctx/chatctx/chatctx/kv/internal/watch"
)

// New makes an empty database.
func New() kv.DB {
	db := &db{writer: make(chan struct{}, 1)}
	db.state.Store(&state{})
	return db
}

type pair struct{ key, value []byte }

type tree = btree.BTreeG[pair]

// state is what one commit left: its trees never change again.
type state map[string]*tree

type db struct {
	state  atomic.Pointer[state]
	writer chan struct{} // holds one value while an Update runs
	hub    watch.Hub
	door   door.Door
}

func (d *db) View(ctx context.Context, fn func(kv.Tx) error) error {
	if err := d.door.Enter(ctx); err != nil {
		return err
	}
	defer d.door.Leave()
	tx := &tx{state: *d.state.Load()}
	defer tx.end()
	return fn(tx)
}

func (d *db) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	if err := d.door.Enter(ctx); err != nil {
		return err
	}
	defer d.door.Leave()
	select {
	case d.writer <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-d.writer }()

	tx := &rwTx{tx: tx{state: *d.state.Load()}}
	defer tx.end()
	if err := fn(tx); err != nil {
		return err
	}
	if tx.own != nil {
		d.state.Store(&tx.state)
		d.hub.Wrote(tx.wrote)
	}
	return nil
}

func (d *db) Watch(ctx context.Context, bucket string, prefix []byte) (<-chan struct{}, error) {
	return d.hub.Add(ctx, bucket, prefix)
}

func (d *db) Close() error {
	d.door.Close()
	d.hub.Close()
	return nil
}

type tx struct {
	state state
	ended bool
}

func (t *tx) end() { t.ended = true }

func (t *tx) Get(bucket string, key []byte) ([]byte, error) {
	if t.ended {
		return nil, kv.ErrEnded
	}
	tree := t.state[bucket]
	if tree == nil {
		return nil, nil
	}
	found, _ := tree.Get(pair{key: key})
	return found.value, nil
}

func (t *tx) GetMany(bucket string, keys [][]byte, fn func(i int, value []byte) error) error {
	for i, key := range keys {
		value, err := t.Get(bucket, key)
		if err == nil {
			err = fn(i, value)
		}
		if err != nil {
			return unlessStop(err)
		}
	}
	return nil
}

func (t *tx) Scan(bucket string, r kv.Range, fn func(key, value []byte) error) error {
	if t.ended {
		return kv.ErrEnded
	}
	tree := t.state[bucket]
	if tree == nil {
		return nil
	}
	var err error
	visit := func(p pair) bool {
		err = fn(p.key, p.value)
		return err == nil
	}
	if r.Reverse {
		descend(tree, r, visit)
	} else {
		tree.Ascend(pair{key: r.From}, func(p pair) bool {
			return (r.To == nil || bytes.Compare(p.key, r.To) < 0) && visit(p)
		})
	}
	return unlessStop(err)
}

func descend(tree *tree, r kv.Range, visit func(pair) bool) {
	from := func(p pair) bool { return bytes.Compare(p.key, r.From) >= 0 && visit(p) }
	if r.To == nil {
		tree.Reverse(from)
		return
	}
	tree.Descend(pair{key: r.To}, func(p pair) bool {
		return bytes.Equal(p.key, r.To) || from(p)
	})
}

func unlessStop(err error) error {
	if errors.Is(err, kv.ErrStop) {
		return nil
	}
	return err
}

// rwTx copies the map of trees, and each tree, when it first writes to it.
type rwTx struct {
	tx
	own   map[string]bool
	wrote []watch.Key
}

func (t *rwTx) Put(bucket string, key, value []byte) error {
	if t.ended {
		return kv.ErrEnded
	}
	if err := kv.Fits(bucket, key, value); err != nil {
		return err
	}
	p := pair{key: bytes.Clone(key), value: append([]byte{}, value...)}
	t.tree(bucket).Set(p)
	t.wrote = append(t.wrote, watch.Key{Bucket: bucket, Key: p.key})
	return nil
}

func (t *rwTx) Delete(bucket string, key []byte) error {
	if t.ended {
		return kv.ErrEnded
	}
	if t.state[bucket] == nil {
		return nil
	}
	if p, there := t.tree(bucket).Delete(pair{key: key}); there {
		t.wrote = append(t.wrote, watch.Key{Bucket: bucket, Key: p.key})
	}
	return nil
}

func (t *rwTx) tree(bucket string) *tree {
	if t.own == nil {
		t.own = make(map[string]bool)
		t.state = maps.Clone(t.state)
		if t.state == nil {
			t.state = make(state)
		}
	}
	if !t.own[bucket] {
		t.own[bucket] = true
		if old := t.state[bucket]; old != nil {
			t.state[bucket] = old.Copy()
		} else {
			t.state[bucket] = newTree()
		}
	}
	return t.state[bucket]
}

// newTree makes a tree without locks of its own: readers have trees that nobody writes to, and there is one writer.
func newTree() *tree {
	less := func(a, b pair) bool { return bytes.Compare(a.key, b.key) < 0 }
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}
