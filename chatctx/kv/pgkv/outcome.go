package pgkv

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Each connection has a row of its own, in which each of its Updates writes an id with its last statements. A program that lost a connection sets a fence
// on that row from another one: the server makes it wait for an Update that has reached the row already, and no Update of the old connection can commit
// after the fence. So the id in the row then gives the outcome for good, whether or not the old connection's process on the server still runs.
//
// outcome finds out what became of an Update whose commit was not answered. It returns nil if the Update was stored, the error lost if it was not, and
// kv.ErrUnknownOutcome if no server could be asked in time.

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
			return fmt.Errorf("%w: the connection broke during the commit, and no server answered for %s; look before you repeat the change: %w",
				kv.ErrUnknownOutcome, d.outcomeWait, d.clean(err))
		}
		pause(ctx, try+4)
	}
}

// fence reads the id in the row of a connection, and ends the connection's use of it.
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
