//go:build unix

package pgkv

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/internal/pgtest"
)

// bounce starts a PgBouncer that ends with the test.
func bounce(t *testing.T, mode string) *pgtest.Bouncer {
	b, err := server(t).Bounce(mode)
	if errors.Is(err, pgtest.ErrNoBouncer) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// TestStatementsOfOtherStoresHaveOtherNames: on a session that programs of two stores share, the name of a statement never leads to the other store's. The same
// statement has one name.
func TestStatementsOfOtherStoresHaveOtherNames(t *testing.T) {
	named := func(schema string) []statement {
		s := (&address{schema: schema}).statements()
		return []statement{s.get, s.many, s.put, s.delete, s.sweep, s.mark, s.notify, s.now, s.lock, s.unlock, s.scan[0][0], s.scan[0][1], s.scan[1][0], s.scan[1][1]}
	}
	other := named("two")
	names := map[string]bool{}
	for i, one := range named("one") {
		if same := one.onServer() == other[i].onServer(); same != (one.sql == other[i].sql) {
			t.Errorf("%q is %q in both stores: %v", one.sql, one.onServer(), same)
		}
		if !strings.HasPrefix(one.onServer(), one.name+" ") || names[one.onServer()] {
			t.Errorf("%q is no name of %q alone", one.onServer(), one.name)
		}
		names[one.onServer()] = true
	}
}

// TestWrongPgBouncer: what does not work behind PgBouncer is told in one sentence, with what to set.
func TestWrongPgBouncer(t *testing.T) {
	for mode, want := range map[string]string{"transaction": "default_query_exec_mode=exec", "statement": "pool_mode to session"} {
		t.Run(mode, func(t *testing.T) {
			b, schema := bounce(t, mode), pgtest.Name()
			if err := initialise(ctx, server(t).URL(schema), nil); err != nil {
				t.Fatal(err)
			}
			refused := 0
			told := func(err error) {
				if err == nil {
					return
				}
				if refused++; !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SQLSTATE") || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v", err)
				}
			}
			told(initialise(ctx, b.URL(pgtest.Name()), nil))
			for range 3 { // each on a session that knows statements of the others
				db, err := openDB(ctx, b.URL(schema), options{})
				if told(err); err != nil {
					continue
				}
				defer db.Close()
				told(db.Update(ctx, func(tx kv.RwTx) error { return tx.Put("b", []byte("k"), []byte("v")) }))
				told(db.View(ctx, func(tx kv.Tx) error { _, err := tx.Get("b", []byte("k")); return err }))
			}
			if refused == 0 {
				t.Error("nothing was refused")
			}
		})
	}
}

// TestPgBouncer: what every engine promises holds behind PgBouncer, in session mode as it is and in transaction mode without statements that are kept.
func TestPgBouncer(t *testing.T) {
	if os.Getenv("CHATCTX_LONG") == "" {
		t.Skip("a long test: CHATCTX_LONG=1 runs it")
	}
	for mode, settings := range map[string][]string{"session": nil, "transaction": {"default_query_exec_mode=exec"}} {
		t.Run(mode, func(t *testing.T) {
			b := bounce(t, mode)
			kvtest.Run(t, func(t *testing.T) kv.DB {
				url := b.URL(pgtest.Name(), settings...)
				if err := initialise(ctx, url, nil); err != nil {
					t.Fatal(err)
				}
				return open(t, url)
			})
		})
	}
}
