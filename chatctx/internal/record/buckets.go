package record

import (
	"errors"
	"fmt"
	"time"

	"github.com/chatctx/chatctx/pool"
)

// MainBranch is the branch that every context begins with.
const MainBranch = "main"

// RedactedMark stands in place of redacted text.
const RedactedMark = "[redacted]"

// CountBucket keeps token counts: context, message, encoding to a number. It can be lost without harm.
const CountBucket = "count"

// ToolBucket has a context's tools, and under the zero id those for all contexts.
const ToolBucket = "tool"

// LooseBucket has artifacts that were stored before what will refer to them: SHA-256 to time. gc leaves them alone for a day.
const LooseBucket = "loose"

// LooseLife is how long that is.
const LooseLife = pool.Time(24 * time.Hour / time.Microsecond)

// TokenBucket has what lets other programs in: SHA-256 of the secret to a Token.
const TokenBucket = "token"

// Token lets a program in that speaks to one that serves the store.
type Token struct {
	Name    string    `cbor:"1,keyasint"`
	Scopes  []string  `cbor:"2,keyasint"`
	Created pool.Time `cbor:"3,keyasint"`
	By      string    `cbor:"4,keyasint,omitempty"` // who made it
}

const (
	PartialBucket = "partial" // context, branch: what has come of the reply that runs
	QueuedBucket  = "queued"  // context, branch, time: id of a message that waits, which lies in the pool and on no branch
	RequestBucket = "request" // context, branch, provider: hash chain of the last body sent
)

// ErrStopped: somebody took the claim away while a reply ran: an interrupt, or another program after this one had not renewed it.
var ErrStopped = errors.New("the reply was stopped by another program")

// ErrTaken is an ErrStopped: the claim on a call is another's by now, or has ended. What became of the call is not for who held it to say.
var ErrTaken = fmt.Errorf("%w: the claim was taken away", ErrStopped)

// The names in the meta bucket.
var (
	MetaFormat   = []byte("format")
	MetaStore    = []byte("store")
	MetaCreated  = []byte("created")
	MetaCurrent  = []byte("current")
	MetaSettings = []byte("settings")
	MetaJournal  = []byte("journal")
	// MetaWindow begins the names under which it is remembered what servers said that their models take.
	MetaWindow = []byte("window ")
)
