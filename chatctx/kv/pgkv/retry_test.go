//go:build unix

package pgkv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
)

// conversation appends as a store does: it reads records by key, writes new ones beside those of others, and moves its place in
// a bucket that goes by time.
type conversation struct {
	id     [16]byte
	n      uint64
	recent []byte
}

var ticks atomic.Uint64

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func (c *conversation) add(tx kv.RwTx) error {
	at := func(parts ...[]byte) []byte {
		key := c.id[:]
		for _, p := range parts {
			key = append(key[:len(key):len(key)], p...)
		}
		return key
	}
	for _, read := range []struct {
		bucket string
		key    []byte
	}{{"context", at()}, {"branch", at([]byte("main"))}} {
		if _, err := tx.Get(read.bucket, read.key); err != nil {
			return err
		}
	}
	message := uuid.New()
	recent := append(number(ticks.Add(1)), c.id[:]...)
	err := errors.Join(
		tx.Put("context", at(), make([]byte, 200)), tx.Put("branch", at([]byte("main")), make([]byte, 150)),
		tx.Put("pool", at(message[:]), make([]byte, 1000)), tx.Put("entry", at(number(1), number(c.n)), message[:]),
		tx.Put("operation", at(number(c.n)), make([]byte, 200)),
		tx.Put("waiting", append(number(ticks.Add(1)), at(message[:])...), make([]byte, 8)),
		tx.Put("recent", recent, nil))
	if c.recent != nil {
		err = errors.Join(err, tx.Delete("recent", c.recent))
	}
	c.recent = recent
	return err
}

func begun(n int) (all []*conversation) {
	for range n {
		all = append(all, &conversation{id: uuid.Must(uuid.NewV7()), n: 1})
	}
	return all
}

// appendsOf has each conversation append n times, all at once, and gives how often an append ran again.
func appendsOf(t testing.TB, db kv.DB, conversations []*conversation, n int) float64 {
	var runs atomic.Int64
	var group sync.WaitGroup
	for _, c := range conversations {
		group.Go(func() {
			ctx := engine.WithLane(ctx, string(c.id[:]))
			for range n {
				before := c.recent
				err := db.Update(ctx, func(tx kv.RwTx) error { runs.Add(1); c.recent = before; return c.add(tx) })
				if err != nil {
					t.Error(err)
					return
				}
				c.n++
			}
		})
	}
	group.Wait()
	all := len(conversations) * n
	return float64(int(runs.Load())-all) / float64(all)
}

// TestSeldomAgain: writers on conversations of their own seldom come in each other's way, from their first message on.
func TestSeldomAgain(t *testing.T) {
	db := open(t, made(t, "pool_max_conns=32"))
	defer closeDB(t, db)
	again := appendsOf(t, db, begun(32), 100)
	t.Logf("%.3f runs again for each append", again)
	if again > 0.1 {
		t.Errorf("%.3f runs again for each append, want at most 0.1", again)
	}
	if n := logged(t, db); n != 32*100 {
		t.Errorf("%d entries, want %d", n, 32*100)
	}
}

func logged(t testing.TB, db kv.DB) (n int) {
	err := db.View(ctx, func(tx kv.Tx) error {
		return tx.Scan("entry", kv.Range{}, func(_, _ []byte) error { n++; return nil })
	})
	if err != nil {
		t.Error(err)
	}
	return n
}

func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 32} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			db := open(b, made(b, "pool_max_conns=32"))
			defer closeDB(b, db)
			again := appendsOf(b, db, begun(writers), max(1, b.N/writers))
			b.ReportMetric(again, "again/op")
		})
	}
}

// TestMemoryForLocks: a server whose memory for locks is used up by others is asked again, and in the end the error says what to raise.
func TestMemoryForLocks(t *testing.T) {
	full := &pgconn.PgError{Severity: "ERROR", Code: "53200", Message: "out of shared memory"}
	if !conflict(fmt.Errorf("append: %w", full)) {
		t.Error("it is not asked again")
	}
	if conflict(&pgconn.PgError{Severity: "ERROR", Code: "53100", Message: "no space left"}) {
		t.Error("a full disk is asked again")
	}
	if err := new(database).explain(full); !errors.Is(err, full) || !strings.Contains(err.Error(), "max_pred_locks_per_transaction") {
		t.Error(err)
	}
}
