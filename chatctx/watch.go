package chatctx

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Change is what Watch tells of: an operation on a branch, on a context, or on the store.
type Change struct {
	Context   ID     // zero: the store
	Branch    string // "" where the change is not on one branch
	Kind      string // the operation's What: append, fork, undo …
	Operation string
}

// Watch tells of changes, also by other processes, within 300 ms. The channel is closed when ctx ends; until then it has to be read.
func (s *Store) Watch(ctx context.Context) (<-chan Change, error) {
	signal, err := s.db.Watch(ctx, recentBucket, nil)
	if err != nil {
		return nil, err
	}
	w := &watcher{store: s, seen: map[ID]pool.Time{}, next: map[ID]uint64{}}
	if _, err := w.news(ctx); err != nil {
		return nil, err
	}
	out := make(chan Change, 64)
	go func() {
		defer close(out)
		for range signal {
			changes, err := w.news(ctx)
			if err != nil && ctx.Err() != nil {
				return
			}
			for _, c := range changes {
				select {
				case out <- c:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out, nil
}

// watcher remembers how far it has seen each context.
type watcher struct {
	store   *Store
	seen    map[ID]pool.Time // the time in recent
	next    map[ID]uint64    // the next operation
	started bool
}

// news finds the operations since the last call; the first call only looks.
func (w *watcher) news(ctx context.Context) ([]Change, error) {
	var out []Change
	err := w.store.db.View(ctx, func(tx kv.Tx) error {
		out = out[:0]
		touched, err := w.touched(tx)
		if err != nil {
			return err
		}
		for _, id := range append([]ID{{}}, touched...) {
			if out, err = w.since(tx, id, out); err != nil {
				return err
			}
		}
		return nil
	})
	w.started = w.started || err == nil
	return out, err
}

// touched gives the contexts whose time of last change is another than before.
func (w *watcher) touched(tx kv.Tx) ([]ID, error) {
	var out []ID
	err := tx.Scan(recentBucket, kv.Range{}, func(key, _ []byte) error {
		at, id := pool.Time(binary.BigEndian.Uint64(key)), ID(key[8:])
		if w.seen[id] != at {
			w.seen[id] = at
			out = append(out, id)
		}
		return nil
	})
	return out, err
}

// since adds the operations of a journal that are new.
func (w *watcher) since(tx kv.Tx, id ID, out []Change) ([]Change, error) {
	from, known := w.next[id]
	r := kv.Prefix(id[:])
	r.From = operationKey(id, from)
	if !w.started || !known {
		r.Reverse = true
	}
	mark := ""
	if id == (ID{}) {
		mark = "s"
	}
	err := tx.Scan(operationBucket, r, func(key, value []byte) error {
		n := binary.BigEndian.Uint64(key[16:])
		if w.next[id] = max(w.next[id], n+1); !w.started {
			return kv.ErrStop
		}
		op := &operation{}
		if err := decMode.Unmarshal(value, op); err != nil {
			return damaged("operation %x: %v", key, err)
		}
		out = append(out, changesOf(id, fmt.Sprintf("%s%d", mark, n), op)...)
		return nil
	})
	return out, err
}

func changesOf(id ID, n string, op *operation) []Change {
	var out []Change
	if len(op.Chains) == 0 {
		out = append(out, Change{Context: id, Kind: op.What, Operation: n})
	}
	for _, c := range op.Chains {
		ctx := id
		if id == (ID{}) {
			ctx = c.Branch
		}
		out = append(out, Change{Context: ctx, Branch: c.Name, Kind: op.What, Operation: n})
	}
	return out
}
