package base

import (
	"bytes"
	"maps"
	"slices"
	"sync"

	"github.com/chatctx/chatctx/pool"
)

// Lately has the records of one kind that this process wrote last, so that the next change need not decode them. The bytes decide: a record counts only if
// the store has exactly its bytes, so no change of another program is missed, and no rollback. The zero Lately is empty.
type Lately[T any] struct {
	mu sync.Mutex
	of map[pool.ID]written[T]
}

type written[T any] struct {
	raw []byte
	rec T
}

// Of a kind, mostLately records of at most largestLately bytes are remembered.
const (
	mostLately    = 64
	largestLately = 64 << 10
)

// Decode returns the record that has these bytes, and forgets it, or else decodes it. The record is the caller's.
func (l *Lately[T]) Decode(id pool.ID, raw []byte, decode func(pool.ID, []byte) (T, error)) (T, error) {
	l.mu.Lock()
	w, is := l.of[id]
	delete(l.of, id)
	l.mu.Unlock()
	if is && bytes.Equal(w.raw, raw) {
		return w.rec, nil
	}
	return decode(id, raw)
}

// Note remembers a copy of a record with the bytes that were written, which nobody may change any more.
func (l *Lately[T]) Note(id pool.ID, raw []byte, rec T, copied func(T) T) {
	if len(raw) > largestLately {
		return
	}
	rec = copied(rec)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil || len(l.of) >= mostLately {
		l.of = map[pool.ID]written[T]{}
	}
	l.of[id] = written[T]{raw, rec}
}

// Copy returns a record that shares nothing with r that may change.
func (r *ContextRecord) Copy() *ContextRecord {
	c := *r
	c.Settings, c.AppData = maps.Clone(r.Settings), maps.Clone(r.AppData)
	c.Redo, c.Labels = slices.Clone(r.Redo), slices.Clone(r.Labels)
	if r.Task != nil {
		task := *r.Task
		c.Task = &task
	}
	return &c
}
