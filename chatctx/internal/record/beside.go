package record

import (
	"sync"
)

// maxBehind times 256 messages may come while the goroutine runs, before who stores waits for it.
const maxBehind = 64

// Beside is a goroutine that does work in steps beside those who store and not in their way: puts what waits into the search index. There is at most one for a Store.
type Beside struct {
	mu     sync.Mutex
	runs   chan struct{} // closed when it ends; nil while there is none
	behind int           // how often somebody asked for it since it began
	closed bool
}

// Ask sees that the goroutine runs, a step after the other. It gives what ends with it where that is too far behind.
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

// run ends when no more is to be done, a step fails or the store is closed. Where no index can be made, nothing fails for it: what waits is found all the same.
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

// close waits for the step that is under way.
func (i *Beside) close() {
	i.mu.Lock()
	i.closed = true
	runs := i.runs
	i.mu.Unlock()
	if runs != nil {
		<-runs
	}
}
