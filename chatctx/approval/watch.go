package approval

import (
	"context"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// watchMargin is how far back new calls are looked for, since the clocks of programs differ: a minute.
const watchMargin = pool.Time(60_000_000)

// Watch tells of open calls that come up, also by other processes, within 300 ms; of each once. Those that are open already are told of first where existing is set.
// The channel is closed when ctx ends; until then it has to be read.
func Watch(ctx context.Context, store *chatctx.Store, filter chatctx.CallFilter, existing bool) (<-chan *chatctx.Call, error) {
	ctx, cancel := context.WithCancel(ctx)
	changes, err := store.Watch(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	w := &watcher{store: store, filter: filter, seen: map[chatctx.CallRef]bool{}}
	first, err := w.fresh(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	if !existing {
		first = nil
	}
	out := make(chan *chatctx.Call)
	go func() {
		defer cancel()
		defer close(out)
		send(ctx, out, first)
		for range changes {
			calls, err := w.fresh(ctx)
			if err != nil {
				calls = nil // the next change tries again
			}
			send(ctx, out, calls)
		}
	}()
	return out, nil
}

func send(ctx context.Context, out chan<- *chatctx.Call, calls []*chatctx.Call) {
	for _, c := range calls {
		select {
		case out <- c:
		case <-ctx.Done():
			return
		}
	}
}

// watcher remembers the calls that it told of.
type watcher struct {
	store  *chatctx.Store
	filter chatctx.CallFilter
	seen   map[chatctx.CallRef]bool
	last   pool.Time
}

// fresh gives the open calls that were not told of yet.
func (w *watcher) fresh(ctx context.Context) ([]*chatctx.Call, error) {
	var out []*chatctx.Call
	f := w.filter
	if w.last > watchMargin {
		f.Since = w.last - watchMargin
	}
	for c, err := range w.store.Calls(ctx, f) {
		if err != nil {
			return nil, err
		}
		w.last = max(w.last, c.Since)
		if !w.seen[c.Ref()] {
			w.seen[c.Ref()] = true
			out = append(out, c)
		}
	}
	return out, nil
}
