//go:build unix

package pgkv

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/internal/pgtest"
)

func TestMain(m *testing.M) {
	if play() {
		return
	}
	os.Exit(pgtest.Main(m.Run, "fsync=off", "max_connections=100"))
}

var ctx = context.Background()

// server skips the test where there is no server.
func server(t testing.TB) *pgtest.Cluster {
	t.Helper()
	if pgtest.Server == nil {
		t.Skip(pgtest.ErrMissing)
	}
	return pgtest.Server
}

// made makes a new database and gives its URL.
func made(t testing.TB, settings ...string) string {
	t.Helper()
	url := server(t).URL(pgtest.Name(), settings...)
	if err := initialise(ctx, url, nil); err != nil {
		t.Fatal(err)
	}
	return url
}

func open(t testing.TB, url string) kv.DB { return openWaiting(t, url, 0) }

// openWaiting opens a database whose transactions wait that long for the server.
func openWaiting(t testing.TB, url string, wait time.Duration) kv.DB {
	t.Helper()
	db, err := kv.Open(ctx, url, kv.OpenOptions{Wait: wait})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func closeDB(t testing.TB, db kv.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

func TestConformance(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.DB { return open(t, made(t)) })
}

// TestConformancePooled keeps nothing in a session, as behind a pooler that hands connections on after each transaction, and has Updates step aside for their scans.
func TestConformancePooled(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.DB { return openGuarded(t, made(t, "default_query_exec_mode=exec")) })
}

func TestModel(t *testing.T) {
	url := made(t)
	kvtest.Reopen(t, 7, func() kv.DB { return openGuarded(t, url) })
}
