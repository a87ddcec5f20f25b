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
	forget func() bool // takes the watcher out of its context
}

// Add makes a watcher that lives until ctx ends or the hub is closed, then its channel is closed. It fails with kv.ErrClosed
// after Close.
func (h *Hub) Add(ctx context.Context, bucket string, prefix []byte) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, kv.ErrClosed
	}
	w := &watcher{bucket: bucket, prefix: bytes.Clone(prefix), signal: make(chan struct{}, 1)}
	if h.watchers == nil {
		h.watchers = make(map[*watcher]struct{})
	}
	h.watchers[w] = struct{}{}
	w.forget = context.AfterFunc(ctx, func() { h.remove(w) })
	return w.signal, nil
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
			if k.Bucket == w.bucket && bytes.HasPrefix(k.Key, w.prefix) {
				w.wake()
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
			if k.Bucket == w.bucket && (bytes.HasPrefix(k.Key, w.prefix) || bytes.HasPrefix(w.prefix, k.Key)) {
				w.wake()
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

// wake never blocks: a signal that waits to be taken stands for this one too.
func (w *watcher) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}
