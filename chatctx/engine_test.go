package chatctx

import (
	"os"
	"testing"

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

// openAny makes a store in memory, or on the server where tests are to run there.
func openAny(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := OpenMemory(o)
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
