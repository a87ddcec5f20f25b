package view

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// Replaced is the Kind of a Change that is no operation: another file was put in the place of this one, as restore-from does, and the context or store is
// in some earlier state.
const Replaced = "replaced"

// Watch reports changes, also those of other processes, within 300 ms; those of one context in the order in which they were made. The channel is closed
// when ctx ends or the store is closed; changes that nobody has read by then are lost.
func Watch(ctx context.Context, s *base.Store) (<-chan record.Change, error) {
	signal, changed, err := signals(ctx, s)
	if err != nil {
		return nil, err
	}
	w := NewWatcher(s)
	if _, err := w.News(ctx); err != nil {
		return nil, err
	}
	out := make(chan record.Change, 64)
	go func() {
		defer close(out)
		for again := false; ; {
			if !again {
				if _, open := <-signal; !open {
					return
				}
			}
			again = false
			w.named, w.missed = changed(w.missed)
			changes, err := w.News(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				changes = []record.Change{{Err: err}}
			}
			w.missed = err != nil
			for len(changes) > 0 {
				select {
				case out <- changes[0]:
					changes = changes[1:]
				case _, open := <-signal:
					if again = true; !open {
						return
					}
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out, nil
}

// signals tells when contexts change. Its function returns which contexts changed, if the engine knows; nil if any may have changed, or if missed asks for
// all.
func signals(ctx context.Context, s *base.Store) (signal <-chan struct{}, which func(missed bool) ([]pool.ID, bool), err error) {
	n, is := s.Engine.(engine.Namer)
	if !is {
		signal, err = s.DB.Watch(ctx, base.RecentBucket, nil)
		return signal, func(missed bool) ([]pool.ID, bool) { return nil, missed }, err
	}
	signal, keys, err := n.WatchNames(ctx, base.ContextBucket, nil)
	return signal, func(missed bool) ([]pool.ID, bool) {
		named, all := keys()
		if all || missed {
			return nil, missed
		}
		ids := []pool.ID{}
		for _, key := range named {
			ids = append(ids, pool.ID(key))
		}
		return ids, false
	}, err
}

// Watcher remembers how far it has read each context.
type Watcher struct {
	store   *base.Store
	seen    map[pool.ID]pool.Time // the time in the bucket recent
	next    map[pool.ID]uint64    // the next operation
	newest  pool.Time             // of those times
	started bool
	// named lists the contexts that changed; nil if that is unknown. missed: the last look failed.
	named  []pool.ID
	missed bool
}

// NewWatcher returns a watcher that has seen nothing.
func NewWatcher(s *base.Store) *Watcher {
	return &Watcher{store: s, seen: map[pool.ID]pool.Time{}, next: map[pool.ID]uint64{}}
}

// lookBack is how far before the newest change it has seen a watcher looks for others: a program that waited before it stored something stores it with an
// earlier time.
const lookBack = pool.Time(5 * time.Minute / time.Microsecond)

// look is the result of one look at the store. It counts as seen once it has succeeded.
type look struct {
	changes []record.Change
	seen    map[pool.ID]pool.Time
	next    map[pool.ID]uint64
}

// News returns the operations since the last call; the first call only looks.
func (w *Watcher) News(ctx context.Context) ([]record.Change, error) {
	var l look
	err := w.store.DB.View(ctx, func(tx kv.Tx) error {
		l = look{seen: map[pool.ID]pool.Time{}, next: map[pool.ID]uint64{}}
		touched, err := w.touched(tx, &l)
		if err != nil {
			return err
		}
		for _, id := range append([]pool.ID{{}}, touched...) {
			if err := w.since(tx, id, &l); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, at := range l.seen {
		w.newest = max(w.newest, at)
	}
	maps.Copy(w.seen, l.seen)
	maps.Copy(w.next, l.next)
	w.started = true
	return l.changes, nil
}

// touched returns the contexts whose time of last change differs from before, the earliest first. It reads no further back than lookBack, except the first
// time, and if the newest change is older than one seen before: then another file was put in place, or the newest context is gone.
func (w *Watcher) touched(tx kv.Tx, l *look) ([]pool.ID, error) {
	if w.started && w.named != nil {
		return w.touchedOf(tx, l)
	}
	within := kv.Range{Reverse: true}
	if w.started && w.newest > lookBack {
		within.From = base.RecentKey(w.newest-lookBack, pool.ID{})
	}
	out, newest, err := w.changed(tx, l, within)
	if err == nil && within.From != nil && newest < w.newest {
		out, _, err = w.changed(tx, l, kv.Range{Reverse: true})
	}
	slices.Reverse(out)
	return out, err
}

// touchedOf is touched if it is known which contexts changed.
func (w *Watcher) touchedOf(tx kv.Tx, l *look) ([]pool.ID, error) {
	keys := make([][]byte, len(w.named))
	for i, id := range w.named {
		keys[i] = id[:]
	}
	var out []pool.ID
	err := tx.GetMany(base.ContextBucket, keys, func(i int, value []byte) error {
		if value == nil {
			return nil
		}
		rec, err := base.DecodeContext(w.named[i], value)
		if err == nil && rec.Updated != 0 {
			l.seen[w.named[i]] = rec.ListedAt()
			out = append(out, w.named[i])
		}
		return err
	})
	slices.SortFunc(out, func(a, b pool.ID) int { return cmp.Compare(l.seen[a], l.seen[b]) })
	return out, err
}

// changed is touched for a part of the index, the last changed first, with the newest time there.
func (w *Watcher) changed(tx kv.Tx, l *look, within kv.Range) (out []pool.ID, newest pool.Time, err error) {
	err = tx.Scan(base.RecentBucket, within, func(key, _ []byte) error {
		at, id := pool.Time(binary.BigEndian.Uint64(key)), pool.ID(key[8:])
		newest = max(newest, at)
		if w.seen[id] != at {
			l.seen[id] = at
			out = append(out, id)
		}
		return nil
	})
	return out, newest, err
}

// since adds the new operations of a journal, oldest first. The first look only records the number of the newest one.
func (w *Watcher) since(tx kv.Tx, id pool.ID, l *look) error {
	r := kv.Prefix(id[:])
	r.From, r.Reverse = base.OperationKey(id, w.next[id]), !w.started
	mark := ""
	if id == (pool.ID{}) {
		mark = "s"
	}
	if back, err := w.wentBack(tx, id); err != nil {
		return err
	} else if back {
		r.From = base.OperationKey(id, 0)
		r.Reverse = true
		l.changes = append(l.changes, record.Change{Context: id, Kind: Replaced})
	}
	return tx.Scan(base.OperationBucket, r, func(key, value []byte) error {
		n := binary.BigEndian.Uint64(key[16:])
		if l.next[id] = n + 1; r.Reverse {
			return kv.ErrStop
		}
		op := &base.Operation{}
		if err := stored.Unmarshal(value, op); err != nil {
			return base.Damaged("operation %x: %v", key, err)
		}
		l.changes = append(l.changes, changesOf(id, fmt.Sprintf("%s%d", mark, n), op)...)
		return nil
	})
}

// wentBack reports whether a journal has fewer operations than were seen before: another file was put in place.
func (w *Watcher) wentBack(tx kv.Tx, id pool.ID) (bool, error) {
	if !w.started || w.next[id] == 0 {
		return false, nil
	}
	if id != (pool.ID{}) {
		rec, _, err := base.GetContext(tx, id)
		return err == nil && rec != nil && max(rec.NextOperation, 1) < w.next[id], err
	}
	back := true
	r := kv.Prefix(id[:])
	r.Reverse = true
	err := tx.Scan(base.OperationBucket, r, func(key, _ []byte) error {
		back = binary.BigEndian.Uint64(key[16:])+1 < w.next[id]
		return kv.ErrStop
	})
	return back, err
}

func changesOf(id pool.ID, n string, op *base.Operation) []record.Change {
	if id != (pool.ID{}) || len(op.Chains) == 0 {
		return []record.Change{{Context: id, Branches: op.Names(), Kind: op.What, Operation: n}}
	}
	var out []record.Change
	for _, c := range op.Chains {
		out = append(out, record.Change{Context: c.Branch, Kind: op.What, Operation: n})
	}
	return out
}
