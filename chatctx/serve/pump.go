package serve

import (
	"context"
	"sync"

	"github.com/chatctx/chatctx/internal/operation"
)

// mostPending is how many bytes of words wait for a reader; words beyond that are left out.
const mostPending = 256 << 10

// mostTold is how many bytes of events wait for a reader that shares no room with others.
const mostTold = 1 << 20

// pump passes events to a reader that may be slower than their source: consecutive words become one event, and words beyond the limit are left out. Other
// events wait for room, and so does their source.
type pump struct {
	tell func(event string, v any) error
	room *room
	ctx  context.Context // ends when nothing waits for room any more
	end  context.CancelFunc

	mu      sync.Mutex
	moved   sync.Cond
	list    []told
	words   int // bytes of deltas in the list
	skipped map[string]bool
	busy    bool // an event is being sent
	ended   bool
	gone    bool // the reader has gone
	done    chan struct{}
}

// told is an event that waits.
type told struct {
	event string
	v     any
	size  int // the room that it takes
}

func newPump(ctx context.Context, tell func(string, any) error, r *room) *pump {
	p := &pump{tell: tell, room: r, skipped: map[string]bool{}, done: make(chan struct{})}
	p.ctx, p.end = context.WithCancel(ctx)
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
		if d, ok := next.v.(operation.Delta); ok {
			p.words -= len(d.Text)
		}
		p.busy = true
		p.mu.Unlock()
		err := p.tell(next.event, next.v)
		p.mu.Lock()
		p.busy = false
		p.room.add(-next.size)
		if err != nil {
			p.leave()
		}
		p.moved.Broadcast()
	}
}

// leave drops the waiting events and all later ones, because the reader has gone.
func (p *pump) leave() {
	for _, t := range p.list {
		p.room.add(-t.size)
	}
	p.gone, p.list, p.words = true, nil, 0
	p.end()
}

// Put adds an event as soon as there is room for it. After the request was stopped, it does not wait.
func (p *pump) Put(event string, v any) {
	raw, err := encode(v, 0)
	if err != nil {
		return // our own types always encode
	}
	if p.room.take(p.ctx, len(raw)) != nil {
		p.room.add(len(raw))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		p.room.add(-len(raw))
		return
	}
	p.list = append(p.list, told{event, raw, len(raw)})
	p.moved.Broadcast()
}

// Delta adds words.
func (p *pump) Delta(d operation.Delta) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gone:
		return
	case p.words+len(d.Text) > mostPending || !p.room.try(len(d.Text)):
		p.skipped[d.Branch] = true
		return
	}
	d.Skipped = p.skipped[d.Branch]
	delete(p.skipped, d.Branch)
	p.words += len(d.Text)
	if n := len(p.list); n > 0 && !d.Skipped {
		if last, ok := p.list[n-1].v.(operation.Delta); ok && last.Branch == d.Branch && last.Type == d.Type {
			last.Text += d.Text
			p.list[n-1].v, p.list[n-1].size = last, len(last.Text)
			return
		}
	}
	p.list = append(p.list, told{"delta", d, len(d.Text)})
	p.moved.Broadcast()
}

// Flush waits until all events are sent, or the reader has gone.
func (p *pump) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.gone && (len(p.list) > 0 || p.busy) {
		p.moved.Wait()
	}
}

// Close ends the pump after its last event.
func (p *pump) Close() {
	p.mu.Lock()
	p.ended = true
	p.moved.Broadcast()
	p.mu.Unlock()
	<-p.done
	p.end()
}
