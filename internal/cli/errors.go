package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

// Exit codes.
const (
	exitDone        = contract.Done
	exitFailed      = contract.Failed
	exitUsage       = contract.Usage
	exitNotFound    = contract.NotFound
	exitAmbiguous   = contract.Ambiguous
	exitConflict    = contract.Conflict
	exitWaits       = contract.Waits
	exitProvider    = contract.Provider
	exitPartial     = contract.Partial
	exitUndecided   = contract.Undecided
	exitNoStore     = contract.NoStore
	exitLocked      = contract.Locked
	exitDamaged     = contract.Damaged
	exitVersion     = contract.Version
	exitAway        = contract.Away
	exitWithdrawn   = contract.Withdrawn
	exitInterrupted = contract.Interrupted
)

// exitCodes explains the codes, for the docs. Those of commands that send and decide are part of the same promise.
var exitCodes = []struct {
	code  int
	means string
}{
	{exitDone, "done"},
	{exitFailed, "failed"},
	{exitUsage, "the command line is wrong: an unknown command or flag, a missing or empty argument"},
	{exitNotFound, "what it names is not there"},
	{exitAmbiguous, "what it names could be several"},
	{exitConflict, "conflict: an old revision, a name or file that is there already, an undo that something stands on"},
	{exitWaits, "a call waits for approval, was denied, or its time is over"},
	{exitProvider, "the provider refused or failed"},
	{exitPartial, "done in part"},
	{exitUndecided, "calls wait --then-claim: nobody decided in time"},
	{exitNoStore, "no store there"},
	{exitLocked, "another program holds the store"},
	{exitDamaged, "the store is damaged, or the file is no store"},
	{exitVersion, "the store is from a newer version, or from one that is too old"},
	{exitAway, "the server that keeps the store cannot be reached"},
	{exitWithdrawn, "calls wait --then-claim: whoever asked for the call is gone"},
	{exitInterrupted, "interrupted"},
}

// usageError is a command line that makes no sense.
type usageError struct {
	text string
	hint string // what to type instead; "": none
}

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{text: fmt.Sprintf(format, args...)} }

// hinted is an error with a line or two on what to type next.
type hinted struct {
	error
	hint string
}

func (e *hinted) Unwrap() error { return e.error }

// toldError is an error that a command has reported already.
type toldError struct{ error }

func (e *toldError) Unwrap() error { return e.error }

// damageFound is the error of check after it has listed the problems.
type damageFound struct{ problems int }

func (e *damageFound) Error() string {
	return fmt.Sprintf("%s found", count(e.problems, "problem"))
}

var (
	// errBroken means that the reader of our output has gone. It is no error for the person.
	errBroken = errors.New("the reader of the output has gone")
	// errExists means that a file is in the way.
	errExists = errors.New("is there already")
)

// classify returns the exit code of an error and its kind in JSON: here for the errors of this package, in contract for the library's.
func classify(err error) (code int, kind string) {
	var usage *usageError
	var partial *contract.PartialError
	var damage *damageFound
	var waits *waitsError
	var denied *operation.DeniedError
	var undecided *operation.UndecidedError
	var withdrawn *operation.WithdrawnError
	var ended *endedError
	switch {
	case err == nil, errors.Is(err, errBroken):
		return exitDone, ""
	case errors.Is(err, context.Canceled):
		return exitInterrupted, "interrupted"
	case errors.As(err, &ended):
		return ended.code, "ended"
	case errors.As(err, &partial):
		return exitPartial, "partial"
	case errors.As(err, &undecided) && undecided.Claims:
		return exitUndecided, "waits"
	case errors.As(err, &withdrawn):
		return exitWithdrawn, "withdrawn"
	case errors.As(err, &waits), errors.As(err, &undecided):
		return exitWaits, "waits"
	case errors.As(err, &denied):
		return exitWaits, "denied"
	case errors.As(err, &usage):
		return exitUsage, "usage"
	case errors.Is(err, errExists):
		return exitConflict, "exists"
	case errors.As(err, &damage):
		return exitDamaged, "damaged"
	}
	return contract.Classify(err)
}

// printError writes an error for a person or, as JSON, for a program.
func printError(w io.Writer, err error, asJSON bool) {
	code, kind := classify(err)
	var told *toldError
	if kind == "" || errors.As(err, &told) {
		return
	}
	hint := hintFor(err)
	var ref *record.RefError
	isRef := errors.As(err, &ref)
	if asJSON {
		e := contract.ErrorOf(err, code, kind)
		e.Hint = hint
		b, _ := json.Marshal(map[string]contract.Error{"error": e})
		fmt.Fprintf(w, "%s\n", b)
		return
	}
	if code == exitInterrupted {
		text := "interrupted"
		var partial *contract.PartialError
		if errors.As(err, &partial) {
			text += "; " + partial.Done
		}
		fmt.Fprintf(w, "chatctx: %s\n", text)
		return
	}
	if isRef && len(ref.Candidates) > 0 {
		fmt.Fprintf(w, "chatctx: %s %q could be any of:\n", ref.Kind, clean(ref.Ref))
		for _, c := range ref.Candidates {
			fmt.Fprintf(w, "  %s\n", clean(c))
		}
		if ref.More > 0 {
			fmt.Fprintf(w, "  and %d more\n", ref.More)
		}
		return
	}
	fmt.Fprintf(w, "chatctx: %s\n", clean(contract.Text(err)))
	if hint != "" {
		fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(hint, "\n", "\n  "))
	}
}

// hintFor says what to type next.
func hintFor(err error) string {
	var h *hinted
	if errors.As(err, &h) {
		return h.hint
	}
	var usage *usageError
	if errors.As(err, &usage) {
		return usage.hint
	}
	return ""
}
