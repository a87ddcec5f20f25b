package serve

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/chatctx/chatctx/internal/operation"
)

// The room in a server.
const (
	waiting  = 16        // pages of answers that may wait to be read, in all
	mostHeld = 128 << 20 // bytes of requests with their decoded form; a quarter more for small ones
	small    = 16 << 20  // bytes that a small request holds
	freely   = 64 << 10  // bytes of a request that need no room
)

// errLarge means that a request is too large.
var errLarge = operation.Refused(http.StatusRequestEntityTooLarge, "too_large", "a request has at most 64 MB; larger content goes by uploads.add")

// errBusy means that there is no room for another answer.
var errBusy = operation.Refused(http.StatusServiceUnavailable, "busy", "too many answers wait to be read: ask again in a moment")

// room limits the bytes in memory that wait for a reader.
type room struct {
	most int
	of   *room // the room that this one is a part of; nil for none

	mu    sync.Mutex
	used  int
	freed chan struct{} // closed, and replaced, when there is more room; nil while nobody waits
}

// take waits until n bytes have room. More bytes than the whole room go in alone.
func (r *room) take(ctx context.Context, n int) error {
	for n > 0 {
		r.mu.Lock()
		if r.used == 0 || r.used+n <= r.most {
			r.used += n
			r.mu.Unlock()
			r.of.add(n)
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

// try takes n bytes if they have room now.
func (r *room) try(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+n > r.most {
		return false
	}
	r.used += n
	r.of.add(n)
	return true
}

// add takes n bytes whether there is room or not; a negative n gives some back. It may be called on nil.
func (r *room) add(n int) {
	if r == nil || n == 0 {
		return
	}
	r.of.add(n)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used += n; n < 0 && r.freed != nil {
		close(r.freed)
		r.freed = nil
	}
}

// lease is the room that one answer holds.
type lease struct {
	room     *room
	held     int
	patience time.Duration // how long it waits for room; 0 means as long as its request
}

// want makes the lease hold n bytes. It first gives back what it held, so that leases that want more do not wait for each other; so nothing large may be in
// memory then. If there is no room in time, it holds nothing and returns an error.
func (l *lease) want(ctx context.Context, n int) error {
	if l.free(); n == 0 {
		return nil
	}
	wait := ctx
	if l.patience > 0 {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, l.patience)
		defer cancel()
	}
	err := l.room.take(wait, n)
	if err != nil && ctx.Err() == nil {
		err = errBusy
	}
	if err == nil {
		l.held = n
	}
	return err
}

// is sets how many bytes the answer has. If they are more than expected and there is no room for them, it returns errBusy, unless the request has changed
// something.
func (l *lease) is(n int, changed bool) error {
	r := l.room
	r.mu.Lock()
	full := n > l.held && r.used > l.held && r.used-l.held+n > r.most
	r.mu.Unlock()
	if full && !changed {
		return errBusy
	}
	r.add(n - l.held)
	l.held = n
	return nil
}

// free gives back what the lease holds.
func (l *lease) free() {
	l.room.add(-l.held)
	l.held = 0
}
