package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chatctx/chatctx/chatctx"
	_ "github.com/chatctx/chatctx/chatctx/kv/pgkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/pgtest"
)

// byHand keeps conversations with SQL as one would write it by hand: four tables, and an append in a serializable transaction of two round trips.
type byHand struct {
	pool  *pgxpool.Pool
	again atomic.Int64 // number of transactions that were repeated
}

var handTables = `
create table branch (id int8 primary key, revision int8 not null, length int8 not null);
create table entry (branch int8, position int8, body bytea not null, primary key (branch, position));
create table key (branch int8, key text, position int8 not null, primary key (branch, key));
create table journal (branch int8, revision int8, at timestamptz not null, what text not null, person text not null, primary key (branch, revision))`

func openHand(url string, branches int) *byHand {
	ctx := context.Background()
	h := &byHand{pool: value(pgxpool.New(ctx, url))}
	value(h.pool.Exec(ctx, "create schema hand"))
	value(h.pool.Exec(ctx, handTables))
	value(h.pool.Exec(ctx, "insert into branch select n, 0, 0 from generate_series(1, $1) n", branches))
	return h
}

// append appends to a branch that is at the given revision, with a key that makes it happen once, and returns the new revision.
func (h *byHand) append(branch, revision int64, key string, bodies ...[]byte) int64 {
	for {
		err := h.tryAppend(branch, revision, key, bodies)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "40001" {
			must(err)
			return revision + 1
		}
		h.again.Add(1)
	}
}

func (h *byHand) tryAppend(branch, revision int64, key string, bodies [][]byte) error {
	ctx := context.Background()
	conn, err := h.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var is, length int64
	var known *int64
	read := &pgx.Batch{}
	read.Queue("begin isolation level serializable")
	read.Queue("select revision, length from branch where id = $1", branch).QueryRow(func(row pgx.Row) error { return row.Scan(&is, &length) })
	read.Queue("select (select position from key where branch = $1 and key = $2)", branch, key).QueryRow(func(row pgx.Row) error { return row.Scan(&known) })
	if err = conn.SendBatch(ctx, read).Close(); err == nil && (is != revision || known != nil) {
		err = fmt.Errorf("the branch is at %d and not at %d, or %s was known", is, revision, key)
	}
	write := &pgx.Batch{}
	for i, body := range bodies {
		write.Queue("insert into entry values ($1, $2, $3)", branch, length+1+int64(i), body)
	}
	write.Queue("insert into key values ($1, $2, $3)", branch, key, length+1)
	write.Queue("insert into journal values ($1, $2, now(), 'append', 'somebody')", branch, revision+1)
	write.Queue("update branch set revision = $2, length = $3 where id = $1", branch, revision+1, length+int64(len(bodies)))
	write.Queue("commit")
	if err == nil {
		err = conn.SendBatch(ctx, write).Close()
	}
	if err != nil {
		_, _ = conn.Exec(ctx, "rollback")
	}
	return err
}

func (h *byHand) load(branch int64) []*plainMessage {
	rows := value(h.pool.Query(context.Background(), "select body from entry where branch = $1 order by position", branch))
	defer rows.Close()
	return plainMessages(rows, 0)
}

// benchSQL compares a store on PostgreSQL with SQL written by hand for the same work, on one server whose commits are durable.
func benchSQL(r *run) []row {
	const clients = 32
	server := value(pgtest.Start("fsync=on", "max_connections=200"))
	defer server.Remove()
	hand := openHand(server.URL("hand", fmt.Sprint("pool_max_conns=", clients)), clients+1)
	defer hand.pool.Close()
	s := value(chatctx.Open(server.URL("store", fmt.Sprint("pool_max_conns=", clients)), chatctx.Options{Create: true}))
	defer s.Close()
	ours, theirs := oursOn(s, clients), theirsOn(hand, clients)
	rows := []row{
		rate("one client appends 1 KB: to SQL by hand", r.n(100), 1, ours, theirs),
		rate("32 clients append to 32 conversations: to SQL by hand", r.n(30), clients, ours, theirs),
	}
	return append(rows, sqlLoad(r.n(10_000), s, hand))
}

// appender appends a message to its conversation, with a key and at the revision that it expects.
type appender func()

func oursOn(s *chatctx.Store, clients int) (all []appender) {
	ctx := context.Background()
	for n := range clients {
		c := value(s.New(ctx, record.NewContext{Title: fmt.Sprint("conversation ", n)}))
		b := value(c.Branch(ctx, "main"))
		revision := b.Revision
		all = append(all, func() {
			batch := s.Begin(c.ID.String(), b.ID.String())
			batch.Expect(revision)
			batch.AppendWith(chatctx.AppendOptions{Key: fmt.Sprint("key ", revision)}, message(int(revision)))
			revision = value(batch.Commit(ctx)).Revision
		})
	}
	return all
}

func theirsOn(h *byHand, clients int) (all []appender) {
	for n := range clients {
		revision := int64(0)
		all = append(all, func() {
			revision = h.append(int64(n+1), revision, fmt.Sprint("key ", revision), value(json.Marshal(message(int(revision)))))
		})
	}
	return all
}

// rate compares the time of our appends with that of theirs, made by several clients at once.
func rate(what string, each, clients int, ours, theirs []appender) row {
	all := func(of []appender) func() {
		return func() {
			var group sync.WaitGroup
			for _, add := range of[:clients] {
				group.Go(func() {
					for range each {
						add()
					}
				})
			}
			group.Wait()
		}
	}
	all(ours)()
	all(theirs)()
	median, low, high, took := ratio(7, all(theirs), all(ours))
	return row{what, fmt.Sprintf("%s, %s by hand", spread(median, low, high), (took / time.Duration(each*clients)).Round(time.Microsecond)), "at least 0.5", median >= 0.5}
}

func sqlLoad(n int, s *chatctx.Store, h *byHand) row {
	ctx := context.Background()
	c := value(s.New(ctx, record.NewContext{Title: "long"}))
	revision := int64(0)
	const branch = 33
	for at := 0; at < n; at += 1000 {
		value(c.Append(ctx, "", messages(at, 1000)...))
		var bodies [][]byte
		for _, e := range value(value(c.Snapshot(ctx, "")).Page(ctx, at+1, at+1000)) {
			bodies = append(bodies, value(json.Marshal(e)))
		}
		revision = h.append(branch, revision, fmt.Sprint("key ", at), bodies...)
	}
	median, low, high, took := ratio(9, func() {
		if got := len(value(value(c.Snapshot(ctx, "")).Page(ctx, 1, 0))); got != n {
			must(fmt.Errorf("%d of %d messages", got, n))
		}
	}, func() {
		if got := len(h.load(branch)); got != n {
			must(fmt.Errorf("%d of %d messages by hand", got, n))
		}
	})
	return row{fmt.Sprintf("load %d messages: to SQL by hand", n), fmt.Sprintf("%s, %s", spread(median, low, high), took), "at most 3", median <= 3}
}
