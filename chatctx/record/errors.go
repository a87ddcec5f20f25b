package record

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of references and changes; package chatctx has them, with all others, under the same names.
var (
	ErrNotFound = errors.New("not found")
	ErrConflict = errors.New("conflict")
)

// RefError is the error for a reference that names nothing or several things.
type RefError struct {
	Kind       string // what it should name, in words: conversation, branch, message, call, operation, tag, artifact …
	Ref        string
	Candidates []string // ids, each with a short description
	More       int      // how many candidates there are beyond those listed
	Branch, On string   // for a message that was looked for on Branch: another branch, On, has it
	Why        string   // why nothing has the name, where that helps
	Err        error    // what it is for errors.Is: ErrNotFound if nil, ErrAmbiguous, ErrPurged
}

func (e *RefError) Error() string {
	if e.On != "" {
		return fmt.Sprintf("%s %s is not on branch %q: %q has it", e.Kind, e.Ref, e.Branch, e.On)
	}
	if len(e.Candidates) == 0 {
		s := "no " + e.Kind
		if e.Ref != "" {
			s += fmt.Sprintf(" %q", e.Ref)
		}
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
	if e.Err == nil {
		return ErrNotFound
	}
	return e.Err
}

// ConflictError is an ErrConflict whose text says what does not fit and what to do.
type ConflictError struct{ Text string }

func (e *ConflictError) Error() string { return e.Text }

// Unwrap returns ErrConflict.
func (e *ConflictError) Unwrap() error { return ErrConflict }
