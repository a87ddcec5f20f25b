package kv_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
)

// TestOverlay: an overlay reads as a transaction in which the same was written, and what it lies over stays.
func TestOverlay(t *testing.T) {
	under, whole := memkv.New(), memkv.New()
	key := func(n int) []byte { return fmt.Appendf(nil, "%02d", n) }
	random := rand.New(rand.NewPCG(1, 2))
	all := func(tx kv.Tx, r kv.Range) (out []string) {
		err := tx.Scan("b", r, func(key, value []byte) error {
			out = append(out, fmt.Sprintf("%s=%s", key, value))
			if len(out) == 7 {
				return kv.ErrStop
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	fill := func(tx kv.RwTx) (err error) {
		for n := range 40 {
			if n%3 == 0 {
				err = errors.Join(err, tx.Put("b", key(n), []byte("old")))
			}
		}
		return err
	}
	if err := errors.Join(under.Update(t.Context(), fill), whole.Update(t.Context(), fill)); err != nil {
		t.Fatal(err)
	}
	err := under.View(t.Context(), func(tx kv.Tx) error {
		return whole.Update(t.Context(), func(want kv.RwTx) error {
			over := kv.Overlay(tx)
			for i := range 200 {
				n, gone := random.IntN(40), random.IntN(3) == 0
				for _, tx := range []kv.RwTx{over, want} {
					err := tx.Delete("b", key(n))
					if !gone {
						err = tx.Put("b", key(n), key(i))
					}
					if err != nil {
						return err
					}
				}
				r := kv.Range{From: key(random.IntN(40)), To: key(random.IntN(60)), Reverse: i%2 == 0}
				if i%5 == 0 {
					r.From, r.To = nil, nil
				}
				if is, want := all(over, r), all(want, r); !slices.Equal(is, want) {
					return fmt.Errorf("step %d, %s to %s, reverse %t: %v, want %v", i, r.From, r.To, r.Reverse, is, want)
				}
				a, err := over.Get("b", key(n))
				b, err2 := want.Get("b", key(n))
				if err := errors.Join(err, err2); err != nil || string(a) != string(b) || (a == nil) != (b == nil) {
					return fmt.Errorf("step %d: %q, want %q, %v", i, a, b, err)
				}
				err = over.GetMany("b", [][]byte{key(n), key(n)}, func(_ int, value []byte) error {
					if string(value) != string(b) {
						return fmt.Errorf("step %d: many: %q, want %q", i, value, b)
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
	err = under.View(t.Context(), func(tx kv.Tx) error {
		if left := all(tx, kv.Range{}); len(left) != 7 || left[0] != "00=old" {
			t.Errorf("below there is now %v", left)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLayered: a layered database passes what every engine must, and the one below stays as it was.
func TestLayered(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.DB {
		base := memkv.New()
		t.Cleanup(func() {
			err := base.View(context.Background(), func(tx kv.Tx) error {
				return tx.Scan("b", kv.Range{}, func(key, _ []byte) error { return fmt.Errorf("below there is now %q", key) })
			})
			if err := errors.Join(err, base.Close()); err != nil {
				t.Error(err)
			}
		})
		return kv.Layered(base, memkv.New())
	})
}
