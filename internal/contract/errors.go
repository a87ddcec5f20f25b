package contract

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

// Exit codes. The JSON of an error contains them too.
const (
	Done        = 0
	Failed      = 1
	Usage       = 2
	NotFound    = 3
	Ambiguous   = 4
	Conflict    = 5
	Waits       = 6
	Provider    = 7
	Partial     = 8
	Undecided   = 9
	NoStore     = 10
	Locked      = 11
	Damaged     = 12
	Version     = 13
	Away        = 14
	Withdrawn   = 15
	Interrupted = 130
)

// Error is an error.
type Error struct {
	Code       int      `json:"code"`
	Kind       string   `json:"kind"`
	Message    string   `json:"message"`
	Hint       string   `json:"hint,omitempty"`
	Candidates []string `json:"candidates,omitempty"`
	RetryAfter float64  `json:"retry_after,omitempty"`     // seconds to wait, if a provider says so
	More       int      `json:"more_candidates,omitempty"` // how many there are beyond those listed

	Card json.RawMessage `json:"card,omitempty"` // of a decision about what is not so any more: the call as calls.get shows it now
}

// PartialError is work that was done in part: an error stopped it, and Done says what is there nevertheless.
type PartialError struct {
	error
	Done string
}

// Partly returns the error of work that err stopped, with what is done.
func Partly(err error, done string) error { return &PartialError{err, done} }

func (e *PartialError) Error() string { return e.error.Error() + "; " + e.Done }

func (e *PartialError) Unwrap() error { return e.error }

// Text is an error's text. Of a file it has the name and what is wrong, without the system call that failed.
func Text(err error) string {
	var path *fs.PathError
	if !errors.As(err, &path) || path.Path == "" {
		return err.Error()
	}
	return strings.Replace(err.Error(), path.Error(), path.Path+": "+path.Err.Error(), 1)
}

// ErrorOf returns the JSON of an error with a code and a kind.
func ErrorOf(err error, code int, kind string) Error {
	e := Error{Code: code, Kind: kind, Message: Text(err)}
	var provider *wire.Error
	if errors.As(err, &provider) {
		e.RetryAfter = provider.RetryAfter.Seconds()
	}
	var ref *record.RefError
	if errors.As(err, &ref) {
		e.Candidates, e.More = ref.Candidates, ref.More
	}
	return e
}

// known lists the errors of the library that have a code and a kind. The first match counts.
var known = []struct {
	err  error
	code int
	kind string
}{
	{adapter.ErrNoModel, Usage, "usage"},
	{adapter.ErrSetting, Usage, "usage"},
	{turn.ErrNoProvider, Usage, "usage"},
	{turn.ErrRounds, Partial, "partial"},
	{wire.ErrRefused, Provider, string(wire.Refused)},
	{pool.ErrNotWhole, Provider, "partial"},
	{chatctx.ErrTooLarge, Failed, "too_large"},
	{chatctx.ErrInvalid, Usage, "usage"},
	{pool.ErrInvalid, Usage, "usage"},
	{chatctx.ErrAmbiguous, Ambiguous, "ambiguous"},
	{chatctx.ErrNotFound, NotFound, "not_found"},
	{chatctx.ErrEmpty, NotFound, "empty"},
	{chatctx.ErrConflict, Conflict, "conflict"},
	{kv.ErrAway, Away, "away"},
	{chatctx.ErrNotExist, NoStore, "no_store"},
	{chatctx.ErrLocked, Locked, "locked"},
	{chatctx.ErrNotOurs, Damaged, "not_a_store"},
	{chatctx.ErrDamaged, Damaged, "damaged"},
	{chatctx.ErrTooNew, Version, "too_new"},
	{chatctx.ErrTooOld, Version, "too_old"},
	{chatctx.ErrReadOnly, Failed, "read_only"},
	{chatctx.ErrDecider, Failed, "decider"},
	{chatctx.ErrPurged, Failed, "purged"},
	{kv.ErrUnknownOutcome, Failed, "unknown_outcome"},
	{fs.ErrPermission, Failed, "permission"},
}

// Classify returns the exit code and the kind of an error of the library: Done and "" for nil, Failed and "failed" for an error without a kind of its own.
func Classify(err error) (code int, kind string) {
	if err == nil {
		return Done, ""
	}
	var provider *wire.Error
	var budget *enhancer.BudgetError
	var part *pool.OutcomeError
	var unusable *enhancer.UnusableError
	var partial *PartialError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, chatctx.ErrStopped):
		return Interrupted, "interrupted"
	case errors.As(err, &partial):
		return Partial, "partial"
	case errors.As(err, &provider):
		return Provider, string(provider.Kind)
	case errors.As(err, &part):
		return Provider, string(part.Outcome)
	case errors.As(err, &unusable):
		return Provider, "unusable"
	case errors.As(err, &budget):
		return Failed, "too_long"
	case errors.Is(err, chatctx.ErrNotFound) && errors.Is(err, chatctx.ErrPurged): // a context that was there when the request began
		return NotFound, "purged"
	}
	for _, k := range known {
		if errors.Is(err, k.err) {
			return k.code, k.kind
		}
	}
	return Failed, "failed"
}
