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
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

func changeMethods() []*method {
	return []*method{
		define("changes", "GET /changes", operation.Read, "report each change of the store, whoever makes it, until the client ends the request", watchChanges).stream(
			operation.Tells[changed]("ready", "the stream reports all changes after this cursor"), operation.Tells[changed]("change", "something was changed"), operation.Tells[changed]("cursor", "the position now, sent now and then while only other conversations change"),
			operation.Tells[changed]("reset", "changes were lost; read everything again")),
	}
}

type changesParams struct {
	After   string `json:"after,omitempty" doc:"the cursor of the last change that the client knows; by default the present. Over HTTP also Last-Event-ID"`
	Context string `json:"context,omitempty" doc:"only changes of this conversation and of the store"`
}

// changed is a change. A reset has only a cursor: everything that was read before may be outdated.
type changed struct {
	Cursor    string      `json:"cursor"`
	Context   *chatctx.ID `json:"context,omitempty"`
	Branches  []string    `json:"branches,omitempty"`
	Kind      string      `json:"kind,omitempty"`
	Operation string      `json:"operation,omitempty"`
}

// watchChanges tells the changes in the feed after a cursor. When it skips changes of other conversations, it sends a cursor from time to time, so that none of
// them is a gap later. A reader that is slower than the feed gets reset, and goes on from the feed's end.
func watchChanges(r *request, in *changesParams) (struct{}, error) {
	var only chatctx.ID
	if in.Context != "" {
		c, err := r.Store.Context(r.Ctx, in.Context)
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
	if err := r.Tell(map[bool]string{false: "ready", true: "reset"}[gap], changed{Cursor: feed.cursor(at)}); err != nil {
		return struct{}{}, err
	}
	known, told := at, time.Now() // the place that the reader knows, and since when
	for {
		news, next, gap, err := feed.wait(r.Ctx, at)
		if err != nil {
			return struct{}{}, nil // the reader has gone
		}
		if len(news) == 0 && !gap && r.beat != nil {
			if err := r.beat(); err != nil {
				return struct{}{}, err
			}
		}
		if gap {
			if err := r.Tell("reset", changed{Cursor: feed.cursor(next)}); err != nil {
				return struct{}{}, err
			}
		}
		for i, c := range news {
			if only != (chatctx.ID{}) && c.Context != only && c.Context != (chatctx.ID{}) {
				continue
			}
			v := changed{feed.cursor(next - len(news) + i + 1), contract.ID(c.Context), c.Branches, c.Kind, c.Operation}
			if err := r.Tell("change", v); err != nil {
				return struct{}{}, err
			}
			known, told = next-len(news)+i+1, time.Now()
		}
		if at = next; gap {
			known, told = at, time.Now()
		} else if at-known >= keptChanges/2 || at > known && time.Since(told) >= beatTime { // only other conversations were changed
			if err := r.Tell("cursor", changed{Cursor: feed.cursor(at)}); err != nil {
				return struct{}{}, err
			}
			known, told = at, time.Now()
		}
	}
}

// keptChanges is how many changes a feed keeps for slow readers.
const keptChanges = 1024

// beatTime is the longest silence for a reader, since proxies close silent connections.
const beatTime = 25 * time.Second

// mostNews is how many changes a reader takes at once, so that slow readers hold no more.
const mostNews = 64

// feed keeps the newest changes of the store. A reader is only a number: its place.
type feed struct {
	run string // the beginning of this feed's cursors: those of another program are a gap

	mu    sync.Mutex
	last  int // the number of all changes so far
	ring  [keptChanges]record.Change
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

func (f *feed) add(c record.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ring[f.last%keptChanges] = c
	f.last++
	close(f.moved)
	f.moved = make(chan struct{})
}

func (f *feed) cursor(at int) string { return fmt.Sprintf("%s-%d", f.run, at) }

// from returns the place of a reader that knows a cursor. gap means that changes in between are lost.
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

// wait returns the first changes after a place as soon as there are any, and nothing after beatTime. gap means that the reader was too slow, and goes on from
// next.
func (f *feed) wait(ctx context.Context, at int) (news []record.Change, next int, gap bool, err error) {
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
