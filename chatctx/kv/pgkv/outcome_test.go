//go:build unix

package pgkv

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/pgtest"
)

// proxied makes a database and gives a proxy to it with its URL.
func proxied(t testing.TB, settings ...string) (p *pgtest.Proxy, direct, through string) {
	t.Helper()
	schema := pgtest.Name()
	direct = server(t).URL(schema, settings...)
	if err := initialise(ctx, direct, nil); err != nil {
		t.Fatal(err)
	}
	p, err := server(t).NewProxy()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, direct, p.URL(schema, settings...)
}

// once gives a judge that has this happen to the first commits of transactions that write, and counts them.
func once(fate pgtest.Fate, times int32) (judge func([]byte) pgtest.Fate, commits *atomic.Int32) {
	commits = new(atomic.Int32)
	return func(request []byte) pgtest.Fate {
		if bytes.Contains(request, []byte("commit\x00")) && commits.Add(1) <= times {
			return fate
		}
		return pgtest.Pass
	}, commits
}

// add counts up with a read before, and without one writes a record of its own.
func add(db kv.DB, reads bool, i int) error {
	return db.Update(ctx, func(tx kv.RwTx) error {
		if !reads {
			return tx.Put("blind", fmt.Append(nil, i), nil)
		}
		value, err := tx.Get("counter", []byte("n"))
		if err != nil {
			return err
		}
		return tx.Put("counter", []byte("n"), append(value[:len(value):len(value)], 'x'))
	})
}

// TestLostAnswers breaks the connection around a commit. The Update succeeds, and what it did was done once.
func TestLostAnswers(t *testing.T) {
	for _, settings := range [][]string{nil, {"default_query_exec_mode=exec"}} {
		for _, fate := range []pgtest.Fate{pgtest.DropRequest, pgtest.DropAnswer} {
			for _, reads := range []bool{true, false} {
				t.Run(fmt.Sprint(settings, fate, reads), func(t *testing.T) {
					p, _, url := proxied(t, settings...)
					var commits *atomic.Int32
					p.Judge, commits = once(fate, 3)
					db := open(t, url)
					defer closeDB(t, db)
					for i := range 5 {
						if err := add(db, reads, i); err != nil {
							t.Fatal(err)
						}
					}
					stored(t, db, reads, 5)
					tries := int32(5)
					if fate == pgtest.DropRequest {
						tries += 3
					}
					if n := commits.Load(); n != tries {
						t.Errorf("%d commits were sent, want %d", n, tries)
					}
				})
			}
		}
	}
}

func stored(t *testing.T, db kv.DB, reads bool, n int) {
	t.Helper()
	found := 0
	look := func(tx kv.Tx) error {
		found = 0
		if reads {
			value, err := tx.Get("counter", []byte("n"))
			found = len(value)
			return err
		}
		return tx.Scan("blind", kv.Range{}, func(_, _ []byte) error { found++; return nil })
	}
	err := db.View(ctx, look)
	for try := 0; errors.Is(err, kv.ErrAway) && try < 20; try++ { // somebody answers, if slowly
		err = db.View(ctx, look)
	}
	if err != nil || found != n {
		t.Errorf("%d changes are stored, want %d, %v", found, n, err)
	}
}

// TestLateCommit: a commit that reaches the server after its program has given the connection up changes nothing any more. It is
// the same whether the transaction had begun before or comes as one request.
func TestLateCommit(t *testing.T) {
	for _, reads := range []bool{true, false} {
		p, _, url := proxied(t)
		p.Judge, _ = once(pgtest.Keep, 1)
		db := open(t, url)
		defer closeDB(t, db)
		if err := add(db, reads, 0); err != nil {
			t.Fatal(err)
		}
		answers, err := p.Late()
		if err != nil || len(answers) != 1 {
			t.Fatalf("%d late requests, %v", len(answers), err)
		}
		if !bytes.Contains(answers[0], []byte("ERROR")) || bytes.Contains(answers[0], []byte("COMMIT")) {
			t.Errorf("the server's answer to a late commit: %q", answers[0])
		}
		stored(t, db, reads, 1)
	}
}

