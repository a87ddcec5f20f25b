// Package watch tells those who wait for a key that a commit may have changed it. Engines share it.
package watch

import (
	"bytes"
	"context"
	"sync"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Key is a key that a commit wrote or deleted.
type Key struct {
	Bucket string
	Key    []byte
}

// Hub holds the watchers of one database. The zero Hub is ready. Its methods may be called by many goroutines.
type Hub struct {
	mu       sync.Mutex
	watchers map[*watcher]struct{}
	closed   bool
}

type watcher struct {
	bucket string
	prefix []byte
	signal chan struct{}
	names  map[string]struct{} // the keys that changed since they were taken; nil where nobody asks
	all    bool                // any may have changed
	forget func() bool         // takes the watcher out of its context
}

// Add makes a watcher that lives until ctx ends or the hub is closed, then its channel is closed. It fails with kv.ErrClosed
// after Close.
func (h *Hub) Add(ctx context.Context, bucket string, prefix []byte) (<-chan struct{}, error) {
	w := &watcher{bucket: bucket, prefix: bytes.Clone(prefix), signal: make(chan struct{}, 1)}
	return w.signal, h.add(ctx, w)
}

// mostNames is how many names wait for a watcher; where there are more any key may have changed.
const mostNames = 1024

// AddNames is Add that also gives a function to take the keys that changed, or their beginnings, since it was called last; all where any may have.
func (h *Hub) AddNames(ctx context.Context, bucket string, prefix []byte) (signal <-chan struct{}, changed func() (keys [][]byte, all bool), err error) {
	w := &watcher{bucket: bucket, prefix: bytes.Clone(prefix), signal: make(chan struct{}, 1), names: map[string]struct{}{}}
	take := func() (keys [][]byte, all bool) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for name := range w.names {
			keys = append(keys, []byte(name))
		}
		all, w.all, w.names = w.all, false, map[string]struct{}{}
		return keys, all
	}
	return w.signal, take, h.add(ctx, w)
}

func (h *Hub) add(ctx context.Context, w *watcher) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return kv.ErrClosed
	}
	if h.watchers == nil {
		h.watchers = make(map[*watcher]struct{})
	}
	h.watchers[w] = struct{}{}
	w.forget = context.AfterFunc(ctx, func() { h.remove(w) })
	return nil
}

// Len is the number of watchers.
func (h *Hub) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watchers)
}

// Wrote signals the watchers of any of the keys.
func (h *Hub) Wrote(keys []Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		for _, k := range keys {
			if k.Bucket == w.bucket && bytes.HasPrefix(k.Key, w.prefix) && w.told(k.Key) {
				break
			}
		}
	}
}

// Near signals the watchers of keys of which only the beginnings are known: those of any key that may be meant.
func (h *Hub) Near(keys []Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		for _, k := range keys {
			if k.Bucket == w.bucket && (bytes.HasPrefix(k.Key, w.prefix) || bytes.HasPrefix(w.prefix, k.Key)) && w.told(k.Key) {
				break
			}
		}
	}
}

// All signals every watcher: something has changed, and nobody knows what.
func (h *Hub) All() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		w.all = true
		w.wake()
	}
}

// Close ends all watchers. A second Close does nothing.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for w := range h.watchers {
		close(w.signal)
		w.forget()
	}
	h.watchers = nil
}

func (h *Hub) remove(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, there := h.watchers[w]; there {
		delete(h.watchers, w)
		close(w.signal)
	}
}

// told notes a key that changed, and reports whether the others need not be looked at.
func (w *watcher) told(key []byte) (enough bool) {
	w.wake()
	if w.names == nil {
		return true
	}
	if len(w.names) >= mostNames {
		w.all = true
		return true
	}
	w.names[string(key)] = struct{}{}
	return false
}

// wake never blocks: a signal that waits to be taken stands for this one too.
func (w *watcher) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}
