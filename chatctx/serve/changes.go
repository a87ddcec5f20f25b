package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
)

func changeMethods() []*method {
	return []*method{
		define("changes", "GET /changes", Read, "tell of changes as they are made, by whomever, until it is ended", watchChanges).stream(),
	}
}

type changesParams struct {
	After   string `json:"after,omitempty" doc:"the cursor of the last change that is known; over HTTP also Last-Event-ID"`
	Context string `json:"context,omitempty" doc:"only changes of this conversation, and of the store"`
}

// changed is a change. Of a reset nothing but the cursor is known: whatever was read before may be old.
type changed struct {
	Cursor    string      `json:"cursor"`
	Context   *chatctx.ID `json:"context,omitempty"`
	Branch    string      `json:"branch,omitempty"`
	Kind      string      `json:"kind,omitempty"`
	Operation string      `json:"operation,omitempty"`
}

// watchChanges tells of what the feed holds after a cursor. Where it passes over changes of other conversations, cursor says now and then how far it is, so that none of them is a gap later. A reader that is slower than the feed is told reset, and goes on from its end.
func watchChanges(r *request, in *changesParams) (struct{}, error) {
	var only chatctx.ID
	if in.Context != "" {
		c, err := r.store.Context(r.ctx, in.Context)
		if err != nil {
			return struct{}{}, err
		}
		only = c.ID
	}
	feed, err := r.server.changes()
	if err != nil {
		return struct{}{}, err
	}
	at, gap := feed.from(in.After)
	if err := r.tell(map[bool]string{false: "ready", true: "reset"}[gap], changed{Cursor: feed.cursor(at)}); err != nil {
		return struct{}{}, err
	}
	known, told := at, time.Now() // how far the reader knows, since when
	for {
		news, next, gap, err := feed.wait(r.ctx, at)
		if err != nil {
			return struct{}{}, nil // whoever listened has gone
		}
		if len(news) == 0 && !gap && r.beat != nil {
			if err := r.beat(); err != nil {
				return struct{}{}, err
			}
		}
		if gap {
			if err := r.tell("reset", changed{Cursor: feed.cursor(next)}); err != nil {
				return struct{}{}, err
			}
		}
		for i, c := range news {
			if only != (chatctx.ID{}) && c.Context != only && c.Context != (chatctx.ID{}) {
				continue
			}
			v := changed{feed.cursor(next - len(news) + i + 1), contract.ID(c.Context), c.Branch, c.Kind, c.Operation}
			if err := r.tell("change", v); err != nil {
				return struct{}{}, err
			}
			known, told = next-len(news)+i+1, time.Now()
		}
		if at = next; gap {
			known, told = at, time.Now()
		} else if at-known >= keptChanges/2 || at > known && time.Since(told) >= beatTime { // only others were changed
			if err := r.tell("cursor", changed{Cursor: feed.cursor(at)}); err != nil {
				return struct{}{}, err
			}
			known, told = at, time.Now()
		}
	}
}

// keptChanges is how many changes a feed holds for readers that are behind.
const keptChanges = 1024

// beatTime is how long a reader hears nothing at most: programs between give up those that are silent.
const beatTime = 25 * time.Second

// mostNews is how many of them a reader takes at once: those that read slowly hold no more.
const mostNews = 64

// feed holds the newest changes of the store. Readers have nothing but a number: how far they are.
type feed struct {
	run string // what this feed's cursors begin with: those of another program are a gap

	mu    sync.Mutex
	last  int // how many there were
	ring  [keptChanges]chatctx.Change
	moved chan struct{} // closed, and replaced, with each change
}

func newFeed(ctx context.Context, store *chatctx.Store) (*feed, error) {
	changes, err := store.Watch(ctx)
	if err != nil {
		return nil, err
	}
	var run [8]byte
	rand.Read(run[:])
	f := &feed{run: hex.EncodeToString(run[:]), moved: make(chan struct{})}
	go func() {
		for c := range changes {
			if c.Err == nil {
				f.add(c)
			}
		}
	}()
	return f, nil
}

func (f *feed) add(c chatctx.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ring[f.last%keptChanges] = c
	f.last++
	close(f.moved)
	f.moved = make(chan struct{})
}

func (f *feed) cursor(at int) string { return fmt.Sprintf("%s-%d", f.run, at) }

// from is where a reader goes on who knows a cursor. gap: what came between is not known any more.
func (f *feed) from(cursor string) (at int, gap bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cursor == "" {
		return f.last, false
	}
	number, ours := strings.CutPrefix(cursor, f.run+"-")
	at, err := strconv.Atoi(number)
	if !ours || err != nil || at < f.last-keptChanges || at > f.last || at < 0 {
		return f.last, true
	}
	return at, false
}

// wait gives the first of what came after a place, as soon as there is something, and nothing after a while. gap: the reader was too slow, and goes on from next.
func (f *feed) wait(ctx context.Context, at int) (news []chatctx.Change, next int, gap bool, err error) {
	for {
		f.mu.Lock()
		last, moved := f.last, f.moved
		if last-at > keptChanges {
			f.mu.Unlock()
			return nil, last, true, nil
		}
		next = min(last, at+mostNews)
		for i := at; i < next; i++ {
			news = append(news, f.ring[i%keptChanges])
		}
		f.mu.Unlock()
		if len(news) > 0 {
			return news, next, false, nil
		}
		select {
		case <-moved:
		case <-time.After(beatTime):
			return nil, at, false, nil
		case <-ctx.Done():
			return nil, at, false, context.Cause(ctx)
		}
	}
}
