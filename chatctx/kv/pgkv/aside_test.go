//go:build unix

package pgkv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/engine"
)

// openGuarded opens a database whose buckets each have a guard: a record of the bucket "meta" named after it, where there is one.
func openGuarded(t testing.TB, url string) kv.DB {
	db := open(t, url)
	db.(engine.Guarded).Guard(func(bucket string, _ kv.Range) *kv.Key {
		if bucket == "meta" {
			return nil
		}
		return &kv.Key{Bucket: "meta", Key: []byte(bucket)}
	})
	return db
}

// TestScansAside: several writers each read the last record of a range and put the next one. No number is put twice, whether they change the guard with it or not.
func TestScansAside(t *testing.T) {
	db := openGuarded(t, made(t))
	defer closeDB(t, db)
	next := func(tx kv.RwTx, who int) (n uint64, err error) {
		seen := 0
		err = tx.Scan("row", kv.Range{}, func(key, _ []byte) error {
			n = binary.BigEndian.Uint64(key)
			seen++
			return nil
		})
		if err == nil && uint64(seen) != n {
			err = fmt.Errorf("%d records, and the last is %d", seen, n)
		}
		err = errors.Join(err, tx.Put("row", number(n+1), fmt.Append(nil, who)))
		if who%2 == 0 {
			err = errors.Join(err, tx.Put("meta", []byte("row"), number(n+1)))
		}
		return n + 1, err
	}
	var group sync.WaitGroup
	for who := range 6 {
		group.Go(func() {
			for range 15 {
				var mine uint64
				ctx := engine.WithLane(ctx, fmt.Sprint(who%3)) // others of another lane come between
				if err := db.Update(ctx, func(tx kv.RwTx) (err error) { mine, err = next(tx, who); return err }); err != nil {
					t.Error(err)
					return
				}
				err := db.View(ctx, func(tx kv.Tx) error {
					value, err := tx.Get("row", number(mine))
					if !bytes.Equal(value, fmt.Append(nil, who)) {
						t.Errorf("record %d of writer %d is of writer %s", mine, who, value)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	n := 0
	err := db.View(ctx, func(tx kv.Tx) error {
		return tx.Scan("row", kv.Range{}, func(_, _ []byte) error { n++; return nil })
	})
	if err != nil || n != 6*15 {
		t.Errorf("%d records, want %d: %v", n, 6*15, err)
	}
}
