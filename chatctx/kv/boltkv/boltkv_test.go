package boltkv_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/internal/testkit"
)

func open(t testing.TB, path string, o boltkv.Options) kv.DB {
	t.Helper()
	db, err := boltkv.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestConformance(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.DB {
		return open(t, filepath.Join(t.TempDir(), "s.db"), boltkv.Options{Create: true, Sequential: []string{"sequential"}})
	})
}

// TestFleeting: a file that need not outlast the program is a database like others.
func TestFleeting(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.DB {
		return kv.Layered(memkv.New(), open(t, filepath.Join(t.TempDir(), "s.db"), boltkv.Options{Create: true, Fleeting: true}))
	})
}

func TestModel(t *testing.T) {
	for seed := range testkit.Seeds(t, 1) {
		path := filepath.Join(t.TempDir(), "s.db")
		kvtest.Reopen(t, seed, func() kv.DB {
			return open(t, path, boltkv.Options{Create: true, Sequential: []string{"sequential"}, IdleHold: -1})
		})
	}
}

// TestPagesAreFilled: keys that come in order, one in each transaction, leave no room in the pages behind them, and a vacuum changes nothing of that.
func TestPagesAreFilled(t *testing.T) {
	db := open(t, newPath(t), boltkv.Options{Create: true, Sequential: []string{"sequential"}})
	value := bytes.Repeat([]byte{7}, 1100)
	n := 0
	fill := func(upTo int) {
		t.Helper()
		for ; n < upTo; n++ {
			put(t, db, "sequential", fmt.Sprintf("%06d", n), string(value))
		}
		space, err := db.(kv.Keeper).Space(ctx)
		if err != nil {
			t.Fatal(err)
		}
		// 14 records of 1,122 bytes fit into a page of 16,384; 6 more pages are for the tree, the list of free ones and bbolt's own.
		if most := int64(n/14+1+6) * 16384; space.Used > most {
			t.Errorf("%d records take %d bytes, more than %d", n, space.Used, most)
		}
	}
	fill(280)
	if err := db.(kv.Keeper).Rewrite(ctx, nil); err != nil {
		t.Fatal(err)
	}
	fill(560)
	tail := bytes.Repeat([]byte{0xff}, 41)
	err := db.Update(ctx, func(tx kv.RwTx) error { return tx.Put("sequential", tail, value) })
	if err == nil || errors.Is(err, kv.ErrDamaged) {
		t.Errorf("the engine's own key: %v", err)
	}
	err = db.Update(ctx, func(tx kv.RwTx) error {
		return errors.Join(tx.Delete("sequential", tail), tx.Put("other", tail, value))
	})
	if err != nil {
		t.Errorf("that key in another bucket: %v", err)
	}
	seen := 0
	err = db.View(ctx, func(tx kv.Tx) error {
		return tx.Scan("sequential", kv.Range{Reverse: true}, func(key, _ []byte) error {
			if seen++; string(key) != fmt.Sprintf("%06d", n-seen) {
				t.Errorf("key %q is the %dth from the end", key, seen)
			}
			return nil
		})
	})
	if err != nil || seen != n {
		t.Errorf("%d of %d keys, %v", seen, n, err)
	}
	closeDB(t, db)
}
