package pgkv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/jackc/pgx/v5"
)

// version is the version of the tables. It is stored in the table kv, in the bucket without a name, to which nobody else can write.
const version = 1

var versionKey = []byte("pgkv")

// oldestServer is the oldest version of PostgreSQL with which pgkv is tested.
const oldestServer = 15

// checkVersion returns an error if this program does not know the version of the tables.
func (d *database) checkVersion(tx *reader) error {
	data, err := tx.get("", versionKey)
	if err != nil {
		return err
	}
	if err := d.checkServer(tx); err != nil {
		return err
	}
	n, err := strconv.Atoi(string(data))
	switch {
	case data == nil || err != nil:
		return d.notOurs()
	case n > version:
		return fmt.Errorf("%w: its tables are of version %d, this program knows up to %d: update chatctx", kv.ErrTooNew, n, version)
	}
	return nil
}

func (d *database) checkServer(tx *reader) error {
	text := tx.link().conn.ParameterStatus("server_version")
	var major int
	if _, err := fmt.Sscanf(text, "%d", &major); err == nil && major < oldestServer {
		return fmt.Errorf("the server is PostgreSQL %s, and a store needs version %d or newer: update the server", text, oldestServer)
	}
	return nil
}

func (d *database) notOurs() error {
	return fmt.Errorf("%w: schema %s of database %s holds something else; name another schema with search_path in the store's URL", kv.ErrNotOurs, d.schema, d.name())
}

// identify explains why no store could be read: nothing is there, something else, or something that the user may not see.
func (d *database) identify(ctx context.Context, err error) error {
	switch code(err) {
	case undefinedColumn, "42883", "42804", "42P18": // a table kv of another form
		return d.notOurs()
	}
	if !errors.Is(err, kv.ErrNotExist) || code(err) == undefinedDatabase {
		return err
	}
	conn, connErr := d.acquire(ctx)
	if connErr != nil {
		return err
	}
	defer conn.Release()
	results, connErr := linkOf(conn.Conn()).run(ctx, d.limit(), do(plain(
		"select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1::text"), []byte(d.schema)))
	if connErr == nil && string(results[0].rows[0][0]) != string(int8(0)) {
		return d.notOurs()
	}
	return err
}

// rewritten lists the buckets whose few records are written again with each change. They have a part of the table of their own, with so much free space on
// each page that a rewritten record stays there and the index does not change: PostgreSQL notes reads by index pages, so each change of a page makes other
// transactions run again.
var rewritten = []string{"", "branch", "claim", "context", "meta", "partial"}

// The parts of the table kv.
const (
	rewrittenPart = "kv_rewritten"
	restPart      = "kv_rest"
)

// tables returns the statements that make a store's tables.
func (a *address) tables() []string {
	var buckets []string
	for _, b := range rewritten {
		buckets = append(buckets, literal(b))
	}
	return []string{
		"create table " + a.table("kv") + ` (bucket text collate "C" not null, key bytea not null, value bytea, primary key (bucket, key)) partition by list (bucket)`,
		"create table " + a.table(rewrittenPart) + " partition of " + a.table("kv") + " for values in (" + strings.Join(buckets, ", ") + ") with (fillfactor = 10)",
		"create table " + a.table(restPart) + " partition of " + a.table("kv") + " default with (fillfactor = 90)",
		"create table " + a.table("connection") + ` (id bytea primary key, last bytea not null, fenced boolean not null default false, at timestamptz not null default now()) with (fillfactor = 50)`,
	}
}

// initialise makes the schema of the URL, if it does not exist, and in it a store's tables, and fill writes the first records; all of it or nothing. Its errors
// are those of kv.Driver.
func initialise(ctx context.Context, url string, fill func(kv.RwTx) error) error {
	d, err := connect(ctx, url, options{})
	if err != nil {
		return err
	}
	err = d.build(ctx, fill)
	return errors.Join(d.told(ctx, err), d.Close())
}

func (d *database) build(ctx context.Context, fill func(kv.RwTx) error) error {
	conn, err := d.acquire(ctx)
	if err != nil {
		return err
	}
	s := d.newSession(ctx, d.sql.beginUpdate)
	s.conn, s.begun = conn, true
	tx := &writer{reader{session: s, page: updatePage}}
	defer func() {
		tx.ended = true
		s.end()
	}()
	schema := pgx.Identifier{d.schema}.Sanitize()
	results, err := s.ask(do(plain("begin")), // each statement sees what others did before it
		do(plain("select pg_advisory_xact_lock(hashtext('chatctx init ' || $1::text))"), []byte(d.schema)),
		do(plain("select (select count(*) from pg_namespace where nspname = $1::text), (select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1::text)"), []byte(d.schema)))
	if err != nil {
		return err
	}
	if err := d.checkServer(&tx.reader); err != nil {
		return err
	}
	if none := string(int8(0)); string(results[2].rows[0][1]) != none {
		if err := d.checkVersion(&tx.reader); err != nil {
			return d.identify(ctx, d.told(ctx, err))
		}
		return fmt.Errorf("schema %s of database %s has a store already: %w", d.schema, d.name(), fs.ErrExist)
	} else if string(results[2].rows[0][0]) == none {
		if _, err := s.ask(do(plain("create schema " + schema))); err != nil {
			return err
		}
	}
	for _, sql := range d.tables() {
		if _, err := s.ask(do(plain(sql))); err != nil {
			return err
		}
	}
	if err := s.write("", versionKey, strconv.AppendInt(nil, version, 10)); err != nil {
		return err
	}
	if fill != nil {
		if err := fill(tx); err != nil {
			return err
		}
	}
	return s.finish()
}
