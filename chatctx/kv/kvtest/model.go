package kvtest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// state is what a database should hold: bucket, "/", key to value.
type state map[string]string

// model drives random transactions against the database and a map, and compares them all the time.
func model(t *testing.T, seed uint64, open func() kv.DB, reopen bool) {
	r := rand.New(rand.NewPCG(seed, 0))
	db := open()
	defer func() { closeDB(t, db) }()
	stored := state{}
	for step := range 250 {
		next := maps.Clone(stored)
		fails := r.IntN(5) == 0
		plan := makePlan(r)
		err := db.Update(ctx, func(tx kv.RwTx) error {
			next = maps.Clone(stored) // it may run again
			if err := plan.apply(tx, next); err != nil {
				return err
			}
			if err := compare(tx, next, plan); err != nil {
				return fmt.Errorf("in the transaction: %w", err)
			}
			if fails {
				return kv.ErrStop
			}
			return nil
		})
		if fails != errors.Is(err, kv.ErrStop) || !fails && err != nil {
			t.Fatalf("seed %d, step %d: %v", seed, step, err)
		}
		if !fails {
			stored = next
		}
		if reopen && r.IntN(20) == 0 {
			closeDB(t, db)
			db = open()
		}
		if err := db.View(ctx, func(tx kv.Tx) error { return compare(tx, stored, plan) }); err != nil {
			t.Fatalf("seed %d, after step %d: %v", seed, step, err)
		}
	}
}

// plan is what one transaction does, and where it looks afterwards.
type plan struct {
	puts, deletes []string
	values        []string
	ranges        []kv.Range
}

var buckets = []string{"a", "b", "sequential"}

func randomKey(r *rand.Rand) string {
	key := fmt.Sprintf("%c%03d", 'k'+rune(r.IntN(3)), r.IntN(200))
	switch r.IntN(8) {
	case 0:
		key += strings.Repeat("\xff", 1+r.IntN(3))
	case 1:
		key += strings.Repeat("\x00", 1+r.IntN(3))
	}
	return key
}

func makePlan(r *rand.Rand) plan {
	var p plan
	place := func() string { return buckets[r.IntN(len(buckets))] + "/" + randomKey(r) }
	for range r.IntN(30) {
		p.puts = append(p.puts, place())
		size := r.IntN(60)
		if r.IntN(10) == 0 {
			size = r.IntN(40_000)
		}
		p.values = append(p.values, strings.Repeat(string(rune('a'+r.IntN(26))), size))
	}
	for range r.IntN(25) {
		p.deletes = append(p.deletes, place())
	}
	for range 3 {
		bound := func() []byte {
			if r.IntN(3) == 0 {
				return nil
			}
			return []byte(randomKey(r))
		}
		p.ranges = append(p.ranges, kv.Range{From: bound(), To: bound(), Reverse: r.IntN(2) == 0})
	}
	p.ranges = append(p.ranges, kv.Prefix([]byte(randomKey(r)[:1+r.IntN(4)])))
	return p
}

func split(place string) (bucket string, key []byte) {
	bucket, k, _ := strings.Cut(place, "/")
	return bucket, []byte(k)
}

func (p plan) apply(tx kv.RwTx, s state) error {
	for i, place := range p.puts {
		bucket, key := split(place)
		if err := tx.Put(bucket, key, []byte(p.values[i])); err != nil {
			return err
		}
		s[place] = p.values[i]
	}
	for _, place := range p.deletes {
		bucket, key := split(place)
		if err := tx.Delete(bucket, key); err != nil {
			return err
		}
		delete(s, place)
	}
	return nil
}

// compare holds the database against the state: all of it, the plan's keys one by one, and the plan's ranges.
func compare(tx kv.Tx, s state, p plan) error {
	keys := make(map[string][]string)
	for place := range s {
		bucket, key := split(place)
		keys[bucket] = append(keys[bucket], string(key))
	}
	for _, bucket := range buckets {
		slices.Sort(keys[bucket])
		for _, r := range append([]kv.Range{{}}, p.ranges...) {
			if err := compareRange(tx, s, bucket, within(keys[bucket], r), r); err != nil {
				return err
			}
		}
	}
	for _, place := range append(slices.Clone(p.puts), p.deletes...) {
		bucket, key := split(place)
		value, err := tx.Get(bucket, key)
		if err != nil {
			return err
		}
		if expect, there := s[place]; there != (value != nil) || expect != string(value) {
			return fmt.Errorf("%q is %.20q, want %.20q (%t)", place, value, expect, there)
		}
	}
	return nil
}

// within is the part of the sorted keys that r should give, in its order.
func within(keys []string, r kv.Range) []string {
	from, _ := slices.BinarySearch(keys, string(r.From))
	to := len(keys)
	if r.To != nil {
		to, _ = slices.BinarySearch(keys, string(r.To))
	}
	if from >= to {
		return nil
	}
	found := slices.Clone(keys[from:to])
	if r.Reverse {
		slices.Reverse(found)
	}
	return found
}

func compareRange(tx kv.Tx, s state, bucket string, expect []string, r kv.Range) error {
	i := 0
	err := tx.Scan(bucket, r, func(key, value []byte) error {
		if i >= len(expect) || string(key) != expect[i] || string(value) != s[bucket+"/"+expect[i]] {
			return fmt.Errorf("scan of %s %v: %q at %d", bucket, r, key, i)
		}
		i++
		return nil
	})
	if err == nil && i != len(expect) {
		err = fmt.Errorf("scan of %s %v: ended after %d of %d", bucket, r, i, len(expect))
	}
	return err
}
