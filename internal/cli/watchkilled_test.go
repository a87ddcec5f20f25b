//go:build unix

package cli

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/pgtest"
	"github.com/chatctx/chatctx/internal/storetest"
)

// TestAWatcherMissesNothing: a watcher is told of every change of another program once and in order, though the server ends its listening connection again and again.
func TestAWatcherMissesNothing(t *testing.T) {
	if pgtest.Server == nil {
		t.Skip(pgtest.ErrMissing)
	}
	url := pgtest.Server.URL(pgtest.Name())
	raw, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close(context.Background())
	watching, err := chatctx.Open(url+"&application_name=watcher", chatctx.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer storetest.Close(t, watching)
	writing, err := chatctx.Open(url, chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer writing.Close()
	c, err := writing.New(t.Context(), record.NewContext{Title: "Watched"})
	if err != nil {
		t.Fatal(err)
	}
	changes, err := watching.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const rounds, each = 10, 4
	killed := 0
	var want []string
	for n := range rounds * each {
		if n%each == each/2 { // some changes come before the connection ends, some while there is none
			rows, err := raw.Query(t.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and application_name = 'watcher' and query like 'listen %'")
			if err != nil {
				t.Fatal(err)
			}
			ended, err := pgx.CollectRows(rows, pgx.RowTo[bool])
			if err != nil {
				t.Fatal(err)
			}
			killed += len(ended)
		}
		b := c.Begin("")
		b.Append(words(fmt.Sprint("number ", n)))
		done, err := b.Commit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, done.Operation)
		if n%each != each-1 {
			continue
		}
		for len(want) > 0 { // the next round begins with a connection that listens, or is about to
			select {
			case change := <-changes:
				if change.Err != nil || change.Context != c.ID || change.Operation != want[0] {
					t.Fatalf("told of %+v, want operation %s", change, want[0])
				}
				want = want[1:]
			case <-time.After(time.Minute):
				t.Fatalf("in round %d nobody tells of %q", n/each, want)
			}
		}
	}
	if killed == 0 {
		t.Error("no listening connection was ended")
	}
	t.Logf("%d connections were ended", killed)
}
