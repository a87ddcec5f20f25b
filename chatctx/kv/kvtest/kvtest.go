// Package kvtest is what each kv engine has to pass.
package kvtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/engine"
)

// Run tests an engine. open makes a new and empty database each time; Run closes it.
func Run(t *testing.T, open func(t *testing.T) kv.DB) {
	tests := []struct {
		name string
		run  func(t *testing.T, db kv.DB)
	}{
		{"get", testGet},
		{"get many", testGetMany},
		{"scan", testScan},
		{"scan while deleting", testScanDeleted},
		{"own writes", testOwnWrites},
		{"failing update leaves nothing", testRollback},
		{"panicking update leaves nothing", testPanic},
		{"ended transaction", testEnded},
		{"limits", testLimits},
		{"a view sees one state", testSnapshot},
		{"views in parallel", testParallelViews},
		{"counter", testCounter},
		{"failing members", testFailingMembers},
		{"order", testOrder},
		{"watch", testWatch},
		{"context", testContext},
		{"close", testClose},
		{"model", func(t *testing.T, db kv.DB) { model(t, 1, func() kv.DB { return db }, false) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			db := open(t)
			defer closeDB(t, db)
			test.run(t, db)
		})
	}
}

// Reopen tests an engine whose database outlives Close: open opens the same one each time, empty at first. seed chooses the
// random operations.
func Reopen(t *testing.T, seed uint64, open func() kv.DB) { model(t, seed, open, true) }

