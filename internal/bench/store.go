package main

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/fxamacker/cbor/v2"
	bolt "go.etcd.io/bbolt"
	_ "modernc.org/sqlite"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

const pageSize = 16384

func openBolt(file string) *bolt.DB {
	db := value(bolt.Open(file, 0o600, &bolt.Options{PageSize: pageSize, FreelistType: bolt.FreelistMapType}))
	db.AllocSize = 1 << 20
	return db
}

// bareAppend puts records of the same sizes as those of an append into as many buckets of bare bbolt.
type bareAppend struct {
	db *bolt.DB
	n  uint64
}

var bareBuckets = []struct {
	name       string
	key, value int
	sequential bool
}{{"pool", 32, 1080, true}, {"entry", 20, 18, true}, {"branch", 20, 97, false}, {"context", 16, 77, false}, {"recent", 24, 0, false}, {"operation", 24, 87, true}, {"waiting", 41, 8, true}}

func (b *bareAppend) put() {
	b.n++
	must(b.db.Update(func(tx *bolt.Tx) error {
		for _, d := range bareBuckets {
			bucket, err := tx.CreateBucketIfNotExists([]byte(d.name))
			if err != nil {
				return err
			}
			key := make([]byte, d.key)
			if d.sequential {
				bucket.FillPercent = 1
				binary.BigEndian.PutUint64(key[d.key-8:], b.n)
			}
			if err := bucket.Put(key, make([]byte, d.value)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// fill puts as many records into the bare database as the store has that it is compared with.
func (b *bareAppend) fill(n int) {
	for done := 0; done < n; done += 1000 {
		must(b.db.Update(func(tx *bolt.Tx) error {
			for _, d := range bareBuckets[:2] {
				bucket := value(tx.CreateBucketIfNotExists([]byte(d.name)))
				bucket.FillPercent = 1
				for i := range min(1000, n-done) {
					key := make([]byte, d.key)
					binary.BigEndian.PutUint64(key[d.key-8:], b.n+uint64(i)+1)
					must(bucket.Put(key, make([]byte, d.value)))
				}
			}
			return nil
		}))
		b.n += uint64(min(1000, n-done))
	}
}

func benchAppend(r *run) []row {
	ctx := context.Background()
	var rows []row
	for _, n := range []int{10, r.n(10_000), r.n(100_000)} {
		s, c := filled(in(r.dir, fmt.Sprint("append", n)), n)
		bare := &bareAppend{db: openBolt(in(r.dir, fmt.Sprint("bare", n)))}
		bare.fill(n)
		i := n
		const each = 40
		median, low, high, took := ratio(9, func() {
			for range each {
				value(c.Append(ctx, "", message(i)))
				i++
			}
		}, func() {
			for range each {
				bare.put()
			}
		})
		rows = append(rows, row{fmt.Sprintf("append 1 KB to a branch of %d: to bare bbolt", n),
			fmt.Sprintf("%s, %s", spread(median, low, high), took/each), "at most 1.3", median <= 1.3})
		must(s.Close())
		must(bare.db.Close())
	}
	return rows
}

func benchWriters(r *run) []row {
	ctx := context.Background()
	s, c := filled(in(r.dir, "writers"), 1000)
	defer s.Close()
	const goroutines, each = 32, 30
	many := func() {
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for i := range each {
					value(c.Append(ctx, "", message(i)))
				}
			})
		}
		wg.Wait()
	}
	one := func() {
		for i := range each {
			value(c.Append(ctx, "", message(i)))
		}
	}
	median, low, high, _ := ratio(7, one, many)
	scale := func(x float64) float64 { return x * goroutines }
	return []row{{"32 goroutines appending: to one", spread(scale(median), scale(low), scale(high)), "at least 10", scale(median) >= 10}}
}

// benchSteps measures the steps that should cost as much as an append, on a branch of 10,000 messages with 100 others beside it.
func benchSteps(r *run) []row {
	ctx := context.Background()
	s, c := filled(in(r.dir, "steps"), r.n(10_000))
	defer s.Close()
	for i := range 100 {
		b := c.Begin("main")
		b.Fork(fmt.Sprintf("fork%d", i), chatctx.ForkOptions{Stay: true})
		value(b.Commit(ctx))
	}
	const each = 20
	n := 0
	batch := func(step func(b *chatctx.Batch)) func() {
		return func() {
			for range each {
				n++
				b := c.Begin("main")
				step(b)
				value(b.Commit(ctx))
			}
		}
	}
	add := func() {
		for range each {
			value(c.Append(ctx, "main", message(n)))
			n++
		}
	}
	var rows []row
	compare := func(what string, step func()) {
		median, low, high, took := ratio(9, step, add)
		rows = append(rows, row{what + ": to an append", fmt.Sprintf("%s, %s", spread(median, low, high), took/each), "at most 1.3", median <= 1.3})
	}
	compare("rename of a branch", batch(func(b *chatctx.Batch) {
		b.RenameBranch([]string{"fork0", "other0"}[(n+1)%2], []string{"fork0", "other0"}[n%2])
	}))
	compare("switch", batch(func(b *chatctx.Batch) { b.Switch([]string{"main", "fork1"}[n%2]) }))
	undo := func() {
		for range each {
			value(s.Undo(ctx, c.ID.String(), "main", ""))
		}
	}
	redo := func() {
		for range each {
			value(s.Redo(ctx, c.ID.String(), "main"))
		}
	}
	var undone, redone, added []time.Duration
	for range 9 {
		added = append(added, timed(add))
		undone = append(undone, timed(undo))
		redone = append(redone, timed(redo))
	}
	for _, step := range []struct {
		what string
		took []time.Duration
	}{{"undo of an append", undone}, {"redo of an append", redone}} {
		is := float64(percentile(step.took, 0.5)) / float64(percentile(added, 0.5))
		rows = append(rows, row{step.what + ": to an append", fmt.Sprintf("%.2f, %s", is, percentile(step.took, 0.5)/each), "at most 1.3", is <= 1.3})
	}
	return rows
}

func benchFork(r *run) []row {
	ctx := context.Background()
	long, lc := filled(in(r.dir, "long"), r.n(100_000))
	defer long.Close()
	short, sc := filled(in(r.dir, "short"), 10)
	defer short.Close()
	n := 0
	fork := func(c *chatctx.ChatContext, at int) {
		n++
		b := c.Begin("main")
		b.Fork(fmt.Sprintf("fork%d", n), chatctx.ForkOptions{At: record.Ref(fmt.Sprintf("@%d", at)), Stay: true})
		value(b.Commit(ctx))
	}
	length := value(lc.Snapshot(ctx, "main")).Len()
	before := value(long.Maintenance().Stats(ctx))
	const each = 40
	median, low, high, _ := ratio(9, func() {
		for i := range each {
			fork(lc, 1+(n*7919+i)%length)
		}
	}, func() {
		for range each {
			fork(sc, 5)
		}
	})
	for range 1000 - 9*each {
		fork(lc, 1+(n*7919)%length)
	}
	after := value(long.Maintenance().Stats(ctx))
	used := float64(after.Used-before.Used) / 1000
	return []row{
		{fmt.Sprintf("fork at any point of %d messages: to one of 10", length), spread(median, low, high), "at most 1.5", median <= 1.5},
		{"used bytes a fork, over 1,000", fmt.Sprintf("%.0f", used), "at most 512", used <= 512},
	}
}

func benchLoad(r *run) []row {
	ctx := context.Background()
	n := r.n(10_000)
	s, c := filled(in(r.dir, "load"), n)
	load := func() {
		snap := value(c.Snapshot(ctx, ""))
		if got := len(value(snap.Page(ctx, 1, 0))); got != n {
			must(fmt.Errorf("loaded %d of %d", got, n))
		}
	}
	load()
	bare := bareLoad(r, s, c, n)
	median, low, high, took := ratio(15, load, bare)
	rows := []row{{fmt.Sprintf("load %d messages: to bare reads and CBOR", n), fmt.Sprintf("%s, %s", spread(median, low, high), took), "at most 1.25", median <= 1.25}}
	sqlite := sqliteLoad(r, c, n)
	median, low, high, _ = ratio(7, sqlite, load)
	rows = append(rows, row{fmt.Sprintf("load %d messages: JSON rows in SQLite to ours", n), spread(median, low, high), "at least 5", median >= 5})
	must(s.Close())
	return rows
}

// bareLoad returns a function that reads all entries in order, and for each reads a record and decodes it as plain CBOR.
func bareLoad(r *run, s *chatctx.Store, c *chatctx.ChatContext, n int) func() {
	ctx := context.Background()
	db := openBolt(in(r.dir, "bareload"))
	page := value(value(c.Snapshot(ctx, "")).Page(ctx, 1, 0))
	must(db.Update(func(tx *bolt.Tx) error {
		records, entries := value(tx.CreateBucket([]byte("pool"))), value(tx.CreateBucket([]byte("entry")))
		for i, e := range page {
			key := append(append([]byte{}, c.ID[:]...), e.ID[:]...)
			must(records.Put(key, value(cbor.Marshal(e.Message))))
			at := binary.BigEndian.AppendUint64(make([]byte, 24), uint64(i))
			must(entries.Put(at, e.ID[:]))
		}
		return nil
	}))
	return func() {
		out := make([]*pool.Message, 0, n)
		must(db.View(func(tx *bolt.Tx) error {
			records := tx.Bucket([]byte("pool"))
			return tx.Bucket([]byte("entry")).ForEach(func(_, id []byte) error {
				m := &pool.Message{}
				out = append(out, m)
				return cbor.Unmarshal(records.Get(append(append([]byte{}, c.ID[:]...), id...)), m)
			})
		}))
	}
}

// sqliteLoad returns a function that reads the messages as rows of JSON from an ordinary table.
func sqliteLoad(r *run, c *chatctx.ChatContext, n int) func() {
	ctx := context.Background()
	db := value(sql.Open("sqlite", in(r.dir, "rows.sqlite")))
	value(db.Exec("create table message (id integer primary key, conversation text, body text)"))
	tx := value(db.Begin())
	for _, e := range value(value(c.Snapshot(ctx, "")).Page(ctx, 1, 0)) {
		value(tx.Exec("insert into message (conversation, body) values (?, ?)", c.ID.String(), string(value(json.Marshal(e)))))
	}
	must(tx.Commit())
	return func() {
		rows := value(db.Query("select body from message where conversation = ? order by id", c.ID.String()))
		plainMessages(rows, n)
		must(rows.Close())
	}
}

// plainMessages reads rows of JSON, about n.
func plainMessages(rows interface {
	Next() bool
	Scan(to ...any) error
	Err() error
}, n int) []*plainMessage {
	out := make([]*plainMessage, 0, n)
	for rows.Next() {
		var body []byte
		must(rows.Scan(&body))
		m := &plainMessage{}
		must(json.Unmarshal(body, m))
		out = append(out, m)
	}
	must(rows.Err())
	return out
}

// plainMessage is what a program that stores JSON keeps of a message: the fields that log --json prints. encoding/json alone decodes it.
type plainMessage struct {
	ID       string      `json:"id"`
	Parent   *string     `json:"parent_id"`
	Role     string      `json:"role"`
	Content  []plainPart `json:"content"`
	Meta     plainMeta   `json:"metadata"`
	Turn     string      `json:"turn"`
	Position int         `json:"position"`
	Created  time.Time   `json:"created_at"`
	Session  int         `json:"session"`
}

type plainPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type plainMeta struct {
	Model      *string         `json:"model_id"`
	Provider   *string         `json:"provider_id"`
	Input      *int64          `json:"input_tokens"`
	Output     *int64          `json:"output_tokens"`
	CacheRead  *int64          `json:"cache_read_tokens"`
	CacheWrite *int64          `json:"cache_write_tokens"`
	Reasoning  *int64          `json:"reasoning_tokens"`
	Usage      json.RawMessage `json:"usage"`
	Finish     *string         `json:"finish_reason"`
	Error      *string         `json:"error"`
	Completed  *time.Time      `json:"completed_at"`
}

func benchUsed(r *run) []row {
	ctx := context.Background()
	n := r.n(100_000)
	payload := float64(n * 1024)
	s := value(chatctx.Open(in(r.dir, "one"), chatctx.Options{Create: true}))
	c := value(s.New(ctx, record.NewContext{}))
	for i := range n {
		value(c.Append(ctx, "", message(i)))
	}
	one := float64(value(s.Maintenance().Stats(ctx)).Used) / payload
	must(s.Close())
	s, _ = filled(in(r.dir, "many"), n)
	many := float64(value(s.Maintenance().Stats(ctx)).Used) / payload
	must(s.Close())
	size := value(os.Stat(in(r.dir, "one"))).Size()
	s, _ = filled(in(r.dir, "little"), 15)
	must(s.Close())
	little := value(os.Stat(in(r.dir, "little"))).Size()
	return []row{
		{"the file of 15 messages", fmt.Sprintf("%d KB", little>>10), "under 300 KB", little < 300<<10},
		{fmt.Sprintf("used bytes of %d messages, one a transaction: to payload", n), fmt.Sprintf("%.2f (file %.2f)", one, float64(size)/payload), "at most 1.5", one <= 1.5},
		{fmt.Sprintf("used bytes of %d messages, in batches: to payload", n), fmt.Sprintf("%.2f", many), "at most 1.25", many <= 1.25},
	}
}
