package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// Figures are what an answer took and how it ended: of all its assistant's messages together, model and end of the last one. What no message says is nil or empty.
type Figures struct {
	Model      string   `json:"model"`
	Provider   string   `json:"provider"`
	Input      *int64   `json:"input_tokens"`
	Output     *int64   `json:"output_tokens"`
	Reasoning  *int64   `json:"reasoning_tokens"`
	Seconds    *float64 `json:"seconds"` // from each request to its last word
	Finish     string   `json:"finish_reason"`
	Refused    bool     `json:"refused"` // the model or its provider declined
	Unfinished bool     `json:"unfinished"`
	Waiting    int      `json:"waiting"` // calls that nobody has answered
	Error      string   `json:"error,omitempty"`
}

// FiguresOf adds up the figures of messages; nil where none of them is an assistant's.
func FiguresOf(entries []*chatctx.Entry) *Figures {
	var f *Figures
	for _, e := range entries {
		if e.Role != pool.Assistant {
			continue
		}
		if f == nil {
			f = &Figures{}
		}
		f.add(e.Message)
	}
	return f
}

func (f *Figures) add(m *chatctx.Message) {
	meta := &m.Meta
	f.Model, f.Provider = cmp.Or(meta.Model, f.Model), cmp.Or(meta.Provider, f.Provider)
	f.Input, f.Output, f.Reasoning = plus(f.Input, meta.InputTokens), plus(f.Output, meta.OutputTokens), plus(f.Reasoning, meta.ReasoningTokens)
	if meta.Completed > m.Created && m.Created > 0 {
		took := (time.Duration(meta.Completed-m.Created) * time.Microsecond).Seconds()
		f.Seconds = plus(f.Seconds, &took)
	}
	f.Finish, f.Unfinished, f.Error = meta.FinishReason, m.Unfinished, cmp.Or(meta.Error, f.Error)
	f.Refused = f.Refused || Refused(m)
	for i := range m.Calls {
		if m.Calls[i].Open() {
			f.Waiting++
		}
	}
}

func plus[N int64 | float64](a, b *N) *N {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	sum := *a + *b
	return &sum
}

// declined are the finish reasons that providers give where they, or the model, would not answer.
var declined = []string{"refusal", "content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii"}

// Refused reports whether a message is a refusal: the model says so in a part of its own, or the answer ended with a reason that means it.
func Refused(m *chatctx.Message) bool {
	return slices.Contains(declined, strings.ToLower(m.Meta.FinishReason)) ||
		slices.ContainsFunc(m.Content, func(p pool.Part) bool { return p.Type == "refusal" })
}

// Words are the figures for people, the most telling first. What is not known is left out.
func (f *Figures) Words() []string {
	if f == nil {
		return nil
	}
	var words []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(f.Model != "", "%s", f.Model)
	if f.Input != nil && f.Output != nil {
		add(true, "%d in, %d out", *f.Input, *f.Output)
	}
	if f.Seconds != nil {
		add(true, "%.1f s", *f.Seconds)
	}
	add(f.Refused, "refused")
	add(f.Unfinished, "unfinished")
	add(f.Finish != "" && !f.Refused, "%s", f.Finish)
	add(f.Waiting > 0, "%d waiting", f.Waiting)
	add(f.Error != "", "error: %s", f.Error)
	return words
}
