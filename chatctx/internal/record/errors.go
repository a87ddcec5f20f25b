package record

import (
	"errors"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Errors that a caller may test with errors.Is. Those of the file itself are kv's.
var (
	// ErrNotFound: a reference names nothing. The error is a *RefError.
	ErrNotFound = errors.New("not found")
	// ErrAmbiguous: a reference names several. The error is a *RefError with Candidates.
	ErrAmbiguous = errors.New("ambiguous")
	// ErrConflict: the change does not fit what is there: an old revision, a name that is taken, an undo that others stand on,
	// a call that was decided already. The error is a *ConflictError.
	ErrConflict = errors.New("conflict")
	// ErrInvalid: an argument that can never be right: a bad name, a message without a role.
	ErrInvalid = pool.ErrInvalid
	// ErrEmpty: the branch has no message for what was asked.
	ErrEmpty = errors.New("the branch is empty")
	// ErrPurged: messages were removed for good while they were being read.
	ErrPurged = errors.New("messages were purged while they were being read")

	ErrNotExist = kv.ErrNotExist
	ErrNotOurs  = kv.ErrNotOurs
	ErrTooNew   = kv.ErrTooNew
	ErrTooOld   = kv.ErrTooOld
	ErrDamaged  = kv.ErrDamaged
	ErrLocked   = kv.ErrLocked
	ErrReadOnly = kv.ErrReadOnly
	ErrClosed   = kv.ErrClosed
)

// RefError is a reference that names nothing or too much.
type RefError struct {
	Kind       string // context, branch, message, call, operation, tag, artifact …
	Ref        string
	Candidates []string // ids, with a word on each
	Branch, On string   // of a message that is not on Branch, where it was looked for: a branch that has it
	err        error
}

func (e *RefError) Error() string {
	if e.On != "" {
		return fmt.Sprintf("%s %s is not on branch %q: %q has it", e.Kind, e.Ref, e.Branch, e.On)
	}
	if len(e.Candidates) == 0 {
		return fmt.Sprintf("no %s %q", e.Kind, e.Ref)
	}
	return fmt.Sprintf("%s %q could be any of: %s", e.Kind, e.Ref, strings.Join(e.Candidates, ", "))
}

// Unwrap gives ErrNotFound or ErrAmbiguous.
func (e *RefError) Unwrap() error {
	if e.err == nil {
		return ErrNotFound
	}
	return e.err
}

// NotFound makes the error for a reference that names nothing.
func NotFound(kind, ref string) error { return &RefError{Kind: kind, Ref: ref, err: ErrNotFound} }

// OnAnother makes the error for a message that stands on another branch than the one on which it was looked for.
func OnAnother(ref, branch, on string) error {
	return &RefError{Kind: "message", Ref: ref, Branch: branch, On: on, err: ErrNotFound}
}

// Ambiguous makes the error for a reference that names all of candidates.
func Ambiguous(kind, ref string, candidates []string) error {
	return &RefError{Kind: kind, Ref: ref, Candidates: candidates, err: ErrAmbiguous}
}

// ConflictError says what does not fit, and what to do.
type ConflictError struct{ Text string }

func (e *ConflictError) Error() string { return e.Text }

// Unwrap gives ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }

func Conflict(format string, args ...any) error { return &ConflictError{fmt.Sprintf(format, args...)} }

// Invalid makes an ErrInvalid that says what is wrong.
func Invalid(format string, args ...any) error { return &invalidError{fmt.Sprintf(format, args...)} }

func Invalidf(format string, args ...any) error { return Invalid(format, args...) }

// Named refuses the empty reference where something is to be removed: elsewhere it means the current one, and that is not to go by mistake.
func Named(kind, ref string) error {
	if ref == "" {
		return Invalid("name the %s that is to go", kind)
	}
	return nil
}

type invalidError struct{ text string }

func (e *invalidError) Error() string { return e.text }

func (e *invalidError) Unwrap() error { return ErrInvalid }
