package window

import "context"

// Made is what a request of package turn was made with, and how it compares with the last one.
type Made struct {
	Options Options // the settings of the window that the steps used
	Window  *Window // measured the draft
	// Forecast is the size of the request; if a compaction is due, an upper bound.
	Forecast *Forecast
	// Chain is the body in the order in which the provider reads it.
	Chain []Link
	// Prefix is what this request shares with the last one of this branch to this provider. First means that there was none.
	Prefix Prefix
	First  bool
}

// Handle stands in a public request for what it was made with. Its method is not exported, so that only rooms read that, by Of.
type Handle struct{ of Made }

func (h *Handle) made() *Made { return &h.of }

// Holder is a public request with a Handle: *turn.Request.
type Holder interface{ made() *Made }

// Of returns what a request was made with.
func Of(r Holder) *Made { return r.made() }

// Asking is what rooms ask of a turn beside sending: the settings of its window, and who makes vectors and summaries.
type Asking interface {
	// Options returns the settings of the window, without asking the server of the model.
	Options(ctx context.Context) (Options, error)
	// Embedder returns the embedding endpoint that the settings name, nil if they name no model.
	Embedder() (Embedder, error)
	// Compactor returns what lets the provider compact the branch apart from a request, nil if compact.by does not leave that to it.
	Compactor() Compactor
}

// AskHandle stands in a public type for an Asking. Its method is not exported, so that only rooms reach it, by AskingOf.
type AskHandle struct{ of Asking }

// AskHandleOf returns the handle of an Asking.
func AskHandleOf(a Asking) AskHandle { return AskHandle{a} }

func (h AskHandle) asking() Asking { return h.of }

// Asker is a public type with an AskHandle: *turn.InForce.
type Asker interface{ asking() Asking }

// AskingOf returns what stands behind a public value.
func AskingOf(a Asker) Asking { return a.asking() }
