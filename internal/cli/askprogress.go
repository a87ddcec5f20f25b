package cli

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx/turn"
)

// watched shows the progress of all askers on one line of a terminal. Each asker reports from a goroutine of its own.
type watched struct {
	r      *run // nil: nobody watches
	mu     sync.Mutex
	turns  []*turn.Turn
	labels map[*turn.Turn]string
	state  map[*turn.Turn]string
	words  map[*turn.Turn]int
	next   time.Time
}

// watching makes turns report their progress, if somebody watches.
func (r *run) watching(turns []*turn.Turn, labels map[*turn.Turn]string) *watched {
	w := &watched{turns: turns, labels: labels, state: map[*turn.Turn]string{}, words: map[*turn.Turn]int{}}
	if !r.con.errs || r.json() {
		return w
	}
	w.r = r
	for _, t := range turns {
		t.Show = func(e turn.Event) { w.saw(t, e) }
	}
	return w
}

// saw records an event of an asker.
func (w *watched) saw(t *turn.Turn, e turn.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case e.Delta != nil:
		w.words[t] += len(strings.Fields(e.Delta.Text))
		w.state[t] = fmt.Sprintf("%d words", w.words[t])
	case e.Retry != nil:
		w.state[t] = "tries again"
	}
	if now := time.Now(); now.After(w.next) {
		w.next = now.Add(100 * time.Millisecond)
		w.draw()
	}
}

// ended removes the line while print prints an answer, and restores it while others are awaited.
func (w *watched) ended(a *turn.Answer, print func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.r != nil {
		w.r.endProgress()
	}
	print()
	w.state[a.Turn] = "done"
	if a.Err != nil {
		w.state[a.Turn] = "failed"
	}
	w.draw()
}

func (w *watched) draw() {
	if w.r == nil {
		return
	}
	left := false
	var parts []string
	for _, t := range w.turns {
		state := cmp.Or(w.state[t], "waits")
		left = left || state != "done" && state != "failed"
		parts = append(parts, oneLine(w.labels[t])+" "+state)
	}
	if left {
		fmt.Fprintf(w.r.con.err, "\r\x1b[K%s", cut(strings.Join(parts, "  "), w.r.con.width-1))
		w.r.con.barShown = true
	}
}
