package chatctx

import (
	"context"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// kept is a database that a URL opens again and again, as a server's.
type kept struct{ kv.DB }

func (kept) Close() error { return nil }

// registerKept registers an engine whose databases stay in memory when they are closed. A scheme has one driver.
var registerKept = sync.OnceFunc(func() {
	server := map[string]kv.DB{}
	kv.Register("kept", kv.Driver{
		Open: func(ctx context.Context, url string, o kv.OpenOptions) (kv.DB, error) {
			db := server[url]
			if db == nil {
				return nil, kv.ErrNotExist
			}
			return db, db.View(ctx, o.Check)
		},
		Init: func(ctx context.Context, url string, fill func(kv.RwTx) error) error {
			if server[url] != nil {
				return fs.ErrExist
			}
			server[url] = kept{memkv.New()}
			return server[url].Update(ctx, fill)
		},
	})
})

func TestOpenByURL(t *testing.T) {
	registerKept()
	url := "kept://" + pool.NewID().String() // the test may run again in one process
	if _, err := Open(url, Options{}); err == nil || !strings.Contains(err.Error(), ErrNotExist.Error()) {
		t.Errorf("nothing is there: %v", err)
	}
	for i := range 2 { // the second opens what the first made
		s, err := Open(url, Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		newContext(t, s, "a")
		n := 0
		for _, err := range s.Contexts(t.Context(), record.ListOptions{}) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != i+1 {
			t.Errorf("%d contexts, want %d", n, i+1)
		}
		checkStore(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open("nosuch://x", Options{Create: true}); err == nil || !strings.Contains(err.Error(), "no engine opens nosuch:// stores") {
		t.Error(err)
	}
}
