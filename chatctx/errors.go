package chatctx

import (
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/kv"
)

// Errors to test for with errors.Is.
var (
	// ErrNotFound means that what is named or looked for is not there. For a reference that names nothing the error is a *RefError.
	ErrNotFound = record.ErrNotFound
	// ErrNoCurrent is an ErrNotFound: no context was named, and none is current.
	ErrNoCurrent = record.ErrNoCurrent
	// ErrAmbiguous means that a reference names several things. The error is a *RefError with Candidates.
	ErrAmbiguous = record.ErrAmbiguous
	// ErrConflict means that a change does not fit the store's state: an old revision, a name in use, an undo on which later changes stand, a call that was
	// decided already. The error is a *ConflictError.
	ErrConflict = record.ErrConflict
	// ErrInvalid means that an argument can never be right: a bad name, a message without a role.
	ErrInvalid = record.ErrInvalid
	// ErrEmpty means that the branch has no message for the request.
	ErrEmpty = record.ErrEmpty
	// ErrPurged means that purge or gc removed what a program still holds: a context, or what a snapshot is of. For a context it is an ErrNotFound too. The store
	// keeps nothing of what it purged, so that an id alone, without such a value, is only ErrNotFound.
	ErrPurged = record.ErrPurged
	// ErrTooLarge means that something is larger than the store can hold: a text of more than 64 MB, also as the whole of a message without its images,
	// documents and results, or a message of more than 100,000 parts. Nothing was stored.
	ErrTooLarge = kv.ErrTooLarge
	// ErrStopped means that a claim on a reply or a call has ended: the work was finished, an interrupt stopped it, or another program took it over because
	// it was not renewed.
	ErrStopped = record.ErrStopped

	// ErrTaken is an ErrStopped: the claim on a call has ended or is another program's. The former holder cannot say how the call ended.
	ErrTaken = record.ErrTaken
)

// Errors of the file itself.
var (
	ErrNotExist = record.ErrNotExist // there is no file
	ErrNotOurs  = record.ErrNotOurs  // the file is another program's
	ErrTooNew   = record.ErrTooNew   // a newer version of this program wrote it
	ErrTooOld   = record.ErrTooOld   // an older version wrote it, which this one no longer reads
	ErrDamaged  = record.ErrDamaged  // its contents cannot be read or are inconsistent
	ErrLocked   = record.ErrLocked   // other programs held it for longer than Options.Wait
	ErrReadOnly = record.ErrReadOnly // the file or its user may not write
	ErrClosed   = record.ErrClosed   // this program has closed the store
)

// RefError is the error for a reference that names nothing or several things.
//
// Fields: Kind, Ref string; Candidates []string; More int; Branch, On, Why string. Methods: Error() string; Unwrap() error. For more of each: go doc
// chatctx/internal/record.RefError
type RefError = record.RefError

// NotFound returns the error for a reference that names nothing.
func NotFound(kind, ref string) error { return record.NotFound(kind, ref) }

// Ambiguous returns the error for a reference that names all of candidates.
func Ambiguous(kind, ref string, candidates []string) error {
	return record.Ambiguous(kind, ref, candidates, 0)
}

// ConflictError is an ErrConflict whose text says what does not fit and what to do.
//
// Fields: Text string. Methods: Error() string; Unwrap() error. For more of each: go doc chatctx/internal/record.ConflictError
type ConflictError = record.ConflictError

// Says returns an error that is err for errors.Is and reads as the text alone, without err's own words.
func Says(err error, format string, args ...any) error { return record.Says(err, format, args...) }

// Invalid returns an ErrInvalid with a text.
func Invalid(format string, args ...any) error { return record.Invalid(format, args...) }
