package base

import (
	"errors"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Errors to test for with errors.Is. Those of the file itself are kv's.
var (
	// ErrNotFound means that what is named or looked for is not there. For a reference that names nothing the error is a *RefError.
	ErrNotFound = errors.New("not found")
	// ErrNoCurrent is an ErrNotFound: no context was named, and none is current.
	ErrNoCurrent = Says(ErrNotFound, "no conversation is current: chatctx new makes one, chatctx use chooses one")
	// ErrAmbiguous means that a reference names several things. The error is a *RefError with Candidates.
	ErrAmbiguous = errors.New("ambiguous")
	// ErrConflict means that a change does not fit the store's state: an old revision, a name in use, an undo on which later changes stand, a call that was
	// decided already. The error is a *ConflictError.
	ErrConflict = errors.New("conflict")
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

// RefError is the error for a reference that names nothing or several things.
type RefError struct {
	Kind       string // what it should name, in words: conversation, branch, message, call, operation, tag, artifact …
	Ref        string
	Candidates []string // ids, each with a short description
	More       int      // how many candidates there are beyond those listed
	Branch, On string   // for a message that was looked for on Branch: another branch, On, has it
	Why        string   // why nothing has the name, where that helps
	err        error
}

func (e *RefError) Error() string {
	if e.On != "" {
		return fmt.Sprintf("%s %s is not on branch %q: %q has it", e.Kind, e.Ref, e.Branch, e.On)
	}
	if len(e.Candidates) == 0 {
		s := fmt.Sprintf("no %s %q", e.Kind, e.Ref)
		if e.Why != "" {
			s += ": " + e.Why
		}
		return s
	}
	s := fmt.Sprintf("%s %q could be any of: %s", e.Kind, e.Ref, strings.Join(e.Candidates, ", "))
	if e.More > 0 {
		s += fmt.Sprintf(", and %d more", e.More)
	}
	return s
}

// Unwrap returns ErrNotFound, ErrAmbiguous, or for a context that is gone ErrNotFound with ErrPurged.
func (e *RefError) Unwrap() error {
	if e.err == nil {
		return ErrNotFound
	}
	return e.err
}

// NotFound returns the error for a reference that names nothing.
func NotFound(kind, ref string) error { return &RefError{Kind: kind, Ref: ref, err: ErrNotFound} }

// NotFoundSince returns the error for a reference that names nothing, with the reason.
func NotFoundSince(kind, ref, format string, args ...any) error {
	return &RefError{Kind: kind, Ref: ref, Why: fmt.Sprintf(format, args...), err: ErrNotFound}
}

// Gone returns the error for a context that there was, and that purge or gc removed: ErrNotFound and ErrPurged.
func Gone(id pool.ID) error {
	return &RefError{Kind: "conversation", Ref: id.String(), Why: "it was removed for good", err: errors.Join(ErrNotFound, ErrPurged)}
}

// OnAnother returns the error for a message that another branch has.
func OnAnother(ref, branch, on string) error {
	return &RefError{Kind: "message", Ref: ref, Branch: branch, On: on, err: ErrNotFound}
}

// Ambiguous returns the error for a reference that names all of candidates, and more that are not listed.
func Ambiguous(kind, ref string, candidates []string, more int) error {
	return &RefError{Kind: kind, Ref: ref, Candidates: candidates, More: more, err: ErrAmbiguous}
}

// ConflictError is an ErrConflict whose text says what does not fit and what to do.
type ConflictError struct{ Text string }

func (e *ConflictError) Error() string { return e.Text }

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

func Conflict(format string, args ...any) error { return &ConflictError{fmt.Sprintf(format, args...)} }

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
