package kv

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
)

// Overlay returns a transaction that reads tx and keeps its own writes in memory: it shows the effect of a change. It ends with tx.
func Overlay(tx Tx) RwTx { return &overlay{over{tx, written{}}} }

// Layered returns a database that shows base with the changes that are made to it alone: they go to top, an empty database at the beginning. What was
// changed here hides what others change in base. Watch tells of changes made here. Close closes top, and not base.
func Layered(base, top DB) DB { return layered{top, base} }

type layered struct {
	DB   // top
	base DB
}

func (l layered) View(ctx context.Context, fn func(Tx) error) error {
	return l.DB.View(ctx, func(own Tx) error {
		return l.base.View(ctx, func(tx Tx) error { return fn(over{tx, own}) })
	})
}

func (l layered) Update(ctx context.Context, fn func(RwTx) error) error {
	return l.DB.Update(ctx, func(own RwTx) error {
		return l.base.View(ctx, func(tx Tx) error { return fn(&overlay{over{tx, own}}) })
	})
}

// Space returns the size of base, nothing if that has none: what was changed here takes no room in it.
func (l layered) Space(ctx context.Context) (Space, error) {
	if base, is := l.base.(Sized); is {
		return base.Space(ctx)
	}
	return Space{}, nil
}

// records are what an overlay needs of a transaction.
type records interface {
	Get(bucket string, key []byte) ([]byte, error)
	Scan(bucket string, r Range, fn func(key, value []byte) error) error
}

// over shows records of its own over those of a transaction. The value of an own record begins with a byte, or is empty if the record was removed.
type over struct {
	Tx
	own records
}

func (o over) Fetch(keys []Key) error { return Fetch(o.Tx, keys...) }

func (o over) Get(bucket string, key []byte) ([]byte, error) {
	own, err := o.own.Get(bucket, key)
	if own != nil || err != nil {
		return present(own), err
	}
	return o.Tx.Get(bucket, key)
}

func (o over) GetMany(bucket string, keys [][]byte, fn func(i int, value []byte) error) error {
	return o.Tx.GetMany(bucket, keys, func(i int, value []byte) error {
		own, err := o.own.Get(bucket, keys[i])
		if err != nil {
			return err
		}
		if own != nil {
			value = present(own)
		}
		return fn(i, value)
	})
}

func present(own []byte) []byte {
	if len(own) == 0 {
		return nil
	}
	return own[1:]
}

func (o over) Scan(bucket string, r Range, fn func(key, value []byte) error) error {
	var failed error
	next, stop := iter.Pull2(func(yield func(key, value []byte) bool) {
		failed = o.own.Scan(bucket, r, func(key, value []byte) error {
			if !yield(key, value) {
				return ErrStop
			}
			return nil
		})
	})
	defer stop()
	key, own, more := next()
	stopped := false
	tell := func(key, value []byte) (err error) {
		if value != nil {
			err = fn(key, value)
		}
		stopped = err != nil
		return err
	}
	// before passes on the own records that come before a key of tx, or all of them for nil.
	before := func(of []byte) error {
		for more && (of == nil || r.Reverse && bytes.Compare(key, of) > 0 || !r.Reverse && bytes.Compare(key, of) < 0) {
			if err := tell(key, present(own)); err != nil {
				return err
			}
			key, own, more = next()
		}
		return failed
	}
	err := o.Tx.Scan(bucket, r, func(k, value []byte) error {
		if err := before(k); err != nil {
			return err
		}
		if !more || !bytes.Equal(k, key) {
			return tell(k, value)
		}
		err := tell(key, present(own))
		key, own, more = next()
		return err
	})
	if err != nil || stopped {
		return err
	}
	if err = before(nil); errors.Is(err, ErrStop) {
		err = nil
	}
	return err
}

// overlay is an over whose own records are written too.
type overlay struct{ over }

func (o *overlay) Put(bucket string, key, value []byte) error {
	if err := Fits(bucket, key, value); err != nil {
		return err
	}
	return o.set(bucket, key, append([]byte{1}, value...))
}

func (o *overlay) Delete(bucket string, key []byte) error {
	if Fits(bucket, key, nil) != nil {
		return nil // no engine has it
	}
	return o.set(bucket, key, []byte{})
}

func (o *overlay) set(bucket string, key, own []byte) error {
	return o.own.(interface {
		Put(bucket string, key, value []byte) error
	}).Put(bucket, key, own)
}

// written are records in memory, by bucket and key.
type written map[string]map[string][]byte

func (w written) Get(bucket string, key []byte) ([]byte, error) { return w[bucket][string(key)], nil }

func (w written) Scan(bucket string, r Range, fn func(key, value []byte) error) error {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(w[bucket])), func(key string) bool {
		return key < string(r.From) || r.To != nil && key >= string(r.To)
	})
	if r.Reverse {
		slices.Reverse(keys)
	}
	for _, key := range keys {
		if err := fn([]byte(key), w[bucket][key]); err != nil {
			return err
		}
	}
	return nil
}

func (w written) Put(bucket string, key, value []byte) error {
	if w[bucket] == nil {
		w[bucket] = map[string][]byte{}
	}
	w[bucket][string(key)] = value
	return nil
}
