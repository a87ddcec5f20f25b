package base

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

// CountBucket caches token counts: context, message, encoding to a number. Its loss does no harm.
const CountBucket = "count"

// ToolBucket has a context's tools, and under the zero id the store's.
const ToolBucket = "tool"

// LooseBucket has artifacts that were stored before the message that will refer to them: SHA-256 to time. gc spares them for LooseLife.
const LooseBucket = "loose"

// LooseLife is how long gc spares a loose artifact: a day.
const LooseLife = pool.Time(24 * time.Hour / time.Microsecond)

// TokenBucket has the tokens of other programs: SHA-256 of the secret to a Token.
const TokenBucket = "token"

// Token lets a program use a store through one that serves it.
type Token struct {
	Name    string    `cbor:"1,keyasint"`
	Scopes  []string  `cbor:"2,keyasint"`
	Created pool.Time `cbor:"3,keyasint"`
	By      string    `cbor:"4,keyasint,omitempty"` // who made it
	Decides bool      `cbor:"5,keyasint,omitempty"` // somebody made it who may decide about agents' calls, so its holder may

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

const (
	PartialBucket = "partial" // context, branch: what has arrived of the running reply
	QueuedBucket  = "queued"  // context, branch, time: id of a waiting message, which is in the pool but on no branch
	RequestBucket = "request" // context, branch, provider: hash chain of the last body sent
)

// ErrStopped means that the claim on a reply or a call has ended: the work was finished, somebody interrupted it, or another program took it over because it was not renewed.
var ErrStopped = errors.New("the claim has ended")

// ErrTaken is an ErrStopped: the claim on a call has ended or is another program's. The former holder cannot say how the call ended.
var ErrTaken = fmt.Errorf("%w: it was given up, or another program has it", ErrStopped)

// The keys of the meta bucket.
var (
	MetaFormat   = []byte("format")
	MetaStore    = []byte("store")
	MetaCreated  = []byte("created")
	MetaCurrent  = []byte("current")
	MetaSettings = []byte("settings")
	MetaJournal  = []byte("journal")
	// MetaDoubt exists from the first change after the newest one was found to be lost, perhaps, until a person was told by check or repair: the time.
	MetaDoubt = []byte("doubt")
	// MetaWindow begins the keys of context windows that servers reported for their models.
	MetaWindow = []byte("window ")
)
