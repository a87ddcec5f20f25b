//go:build unix

package pgkv

import (
	"errors"
	"os"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/internal/pgtest"
)

// TestPgBouncer: what every engine promises holds behind PgBouncer, in session mode as it is and in transaction mode without statements that are kept.
func TestPgBouncer(t *testing.T) {
	if os.Getenv("CHATCTX_LONG") == "" {
		t.Skip("a long test: CHATCTX_LONG=1 runs it")
	}
	for mode, settings := range map[string][]string{"session": nil, "transaction": {"default_query_exec_mode=exec"}} {
		t.Run(mode, func(t *testing.T) {
			b, err := server(t).Bounce(mode)
			if errors.Is(err, pgtest.ErrNoBouncer) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			kvtest.Run(t, func(t *testing.T) kv.DB {
				url := b.URL(pgtest.Name(), settings...)
				if err := Init(ctx, url, nil); err != nil {
					t.Fatal(err)
				}
				return open(t, url)
			})
		})
	}
}
