package pgkv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chatctx/chatctx/internal/engine"
)

// A store has three roles of the database, made when the first user gets one. They cannot log in; users are their members.
//
//	owner   owns schema and tables: may change and drop them, and grant
//	writer  reads and changes records
//	reader  reads records
//
// The server itself refuses what a role may not do, whatever program asks.
//
// roleName returns the name of a store's role. Roles belong to the whole server, so the name contains the database and the schema; a name that is too long
// ends with a hash.

// roleName is the role of a store. Roles belong to the whole server, so database and schema stand in the name; one that would be too long ends with a hash.
func (d *database) roleName(role engine.Role) string {
	name := fmt.Sprintf("%s_%s_%s", d.name(), d.schema, role)
	if len(name) <= 63 {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	tail := "_" + hex.EncodeToString(sum[:8]) + "_" + string(role)
	return strings.ToValidUTF8(name[:63-len(tail)], "") + tail
}

// Grant implements engine.Granter.
func (d *database) Grant(ctx context.Context, role engine.Role, user string) error {
	if err := d.door.Enter(ctx); err != nil {
		return err
	}
	defer d.door.Leave()
	if role != engine.RoleNone && role != engine.RoleOwner && role != engine.RoleWriter && role != engine.RoleReader {
		return fmt.Errorf("pgkv: the role %q is none of owner, writer, reader and none", role)
	}
	conn, err := d.acquire(ctx)
	if err != nil {
		return d.told(ctx, err)
	}
	defer conn.Release()
	results, err := linkOf(conn.Conn()).run(ctx, d.limit(), do(plain("select rolname::text from pg_roles where rolname = $1::text and rolcanlogin"), []byte(user)),
		do(plain("select current_user::text")))
	if err != nil {
		return d.told(ctx, err)
	}
	if len(results[0].rows) == 0 {
		return fmt.Errorf("%w: the database has no user %s that may log in; create it first (create role … login)", fs.ErrNotExist, user)
	}
	sql := "begin; " + d.rolesSQL(string(results[1].rows[0][0])) + d.memberSQL(role, user) + "commit"
	_, err = conn.Conn().PgConn().Exec(ctx, sql).ReadAll()
	if err == nil {
		return nil
	}
	_, _ = conn.Conn().PgConn().Exec(ctx, "rollback").ReadAll()
	if code(err) == insufficientRights {
		return fmt.Errorf("%w: only an owner of the store who may make roles (createrole) can grant: %w", fs.ErrPermission, d.clean(err))
	}
	return d.told(ctx, err)
}

// Owns implements engine.Granter.
func (d *database) Owns(ctx context.Context) (bool, error) {
	if err := d.door.Enter(ctx); err != nil {
		return false, err
	}
	defer d.door.Leave()
	conn, err := d.acquire(ctx)
	if err != nil {
		return false, d.told(ctx, err)
	}
	defer conn.Release()
	const sql = "select pg_has_role(current_user, c.relowner, 'USAGE')::text from pg_class c join pg_namespace n on n.oid = c.relnamespace" +
		" where n.nspname = $1::text and c.relname = 'kv'"
	results, err := linkOf(conn.Conn()).run(ctx, d.limit(), do(plain(sql), []byte(d.schema)))
	if err != nil {
		return false, d.told(ctx, err)
	}
	rows := results[0].rows
	return len(rows) == 1 && string(rows[0][0]) == "true", nil
}

// rolesSQL makes the store's roles with their rights, unless they exist.
func (d *database) rolesSQL(me string) string {
	var sql strings.Builder
	owner, writer, reader := d.role(engine.RoleOwner), d.role(engine.RoleWriter), d.role(engine.RoleReader)
	for _, role := range []engine.Role{engine.RoleOwner, engine.RoleWriter, engine.RoleReader} {
		name := d.roleName(role)
		fmt.Fprintf(&sql, "do $made$ begin if not exists (select from pg_roles where rolname = %s) then create role %s nologin; end if; end $made$; ", literal(name), d.role(role))
	}
	schema := pgx.Identifier{d.schema}.Sanitize()
	records, connections := d.table("kv"), d.table("connection")
	// A member of the owner's role may give it his objects.
	fmt.Fprintf(&sql, "grant %s to %s; ", owner, pgx.Identifier{me}.Sanitize())
	fmt.Fprintf(&sql, "grant create on database %s to %s; ", pgx.Identifier{d.name()}.Sanitize(), owner)
	for _, what := range []string{"schema " + schema, "table " + records, "table " + d.table(rewrittenPart), "table " + d.table(restPart), "table " + connections} {
		fmt.Fprintf(&sql, "alter %s owner to %s; ", what, owner)
	}
	fmt.Fprintf(&sql, "grant usage on schema %s to %s, %s; grant select on %s to %s, %s; ", schema, writer, reader, records, writer, reader)
	fmt.Fprintf(&sql, "grant insert, update, delete on %s to %s; grant select, insert, update, delete on %s to %s; ", records, writer, connections, writer)
	return sql.String()
}

// memberSQL makes a user a member of one role and of no other.
func (d *database) memberSQL(role engine.Role, user string) string {
	var sql strings.Builder
	name := pgx.Identifier{user}.Sanitize()
	for _, other := range []engine.Role{engine.RoleOwner, engine.RoleWriter, engine.RoleReader} {
		if other == role {
			fmt.Fprintf(&sql, "grant %s to %s; ", d.role(other), name)
		} else {
			fmt.Fprintf(&sql, "revoke %s from %s; ", d.role(other), name)
		}
	}
	return sql.String()
}

func (d *database) role(role engine.Role) string { return pgx.Identifier{d.roleName(role)}.Sanitize() }

// literal returns a text as an SQL literal.
func literal(text string) string {
	if strings.Contains(text, `\`) {
		return " E'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(text) + "'"
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
