package base

import (
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Hold renews a claim so that it lasts for life without another renewal.
func Hold(c *record.Claim, now, life pool.Time) {
	more := life - pool.Time(ClaimLife/time.Microsecond)
	c.Renewed = now + more
	if c.Ticks = ticks(); c.Ticks != 0 {
		c.Ticks += int64(more)
	}
}
