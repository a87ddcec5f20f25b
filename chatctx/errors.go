package chatctx

import (
	"github.com/chatctx/chatctx/chatctx/internal/record"
)

// Errors that a caller may test with errors.Is.
var (
	// ErrNotFound: a reference names nothing. The error is a *RefError.
	ErrNotFound = record.ErrNotFound
	// ErrAmbiguous: a reference names several. The error is a *RefError with Candidates.
	ErrAmbiguous = record.ErrAmbiguous
	// ErrConflict: the change does not fit what is there: an old revision, a name that is taken, an undo that others stand on,
	// a call that was decided already. The error is a *ConflictError.
	ErrConflict = record.ErrConflict
	// ErrInvalid: an argument that can never be right: a bad name, a message without a role.
	ErrInvalid = record.ErrInvalid
	// ErrEmpty: the branch has no message for what was asked.
	ErrEmpty = record.ErrEmpty
	// ErrPurged: messages were removed for good while they were being read.
	ErrPurged = record.ErrPurged
	// ErrStopped says that a claim on a reply or a call has ended: the work was finished, an interrupt stopped it, or another program took it over after this one had not renewed it.
	ErrStopped = record.ErrStopped

	// ErrTaken is an ErrStopped: the claim on a call is another's by now, or has ended. What became of the call is not for who held it to say.
	ErrTaken = record.ErrTaken
)

// Errors of the file itself.
var (
	ErrNotExist = record.ErrNotExist // there is no file
	ErrNotOurs  = record.ErrNotOurs  // the file is another program's
	ErrTooNew   = record.ErrTooNew   // a newer version of this program wrote it
	ErrTooOld   = record.ErrTooOld   // a version wrote it that this one does not read any more
	ErrDamaged  = record.ErrDamaged  // what is in it cannot be read or does not fit together
	ErrLocked   = record.ErrLocked   // others held it for longer than Options.Wait
	ErrReadOnly = record.ErrReadOnly // the file or its user may not write
	ErrClosed   = record.ErrClosed   // this program has closed the store
)

// RefError is a reference that names nothing or too much.
type RefError = record.RefError

// NotFound makes the error for a reference that names nothing.
func NotFound(kind, ref string) error { return record.NotFound(kind, ref) }

// Ambiguous makes the error for a reference that names all of candidates.
func Ambiguous(kind, ref string, candidates []string) error {
	return record.Ambiguous(kind, ref, candidates)
}

// ConflictError says what does not fit, and what to do.
type ConflictError = record.ConflictError

// Invalid makes an ErrInvalid that says what is wrong.
func Invalid(format string, args ...any) error { return record.Invalid(format, args...) }
