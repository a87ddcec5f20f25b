package base

import (
	"slices"
	"sync"
)

// Warnings are sentences about the store itself that its user should read. Many goroutines may use them at the same time.
type Warnings struct {
	mu  sync.Mutex
	all []string
}

// Add adds a warning, once.
func (w *Warnings) Add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.all, text) {
		w.all = append(w.all, text)
	}
}

// All returns the warnings, the oldest first.
func (w *Warnings) All() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}
