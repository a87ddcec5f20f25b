package chatctx

import (
	"os"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	_ "github.com/chatctx/chatctx/chatctx/kv/pgkv"
	"github.com/chatctx/chatctx/internal/pgtest"
)

// TestMain gives the tests a server where those that run on any engine are to run there.
func TestMain(m *testing.M) {
	if !pgtest.Asked() {
		os.Exit(m.Run())
	}
	os.Exit(pgtest.Main(m.Run, "max_connections=1000"))
}

// openAny makes a store in memory, whose engine runs each change twice, or on the server where tests are to run there.
func openAny(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := OpenDB(kvtest.Twice{DB: memkv.New()}, o)
	if pgtest.Asked() {
		if pgtest.Server == nil {
			t.Skip(pgtest.ErrMissing)
		}
		o.Create = true
		s, err = Open(pgtest.Server.URL(pgtest.Name(), "pool_max_conns=4"), o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}
