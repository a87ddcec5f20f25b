// Package pgkv is the kv engine for a PostgreSQL server, version 15 or newer, that many machines can use at the same time.
//
// A program that imports it opens stores by URL, with everything that libpq supports: TLS modes, several hosts, PGPASSWORD, .pgpass, a service file.
//
//	postgres://USER@HOST:PORT/DATABASE?search_path=SCHEMA
//
// The schema (chatctx if the URL names none) has two tables: kv with bucket, key and value, and connection, which tells the outcome of a commit whose
// answer was lost. Init makes them; nothing else changes their form.
//
// Beyond the contract of package kv:
//
//   - A View sees the state at its first read, as does an Update. Neither makes others wait; an Update runs again if another one came between. Updates of
//     one lane (engine.WithLane) queue instead.
//   - Each single read costs a round trip. Writes are kept and sent with the commit.
//   - If an Update returns nil or an error other than kv.ErrUnknownOutcome, the outcome is certain. After a lost connection it asks a server, for at most
//     Options.Outcome.
//   - A server that does not answer is kv.ErrAway: at once in Open, later after Options.Wait, since it may be restarting.
//   - The keys of a bucket are smaller than in a file: MaxKey.
//
// Poolers: with PgBouncer in session mode everything works. In transaction mode the URL needs default_query_exec_mode=exec; then statements are parsed each
// time, Watch polls instead of listening, and Updates of a lane in different processes queue less strictly. PgBouncer need not pass any setting on.
// Statement mode does not work.
package pgkv

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/internal/door"
	"github.com/chatctx/chatctx/chatctx/kv/internal/watch"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// MaxKey is the largest size in bytes of a bucket's name and a key together: what fits on an index page.
const MaxKey = 2600

// options are options of Open. The zero options are those of the driver.
type options struct {
	// ReadOnly refuses every Update with kv.ErrReadOnly.
	ReadOnly bool
	// Wait bounds how long a transaction waits for a connection or for a record that another one holds; 0 means 5 seconds.
	Wait time.Duration
	// Outcome bounds how long an Update whose connection broke asks for a server, to find out whether it was stored or to run again; 0 means 30 seconds.
	Outcome time.Duration
	// Program is the application_name if the URL has none; "" means the executable's name.
	Program string
	// Check decides whether the database is what the caller expects. Open runs it and returns its error.
	Check func(kv.Tx) error
	// Checks names the records that Check reads; they are fetched in the same round trip as those that Open itself reads.
	Checks []kv.Key
}

func init() {
	d := kv.Driver{
		Open: func(ctx context.Context, url string, o kv.OpenOptions) (kv.DB, error) {
			return openDB(ctx, url, options{ReadOnly: o.ReadOnly, Wait: o.Wait, Program: o.Program, Check: o.Check, Checks: o.Checks})
		},
		Init: initialise,
	}
	kv.Register("postgres", d)
	kv.Register("postgresql", d)
}

// database is the result of one Open.
type database struct {
	*address
	options
	wait, outcomeWait time.Duration
	pool              *pgxpool.Pool
	sql               statements
	lanes             lanes
	hub               watch.Hub
	news              *news
	ears              ears
	clock             clock

	opened atomic.Bool // Open has succeeded
	guard  func(bucket string, r kv.Range) *kv.Key

	door door.Door
}

// openDB connects to the database at url. The database is a kv.Clock. For its errors see kv.Driver.
func openDB(ctx context.Context, url string, o options) (kv.DB, error) {
	d, err := connect(ctx, url, o)
	if err != nil {
		return nil, err
	}
	err = d.View(ctx, func(tx kv.Tx) error {
		if err := kv.Fetch(tx, append([]kv.Key{{Bucket: "", Key: versionKey}}, o.Checks...)...); err != nil {
			return err
		}
		if err := d.checkVersion(tx.(*reader)); err != nil || o.Check == nil {
			return err
		}
		return o.Check(tx)
	})
	if err != nil {
		err = errors.Join(d.identify(ctx, err), d.Close())
		return nil, err
	}
	d.opened.Store(true)
	return d, nil
}

// connect makes the pool, which connects at the first use.
func connect(ctx context.Context, url string, o options) (*database, error) {
	a, err := parse(url)
	if err != nil {
		return nil, err
	}
	a.introduce(o.Program)
	d := &database{address: a, options: o, wait: o.Wait, outcomeWait: o.Outcome, sql: a.statements()}
	if d.wait <= 0 {
		d.wait = 5 * time.Second
	}
	if d.outcomeWait <= 0 {
		d.outcomeWait = 30 * time.Second
	}
	c := a.config
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		newLink(conn, a.pooled)
		if a.pooled {
			return nil
		}
		return a.settle(ctx, conn, d.wait)
	}
	// The first statement notices a connection that broke while it was idle, and is then sent again.
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	if d.pool, err = pgxpool.NewWithConfig(ctx, c); err != nil {
		return nil, a.parseError(err)
	}
	d.news = newNews(d)
	return d, nil
}

// View implements kv.DB.
func (d *database) View(ctx context.Context, fn func(kv.Tx) error) error {
	if err := d.door.Enter(ctx); err != nil {
		return err
	}
	defer d.door.Leave()
	s := d.newSession(ctx, d.sql.beginView)
	tx := &reader{session: s, page: viewPage}
	defer func() {
		tx.ended = true
		d.door.Go(s.end) // the caller does not wait for the server to learn of the end
	}()
	if err := fn(tx); err != nil {
		if s.failed != nil && errors.Is(err, s.failed) {
			return d.told(ctx, err)
		}
		return err
	}
	return d.told(ctx, s.failed)
}

// told returns an error of the engine as the caller gets it.
func (d *database) told(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return ctx.Err()
	}
	return d.explain(err)
}

// acquire takes a connection from the pool. If the server answered before, it may be restarting, so acquire waits for it.
func (d *database) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, d.wait)
	defer cancel()
	for try := 0; ; try++ {
		c, err := d.pool.Acquire(limited)
		if err == nil {
			return c, nil
		}
		if away := code(err) == "" || ending(err); limited.Err() == nil && away && d.opened.Load() {
			pause(limited, try+2)
			continue
		}
		return nil, d.acquireError(ctx, limited, err)
	}
}

func (d *database) acquireError(ctx, limited context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() == nil && code(err) != "":
		return err
	case limited.Err() == nil:
		return fmt.Errorf("%w: %w", kv.ErrAway, d.clean(err))
	case d.pool.Stat().AcquiredConns() >= d.pool.Config().MaxConns:
		return fmt.Errorf("%w: all %d connections of this program were in use for %s; raise pool_max_conns in the store's URL",
			kv.ErrLocked, d.pool.Config().MaxConns, d.wait)
	}
	return fmt.Errorf("%w within %s: %w", kv.ErrAway, d.wait, d.clean(err))
}

// Close implements kv.DB.
func (d *database) Close() error {
	if !d.door.Close() {
		return nil
	}
	d.news.close()
	d.ears.close()
	d.hub.Close()
	d.pool.Close()
	return nil
}
