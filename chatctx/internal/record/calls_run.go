package record

import (
	"time"

	"github.com/chatctx/chatctx/pool"
)

// Hold renews a claim so that it lasts for life without another renewal.
func (c *Claim) Hold(now, life pool.Time) {
	c.Renewed = now + life - pool.Time(ClaimLife/time.Microsecond)
}