// TestUnknownOutcome: the connection breaks after a commit, and no server answers: none takes a connection, or one does and keeps silent. The Update does not run again.
func TestUnknownOutcome(t *testing.T) {
	for _, silent := range []bool{false, true} {
		p, direct, url := proxied(t)
		var away atomic.Bool
		speak := make(chan struct{})
		p.Judge = func(request []byte) pgtest.Fate {
			if away.Load() {
				if silent {
					<-speak
				}
				return pgtest.DropRequest
			}
			if bytes.Contains(request, []byte("commit\x00")) {
				away.Store(true)
				return pgtest.DropAnswer
			}
			return pgtest.Pass
		}
		db, err := openDB(ctx, url, options{Outcome: 50 * time.Millisecond, Wait: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer closeDB(t, db)
		if err := add(db, true, 0); !errors.Is(err, kv.ErrUnknownOutcome) {
			t.Errorf("nobody could be asked: %v", err)
		}
		close(speak)
		d := db.(*database)
		d.settled()
		if err := db.View(ctx, func(tx kv.Tx) error { _, err := tx.Get("b", []byte("k")); return err }); !errors.Is(err, kv.ErrAway) {
			t.Errorf("a View meanwhile: %v", err)
		}
		d.settled()
		before := open(t, direct)
		defer closeDB(t, before)
		stored(t, before, true, 1)
		away.Store(false)
		stored(t, db, true, 1)
	}
}

// TestTrips counts round trips, also with a millisecond added to each: a delay changes no number.
func TestTrips(t *testing.T) {
	for _, settings := range [][]string{nil, {"default_query_exec_mode=exec"}} {
		for _, delay := range []time.Duration{0, time.Millisecond} {
			p, _, url := proxied(t, settings...)
			p.Delay = delay
			var asked atomic.Int32
			p.Judge = func(request []byte) pgtest.Fate {
				if waitedFor(request) {
					asked.Add(1)
				}
				return pgtest.Pass
			}
			db := open(t, url)
			defer closeDB(t, db)
			d := db.(*database)
			for _, test := range []struct {
				what string
				do   func() error
				want int
			}{
				{"a blind write", func() error { return add(db, false, 1) }, 1},
				{"read, then write", func() error { return add(db, true, 1) }, 2},
				{"reads known already", func() error { return twice(db) }, 2},
				{"many reads, many writes", func() error { return manyOf(db, 300) }, 2},
				{"a scan after writes", func() error { return scanOwn(db) }, 2},
				{"nothing", func() error { return db.Update(ctx, func(kv.RwTx) error { return nil }) }, 0},
				{"a view of one read", func() error {
					return db.View(ctx, func(tx kv.Tx) error { _, err := tx.Get("b", []byte("1")); return err })
				}, 1},
				{"a view of 300 keys", func() error { return viewMany(db, 300) }, 1},
				{"300 keys one by one after they were fetched", func() error { return fetched(db, 300) }, 1},
				{"the clock, just heard", func() error { _, err := d.Now(ctx); return err }, 0},
			} {
				d.settled()
				before := asked.Load()
				if err := test.do(); err != nil {
					t.Fatalf("%s: %v", test.what, err)
				}
				d.settled()
				if told := int(asked.Load() - before); told != test.want {
					t.Errorf("%v, %s added: %s: %d round trips, want %d", settings, delay, test.what, told, test.want)
				}
			}
		}
	}
}

// waitedFor says whether a caller waits for the answer of a request. Nobody waits for notices to other processes, for a View's end
// and, since the sender of notices may open a connection of its own at any time, for the settings of a connection.
func waitedFor(request []byte) bool {
	switch request[0] {
	case 'X', 'p', 'H':
		return false
	case 'Q':
		if bytes.HasPrefix(request[5:], []byte("set ")) {
			return false
		}
	}
	return !bytes.Contains(request, []byte("chatctx_")) && !bytes.Contains(request, []byte("rollback\x00"))
}
