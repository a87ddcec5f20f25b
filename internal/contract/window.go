package contract

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/window"
)

// Window is the size of the next request, in the same shape wherever it is reported.
type Window struct {
	Tokens     int       `json:"request_tokens"`
	AtMost     bool      `json:"at_most,omitempty"` // a compaction comes first, so the request may be smaller
	Exactness  string    `json:"exactness"`
	Budget     *int      `json:"budget"`
	Percent    *int      `json:"percent"`
	Within     bool      `json:"within"`
	Compaction *string   `json:"compaction"` // due, or null
	Reported   *Reported `json:"reported"`
}

// Reported holds a provider's figures for the last reply.
type Reported struct {
	Reply  chatctx.ID `json:"reply"`
	Input  int64      `json:"input_tokens"`
	Output int64      `json:"output_tokens"`
}

// WindowFields lists the fields of a Window, for help.
const WindowFields = "request_tokens, at_most, exactness (exact | calibrated | approximate), budget, percent, within, compaction (due | null), reported{reply, input_tokens, output_tokens}"

// WindowOf returns the JSON of a forecast.
func WindowOf(f *window.Forecast) Window {
	v := Window{Tokens: f.Tokens, AtMost: f.Due, Exactness: f.Exactness, Within: f.Budget == 0 || f.Tokens <= f.Budget}
	if f.Budget > 0 {
		percent := f.Percent()
		v.Budget, v.Percent = &f.Budget, &percent
	}
	if f.Due {
		due := "due"
		v.Compaction = &due
	}
	if p := f.Reported; p != nil {
		v.Reported = &Reported{p.Message, p.Input, p.Output}
	}
	return v
}
