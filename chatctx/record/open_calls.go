package record

import (
	"time"

	"github.com/chatctx/chatctx/pool"
)

// CallFilter narrows a list of open calls. The zero value takes all calls outside the trash.
type CallFilter struct {
	Context pool.ID   // and its sub-contexts; zero: all contexts
	Branch  string    // of Context alone; "": all
	Tool    string    // a pattern of tool names as in path.Match, except that * also matches slashes; "": all
	State   string    // a CallState; "": all
	Trash   bool      // calls of contexts in the trash, too
	Since   pool.Time // calls that have waited since then or later only; zero: all
	After   *Call     // calls after this one in the list only; nil: all
	// Skip, if not nil, leaves out a call before it is read. index counts from 1.
	Skip func(message pool.ID, index int) bool
}

// ClaimOptions are options of ClaimCall.
type ClaimOptions struct {
	// Again also allows a call that is uncertain because its program died. Without it the call must be approved and not run yet.
	Again bool
	// PID is the process whose end ends the claim: 0 means this process, -1 none. Hold is how long the claim lasts without a renewal; 0 means ClaimLife.
	PID  int
	Hold time.Duration
	// Name is what the runner calls itself, recorded as claimed beside the program; "" claims nothing.
	Name string
	// Stored: the runner runs CallClaim.Tool. The step records it.
	Stored bool
}
