package cli

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/chatctx/chatctx/internal/pgtest"
)

// TestServerScripts runs testdata/server: what is true of stores on a server alone.
func TestServerScripts(t *testing.T) {
	if pgtest.Server == nil {
		t.Skip(pgtest.ErrMissing)
	}
	scripts(t, "testdata/server", func(e *testscript.Env) error { return onServer(e, false) })
}

// recordsHash is a digest of all records of the store at a URL.
func recordsHash(url string) (string, error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "select bucket, key, value from kv where value is not null order by bucket, key")
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for rows.Next() {
		var bucket string
		var key, value []byte
		if err := rows.Scan(&bucket, &key, &value); err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%q %x %x\n", bucket, key, value)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), rows.Err()
}
