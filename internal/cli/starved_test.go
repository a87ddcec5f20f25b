//go:build unix

package cli

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/pgtest"
	"github.com/chatctx/chatctx/internal/storetest"
)

// TestALongImportIsNotStarved: an import of many conversations in one transaction gets through while others make conversations without pause, before they have made many times as many.
func TestALongImportIsNotStarved(t *testing.T) {
	const conversations, mostOthers = 150, 20_000
	if pgtest.Server == nil {
		t.Skip(pgtest.ErrMissing)
	}
	url := pgtest.Server.URL(pgtest.Name())
	opened := func() *chatctx.Store {
		st, err := chatctx.Open(url, chatctx.Options{Create: true, Program: "test", Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	st := opened()
	defer storetest.Close(t, st)
	other := opened() // as another process has it: no lock of this one holds it up
	defer other.Close()
	var all []*record.Incoming
	for i := range conversations {
		in := &record.Incoming{Format: "test", Conversation: fmt.Sprint("c", i), Title: fmt.Sprint("Brought ", i), Branches: []record.IncomingBranch{{Name: "main", Leaf: 5}}}
		for n := range 5 {
			in.Nodes = append(in.Nodes, record.Node{ID: fmt.Sprint("n", n), Parent: n, Message: words(fmt.Sprint("words ", n, " of ", i))})
		}
		all = append(all, in)
	}
	var others sync.WaitGroup
	var made atomic.Int64
	var ended atomic.Bool
	begun := make(chan struct{})
	for range 4 {
		others.Go(func() {
			for !ended.Load() && made.Load() < mostOthers {
				if _, err := other.New(t.Context(), record.NewContext{Title: "Another", Messages: []*chatctx.Message{words("hello")}}); err != nil {
					t.Error(err)
					return
				}
				if made.Add(1) == 8 {
					close(begun)
				}
			}
		})
	}
	<-begun
	before := made.Load()
	done, err := st.Import(t.Context(), all)
	during := made.Load() - before
	ended.Store(true)
	others.Wait()
	if err != nil || len(done) != conversations || made.Load() >= mostOthers {
		t.Errorf("%d of %d conversations came in while others made %d: %v", len(done), conversations, during, err)
	}
	t.Logf("others made %d conversations meanwhile", during)
	n := 0
	for _, err := range st.Contexts(t.Context(), record.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if want := int(made.Load()) + conversations; n != want {
		t.Errorf("there are %d conversations, want %d", n, want)
	}
}
