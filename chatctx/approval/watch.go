package approval

import (
	"context"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// News is a new open call that no rule decides, or an error that kept Watch from looking.
type News struct {
	Call *record.Call
	Err  error
}

// Watch reports each open call once, within 300 ms, whichever process made it. It only looks: calls that the rules decide are left to whoever runs them,
// and not reported until a rule changes. With existing set, it first reports the calls that are open already. After an error it continues, and reports all
// new calls with the next change. The channel is closed when ctx ends; until then the caller must read it.
func Watch(ctx context.Context, store *chatctx.Store, filter record.CallFilter, existing bool) (<-chan News, error) {
	ctx, cancel := context.WithCancel(ctx)
	changes, err := store.Watch(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	w := &watcher{store: store, seen: map[seenCall]bool{}}
	w.filter = filter
	w.filter.Skip = func(message chatctx.ID, index int) bool {
		return w.seen[seenCall{message, index}] || filter.Skip != nil && filter.Skip(message, index)
	}
	first, err := w.fresh(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	if !existing {
		first = nil
	}
	out := make(chan News)
	go func() {
		defer cancel()
		defer close(out)
		send(ctx, out, first)
		for change := range changes {
			var calls []*record.Call
			err := change.Err
			if err == nil {
				calls, err = w.fresh(ctx)
			}
			if err != nil && ctx.Err() == nil {
				deliver(ctx, out, News{Err: err})
			}
			send(ctx, out, calls)
		}
	}()
	return out, nil
}

func send(ctx context.Context, out chan<- News, calls []*record.Call) {
	for _, c := range calls {
		deliver(ctx, out, News{Call: c})
	}
}

func deliver(ctx context.Context, out chan<- News, n News) {
	select {
	case out <- n:
	case <-ctx.Done():
	}
}

// watcher remembers the calls that it has reported. It checks all others each time, however old they are: an undo, a restored file or a wrong clock may
// bring old ones.
type watcher struct {
	store  *chatctx.Store
	filter record.CallFilter
	seen   map[seenCall]bool
}

type seenCall struct {
	message chatctx.ID
	index   int
}

// fresh returns the open calls that were not reported yet. If it fails, none counts as reported.
func (w *watcher) fresh(ctx context.Context) ([]*record.Call, error) {
	var out []*record.Call
	for c, err := range w.store.Calls(ctx, w.filter) {
		if err != nil {
			return nil, err
		}
		waits, err := w.waits(ctx, c)
		if err != nil {
			return nil, err
		}
		if waits {
			out = append(out, c)
		}
	}
	for _, c := range out {
		w.seen[seenCall{c.Message, c.Index}] = true
	}
	return out, nil
}

// waits reports whether a call waits for more than the rules.
func (w *watcher) waits(ctx context.Context, c *record.Call) (bool, error) {
	if c.Status != pool.Pending {
		return true, nil
	}
	r, err := toolcall.Judge(ctx, base.Of(w.store), c)
	return err == nil && r.Effect == record.Ask, err
}
