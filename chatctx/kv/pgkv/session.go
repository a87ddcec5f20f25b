package pgkv

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/internal/watch"
	"github.com/chatctx/chatctx/internal/engine"
)

// statements has the statements of one database.
type statements struct {
	get, many, put, delete, sweep  statement
	scan                           [2][2]statement // [reverse][with an upper bound]
	mark, fence, notify, now       statement
	beginView, beginUpdate, commit statement
	hold, lock, unlock, forget     statement
}

func (a *address) statements() statements {
	from := " from " + a.table("kv") + " where bucket = $1::text and key "
	pairs := "select key, value" + from
	s := statements{
		get:    statement{"get", "select value" + from + "= $2::bytea"},
		many:   statement{"many", pairs + "= any($2::bytea[]) and value is not null"},
		put:    statement{"put", "insert into " + a.table("kv") + " (bucket, key, value) select * from unnest($1::text[], $2::bytea[], $3::bytea[]) on conflict (bucket, key) do update set value = excluded.value"},
		delete: statement{"delete", "delete" + from + "= any($2::bytea[])"},
		sweep:  statement{"sweep", "delete" + from + "= any($2::bytea[]) and value is null"},
		mark: statement{"mark", "insert into " + a.table("connection") + " as c (id, last) values ($1::bytea, $2::bytea)" +
			" on conflict (id) do update set last = case when not c.fenced then excluded.last end, at = excluded.at"},
		fence: plain("insert into " + a.table("connection") + " (id, last, fenced) values ($1::bytea, '', true)" +
			" on conflict (id) do update set fenced = true returning last"),
		notify: statement{"notify", "select pg_notify($1::text, $2::text)"},
		now:    statement{"now", "select (extract(epoch from clock_timestamp()) * 1000000)::int8"},

		beginView:   plain("begin isolation level repeatable read read only"),
		beginUpdate: plain("begin isolation level serializable read write"),
		commit:      plain("commit"),
		hold:        plain("lock table " + a.table("kv") + " in share row exclusive mode"),
		forget: plain("delete from " + a.table("connection") + " where ctid = any(array(select ctid from " + a.table("connection") +
			" where at < now() - interval '1 day' limit 1000 for update skip locked))"),
		lock:   statement{"lock", "select pg_advisory_lock($1::int8)"},
		unlock: statement{"unlock", "select pg_advisory_unlock($1::int8)"},
	}
	for reverse, order := range []string{" order by bucket, key", " order by bucket desc, key desc"} {
		tail := " and value is not null" + order + " limit $3::int4"
		s.scan[reverse][0] = statement{"scan" + order, pairs + ">= $2::bytea" + tail}
		s.scan[reverse][1] = statement{"scan to" + order, pairs + ">= $2::bytea and key < $4::bytea" + tail}
	}
	return s
}

// session is one transaction on one connection, which it takes at its first use.
type session struct {
	db     *database
	ctx    context.Context
	begin  statement
	hold   bool // no other transaction may write from the beginning on
	conn   *pgxpool.Conn
	begun  bool
	locked int64 // the advisory lock that it has, 0 for none
	known  known
	// aside: it may step aside for a scan. stays: it may not any more, since it has sent writes or scanned. read is what it has read by key.
	aside    bool
	stays    bool
	again    int // how many records it has read again
	read     map[place][]byte
	readSize int
	pages    map[string]map[string]*page // fetched beginnings of ranges, by bucket and rangeName
	wrote    []watch.Key
	// emptied is swept after the commit. A transaction that erases leaves nothing to sweep.
	emptied []emptied
	erases  bool
	failed  error // the first failure of the engine: no more reads or writes are possible
}

func (d *database) newSession(ctx context.Context, begin statement) *session {
	return &session{db: d, ctx: ctx, begin: begin, known: known{of: map[place][]byte{}, dirty: map[place]bool{}},
		erases: engine.IsLong(engine.Purpose(ctx))}
}

// askAfter sends calls after the unsent writes, so that they see these.
func (s *session) askAfter(calls ...call) ([]result, error) {
	if s.failed != nil {
		return nil, s.failed
	}
	writes := s.writes()
	results, err := s.ask(append(writes, calls...)...)
	if err != nil {
		return nil, err
	}
	s.stays = true
	s.known.clean()
	return results[len(results)-len(calls):], nil
}

// ask sends calls, the first ones with the begin, and returns their results.
func (s *session) ask(calls ...call) (results []result, err error) {
	if s.failed != nil {
		return nil, s.failed
	}
	if s.begun {
		results, err = s.link().run(s.ctx, s.db.limit(), calls...)
	} else {
		results, err = s.first(calls)
	}
	if err != nil {
		s.failed = err
		return nil, err
	}
	s.known.forget()
	return results[len(results)-len(calls):], nil
}

// first begins the transaction with its first calls. A connection may have been lost while it was idle: then first tries once more on a new one.
func (s *session) first(calls []call) ([]result, error) {
	for try := 0; ; try++ {
		fresh := s.conn == nil
		if fresh {
			conn, err := s.db.acquire(s.ctx)
			if err != nil {
				return nil, err
			}
			s.conn = conn
		}
		head, sent := s.head(), time.Now()
		results, err := s.link().run(s.ctx, s.db.limit(), append(head, calls...)...)
		s.begun = err == nil || code(err) != ""
		if err == nil {
			s.db.clock.heard(sent, head, results)
		}
		if !isLost(err) || s.ctx.Err() != nil || !fresh || try > 0 {
			return results, err
		}
		s.drop()
		s.db.pool.Reset()
	}
}

