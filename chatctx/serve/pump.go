package serve

import "sync"

// mostPending is how many bytes of words wait for a reader; those after them are left out.
const mostPending = 256 << 10

// pump takes events to a reader that may be slower than what tells them: words that follow each other become one event, and those that are too much are left out.
type pump struct {
	tell func(event string, v any) error

	mu      sync.Mutex
	moved   sync.Cond
	list    []told
	words   int // bytes of deltas in the list
	skipped map[string]bool
	busy    bool // an event is being told
	ended   bool
	gone    bool // the reader has gone
	done    chan struct{}
}

// told is an event that waits.
type told struct {
	event string
	v     any
}

func newPump(tell func(string, any) error) *pump {
	p := &pump{tell: tell, skipped: map[string]bool{}, done: make(chan struct{})}
	p.moved.L = &p.mu
	go p.run()
	return p
}

func (p *pump) run() {
	defer close(p.done)
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for len(p.list) == 0 && !p.ended {
			p.moved.Wait()
		}
		if len(p.list) == 0 {
			return
		}
		next := p.list[0]
		p.list = p.list[1:]
		if d, ok := next.v.(delta); ok {
			p.words -= len(d.Text)
		}
		p.busy = true
		p.mu.Unlock()
		err := p.tell(next.event, next.v)
		p.mu.Lock()
		p.busy = false
		if err != nil {
			p.gone, p.list, p.words = true, nil, 0
		}
		p.moved.Broadcast()
	}
}

// put adds an event.
func (p *pump) put(event string, v any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		p.list = append(p.list, told{event, v})
		p.moved.Broadcast()
	}
}

// delta adds words.
func (p *pump) delta(d delta) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gone:
		return
	case p.words+len(d.Text) > mostPending:
		p.skipped[d.Branch] = true
		return
	}
	d.Skipped = p.skipped[d.Branch]
	delete(p.skipped, d.Branch)
	p.words += len(d.Text)
	if n := len(p.list); n > 0 && !d.Skipped {
		if last, ok := p.list[n-1].v.(delta); ok && last.Branch == d.Branch && last.Type == d.Type {
			last.Text += d.Text
			p.list[n-1].v = last
			return
		}
	}
	p.list = append(p.list, told{"delta", d})
	p.moved.Broadcast()
}

// flush waits until all is told, or the reader has gone.
func (p *pump) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.gone && (len(p.list) > 0 || p.busy) {
		p.moved.Wait()
	}
}

// close ends the pump, after what it has.
func (p *pump) close() {
	p.mu.Lock()
	p.ended = true
	p.moved.Broadcast()
	p.mu.Unlock()
	<-p.done
}
