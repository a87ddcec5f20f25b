//go:build unix

package pgkv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// sql runs statements on the server as its owner.
func sql(t testing.TB, statements ...string) {
	t.Helper()
	sqlAt(t, server(t).URL("public"), statements...)
}

func sqlAt(t testing.TB, url string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func openError(url string) error {
	db, err := kv.Open(ctx, url, kv.OpenOptions{Wait: time.Hour})
	if err == nil {
		_ = db.Close()
	}
	return err
}

// TestOpenRefuses tells apart what may be at a URL.
func TestOpenRefuses(t *testing.T) {
	c := server(t)
	name := func() string { return pgtest.Name() }
	foreign, otherKV, empty, newer, denied := name(), name(), name(), name(), name()
	sql(t, "create schema "+foreign, "create table "+foreign+".people (id int)",
		"create schema "+otherKV, "create table "+otherKV+".kv (id int)",
		"create schema "+empty)
	for _, schema := range []string{newer, denied} {
		if err := initialise(ctx, c.URL(schema), nil); err != nil {
			t.Fatal(err)
		}
	}
	sql(t, "update "+newer+".kv set value = '7' where bucket = ''", "create role guest_"+denied+" login")
	as := func(url, user string) string { return strings.Replace(url, "postgres@/", user+"@/", 1) }
	for _, test := range []struct {
		what, url string
		want      error
	}{
		{"no schema", c.URL(name()), kv.ErrNotExist},
		{"an empty schema", c.URL(empty), kv.ErrNotExist},
		{"no database", strings.Replace(c.URL(empty), "@/postgres?", "@/nothing?", 1), kv.ErrNotExist},
		{"tables of somebody else", c.URL(foreign), kv.ErrNotOurs},
		{"a table kv of somebody else", c.URL(otherKV), kv.ErrNotOurs},
		{"a newer version", c.URL(newer), kv.ErrTooNew},
		{"no rights", as(c.URL(denied), "guest_"+denied), fs.ErrPermission},
		{"no such user", as(c.URL(denied), "nobody_here"), fs.ErrPermission},
		{"no server", pgtest.URLAt(t.TempDir(), "s"), kv.ErrAway},
	} {
		begun := time.Now()
		if err := openError(test.url); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.what, err, test.want)
		}
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("%s: said after %s", test.what, took)
		}
	}
	for _, parameter := range []string{"schema=s", "statement_timeout=lots"} { // a server that is there, and no use in trying again
		err := openError(c.URL(denied, parameter))
		if err == nil || errors.Is(err, kv.ErrAway) || !strings.Contains(err.Error(), "a parameter of the store's URL") {
			t.Errorf("%s: %v", parameter, err)
		}
	}
	for _, schema := range []string{foreign, otherKV} {
		if err := initialise(ctx, c.URL(schema), nil); !errors.Is(err, kv.ErrNotOurs) {
			t.Errorf("Init over somebody else's tables: %v", err)
		}
	}
	if err := initialise(ctx, c.URL(denied), nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Init over a store: %v", err)
	}
	if err := initialise(ctx, c.URL(empty), nil); err != nil {
		t.Errorf("Init in an empty schema: %v", err)
	}
}

