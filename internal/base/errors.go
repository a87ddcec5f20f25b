package base

import (
	"errors"
	"fmt"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Errors to test for with errors.Is. Those of the file itself are kv's.
var (
	// ErrNotFound means that what is named or looked for is not there. For a reference that names nothing the error is a *record.RefError.
	ErrNotFound = record.ErrNotFound
	// ErrNoCurrent is an ErrNotFound: no context was named, and none is current.
	ErrNoCurrent = Says(ErrNotFound, "no conversation is current: chatctx new makes one, chatctx use chooses one")
	// ErrAmbiguous means that a reference names several things. The error is a *record.RefError with Candidates.
	ErrAmbiguous = errors.New("ambiguous")
	// ErrConflict means that a change does not fit the store's state: an old revision, a name in use, an undo on which later changes stand, a call that was
	// decided already. The error is a *record.ConflictError.
	ErrConflict = record.ErrConflict
	// ErrInvalid means that an argument can never be right: a bad name, a message without a role.
	ErrInvalid = pool.ErrInvalid
	// ErrEmpty means that the branch has no message for the request.
	ErrEmpty = errors.New("the branch is empty")
	// ErrPurged means that purge or gc removed what a program still holds: a context, or what a snapshot is of. For a context it is an ErrNotFound too. The store
	// keeps nothing of what it purged, so that an id alone, without such a value, is only ErrNotFound.
	ErrPurged = errors.New("purged meanwhile")

	ErrNotExist = kv.ErrNotExist
	ErrNotOurs  = kv.ErrNotOurs
	ErrTooNew   = kv.ErrTooNew
	ErrTooOld   = kv.ErrTooOld
	ErrDamaged  = kv.ErrDamaged
	ErrLocked   = kv.ErrLocked
	ErrReadOnly = kv.ErrReadOnly
	ErrClosed   = kv.ErrClosed
)

// NotFound returns the error for a reference that names nothing.
func NotFound(kind, ref string) error {
	return &record.RefError{Kind: kind, Ref: ref, Err: ErrNotFound}
}

// NotFoundSince returns the error for a reference that names nothing, with the reason.
func NotFoundSince(kind, ref, format string, args ...any) error {
	return &record.RefError{Kind: kind, Ref: ref, Why: fmt.Sprintf(format, args...), Err: ErrNotFound}
}

// Gone returns the error for a context that there was, and that purge or gc removed: ErrNotFound and ErrPurged.
func Gone(id pool.ID) error {
	return &record.RefError{Kind: "conversation", Ref: id.String(), Why: "it was removed for good", Err: errors.Join(ErrNotFound, ErrPurged)}
}

// OnAnother returns the error for a message that another branch has.
func OnAnother(ref, branch, on string) error {
	return &record.RefError{Kind: "message", Ref: ref, Branch: branch, On: on, Err: ErrNotFound}
}

// Ambiguous returns the error for a reference that names all of candidates, and more that are not listed.
func Ambiguous(kind, ref string, candidates []string, more int) error {
	return &record.RefError{Kind: kind, Ref: ref, Candidates: candidates, More: more, Err: ErrAmbiguous}
}

func Conflict(format string, args ...any) error {
	return &record.ConflictError{Text: fmt.Sprintf(format, args...)}
}

// Says returns an error that is err for errors.Is and reads as the text alone, without err's own words.
func Says(err error, format string, args ...any) error {
	return &saying{fmt.Sprintf(format, args...), err}
}

// Invalid returns an ErrInvalid with a text.
func Invalid(format string, args ...any) error { return Says(ErrInvalid, format, args...) }

func Invalidf(format string, args ...any) error { return Invalid(format, args...) }

// Named refuses an empty reference to something that is to be removed. Elsewhere an empty reference means the current one, which must not go by mistake.
func Named(kind, ref string) error {
	if ref == "" {
		return Invalid("name the %s to remove", kind)
	}
	return nil
}

type saying struct {
	text string
	err  error
}

func (e *saying) Error() string { return e.text }

func (e *saying) Unwrap() error { return e.err }
