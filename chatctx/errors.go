package chatctx

import (
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
)

// Errors to test for with errors.Is.
var (
	// ErrNotFound means that what is named or looked for is not there. For a reference that names nothing the error is a *RefError.
	ErrNotFound = base.ErrNotFound
	// ErrNoCurrent is an ErrNotFound: no context was named, and none is current.
	ErrNoCurrent = base.ErrNoCurrent
	// ErrAmbiguous means that a reference names several things. The error is a *RefError with Candidates.
	ErrAmbiguous = base.ErrAmbiguous
	// ErrConflict means that a change does not fit the store's state: an old revision, a name in use, an undo on which later changes stand, a call that was
	// decided already. The error is a *ConflictError.
	ErrConflict = base.ErrConflict
	// ErrInvalid means that an argument can never be right: a bad name, a message without a role.
	ErrInvalid = base.ErrInvalid
	// ErrEmpty means that the branch has no message for the request.
	ErrEmpty = base.ErrEmpty
	// ErrPurged means that purge or gc removed what a program still holds: a context, or what a snapshot is of. For a context it is an ErrNotFound too. The store
	// keeps nothing of what it purged, so that an id alone, without such a value, is only ErrNotFound.
	ErrPurged = base.ErrPurged
	// ErrTooLarge means that something is larger than the store can hold: a text of more than 64 MB, also as the whole of a message without its images,
	// documents and results, or a message of more than 100,000 parts. Nothing was stored.
	ErrTooLarge = kv.ErrTooLarge
	// ErrStopped means that a claim on a reply or a call has ended: the work was finished, an interrupt stopped it, or another program took it over because
	// it was not renewed.
	ErrStopped = base.ErrStopped

	// ErrTaken is an ErrStopped: the claim on a call has ended or is another program's. The former holder cannot say how the call ended.
	ErrTaken = base.ErrTaken
)

// Errors of the file itself.
var (
	ErrNotExist = base.ErrNotExist // there is no file
	ErrNotOurs  = base.ErrNotOurs  // the file is another program's
	ErrTooNew   = base.ErrTooNew   // a newer version of this program wrote it
	ErrTooOld   = base.ErrTooOld   // an older version wrote it, which this one no longer reads
	ErrDamaged  = base.ErrDamaged  // its contents cannot be read or are inconsistent
	ErrLocked   = base.ErrLocked   // other programs held it for longer than Options.Wait
	ErrReadOnly = base.ErrReadOnly // the file or its user may not write
	ErrDecider  = base.ErrDecider  // an agent's calls depend on it, and Options.Decider does not say that a person asks
	ErrClosed   = base.ErrClosed   // this program has closed the store
)
