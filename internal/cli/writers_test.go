//go:build unix

package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/pgtest"
	"github.com/chatctx/chatctx/internal/storetest"
)

// countedDB is a server's engine that counts how often Updates ran, and how many there were.
type countedDB struct {
	kv.DB
	engine.Hosted
	kv.Clock
	updates, runs atomic.Int64
}

func (c *countedDB) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	c.updates.Add(1)
	return c.DB.Update(ctx, func(tx kv.RwTx) error { c.runs.Add(1); return fn(tx) })
}

// again is how often Updates ran again since the last call, for each of them.
func (c *countedDB) again() float64 {
	n, runs := c.updates.Swap(0), c.runs.Swap(0)
	return float64(runs-n) / float64(max(n, 1))
}

// countedStore makes a store on the server.
func countedStore(t *testing.T) (*chatctx.Store, *countedDB) {
	t.Helper()
	if pgtest.Server == nil {
		t.Skip(pgtest.ErrMissing)
	}
	url := pgtest.Server.URL(pgtest.Name(), "pool_max_conns=32")
	st, err := chatctx.Open(url, chatctx.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := kv.Open(t.Context(), url, kv.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := &countedDB{DB: db, Hosted: db.(engine.Hosted), Clock: db.(kv.Clock)}
	st, err = chatctx.OpenDB(c, chatctx.Options{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil { // what goes into the search index beside
			t.Error(err)
		}
		st, err := chatctx.Open(url, chatctx.Options{})
		if err != nil {
			t.Error(err)
			return
		}
		storetest.Close(t, st)
	})
	return st, c
}

// append32 has 32 writers append n messages each to the contexts, all at once.
func append32(t *testing.T, to func(writer int) *chatctx.ChatContext, n int) {
	t.Helper()
	var group sync.WaitGroup
	for w := range 32 {
		group.Go(func() {
			for i := range n {
				b := to(w).Begin("")
				b.Append(words(fmt.Sprintf("w%d/%d", w, i)))
				if _, err := b.Commit(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

// TestWritersSeldomRunAgain: 32 writers on 32 new conversations run less than one in ten of their appends again.
func TestWritersSeldomRunAgain(t *testing.T) {
	st, c := countedStore(t)
	var all []*chatctx.ChatContext
	for i := range 32 {
		made, err := st.New(t.Context(), record.NewContext{Title: fmt.Sprint("Number ", i)})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, made)
	}
	c.again()
	append32(t, func(w int) *chatctx.ChatContext { return all[w] }, 50)
	if again := c.again(); again > 0.1 {
		t.Errorf("%.3f runs again for each append, want at most 0.1", again)
	} else {
		t.Logf("%.3f runs again for each append", again)
	}
	for w, made := range all {
		if n := ofWriters(t, made)[w]; n != 50 {
			t.Errorf("conversation %d has %d messages, want 50", w, n)
		}
	}
}

// ofWriters counts the messages of each writer in a conversation, which stand in the order in which each wrote them.
func ofWriters(t *testing.T, c *chatctx.ChatContext) map[int]int {
	t.Helper()
	snap, err := c.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	next := map[int]int{}
	for e, err := range snap.Entries(t.Context(), 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		var w, i int
		if _, err := fmt.Sscanf(strings.TrimPrefix(e.Text(), "w"), "%d/%d", &w, &i); err != nil {
			t.Fatalf("message %d says %q", e.Position, e.Text())
		}
		if i != next[w] {
			t.Errorf("message %d is number %d of writer %d, want number %d", e.Position, i, w, next[w])
		}
		next[w] = i + 1
	}
	return next
}

// TestWritersOfOneBranch: 32 writers on one branch store everything, each in its own order.
func TestWritersOfOneBranch(t *testing.T) {
	st, c := countedStore(t)
	made, err := st.New(t.Context(), record.NewContext{Title: "One"})
	if err != nil {
		t.Fatal(err)
	}
	c.again()
	append32(t, func(int) *chatctx.ChatContext { return made }, 10)
	t.Logf("%.3f runs again for each append", c.again())
	next := ofWriters(t, made)
	for w := range 32 {
		if next[w] != 10 {
			t.Errorf("%d messages of writer %d, want 10", next[w], w)
		}
	}
}
