package serve

import (
	"context"
	"sync"
)

// room bounds the bytes that wait for a reader.
type room struct {
	most int

	mu    sync.Mutex
	used  int
	freed chan struct{} // closed, and replaced, when there is more room; nil while nobody waits
}

// take waits until n bytes have room. What is larger than all of it goes in alone.
func (r *room) take(ctx context.Context, n int) error {
	for n > 0 {
		r.mu.Lock()
		if r.used == 0 || r.used+n <= r.most {
			r.used += n
			r.mu.Unlock()
			break
		}
		if r.freed == nil {
			r.freed = make(chan struct{})
		}
		freed := r.freed
		r.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// try takes n bytes where they have room now.
func (r *room) try(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+n > r.most {
		return false
	}
	r.used += n
	return true
}

// add takes n bytes whether there is room or not; below 0 it gives some back.
func (r *room) add(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used += n; n < 0 && r.freed != nil {
		close(r.freed)
		r.freed = nil
	}
}