func closeDB(t *testing.T, db kv.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

var ctx = context.Background()

func update(t *testing.T, db kv.DB, fn func(tx kv.RwTx) error) {
	t.Helper()
	if err := db.Update(ctx, fn); err != nil {
		t.Fatalf("Update: %v", err)
	}
}

func view(t *testing.T, db kv.DB, fn func(tx kv.Tx) error) {
	t.Helper()
	if err := db.View(ctx, fn); err != nil {
		t.Fatalf("View: %v", err)
	}
}

func put(t *testing.T, db kv.DB, bucket string, pairs ...string) {
	t.Helper()
	update(t, db, func(tx kv.RwTx) error {
		for i := 0; i < len(pairs); i += 2 {
			if err := tx.Put(bucket, []byte(pairs[i]), []byte(pairs[i+1])); err != nil {
				return err
			}
		}
		return nil
	})
}

// get returns the value in a View of its own, "<none>" if there is none.
func get(t *testing.T, db kv.DB, bucket, key string) string {
	t.Helper()
	var found string
	view(t, db, func(tx kv.Tx) (err error) {
		found, err = getIn(tx, bucket, key)
		return err
	})
	return found
}

func getIn(tx kv.Tx, bucket, key string) (string, error) {
	value, err := tx.Get(bucket, []byte(key))
	if value == nil {
		return "<none>", err
	}
	return string(value), err
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func testGet(t *testing.T, db kv.DB) {
	want(t, "bucket that is not there", get(t, db, "b", "k"), "<none>")
	put(t, db, "b", "k", "v", "empty", "", "\x00\xff", "binary\x00")
	want(t, "value", get(t, db, "b", "k"), "v")
	want(t, "empty value", get(t, db, "b", "empty"), "")
	want(t, "binary", get(t, db, "b", "\x00\xff"), "binary\x00")
	want(t, "other key", get(t, db, "b", "kk"), "<none>")
	want(t, "empty key", get(t, db, "b", ""), "<none>")
	want(t, "other bucket", get(t, db, "c", "k"), "<none>")
	put(t, db, "b", "k", "w")
	want(t, "overwritten", get(t, db, "b", "k"), "w")
	update(t, db, func(tx kv.RwTx) error {
		return errors.Join(tx.Put("b", []byte("nil"), nil), tx.Delete("b", []byte("k")),
			tx.Delete("b", []byte("not there")), tx.Delete("no bucket", []byte("k")), tx.Delete("b", nil))
	})
	want(t, "deleted", get(t, db, "b", "k"), "<none>")
	want(t, "nil is stored as empty", get(t, db, "b", "nil"), "")
}

func testGetMany(t *testing.T, db kv.DB) {
	put(t, db, "b", "1", "one", "2", "", "3", "three")
	keys := [][]byte{[]byte("3"), []byte("x"), []byte("2"), []byte("1"), []byte("3")}
	collect := func(stop int, with error) (found []string, err error) {
		err = db.View(ctx, func(tx kv.Tx) error {
			return tx.GetMany("b", keys, func(i int, value []byte) error {
				if i == stop {
					return with
				}
				found = append(found, fmt.Sprintf("%d=%s,%t", i, value, value == nil))
				return nil
			})
		})
		return found, err
	}
	found, err := collect(-1, nil)
	want(t, "all", found, "[0=three,false 1=,true 2=,false 3=one,false 4=three,false]")
	want(t, "error", err, nil)
	found, err = collect(1, kv.ErrStop)
	want(t, "stopped", found, "[0=three,false]")
	want(t, "error when stopped", err, nil)
	failed := errors.New("failed")
	if _, err = collect(2, failed); !errors.Is(err, failed) {
		t.Errorf("error of the callback: %v", err)
	}
	view(t, db, func(tx kv.Tx) error {
		return tx.GetMany("none", keys[:1], func(i int, value []byte) error {
			if value != nil {
				t.Error("a bucket that is not there has a value")
			}
			return nil
		})
	})
}

func scanKeys(tx kv.Tx, bucket string, r kv.Range) (keys []string, err error) {
	err = tx.Scan(bucket, r, func(key, value []byte) error {
		keys = append(keys, string(key))
		return nil
	})
	return keys, err
}

func testScan(t *testing.T, db kv.DB) {
	put(t, db, "b", "a", "1", "ab", "", "b", "2", "b\xff", "3", "b\xff\xff", "4", "c", "5", "\xff", "6", "\xff\xff", "7")
	put(t, db, "a", "z", "not this")
	put(t, db, "c", "a", "not this")
	bound := func(s string) []byte {
		if s == "-" {
			return nil
		}
		return []byte(s)
	}
	for _, test := range []struct {
		name  string
		r     kv.Range
		found []string
	}{
		{"all", kv.Range{}, []string{"a", "ab", "b", "b\xff", "b\xff\xff", "c", "\xff", "\xff\xff"}},
		{"from", kv.Range{From: bound("b")}, []string{"b", "b\xff", "b\xff\xff", "c", "\xff", "\xff\xff"}},
		{"from between", kv.Range{From: bound("aa"), To: bound("bz")}, []string{"ab", "b"}},
		{"to is not included", kv.Range{To: bound("b")}, []string{"a", "ab"}},
		{"to is empty", kv.Range{To: []byte{}}, nil},
		{"from after to", kv.Range{From: bound("c"), To: bound("a")}, nil},
		{"from equals to", kv.Range{From: bound("b"), To: bound("b")}, nil},
		{"after all", kv.Range{From: bound("\xff\xff\xff")}, nil},
		{"before all", kv.Range{To: bound("a")}, nil},
		{"prefix", kv.Prefix(bound("b")), []string{"b", "b\xff", "b\xff\xff"}},
		{"prefix ending in ff", kv.Prefix(bound("b\xff")), []string{"b\xff", "b\xff\xff"}},
		{"prefix of ff", kv.Prefix(bound("\xff")), []string{"\xff", "\xff\xff"}},
		{"empty prefix", kv.Prefix(nil), []string{"a", "ab", "b", "b\xff", "b\xff\xff", "c", "\xff", "\xff\xff"}},
		{"prefix of nothing", kv.Prefix(bound("zz")), nil},
	} {
		view(t, db, func(tx kv.Tx) error {
			keys, err := scanKeys(tx, "b", test.r)
			want(t, test.name, fmt.Sprintf("%q", keys), fmt.Sprintf("%q", test.found))
			test.r.Reverse = true
			back, err2 := scanKeys(tx, "b", test.r)
			slices.Reverse(back)
			want(t, test.name+" reverse", fmt.Sprintf("%q", back), fmt.Sprintf("%q", test.found))
			return errors.Join(err, err2)
		})
	}
	testScanEnds(t, db)
}

func testScanEnds(t *testing.T, db kv.DB) {
	view(t, db, func(tx kv.Tx) error {
		keys, err := scanKeys(tx, "none", kv.Range{})
		want(t, "bucket that is not there", keys, "[]")
		return err
	})
	count := 0
	scan := func(with error) error {
		return db.View(ctx, func(tx kv.Tx) error {
			return tx.Scan("b", kv.Range{}, func(key, value []byte) error {
				if count++; count == 3 {
					return with
				}
				if value == nil {
					t.Errorf("key %q: the value is nil", key)
				}
				return nil
			})
		})
	}
	want(t, "stopped", scan(fmt.Errorf("wrapped: %w", kv.ErrStop)), nil)
	want(t, "calls until it was stopped", count, 3)
	count = 0
	failed := errors.New("failed")
	if err := scan(failed); !errors.Is(err, failed) {
		t.Errorf("error of the callback: %v", err)
	}
}

// testScanDeleted scans over what the same transaction emptied.
func testScanDeleted(t *testing.T, db kv.DB) {
	const n = 4000
	key := func(i int) []byte { return fmt.Appendf(nil, "%06d", i) }
	update(t, db, func(tx kv.RwTx) error {
		for i := range n {
			if err := tx.Put("b", key(i), bytes.Repeat([]byte("v"), 100)); err != nil {
				return err
			}
		}
		return nil
	})
	expect := []string{string(key(0)), string(key(n / 2)), string(key(n - 1))}
	check := func(tx kv.Tx, when string) error {
		all, err := scanKeys(tx, "b", kv.Range{})
		want(t, when, all, expect)
		back, err2 := scanKeys(tx, "b", kv.Range{Reverse: true})
		slices.Reverse(back)
		want(t, when+", reverse", back, expect)
		part, err3 := scanKeys(tx, "b", kv.Range{To: key(n - 1), Reverse: true})
		slices.Reverse(part)
		want(t, when+", part, reverse", part, expect[:2])
		return errors.Join(err, err2, err3)
	}
	update(t, db, func(tx kv.RwTx) error {
		for i := range n {
			if !slices.Contains(expect, string(key(i))) {
				if err := tx.Delete("b", key(i)); err != nil {
					return err
				}
			}
		}
		return check(tx, "in the transaction")
	})
	view(t, db, func(tx kv.Tx) error { return check(tx, "after it") })
}

func testOwnWrites(t *testing.T, db kv.DB) {
	put(t, db, "b", "old", "1", "gone", "2")
	update(t, db, func(tx kv.RwTx) error {
		value := []byte("3")
		err := errors.Join(tx.Put("b", []byte("new"), value), tx.Put("fresh", []byte("k"), nil),
			tx.Delete("b", []byte("gone")), tx.Put("b", []byte("old"), []byte("4")))
		for key, value := range map[string]string{"new": "3", "gone": "<none>", "old": "4"} {
			found, err := getIn(tx, "b", key)
			want(t, "own "+key, found, value)
			want(t, "error", err, nil)
		}
		found, err2 := getIn(tx, "fresh", "k")
		want(t, "empty value in a new bucket", found, "")
		keys, err3 := scanKeys(tx, "b", kv.Range{})
		want(t, "scan", keys, "[new old]")
		return errors.Join(err, err2, err3)
	})
}

func testRollback(t *testing.T, db kv.DB) {
	put(t, db, "b", "k", "v")
	failed := errors.New("failed")
	err := db.Update(ctx, func(tx kv.RwTx) error {
		if err := errors.Join(tx.Put("b", []byte("k"), []byte("w")), tx.Put("new", []byte("k"), nil)); err != nil {
			return err
		}
		return failed
	})
	if err != failed {
		t.Errorf("the error did not come back as it was: %v", err)
	}
	want(t, "value", get(t, db, "b", "k"), "v")
	want(t, "value in a new bucket", get(t, db, "new", "k"), "<none>")
}

func testPanic(t *testing.T, db kv.DB) {
	put(t, db, "b", "k", "v")
	panics := func(what string, do func()) {
		defer func() { want(t, what+": recovered", recover(), "mine") }()
		do()
	}
	panics("Update", func() {
		_ = db.Update(ctx, func(tx kv.RwTx) error {
			if err := tx.Put("b", []byte("k"), []byte("w")); err != nil {
				t.Error(err)
			}
			panic("mine")
		})
	})
	panics("View", func() { _ = db.View(ctx, func(tx kv.Tx) error { panic("mine") }) })
	panics("Scan", func() {
		_ = db.View(ctx, func(tx kv.Tx) error {
			return tx.Scan("b", kv.Range{}, func(key, value []byte) error { panic("mine") })
		})
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = db.Update(ctx, func(tx kv.RwTx) error {
			_ = tx.Put("b", []byte("k"), []byte("w"))
			runtime.Goexit() // as t.FailNow does
			return nil
		})
	}()
	<-ended
	want(t, "value", get(t, db, "b", "k"), "v")
	put(t, db, "b", "k", "x")
	want(t, "value after the next update", get(t, db, "b", "k"), "x")
}

func testEnded(t *testing.T, db kv.DB) {
	put(t, db, "b", "k", "v")
	var read kv.Tx
	var write kv.RwTx
	view(t, db, func(tx kv.Tx) error { read = tx; return nil })
	update(t, db, func(tx kv.RwTx) error { write = tx; return nil })
	for i, tx := range []kv.Tx{read, write} {
		_, err := tx.Get("b", []byte("k"))
		err2 := tx.Scan("b", kv.Range{}, func(key, value []byte) error { return nil })
		err3 := tx.GetMany("b", [][]byte{[]byte("k")}, func(int, []byte) error { return nil })
		for _, err := range []error{err, err2, err3} {
			if !errors.Is(err, kv.ErrEnded) {
				t.Errorf("transaction %d: reading after its end: %v", i, err)
			}
		}
	}
	for _, err := range []error{write.Put("b", []byte("k"), nil), write.Delete("b", []byte("k"))} {
		if !errors.Is(err, kv.ErrEnded) {
			t.Errorf("writing after the end: %v", err)
		}
	}
}

func testLimits(t *testing.T, db kv.DB) {
	try := func(bucket string, key, value []byte) error {
		return db.Update(ctx, func(tx kv.RwTx) error { return tx.Put(bucket, key, value) })
	}
	if err := try("b", make([]byte, 1<<20), nil); !errors.Is(err, kv.ErrTooLarge) {
		t.Errorf("a key of 1 MB: %v", err)
	}
	if err := try("b", []byte("k"), make([]byte, kv.MaxValue+1)); !errors.Is(err, kv.ErrTooLarge) {
		t.Errorf("a value that is too large: %v", err)
	}
	if err := try("b", nil, nil); err == nil {
		t.Error("an empty key was stored")
	}
	if err := try("", []byte("k"), nil); err == nil {
		t.Error("a bucket without a name was made")
	}
	key, value := bytes.Repeat([]byte("k"), 1024), bytes.Repeat([]byte("v"), 1<<20)
	want(t, "1 KB key, 1 MB value", try("b", key, value), nil)
	view(t, db, func(tx kv.Tx) error {
		found, err := tx.Get("b", key)
		want(t, "read again", bytes.Equal(found, value), true)
		return err
	})
}

func testSnapshot(t *testing.T, db kv.DB) {
	for i := range 100 {
		put(t, db, "b", "x", fmt.Sprint(i), "y", fmt.Sprint(i))
	}
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		for i := 100; ; i++ {
			select {
			case <-stop:
				return
			default:
				put(t, db, "b", "x", fmt.Sprint(i), "y", fmt.Sprint(i))
			}
		}
	})
	for range 300 {
		view(t, db, func(tx kv.Tx) error {
			x, err := getIn(tx, "b", "x")
			for range 10 {
				y, err := getIn(tx, "b", "y")
				want(t, "y", y, x)
				want(t, "error", err, nil)
			}
			return err
		})
	}
	close(stop)
	group.Wait()
}

func testParallelViews(t *testing.T, db kv.DB) {
	put(t, db, "b", "k", "v")
	const n = 8
	var inside, done sync.WaitGroup
	inside.Add(n)
	for range n {
		done.Go(func() {
			view(t, db, func(tx kv.Tx) error {
				inside.Done()
				inside.Wait() // all are inside at the same time
				return nil
			})
		})
	}
	done.Wait()
}

func increment(tx kv.RwTx, key string) error {
	value, err := tx.Get("counter", []byte(key))
	if err != nil {
		return err
	}
	var n uint64
	if value != nil {
		n = binary.BigEndian.Uint64(value)
	}
	return tx.Put("counter", []byte(key), binary.BigEndian.AppendUint64(nil, n+1))
}

func counter(t *testing.T, db kv.DB, key string) (n uint64) {
	t.Helper()
	view(t, db, func(tx kv.Tx) error {
		value, err := tx.Get("counter", []byte(key))
		if value != nil {
			n = binary.BigEndian.Uint64(value)
		}
		return err
	})
	return n
}

func testCounter(t *testing.T, db kv.DB) {
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for range 25 {
				if err := db.Update(ctx, func(tx kv.RwTx) error { return increment(tx, "n") }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	want(t, "counter", counter(t, db, "n"), 32*25)
}

// testFailingMembers has many Updates at once, of which some fail or panic after they wrote: nothing of these is stored, all
// of the others is, and everybody gets their own result.
func testFailingMembers(t *testing.T, db kv.DB) {
	var group sync.WaitGroup
	for g := range 32 {
		group.Go(func() {
			for i := range 20 {
				key := fmt.Sprintf("%d/%d", g, i)
				failed := errors.New(key)
				err := guarded(func() error {
					return db.Update(ctx, func(tx kv.RwTx) error {
						err := errors.Join(increment(tx, "good"), tx.Put("b", []byte(key), nil))
						switch {
						case err != nil:
							return err
						case i%5 == 1:
							return failed
						case i%5 == 2:
							panic(failed)
						}
						return nil
					})
				})
				if fails := i%5 == 1 || i%5 == 2; fails && err != failed || !fails && err != nil {
					t.Errorf("%s: %v", key, err)
				}
			}
		})
	}
	group.Wait()
	want(t, "counter", counter(t, db, "good"), 32*12)
	view(t, db, func(tx kv.Tx) error {
		keys, err := scanKeys(tx, "b", kv.Range{})
		want(t, "keys", len(keys), 32*12)
		return err
	})
}

func guarded(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = r.(error)
		}
	}()
	return do()
}

// testOrder: what a goroutine writes after another has been told that its Update is stored comes after it.
func testOrder(t *testing.T, db kv.DB) {
	appendTo := func(tx kv.RwTx) error {
		next := uint64(0)
		err := tx.Scan("log", kv.Range{Reverse: true}, func(key, value []byte) error {
			next = binary.BigEndian.Uint64(key) + 1
			return kv.ErrStop
		})
		if err != nil {
			return err
		}
		return tx.Put("log", binary.BigEndian.AppendUint64(nil, next), nil)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if err := db.Update(ctx, appendTo); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	view(t, db, func(tx kv.Tx) error {
		next := uint64(0)
		err := tx.Scan("log", kv.Range{}, func(key, value []byte) error {
			want(t, "key", binary.BigEndian.Uint64(key), next)
			next++
			return nil
		})
		want(t, "entries", next, 400)
		return err
	})
}

// told waits for a signal, and fails when none comes in a time that is far beyond what is promised.
func told(t *testing.T, c <-chan struct{}) (open bool) {
	t.Helper()
	select {
	case _, open = <-c:
	case <-time.After(30 * time.Second):
		t.Fatal("no signal came")
	}
	return open
}

func testWatch(t *testing.T, db kv.DB) {
	watched, cancel := context.WithCancel(ctx)
	mine, err := db.Watch(watched, "b", []byte("p/"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := db.Watch(ctx, "b", nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, db, "b", "p/1", "")
	want(t, "signal after a put", told(t, mine), true)
	want(t, "signal of the whole bucket", told(t, all), true)
	update(t, db, func(tx kv.RwTx) error { return tx.Delete("b", []byte("p/1")) })
	want(t, "signal after a delete", told(t, mine), true)
	for range 10 { // nobody takes the signals: nobody is held up
		put(t, db, "b", "p/2", "")
	}
	want(t, "signal after many", told(t, mine), true)
	cancel()
	for told(t, mine) {
	}
	put(t, db, "b", "p/3", "")
	want(t, "signal of the other watcher", told(t, all), true)
	if _, err := db.Watch(watched, "b", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Watch with a context that has ended: %v", err)
	}
	closeDB(t, db)
	for told(t, all) {
	}
}

func testContext(t *testing.T, db kv.DB) {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	ran := false
	err := db.View(ended, func(tx kv.Tx) error { ran = true; return nil })
	err2 := db.Update(ended, func(tx kv.RwTx) error { ran = true; return nil })
	if !errors.Is(err, context.Canceled) || !errors.Is(err2, context.Canceled) || ran {
		t.Errorf("a context that has ended: %v, %v, ran %t", err, err2, ran)
	}
	// An Update that waits for another one can be given up.
	inLane := engine.WithLane(ctx, "lane")
	inside, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- db.Update(inLane, func(tx kv.RwTx) error {
			close(inside)
			<-release
			return tx.Put("b", []byte("k"), []byte("first"))
		})
	}()
	<-inside
	waits, cancel := context.WithCancel(inLane)
	given := make(chan error, 1)
	go func() {
		given <- db.Update(waits, func(tx kv.RwTx) error { return tx.Put("b", []byte("k"), []byte("second")) })
	}()
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Errorf("an Update that was given up: %v", err)
	}
	close(release)
	want(t, "the Update before it", <-done, nil)
	want(t, "value", get(t, db, "b", "k"), "first")
}

func testClose(t *testing.T, db kv.DB) {
	put(t, db, "b", "k", "v")
	inside, closed := make(chan struct{}), make(chan error, 1)
	viewed := make(chan error, 1)
	go func() {
		viewed <- db.View(ctx, func(tx kv.Tx) error {
			close(inside)
			for db.View(ctx, func(tx kv.Tx) error { return nil }) == nil { // until Close has begun
			}
			value, err := getIn(tx, "b", "k")
			want(t, "value while it is being closed", value, "v")
			return err
		})
	}()
	<-inside
	go func() { closed <- db.Close() }()
	want(t, "the View under way", <-viewed, nil)
	want(t, "Close", <-closed, nil)
	want(t, "second Close", db.Close(), nil)
	err := db.View(ctx, func(tx kv.Tx) error { return nil })
	err2 := db.Update(ctx, func(tx kv.RwTx) error { return nil })
	_, err3 := db.Watch(ctx, "b", nil)
	for _, err := range []error{err, err2, err3} {
		if !errors.Is(err, kv.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}