// TestRightsToRead: who may read and not write is told so by an Update, and so is one who asked for no more.
func TestRightsToRead(t *testing.T) {
	schema := pgtest.Name()
	owner := server(t).URL(schema)
	if err := initialise(ctx, owner, nil); err != nil {
		t.Fatal(err)
	}
	looker := "looker_" + schema
	sql(t, "create role "+looker+" login", "grant usage on schema "+schema+" to "+looker, "grant select on "+schema+".kv to "+looker)
	db := open(t, strings.Replace(owner, "postgres@/", looker+"@/", 1))
	defer closeDB(t, db)
	if err := add(db, true, 1); !errors.Is(err, kv.ErrReadOnly) {
		t.Errorf("an Update without the right: %v", err)
	}
	stored(t, db, true, 0)
	reads, err := kv.Open(ctx, owner, kv.OpenOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer closeDB(t, reads)
	if err := add(reads, true, 1); err != kv.ErrReadOnly {
		t.Errorf("an Update of a handle to read: %v", err)
	}
}

// TestInitIsWhole: where fill fails nothing is left, and of several at once one makes the store.
func TestInitIsWhole(t *testing.T) {
	url := server(t).URL(pgtest.Name())
	failed := errors.New("failed")
	fill := func(tx kv.RwTx) error { return tx.Put("b", []byte("k"), []byte("v")) }
	err := initialise(ctx, url, func(tx kv.RwTx) error { return errors.Join(fill(tx), failed) })
	if !errors.Is(err, failed) {
		t.Errorf("the error of fill: %v", err)
	}
	if err := openError(url); !errors.Is(err, kv.ErrNotExist) {
		t.Errorf("after a failed Init: %v", err)
	}
	results := make(chan error)
	for range 4 {
		go func() { results <- kv.Init(ctx, url, fill) }()
	}
	made := 0
	for range 4 {
		if err := <-results; err == nil {
			made++
		} else if !errors.Is(err, fs.ErrExist) {
			t.Errorf("another Init at the same time: %v", err)
		}
	}
	if made != 1 {
		t.Errorf("%d of 4 Inits made the store", made)
	}
	refused := errors.New("refused")
	_, err = kv.Open(ctx, url, kv.OpenOptions{Check: func(tx kv.Tx) error {
		if value, err := tx.Get("b", []byte("k")); string(value) != "v" {
			return fmt.Errorf("what fill wrote is %q, %w", value, err)
		}
		return refused
	}})
	if !errors.Is(err, refused) {
		t.Errorf("Check's error: %v", err)
	}
}

// TestPasswordsStaySecret looks for the password in what goes wrong.
func TestPasswordsStaySecret(t *testing.T) {
	const password = "s3cr3t/w0rd"
	escaped := url.QueryEscape(password)
	passfile := filepath.Join(t.TempDir(), "pass")
	if err := os.WriteFile(passfile, []byte("*:*:*:*:"+password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("PGPASSWORD", "")
	for _, text := range []string{
		"postgres://me:" + escaped + "@/db?host=" + dir,
		"postgres://me:" + escaped + "@127.0.0.1:1/db",
		"postgres://me:" + escaped + "@127.0.0.1:1/db?sslmode=nonsense",
		"postgres://me:" + escaped + "@127.0.0.1:99999999/db",
		"postgres://me:" + password + "@127.0.0.1:1/db",
		"postgres://me:" + escaped + "@127.0.0.1:x/db",
		"postgres://me:%zz" + password + "@127.0.0.1:1/db",
		"postgres://me@127.0.0.1:1/db?password=" + escaped + "&connect_timeout=x",
		"postgres://me:" + escaped + "@127.0.0.1:1/db?pool_max_conns=x",
		"postgres://me:" + escaped + "@127.0.0.1:1/db?search_path=a,b",
		"postgres://me@127.0.0.1:1/db?passfile=" + passfile,
	} {
		err := openError(text)
		if err == nil {
			t.Errorf("%s was opened", text)
			continue
		}
		for _, secret := range []string{password, escaped, "w0rd"} {
			if strings.Contains(err.Error(), secret) || strings.Contains(fmt.Sprintf("%+v", err), secret) {
				t.Errorf("%s: the error tells the password: %v", text, err)
			}
		}
	}
}

// TestSettings: what the URL says about the session holds, and the rest is ours.
func TestSettings(t *testing.T) {
	db := open(t, made(t, "statement_timeout=12345", "application_name=mine", "pool_max_conns=3"))
	defer closeDB(t, db)
	d := db.(*database)
	for name, want := range map[string]string{
		"statement_timeout": "12345ms", "application_name": "mine", "enable_seqscan": "off", "lock_timeout": "5s",
		"idle_in_transaction_session_timeout": "5min",
	} {
		conn, err := d.acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		results, err := linkOf(conn.Conn()).run(ctx, time.Minute, do(plain("select current_setting($1::text)"), []byte(name)))
		conn.Release()
		if err != nil || string(results[0].rows[0][0]) != want {
			t.Errorf("%s is %q, want %q, %v", name, results, want, err)
		}
	}
	if n := d.pool.Config().MaxConns; n != 3 {
		t.Errorf("pool of %d", n)
	}
}

// TestLimit: a round trip is given up some time after the server would have ended its statement, whatever the URL says of that.
func TestLimit(t *testing.T) {
	for setting, want := range map[string]time.Duration{
		"": time.Minute, "5000": 5 * time.Second, "250ms": 250 * time.Millisecond, "2 min": 2 * time.Minute, "1h": time.Hour, "0": 24 * time.Hour, "1d": 24 * time.Hour,
	} {
		a, err := parse("postgres://me@127.0.0.1/db?statement_timeout=" + url.PathEscape(setting))
		if err != nil {
			t.Fatal(err)
		}
		if got := a.limit(); got != want+10*time.Second {
			t.Errorf("statement_timeout %q: a round trip may take %s, want 10s more than %s", setting, got, want)
		}
	}
}

// TestPoolInUse: a View inside each of as many as there are connections is an error after the wait, and not for ever.
func TestPoolInUse(t *testing.T) {
	db := open(t, made(t, "pool_max_conns=1"))
	defer closeDB(t, db)
	d := db.(*database)
	d.settled()
	wait := d.wait
	d.wait = 30 * time.Millisecond
	read := func(tx kv.Tx) error { _, err := tx.Get("b", []byte("k")); return err }
	err := db.View(ctx, func(tx kv.Tx) error {
		return errors.Join(read(tx), db.View(ctx, read))
	})
	if !errors.Is(err, kv.ErrLocked) || !strings.Contains(err.Error(), "pool_max_conns") {
		t.Errorf("a View inside another with one connection: %v", err)
	}
	d.settled()
	d.wait = wait
	if err := db.View(ctx, read); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestClock: the server's time, whatever happened to this machine's.
func TestClock(t *testing.T) {
	db := open(t, made(t))
	defer closeDB(t, db)
	now, err := db.(kv.Clock).Now(ctx)
	if err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("the server's time is %s, here it is %s, %v", now, time.Now(), err)
	}
	d := db.(*database)
	// An answer that says ten minutes later is believed; one that is old is asked for again.
	d.clock.mu.Lock()
	d.clock.server = d.clock.server.Add(10 * time.Minute)
	d.clock.mu.Unlock()
	if later, err := d.Now(ctx); err != nil || later.Sub(now) < 9*time.Minute {
		t.Errorf("%s, want ten minutes after %s, %v", later, now, err)
	}
	d.clock.mu.Lock()
	d.clock.at = d.clock.at.Add(time.Hour) // as when this machine's clock was put back
	d.clock.mu.Unlock()
	if again, err := d.Now(ctx); err != nil || again.Sub(now).Abs() > time.Minute {
		t.Errorf("%s, want about %s, %v", again, now, err)
	}
}

// TestWatchOthers: changes of another process are heard, also after the listener's connection was lost.
func TestWatchOthers(t *testing.T) {
	for _, settings := range [][]string{nil, {"default_query_exec_mode=exec"}} {
		url := made(t, settings...)
		mine, other := open(t, url), open(t, url)
		watched, cancel := context.WithCancel(ctx)
		signals, err := mine.Watch(watched, "b", []byte("a-key-that-is-longer-than-is-told"))
		if err != nil {
			t.Fatal(err)
		}
		write := func(key string) {
			err := other.Update(ctx, func(tx kv.RwTx) error { return tx.Put("b", []byte(key), nil) })
			if err != nil {
				t.Fatal(err)
			}
		}
		heard := func(when string) {
			select {
			case <-signals:
			case <-time.After(30 * time.Second):
				t.Fatalf("%v: no signal %s", settings, when)
			}
		}
		write("a-key-that-is-longer-than-is-told/1")
		heard("after a change of another process")
		sql(t, "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and (query like 'listen%' or query like '%lsn%')")
		heard("after the connection was lost")
		write("a-key-that-is-longer-than-is-told/2")
		heard("after a change that followed")
		cancel()
		closeDB(t, mine)
		closeDB(t, other)
	}
}

// TestSchemaNames: a name goes to the server as it is, however it is written.
func TestSchemaNames(t *testing.T) {
	for path, want := range map[string]string{
		"Team": "team", `"Team One"`: "Team One", `"a""b"`: `a"b`, " x ": "x",
		"a,b": "", `"$user"`: `$user`, "$user": "", "pg_toast": "", "": "", strings.Repeat("x", 64): "",
	} {
		if got, err := schemaName(path); got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v, want %q", path, got, err, want)
		}
	}
	odd := server(t).URL(url.QueryEscape(`"Odd "" ; drop 'n%"`))
	if err := initialise(ctx, odd, nil); err != nil {
		t.Fatal(err)
	}
	db := open(t, odd)
	defer closeDB(t, db)
	if err := add(db, true, 1); err != nil {
		t.Error(err)
	}
	stored(t, db, true, 1)
}
