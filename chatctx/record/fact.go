package record

import (
	"github.com/chatctx/chatctx/pool"
)

// Fact is what is known about a message, without its text.
type Fact struct {
	pool.Facts
	// Branch is the branch on which the message was written, or in whose session it is the summary or a digest; "" if nothing of that branch is left.
	Branch  string
	Removed bool // the branch was removed
}
