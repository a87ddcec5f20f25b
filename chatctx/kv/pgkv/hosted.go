package pgkv

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/url"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/jackc/pgx/v5"
)

// User implements engine.Hosted.
func (d *database) User() string { return d.user() }

// Instead implements engine.Hosted.
func (d *database) Instead(of kv.Care) string {
	to := d.reached()
	switch of {
	case kv.CareBackup:
		return fmt.Sprintf("PostgreSQL keeps this store and copies it: pg_dump -Fc -n '%s' -f FILE '%s' (or chatctx copy into a file)", d.pattern(), to)
	case kv.CareRestore:
		return fmt.Sprintf("PostgreSQL keeps this store and takes copies back: pg_restore -d '%s' FILE, or chatctx copy FILE into an empty schema", to)
	case kv.CareVacuum:
		return fmt.Sprintf("PostgreSQL keeps this store and frees its space by itself; to give it back at once: vacuumdb --full -t '%s' '%s'", d.table("kv"), to)
	case kv.CarePages:
		return fmt.Sprintf("PostgreSQL looks through its own pages: pg_amcheck --heapallindexed -s '%s' -d '%s'", d.pattern(), to)
	case kv.CareErase:
		return fmt.Sprintf("what was erased can no longer be read here; its bytes stay in the table until VACUUM has gone over them (vacuumdb --full -t '%s' '%s'), in the write-ahead log until that is recycled, and in standbys, archives and backups as long as those are kept",
			d.table("kv"), to)
	}
	return ""
}

// reached returns the address of the database for PostgreSQL's own programs, without a password: they ask for it or find it as this program did.
func (d *database) reached() string {
	c := d.config.ConnConfig
	q := url.Values{}
	u := url.URL{Scheme: "postgres", User: url.User(c.User), Path: "/" + c.Database}
	if len(c.Host) > 0 && c.Host[0] == '/' {
		q.Set("host", c.Host)
	} else {
		u.Host = c.Host
	}
	if c.Port != 5432 {
		q.Set("port", fmt.Sprint(c.Port))
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// pattern returns the schema's name as PostgreSQL's programs expect it: quoted, so that no character has a special meaning.
func (d *database) pattern() string { return pgx.Identifier{d.schema}.Sanitize() }

// Space implements kv.Sized. Free is estimated from the share of dead rows in PostgreSQL's statistics.
func (d *database) Space(ctx context.Context) (kv.Space, error) {
	if err := d.door.Enter(ctx); err != nil {
		return kv.Space{}, err
	}
	defer d.door.Leave()
	conn, err := d.acquire(ctx)
	if err != nil {
		return kv.Space{}, d.told(ctx, err)
	}
	defer conn.Release()
	results, err := linkOf(conn.Conn()).run(ctx, d.limit(), do(plain(
		"select sum(pg_total_relation_size(c.oid))::int8, coalesce(sum(s.n_live_tup), 0)::int8, coalesce(sum(s.n_dead_tup), 0)::int8"+
			" from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_stat_all_tables s on s.relid = c.oid"+
			" where n.nspname = $1::text and c.relname in ('"+rewrittenPart+"', '"+restPart+"') having count(*) > 0"), []byte(d.schema)))
	if err != nil {
		return kv.Space{}, d.told(ctx, err)
	}
	if len(results[0].rows) == 0 {
		return kv.Space{}, kv.ErrNotExist
	}
	var n [3]int64
	for i, value := range results[0].rows[0] {
		n[i] = int64(binary.BigEndian.Uint64(value))
	}
	s := kv.Space{File: n[0]}
	if all := n[1] + n[2]; all > 0 {
		s.Free = int64(float64(n[0]) * float64(n[2]) / float64(all))
	}
	s.Used = s.File - s.Free
	return s, nil
}

var _ interface {
	engine.Hosted
	kv.Sized
	kv.Clock
} = (*database)(nil)
