package record

import (
	"sync"
)

// maxBehind is how many requests the goroutine may be behind, each for about 256 messages, before those who store wait for it.
const maxBehind = 64

// Beside is a goroutine that works in steps beside those who store, without holding them up: it puts waiting documents into the search index. A Store has
// at most one.
type Beside struct {
	mu     sync.Mutex
	runs   chan struct{} // closed when the goroutine ends; nil while there is none
	behind int           // requests since it began
	closed bool
}

// Idle is a Beside that never does anything.
func Idle() *Beside { return &Beside{closed: true} }

// Ask starts the goroutine unless it runs. It runs step until no more is to be done. If the goroutine is too far behind, Ask returns a channel that is
// closed when it ends, else nil.
func (i *Beside) Ask(lots int, step func() (more bool, err error)) <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.behind += lots
	if i.runs == nil {
		i.runs = make(chan struct{})
		go i.run(step)
	}
	if i.behind <= maxBehind {
		return nil
	}
	return i.runs
}

// run ends when nothing more is to be done, a step fails or the store is closed. A failed step is no error for anybody, since searches also look through
// waiting documents.
func (i *Beside) run(step func() (more bool, err error)) {
	for more := true; more && !i.ending(); {
		var err error
		if more, err = step(); err != nil {
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
