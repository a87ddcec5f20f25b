package boltkv_test

import (
	"path/filepath"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
)

func open(t testing.TB, path string, o boltkv.Options) kv.DB {
	t.Helper()
	db, err := boltkv.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func TestConformance(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.DB {
		return open(t, filepath.Join(t.TempDir(), "s.db"), boltkv.Options{Create: true, Sequential: []string{"sequential"}})
	})
}

func TestModel(t *testing.T) {
	for seed := range uint64(2) {
		path := filepath.Join(t.TempDir(), "s.db")
		kvtest.Reopen(t, seed, func() kv.DB {
			return open(t, path, boltkv.Options{Create: true, Sequential: []string{"sequential"}, IdleHold: -1})
		})
	}
}
