// Package enhancer changes a draft on its way to a provider: it adds tools and context, and makes a draft fit that is too long.
//
// An Enhancer has one method and a name; a Pipeline runs several in order and records what each did. A program can put its own between those of this package.
// Inject, AddTools, SetSystem, TrimTo, Pin and Exclude change what is sent. Prune, Outputs, History, Squeeze and Trim make a draft fit, in this order, the
// cheapest first; each leaves a draft that fits alone. CachePlan places the breakpoints of a prompt cache.
//
// All of them keep these rules: the store is never changed; a user message is sent whole, is in a digest or is left out, and is never edited; a call and
// its result stay together; pinned messages stay; the same draft gives the same bytes; a second run changes nothing. Without a budget nothing is shortened.
//
// A provider caches the beginning of a request, so a change near the beginning costs the whole of it. Therefore boundaries move in jumps (a step that must
// clear anything clears at least Window.ClearAtLeast tokens), and the draft's Session keeps them: Recall applies it first, and the program that sends the
// request stores it (Changed, Sessions).
//
// Compaction, which begins a new session with a summary, is in this package too: Plan, Compact, Resume.
package enhancer

import (
	"context"
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// Enhancer changes a draft in place. It adds a note to the draft for each change, and returns an error only if the draft must not be sent.
type Enhancer interface {
	Name() string
	Enhance(ctx context.Context, d *chatctx.Draft) error
}

// Func returns an Enhancer with a name that calls f.
func Func(name string, f func(ctx context.Context, d *chatctx.Draft) error) Enhancer {
	return function{name, f}
}

type function struct {
	name string
	f    func(ctx context.Context, d *chatctx.Draft) error
}

func (f function) Name() string { return f.name }

func (f function) Enhance(ctx context.Context, d *chatctx.Draft) error { return f.f(ctx, d) }

// IfOver returns an Enhancer that a Pipeline skips while the draft fits the window.
func IfOver(e Enhancer) Enhancer { return ifOver{e} }

type ifOver struct{ Enhancer }

// Step is a pipeline's record of one enhancer.
type Step struct {
	Name          string
	Before, After int            // tokens
	Skipped       bool           // the draft fitted already
	Notes         []chatctx.Note // what was dropped or replaced, and why
}

// Report is the result of a pipeline.
type Report struct {
	Steps []Step
	// Messages are all messages that the draft had before, in order. State and Step of each say what became of it, even if the draft no longer has it.
	Messages      []*chatctx.DraftMessage
	Before, After int // tokens
	Limit         int // the budget less the headroom; 0 without a budget
	// Rules are the figures of each rule that did anything, in the order of its first use.
	Rules []RuleFigures
	// Paid are the messages that record what a model's digests cost, unless Window.Keep took them. Store them in the pool, on no branch, together with the draft's
	// Session, which names them.
	Paid []*pool.Message
}

// Pipeline runs enhancers in order.
type Pipeline struct {
	Window    *Window // nil means one without a budget
	Enhancers []Enhancer
}

// Run runs all enhancers on the draft. An error names the enhancer that failed; the draft must not be sent then.
func (p *Pipeline) Run(ctx context.Context, d *chatctx.Draft) (*Report, error) {
	w := p.window()
	if err := w.Measure(ctx, d); err != nil {
		return nil, err
	}
	r := &Report{Messages: append([]*chatctx.DraftMessage(nil), d.Messages...), Before: w.Size(d), Limit: w.Limit()}
	for _, m := range d.Messages {
		begin(m)
	}
	for _, e := range p.Enhancers {
		step := Step{Name: e.Name(), Before: w.Size(d)}
		seen := len(d.Notes)
		if _, only := e.(ifOver); only && w.Over(d) == 0 {
			step.Skipped = true
		} else if err := e.Enhance(ctx, d); err != nil {
			return r, fmt.Errorf("%s: %w", e.Name(), err)
		}
		step.After = w.Size(d)
		step.Notes = append(step.Notes, d.Notes[seen:]...)
		r.Steps = append(r.Steps, step)
	}
	r.After, r.Rules, r.Paid = w.Size(d), w.rules, w.paid
	return r, nil
}

// window returns the pipeline's window, or one without a budget if there is none.
func (p *Pipeline) window() *Window {
	if p.Window == nil {
		return &Window{}
	}
	return p.Window
}

// The states of a message in a draft.
const (
	In         = "in"
	Pruned     = "pruned"     // its content is shortened, put aside or replaced by a line
	Digested   = "digested"   // a digest stands for it
	Summarised = "summarised" // the session's summary stands for it
	Pinned     = "pinned"     // in, in any case
	Excluded   = "excluded"   // left out on demand
	Trimmed    = "trimmed"    // left out for lack of room
)

func begin(m *chatctx.DraftMessage) {
	switch {
	case m.State != "":
	case m.Pinned:
		m.State = Pinned
	default:
		m.State = In
	}
}

// note records what a step did to a message.
func note(d *chatctx.Draft, step string, m *chatctx.DraftMessage, state, what string, before int) {
	m.State, m.Step = state, step
	n := chatctx.Note{Step: step, Message: m.ID, What: what, Before: before}
	if state == Pruned {
		n.After = m.Tokens
	}
	d.Notes = append(d.Notes, n)
}
