package enhancer

import (
	"errors"
	"fmt"
	"strings"
)

// BudgetError means that the draft cannot be made to fit. It says what is left.
type BudgetError struct {
	Size, Limit, Budget           int
	System, Tools, Pinned, Latest int      // tokens of the parts that stay: prompts and summaries, tool definitions, pinned messages, the last turn
	Systems, Pins                 []int    // the positions of system messages and of pinned ones
	Off                           []string // the settings of steps that could make room and are switched off
}

func (e *BudgetError) Error() string {
	text := fmt.Sprintf("the request is %d tokens and may be %d (budget %d less headroom); what cannot be left out: prompts and summaries %d%s, tools %d, pinned %d%s, the last turn %d. "+
		"Unpin messages, exclude system messages, shorten the system prompt, or set a larger budget", e.Size, e.Limit, e.Budget, e.System, places(" with the system messages ", e.Systems), e.Tools, e.Pinned,
		places(": ", e.Pins), e.Latest)
	if len(e.Off) == 0 {
		return text
	}
	return text + ". Steps that could make room are switched off: set " + strings.Join(e.Off, "=true, ") + "=true"
}

// mostPlaces is how many messages an error names.
const mostPlaces = 8

// places names messages by their positions.
func places(lead string, at []int) string {
	var names []string
	for _, p := range at[:min(len(at), mostPlaces)] {
		names = append(names, fmt.Sprintf("#%d", p))
	}
	if more := len(at) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	if len(names) == 0 {
		return ""
	}
	return lead + strings.Join(names, ", ")
}

// UnusableError means that a model's answer cannot be used for what it was asked for. What it took is stored.
type UnusableError struct {
	Cause error // a *pool.OutcomeError, or what Question.Fits returned
	// Again means that the model was not asked this time, since it gave such an answer before.
	Again bool
}

// Error says what is wrong with the answer.
func (e *UnusableError) Error() string {
	if e.Again {
		return e.Cause.Error() + "; it was asked before, and the same model is not asked for the same messages again"
	}
	return e.Cause.Error()
}

// Unwrap returns the cause.
func (e *UnusableError) Unwrap() error { return e.Cause }

// ErrNothingToCompact means that the session holds only messages that are kept.
var ErrNothingToCompact = errors.New("nothing to compact: the session holds no more than is kept")

// NoGainError means that a compaction would not make the request smaller by a tenth, or that the summary of a stretch would not be smaller than the stretch by
// a tenth. Nothing was changed.
type NoGainError struct {
	Before, After int
	Least         float64 // the share
	Stretch       bool
}

// Error says how large the request is and would be.
func (e *NoGainError) Error() string {
	what := "a compaction is to make it smaller by %.0f %%"
	if e.Stretch {
		what = "the summary of a stretch is to be smaller than that by %.0f %%"
	}
	return fmt.Sprintf("nothing was compacted: the request would go from %d to %d tokens, and "+what, e.Before, e.After, 100*e.Least)
}

// ErrNoSession means that a branch has no summary that could be made anew.
var ErrNoSession = errors.New("the branch has no summary to make anew")

// ErrStretch means that a stretch cannot be summarised: it holds the newest message, or no message that may go.
var ErrStretch = errors.New("no stretch to summarise")

// ErrNoSummary means that the given text is blank, or that rules find nothing to keep. Nothing was changed.
var ErrNoSummary = errors.New("the summary is empty; nothing was compacted")
