package pgkv

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Each connection has a row of its own, in which each of its Updates writes an id with its last statements. Whoever lost a
// connection sets a fence on that row from another one: the server makes it wait for an Update that has reached the row already,
// and no Update of that connection can commit behind the fence. So the id that stands there then tells the outcome for good,
// whether the old connection's process on the server still runs or not.

// outcome finds out what became of an Update whose commit was not answered: nil, the error lost where nothing of it was stored, or
// kv.ErrUnknownOutcome where no server could be asked in time.
func (d *database) outcome(ctx context.Context, link, update [16]byte, lost error) error {
	deadline := time.Now().Add(d.outcomeWait)
	for try := 0; ; try++ {
		last, err := d.fence(ctx, link, deadline)
		switch {
		case err == nil && bytes.Equal(last, update[:]):
			return nil
		case err == nil:
			return lost
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", kv.ErrUnknownOutcome, ctx.Err())
		case time.Now().After(deadline):
			return fmt.Errorf("%w: the connection broke during the commit, and for %s no server could be asked: %w",
				kv.ErrUnknownOutcome, d.outcomeWait, d.clean(err))
		}
		pause(ctx, try+4)
	}
}

// fence reads the id in the row of a connection, and ends its use.
func (d *database) fence(ctx context.Context, id [16]byte, deadline time.Time) (last []byte, err error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, d.config.ConnConfig.Copy())
	if err != nil {
		return nil, err
	}
	l := newLink(conn, true)
	defer conn.Close(ctx)
	results, err := l.run(ctx, time.Until(deadline), do(d.sql.fence, id[:]))
	if err != nil {
		return nil, err
	}
	return results[0].rows[0][0], nil
}
