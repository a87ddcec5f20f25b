package base

import (
	"sync"
	"time"
)

// Sweeping removes what killed programs left beside the store, now and then while a program keeps the store open. A nil one does nothing.
type Sweeping struct {
	Do    func()        // removes it
	Every time.Duration // the least time between two calls of Do

	mu   sync.Mutex
	last time.Time
}

// NewSweeping returns a Sweeping that was due just now, when the store was opened.
func NewSweeping(do func()) *Sweeping {
	return &Sweeping{Do: do, Every: 5 * time.Minute, last: time.Now()}
}

// due calls Do if it is time.
func (w *Sweeping) due() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Sub(w.last) >= w.Every {
		w.last = now
		w.Do()
	}
}
