package chatctx

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/view"
)

// TestAWatchReadsWhatChanged: a look at the store reads what was changed in the last minutes, however many contexts there are, and tells of what was stored with a time somewhat
// before the newest.
func TestAWatchReadsWhatChanged(t *testing.T) {
	db, clock := &kvtest.Reads{DB: memkv.New()}, newClock()
	s, err := OpenDB(db, Options{Program: "test", Clock: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.at().Close()
	var all []*ChatContext
	for i := range 300 {
		all = append(all, newContext(t, s, fmt.Sprint(i)))
		clock.move(time.Second)
	}
	w := view.NewWatcher(s.at())
	news := func() []record.Change {
		t.Helper()
		changes, err := w.News(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	news()
	clock.move(10 * time.Minute)
	db.Take()
	appendTo(t, all[7], "", says("late")...)
	db.Take()
	if changes := news(); len(changes) != 1 || changes[0].Context != all[7].ID {
		t.Errorf("after one append: %+v", changes)
	}
	if n := db.Take(); n > 320 {
		t.Errorf("the first look after a pause read %d records", n)
	}
	appendTo(t, all[8], "", says("more")...)
	db.Take()
	if changes := news(); len(changes) != 1 || changes[0].Context != all[8].ID {
		t.Errorf("after another append: %+v", changes)
	}
	if n := db.Take(); n > 12 {
		t.Errorf("a look read %d records of a store of 300 contexts", n)
	}
	clock.move(-4 * time.Minute)
	appendTo(t, all[9], "", says("by a clock that is behind")...)
	if changes := news(); len(changes) != 1 || changes[0].Context != all[9].ID {
		t.Errorf("after an append with an earlier time: %+v", changes)
	}
	checkStore(t, s)
}

// TestAWatchThatNobodyReads: it ends with the store, and not only with its context. What waits is lost then.
func TestAWatchThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := OpenDB(memkv.New(), Options{Program: "test"})
		if err != nil {
			t.Fatal(err)
		}
		changes, err := s.Watch(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		c := newContext(t, s, "a")
		for range 2 * cap(changes) {
			appendTo(t, c, "", says("more")...)
		}
		time.Sleep(time.Second) // of the bubble: the watch has looked
		checkStore(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		n := 0
		for range changes {
			n++
		}
		if n != cap(changes) {
			t.Errorf("%d changes wait in a channel of %d", n, cap(changes))
		}
	})
}
