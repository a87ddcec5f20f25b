package boltkv_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
)

// An append of the layers above puts some six records into as many buckets, one of 1 KB.
var payload = bytes.Repeat([]byte("0123456789abcdef"), 64)

func appendRecord(put func(bucket string, key, value []byte) error, n uint64) error {
	key := binary.BigEndian.AppendUint64([]byte("a context's id.."), n)
	return errors.Join(put("pool", key, payload), put("entry", key, key), put("branch", key[:16], payload[:200]),
		put("context", key[:16], payload[:200]), put("recent", key[:16], nil), put("operation", key, payload[:60]))
}

func benchDB(b *testing.B, idle time.Duration) kv.DB {
	db := open(b, newPath(b), boltkv.Options{Create: true, IdleHold: idle, Sequential: []string{"pool", "entry", "operation"}})
	b.Cleanup(func() { closeDB(b, db) })
	return db
}

// BenchmarkAppend compares one append with bbolt putting the same records, in turn, so that both have the same disk.
func BenchmarkAppend(b *testing.B) {
	db := benchDB(b, 0)
	bare, err := bolt.Open(newPath(b), 0o600, &bolt.Options{PageSize: 16384, FreelistType: bolt.FreelistMapType})
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	var ours, theirs time.Duration
	n := uint64(0)
	for b.Loop() {
		n++
		begun := time.Now()
		err := db.Update(ctx, func(tx kv.RwTx) error { return appendRecord(tx.Put, n) })
		ours += time.Since(begun)
		begun = time.Now()
		err2 := bare.Update(func(tx *bolt.Tx) error {
			return appendRecord(func(bucket string, key, value []byte) error {
				to, err := tx.CreateBucketIfNotExists([]byte(bucket))
				if err != nil {
					return err
				}
				return to.Put(key, value)
			}, n)
		})
		theirs += time.Since(begun)
		if err := errors.Join(err, err2); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(ours)/float64(theirs), "x-bare-bbolt")
	b.ReportMetric(float64(ours.Microseconds())/float64(n), "us/append")
}

// BenchmarkAppendReopened opens the file for each append, as a command does.
func BenchmarkAppendReopened(b *testing.B) {
	db := benchDB(b, -1)
	n := uint64(0)
	for b.Loop() {
		n++
		if err := db.Update(ctx, func(tx kv.RwTx) error { return appendRecord(tx.Put, n) }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkView reads one record: with the file open, and opening it each time.
func BenchmarkView(b *testing.B) {
	for name, idle := range map[string]time.Duration{"held": 0, "reopened": -1} {
		b.Run(name, func(b *testing.B) {
			db := benchDB(b, idle)
			put(b, db, "b", "k", "v")
			for b.Loop() {
				if err := db.View(ctx, func(tx kv.Tx) error { _, err := tx.Get("b", []byte("k")); return err }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWriters appends with 1 and with 32 goroutines in turn.
func BenchmarkWriters(b *testing.B) {
	db := benchDB(b, 0)
	var next atomic.Uint64
	run := func(goroutines, each int) time.Duration {
		begun := time.Now()
		var group sync.WaitGroup
		for range goroutines {
			group.Go(func() {
				for range each {
					n := next.Add(1)
					if err := db.Update(ctx, func(tx kv.RwTx) error { return appendRecord(tx.Put, n) }); err != nil {
						b.Error(err)
					}
				}
			})
		}
		group.Wait()
		return time.Since(begun)
	}
	var one, many time.Duration
	rounds := 0
	for b.Loop() {
		rounds++
		one += run(1, 100)
		many += run(32, 100)
	}
	b.ReportMetric(32*one.Seconds()/many.Seconds(), "x-one-writer")
	b.ReportMetric(float64(100*rounds)/one.Seconds(), "1-writer/s")
	b.ReportMetric(float64(3200*rounds)/many.Seconds(), "32-writers/s")
}

// BenchmarkBeside opens the file for each View and each Update, as commands do, beside other processes without a pause.
func BenchmarkBeside(b *testing.B) {
	for _, beside := range []struct {
		name, role string
		n          int
	}{{"appender", "append", 1}, {"4 appenders", "append", 4}, {"6 readers", "read", 6}} {
		b.Run(beside.name, func(b *testing.B) {
			path := created(b)
			for range beside.n {
				p := start(b, beside.role, path)
				p.line(b)
				go func() {
					for p.lines.Scan() {
					}
				}()
			}
			var views, updates []time.Duration
			for n := 0; b.Loop(); n++ {
				views = append(views, command(b, path, func(db kv.DB) { get(b, db, "b", "k") }))
				updates = append(updates, command(b, path, func(db kv.DB) { put(b, db, "b", "k", fmt.Sprint(n)) }))
			}
			for name, times := range map[string][]time.Duration{"view": views, "update": updates} {
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, name+"-p50-ms")
				b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, name+"-p99-ms")
			}
		})
	}
}

// command is how long it takes to open the file, use it once and close it.
func command(b *testing.B, path string, use func(kv.DB)) time.Duration {
	begun := time.Now()
	db := open(b, path, boltkv.Options{IdleHold: -1})
	use(db)
	closeDB(b, db)
	return time.Since(begun)
}

// BenchmarkUsedBytes tells how many bytes the pages in use take for each byte of payload, in single appends and in batches.
func BenchmarkUsedBytes(b *testing.B) {
	for name, batch := range map[string]int{"single": 1, "batches of 1000": 1000} {
		b.Run(name, func(b *testing.B) {
			db := benchDB(b, 0)
			n := uint64(0)
			for b.Loop() {
				err := db.Update(ctx, func(tx kv.RwTx) error {
					for i := range batch {
						if err := appendRecord(tx.Put, n+uint64(i)); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				n += uint64(batch)
			}
			s, err := db.(kv.Keeper).Space(ctx)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(s.Used)/float64(n)/float64(len(payload)), "x-payload")
		})
	}
}
