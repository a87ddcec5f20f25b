//go:build unix

package pgkv

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// TestRoles tries each statement as each role over a raw connection: the server refuses what the role may not do.
func TestRoles(t *testing.T) {
	schema := pgtest.Name()
	url := server(t).URL(schema)
	if err := initialise(ctx, url, nil); err != nil {
		t.Fatal(err)
	}
	db := open(t, url)
	defer closeDB(t, db)
	if err := add(db, true, 1); err != nil {
		t.Fatal(err)
	}
	users := usersOf(t, db, schema)
	refusesByRole(t, schema, users)
	opensByRole(t, db, url, users)
}

// usersOf makes a user for each role.
func usersOf(t *testing.T, db kv.DB, schema string) map[engine.Role]string {
	users := map[engine.Role]string{}
	for _, role := range []engine.Role{engine.RoleReader, engine.RoleWriter, engine.RoleOwner, engine.RoleNone} {
		users[role] = `U "` + schema + `" ` + string(role)
		sql(t, "create role "+pgx.Identifier{users[role]}.Sanitize()+" login")
		for _, first := range []engine.Role{engine.RoleWriter, role} { // what somebody had before goes
			if err := db.(engine.Granter).Grant(ctx, first, users[role]); err != nil {
				t.Fatalf("%s: %v", role, err)
			}
		}
	}
	if err := db.(engine.Granter).Grant(ctx, engine.RoleReader, "nobody_"+schema); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a user who is not there: %v", err)
	}
	return users
}

func refusesByRole(t *testing.T, schema string, users map[engine.Role]string) {
	reads, writes, owns := 1, 2, 3
	rank := map[engine.Role]int{engine.RoleNone: 0, engine.RoleReader: 1, engine.RoleWriter: 2, engine.RoleOwner: 3}
	for _, test := range []struct {
		needs int
		sql   string
	}{
		{reads, "select count(*) from %[1]s.kv"},
		{writes, "insert into %[1]s.kv (bucket, key, value) values ('x', 'x', 'x')"},
		{writes, "update %[1]s.kv set value = 'y' where bucket = 'x'"},
		{writes, "delete from %[1]s.kv where bucket = 'x'"},
		{writes, "lock table %[1]s.kv in share row exclusive mode"},
		{writes, "select * from %[1]s.connection"},
		{writes, "insert into %[1]s.connection (id, last) values ('x', 'x')"},
		{writes, "delete from %[1]s.connection"},
		{owns, "truncate %[1]s.kv"},
		{owns, "alter table %[1]s.kv add column more int"},
		{owns, "create index on %[1]s.kv (value)"},
		{owns, "create table %[1]s.more (id int)"},
		{owns, "create function %[1]s.more() returns int language sql as 'select 1'"},
		{owns, "create trigger t after insert on %[1]s.kv execute function suppress_redundant_updates_trigger()"},
		{owns, "comment on table %[1]s.kv is 'mine'"},
		{owns, "alter table %[1]s.kv disable trigger all"},
		{owns, "drop table %[1]s.connection"},
		{owns, "drop schema %[1]s cascade"},
		{owns, "alter schema %[1]s rename to gone"},
	} {
		for role, user := range users {
			may := rank[role] >= test.needs
			err := tried(t, user, fmt.Sprintf(test.sql, schema))
			if refused := code(err) == insufficientRights; refused == may || may && err != nil {
				t.Errorf("%s: %s: %v", role, test.sql, err)
			}
		}
	}
}

func opensByRole(t *testing.T, db kv.DB, url string, users map[engine.Role]string) {
	as := func(role engine.Role) string {
		return strings.Replace(url, "postgres@/", pathEscape(users[role])+"@/", 1)
	}
	writer := open(t, as(engine.RoleWriter))
	defer closeDB(t, writer)
	if err := add(writer, true, 2); err != nil {
		t.Errorf("an Update by a writer: %v", err)
	}
	if err := writer.(engine.Granter).Grant(ctx, engine.RoleOwner, users[engine.RoleWriter]); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a writer grants: %v", err)
	}
	reader := open(t, as(engine.RoleReader))
	defer closeDB(t, reader)
	for user, owns := range map[kv.DB]bool{db: true, writer: false, reader: false} {
		if is, err := user.(engine.Granter).Owns(ctx); is != owns || err != nil {
			t.Errorf("%s owns: %t, %v", user.(engine.Hosted).User(), is, err)
		}
	}
	stored(t, reader, true, 2)
	if err := add(reader, true, 3); !errors.Is(err, kv.ErrReadOnly) {
		t.Errorf("an Update by a reader: %v", err)
	}
	if err := openError(as(engine.RoleNone)); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Open without a role: %v", err)
	}
}

func pathEscape(user string) string {
	return strings.ReplaceAll(strings.ReplaceAll(user, `"`, "%22"), " ", "%20")
}

// tried runs a statement as a user and takes back what it did.
func tried(t *testing.T, user, statement string) error {
	t.Helper()
	c, err := pgx.ParseConfig(server(t).URL("public"))
	if err != nil {
		t.Fatal(err)
	}
	c.User = user
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx)
	_, err = tx.Exec(ctx, statement)
	return err
}
