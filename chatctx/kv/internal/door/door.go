// Package door lets work into a database until it is closed. It knows nothing of what is done inside.
package door

import (
	"context"
	"sync"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Door counts the work that is inside. The zero Door is open. It is safe for use by several goroutines.
type Door struct {
	mu     sync.Mutex // guards closed, and each entry before it is set
	closed bool
	inside sync.WaitGroup
}

// Enter lets a piece of work in, which calls Leave when it ends. It returns kv.ErrClosed if the door is closed, and the error of ctx if that has ended.
func (d *Door) Enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return kv.ErrClosed
	}
	d.inside.Add(1)
	return nil
}

// Leave ends a piece of work.
func (d *Door) Leave() { d.inside.Done() }

// Go runs f on a goroutine of its own, as a part of work that is inside: Close waits for it too.
func (d *Door) Go(f func()) { d.inside.Go(f) }

// Wait returns once nothing is inside. It keeps nothing out.
func (d *Door) Wait() { d.inside.Wait() }

// Close lets nothing in any more, and returns when everything inside has left. Only the first Close returns true.
func (d *Door) Close() bool {
	d.mu.Lock()
	first := !d.closed
	d.closed = true
	d.mu.Unlock()
	d.Wait()
	return first
}