// head returns the calls that begin a transaction.
func (s *session) head() []call {
	head := []call{do(s.begin)}
	if s.hold {
		// Before anything that reads, even settings: the snapshot must be younger than the lock.
		head = append(head, do(plain("set local lock_timeout = "+milliseconds(s.db.wait))), do(s.db.sql.hold))
	}
	if s.db.pooled {
		head = append(head, do(s.db.settingsCall(s.db.wait)))
	}
	if !s.hold && s.db.clock.stale() {
		head = append(head, do(s.db.sql.now))
	}
	return head
}

func (s *session) link() *link { return linkOf(s.conn.Conn()) }

// drop closes the connection.
func (s *session) drop() {
	_ = s.conn.Conn().Close(context.Background())
	s.conn.Release()
	s.conn, s.begun, s.locked = nil, false, 0
}

// end rolls back what was not committed and returns the connection to the pool.
func (s *session) end() {
	if s.conn == nil {
		return
	}
	var calls []call
	if s.link().conn.TxStatus() != 'I' {
		calls = append(calls, do(plain("rollback")))
	}
	if s.locked != 0 {
		calls = append(calls, do(s.db.sql.unlock, int8(s.locked)))
	}
	if len(calls) > 0 && !s.link().conn.IsClosed() {
		if _, err := s.link().run(context.WithoutCancel(s.ctx), s.db.limit(), calls...); err != nil {
			s.drop()
			return
		}
	}
	s.conn.Release()
	s.conn = nil
}

// fewGone is the largest number of deletes that are made in two steps. A DELETE reads the index and so notes its page as read, which makes transactions
// that write to the page run again; since every append takes one record out of a common bucket and puts another one in, appends would all conflict. So the
// transaction sets the value to NULL, and the empty records are swept after the commit.
const fewGone = 64

// writes returns the calls for the unsent writes, in the order of their keys, so that two transactions that write the same records wait for each other in
// the same order.
func (s *session) writes() []call {
	dirty := s.known.unsent()
	gone := map[string][][]byte{}
	var goneFrom []string
	var buckets, keys, values [][]byte
	for _, p := range dirty {
		if s.known.of[p] == nil {
			if gone[p.bucket] == nil {
				goneFrom = append(goneFrom, p.bucket)
			}
			gone[p.bucket] = append(gone[p.bucket], []byte(p.key))
		}
	}
	count := 0
	for _, of := range gone {
		count += len(of)
	}
	var calls []call
	empties := count <= fewGone && !s.erases
	for _, bucket := range goneFrom {
		if empties {
			s.emptied = append(s.emptied, emptied{bucket, gone[bucket]})
		} else {
			calls = append(calls, do(s.db.sql.delete, []byte(bucket), byteaArray(gone[bucket])))
		}
	}
	for _, p := range dirty {
		if data := s.known.of[p]; data != nil || empties {
			buckets, keys, values = append(buckets, []byte(p.bucket)), append(keys, []byte(p.key)), append(values, data)
		}
	}
	if len(keys) > 0 {
		calls = append(calls, do(s.db.sql.put, textArray(buckets), byteaArray(keys), byteaArray(values)))
	}
	return calls
}

// emptied has records that a transaction set to NULL.
type emptied struct {
	bucket string
	keys   [][]byte
}

// place is the place of a value.
type place struct{ bucket, key string }

func (p place) compare(q place) int {
	if c := strings.Compare(p.bucket, q.bucket); c != 0 {
		return c
	}
	return strings.Compare(p.key, q.key)
}

// known is what a transaction has read by key or written, as far as it keeps that: nil if there is no record. What is dirty was not sent to the server yet.
type known struct {
	of      map[place][]byte
	dirty   map[place]bool
	size    int
	waiting int // the size of the dirty values
}

const (
	knownLimit   = 8 << 20
	waitingLimit = 4 << 20
	smallValue   = 512 << 10 // larger values are not kept after they were read
)

func (k *known) set(p place, data []byte, dirty bool) {
	if old, is := k.of[p]; is {
		before := len(p.bucket) + len(p.key) + len(old)
		k.size -= before
		if k.dirty[p] {
			k.waiting -= before
		}
	}
	size := len(p.bucket) + len(p.key) + len(data)
	k.of[p] = data
	k.size += size
	if dirty {
		k.waiting += size
		k.dirty[p] = true
	} else {
		delete(k.dirty, p)
	}
}

func (k *known) has(p place) bool {
	_, is := k.of[p]
	return is
}

// clean records that everything was sent.
func (k *known) clean() {
	clear(k.dirty)
	k.waiting = 0
	k.forget()
}

// forget makes room if much is known, by dropping everything that was sent.
func (k *known) forget() {
	if k.size <= knownLimit {
		return
	}
	k.size = 0
	for p, data := range k.of {
		if k.dirty[p] {
			k.size += len(p.bucket) + len(p.key) + len(data)
		} else {
			delete(k.of, p)
		}
	}
}

// unsent returns the places of what is dirty, in the order of their keys.
func (k *known) unsent() []place {
	return slices.SortedFunc(maps.Keys(k.dirty), place.compare)
}

// after returns the first key after key.
func after(key []byte) []byte { return append(bytes.Clone(key), 0) }

var _ kv.Tx = (*reader)(nil)
