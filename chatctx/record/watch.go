package record

import (
	"github.com/chatctx/chatctx/pool"
)

// Change is a change that Watch reports: an operation of a context, or of the store. One of the store that is about several contexts, as a trash can be, is
// reported once for each.
type Change struct {
	Context   pool.ID  // zero: the store
	Branches  []string // those that the operation changed or made, by their names then; none if it is about the context alone, or the store
	Kind      string   // the operation's What: append, fork, undo …; or Replaced
	Operation string
	// Err, if not nil, says why the watch could not look; the other fields are zero then. The watch goes on, and reports all changes since with the next
	// one.
	Err error
}
