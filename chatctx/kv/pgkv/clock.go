package pgkv

import (
	"context"
	"encoding/binary"
	"sync"
	"time"
)

// clock computes the server's time from its last answer and the time since then. A transaction that begins when the answer is some seconds old asks again
// in the same round trip.
type clock struct {
	mu     sync.Mutex
	server time.Time // its time at the moment
	at     time.Time // halfway between question and answer
	known  bool
}

const (
	clockFresh = 10 * time.Second // then transactions ask again
	clockGood  = 60 * time.Second // then Now asks again
)

// age returns how old the last answer is. A machine that slept counts its sleep only in the wall clock, and a clock that was set is wrong, so the longer of
// both counts.
func (c *clock) age() time.Duration {
	if !c.known {
		return time.Hour
	}
	now := time.Now()
	wall := now.Round(0).Sub(c.at.Round(0)).Abs()
	return max(now.Sub(c.at), wall)
}

func (c *clock) stale() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.age() > clockFresh
}

// heard finds the answer to a call of now among the first results.
func (c *clock) heard(sent time.Time, calls []call, results []result) {
	for i, call := range calls {
		if call.name == "now" && i < len(results) && len(results[i].rows) == 1 {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.at = sent.Add(time.Since(sent) / 2)
			c.server = time.UnixMicro(int64(binary.BigEndian.Uint64(results[i].rows[0][0])))
			c.known = true
			return
		}
	}
}

// Now implements kv.Clock.
func (d *database) Now(ctx context.Context) (time.Time, error) {
	if err := d.door.Enter(ctx); err != nil {
		return time.Time{}, err
	}
	defer d.door.Leave()
	if now, good := d.clock.read(); good {
		return now, nil
	}
	conn, err := d.acquire(ctx)
	if err != nil {
		return time.Time{}, d.told(ctx, err)
	}
	defer conn.Release()
	calls := []call{do(d.sql.now)}
	sent := time.Now()
	results, err := linkOf(conn.Conn()).run(ctx, d.limit(), calls...)
	if err != nil {
		return time.Time{}, d.told(ctx, err)
	}
	d.clock.heard(sent, calls, results)
	now, _ := d.clock.read()
	return now, nil
}

func (c *clock) read() (now time.Time, good bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.Add(time.Since(c.at)), c.age() <= clockGood
}
