//go:build unix

package pgkv

import (
	"fmt"

	"github.com/chatctx/chatctx/chatctx/kv"
)

func twice(db kv.DB) error {
	return db.Update(ctx, func(tx kv.RwTx) error {
		for range 3 {
			if _, err := tx.Get("b", []byte("known")); err != nil {
				return err
			}
		}
		if err := tx.Put("b", []byte("own"), []byte("1")); err != nil {
			return err
		}
		value, err := tx.Get("b", []byte("own"))
		if string(value) != "1" {
			return fmt.Errorf("own value: %q", value)
		}
		return err
	})
}

func keysOf(n int) (keys [][]byte) {
	for i := range n {
		keys = append(keys, fmt.Append(nil, i))
	}
	return keys
}

func manyOf(db kv.DB, n int) error {
	return db.Update(ctx, func(tx kv.RwTx) error {
		err := tx.GetMany("b", keysOf(n), func(int, []byte) error { return nil })
		for _, key := range keysOf(n) {
			if err == nil {
				err = tx.Put("b", key, key)
			}
		}
		return err
	})
}

func viewMany(db kv.DB, n int) error {
	return db.View(ctx, func(tx kv.Tx) error {
		return tx.GetMany("b", keysOf(n), func(i int, value []byte) error {
			if string(value) != fmt.Sprint(i) {
				return fmt.Errorf("value %d: %q", i, value)
			}
			return nil
		})
	})
}

// scanOwn writes and scans, which sends the writes along.
func scanOwn(db kv.DB) error {
	return db.Update(ctx, func(tx kv.RwTx) error {
		if err := tx.Put("scan", []byte("k"), nil); err != nil {
			return err
		}
		found := 0
		err := tx.Scan("scan", kv.Range{}, func(_, _ []byte) error { found++; return nil })
		if err == nil && found != 1 {
			err = fmt.Errorf("%d records", found)
		}
		return err
	})
}

// settled waits until nothing is under way in the background: the ends of Views, notices to others.
func (d *database) settled() {
	d.door.Wait()
	d.news.sends.Wait()
}

// fetched reads by key what it fetched before.
func fetched(db kv.DB, n int) error {
	return db.View(ctx, func(tx kv.Tx) error {
		keys := []kv.Key{{Bucket: "other", Key: []byte("none")}, {Bucket: "b", Key: nil}}
		for _, key := range keysOf(n) {
			keys = append(keys, kv.Key{Bucket: "b", Key: key})
		}
		if err := kv.Fetch(tx, keys...); err != nil {
			return err
		}
		if value, err := tx.Get("other", []byte("none")); value != nil || err != nil {
			return fmt.Errorf("none is %q, %v", value, err)
		}
		for _, key := range keysOf(n) {
			if value, err := tx.Get("b", key); string(value) != string(key) || err != nil {
				return fmt.Errorf("%s is %q, %v", key, value, err)
			}
		}
		return nil
	})
}
