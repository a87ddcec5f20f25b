package base

import (
	"context"
	"sync"
)

// maxBehind is how many lots of documents the goroutine may be behind before those who store wait for it.
const maxBehind = 64

// Beside is a goroutine that works in steps beside those who store, without holding them up: it puts waiting documents into the search index. A Store has
// at most one.
type Beside struct {
	// Step does some of the work and reports whether more is to be done; nil: there is nothing to do.
	Step func(context.Context, *Store) (more bool, err error)

	mu     sync.Mutex
	runs   chan struct{} // closed when the goroutine ends; nil while there is none
	behind int           // lots since it began
	closed bool
}

// Idle is a Beside that never does anything.
func Idle() *Beside { return &Beside{closed: true} }

// Feed starts the goroutine unless it runs, for lots of new documents of s. It runs Step until no more is to be done. Feed returns at once, unless the
// goroutine is too far behind; then it waits until the goroutine ends, or ctx does.
func (i *Beside) Feed(ctx context.Context, s *Store, lots int) {
	if i.ask(s, lots) {
		i.Await(ctx)
	}
}

// Await waits until the goroutine ends, if it runs, or ctx does.
func (i *Beside) Await(ctx context.Context) {
	i.mu.Lock()
	runs := i.runs
	i.mu.Unlock()
	if runs != nil {
		select {
		case <-runs:
		case <-ctx.Done():
		}
	}
}

// ask starts the goroutine unless it runs, and reports whether it is too far behind.
func (i *Beside) ask(s *Store, lots int) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed || i.Step == nil {
		return false
	}
	i.behind += lots
	if i.runs == nil {
		i.runs = make(chan struct{})
		go i.run(s)
	}
	return i.behind > maxBehind
}

// run ends when nothing more is to be done, a step fails or the store is closed. A failed step is no error for anybody, since searches also look through
// waiting documents.
func (i *Beside) run(s *Store) {
	for more := true; more && !i.ending(); {
		var err error
		if more, err = i.Step(context.Background(), s); err != nil {
			break
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.runs)
	i.runs, i.behind = nil, 0
}

func (i *Beside) ending() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.closed
}

// close waits for the step under way.
func (i *Beside) close() {
	i.mu.Lock()
	i.closed = true
	runs := i.runs
	i.mu.Unlock()
	if runs != nil {
		<-runs
	}
}
