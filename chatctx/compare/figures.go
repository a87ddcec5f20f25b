package compare

import (
	"cmp"
	"fmt"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/pool"
)

// Figures says what an answer took and how it ended: the sums over its assistant's messages, and the model and end of the last one. What no message says is
// nil or empty.
type Figures struct {
	Model      string   `json:"model"`
	Provider   string   `json:"provider"`
	Input      *int64   `json:"input_tokens"`
	Output     *int64   `json:"output_tokens"`
	Reasoning  *int64   `json:"reasoning_tokens"`
	Cost       *int64   `json:"cost_nano"` // in 10⁻⁹ of the currency; nil if a price or the usage is unknown
	Currency   string   `json:"currency,omitempty"`
	Seconds    *float64 `json:"seconds"` // the sum of the times from each request to its last word
	Finish     string   `json:"finish_reason"`
	Outcome    string   `json:"outcome,omitempty"` // how the last answer ended that is not whole, as pool.Outcome names it
	Refused    bool     `json:"refused"`           // the model or its provider declined
	Unfinished bool     `json:"unfinished"`
	Waiting    int      `json:"waiting"` // calls without an answer
	Error      string   `json:"error,omitempty"`
}

// figuresOf adds up the figures of messages at the given prices; nil prices mean those of the table. It returns nil if none of the messages is an
// assistant's.
func figuresOf(entries []*chatctx.Entry, prices *cost.Prices) *Figures {
	var f *Figures
	known := true
	for _, e := range entries {
		if e.Role != pool.Assistant {
			continue
		}
		if f == nil {
			f = &Figures{Cost: new(int64)}
		}
		f.add(e.Message)
		known = f.pay(prices.Reply(e.Message)) && known
	}
	if f != nil && !known {
		f.Cost, f.Currency = nil, ""
	}
	return f
}

// pay adds the cost of a reply. It reports whether that is known and has the same currency as the others.
func (f *Figures) pay(reply *cost.Reply) bool {
	if reply == nil || !reply.Known() || f.Currency != "" && f.Currency != reply.Price.Currency {
		return false
	}
	*f.Cost += int64(reply.Cost)
	f.Currency = reply.Price.Currency
	return true
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
	if outcome := pool.OutcomeOf(m); outcome != pool.Answered {
		f.Outcome, f.Refused = string(outcome), f.Refused || outcome.Refused()
	}
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

// Words returns the figures as words for people, the most telling first, without those that are unknown.
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
	if f.Cost != nil {
		add(true, "%s %s", cost.Money(*f.Cost).Short(), f.Currency)
	}
	if f.Seconds != nil {
		add(true, "%.1f s", *f.Seconds)
	}
	add(f.Refused, "refused")
	add(f.Unfinished, "unfinished")
	add(!f.Refused && !f.Unfinished && f.Outcome != "", "%s", pool.Outcome(f.Outcome).Words())
	add(f.Finish != "" && !f.Refused, "%s", f.Finish)
	add(f.Waiting > 0, "%d waiting", f.Waiting)
	add(f.Error != "", "error: %s", f.Error)
	return words
}
