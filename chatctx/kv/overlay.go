package kv

import (
	"bytes"
	"maps"
	"slices"
)

// Overlay returns a transaction that reads tx and keeps its own writes: it shows the effect of a change. It ends with tx.
func Overlay(tx Tx) RwTx { return &overlay{tx, map[string]map[string][]byte{}} }

type overlay struct {
	Tx
	own map[string]map[string][]byte // by bucket and key; nil if the key was removed
}

func (o *overlay) Fetch(keys []Key) error { return Fetch(o.Tx, keys...) }

func (o *overlay) Get(bucket string, key []byte) ([]byte, error) {
	if value, is := o.own[bucket][string(key)]; is {
		return value, nil
	}
	return o.Tx.Get(bucket, key)
}

func (o *overlay) GetMany(bucket string, keys [][]byte, fn func(i int, value []byte) error) error {
	return o.Tx.GetMany(bucket, keys, func(i int, value []byte) error {
		if own, is := o.own[bucket][string(keys[i])]; is {
			value = own
		}
		return fn(i, value)
	})
}

func (o *overlay) Scan(bucket string, r Range, fn func(key, value []byte) error) error {
	own := slices.DeleteFunc(slices.Sorted(maps.Keys(o.own[bucket])), func(key string) bool {
		return key < string(r.From) || r.To != nil && key >= string(r.To)
	})
	if r.Reverse {
		slices.Reverse(own)
	}
	stopped := false
	tell := func(key, value []byte) error {
		err := fn(key, value)
		stopped = stopped || err != nil
		return err
	}
	// before passes on the own keys that come before a key of tx, or all of them for nil.
	before := func(key []byte) error {
		for len(own) > 0 && (key == nil || r.Reverse && own[0] > string(key) || !r.Reverse && own[0] < string(key)) {
			next := own[0]
			own = own[1:]
			if value := o.own[bucket][next]; value != nil {
				if err := tell([]byte(next), value); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := o.Tx.Scan(bucket, r, func(key, value []byte) error {
		if err := before(key); err != nil {
			return err
		}
		if mine, is := o.own[bucket][string(key)]; is {
			own = own[1:]
			if mine == nil {
				return nil
			}
			value = mine
		}
		return tell(key, value)
	})
	if err != nil || stopped {
		return err
	}
	if err = before(nil); err == ErrStop {
		err = nil
	}
	return err
}

func (o *overlay) Put(bucket string, key, value []byte) error {
	if err := Fits(bucket, key, value); err != nil {
		return err
	}
	return o.set(bucket, key, append([]byte{}, value...))
}

func (o *overlay) Delete(bucket string, key []byte) error { return o.set(bucket, key, nil) }

func (o *overlay) set(bucket string, key, value []byte) error {
	if o.own[bucket] == nil {
		o.own[bucket] = map[string][]byte{}
	}
	o.own[bucket][string(bytes.Clone(key))] = value
	return nil
}
