// Package window makes requests fit: the steps of the pipeline, compaction, sessions, and questions to a model apart from a conversation.
//
// The steps run in order, the cheapest first; each leaves a draft that fits alone. A provider caches the beginning of a request, so a change near the beginning
// costs the whole of it. Therefore boundaries move in jumps (a step that must clear anything clears at least Window.ClearAtLeast tokens), and the draft's Session
// keeps them: Recall applies it first, and the program that sends the request stores it (Changed, Sessions). Compaction begins a new session with a summary:
// Plan, Compact, Resume. The rules that all steps keep stand in package enhancer.
package window

import (
	"context"
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
)

// Pipeline runs enhancers in order.
type Pipeline struct {
	Window    *Window // nil means one without a budget
	Enhancers []enhancer.Enhancer
}

// Run runs all enhancers on the draft. An error names the enhancer that failed; the draft must not be sent then.
func (p *Pipeline) Run(ctx context.Context, d *chatctx.Draft) (*enhancer.Report, error) {
	w := p.window()
	if err := w.Measure(ctx, d); err != nil {
		return nil, err
	}
	r := &enhancer.Report{Messages: append([]*chatctx.DraftMessage(nil), d.Messages...), Before: w.Size(d), Limit: w.Limit()}
	for _, m := range d.Messages {
		begin(m)
	}
	for _, e := range p.Enhancers {
		step := enhancer.Step{Name: e.Name(), Before: w.Size(d)}
		seen := len(d.Notes)
		if _, only := e.(interface{ OnlyIfOver() }); only && w.Over(d) == 0 {
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

func begin(m *chatctx.DraftMessage) {
	switch {
	case m.State != "":
	case m.Pinned:
		m.State = enhancer.Pinned
	default:
		m.State = enhancer.In
	}
}

// note records what a step did to a message.
func note(d *chatctx.Draft, step string, m *chatctx.DraftMessage, state, what string, before int) {
	m.State, m.Step = state, step
	n := chatctx.Note{Step: step, Message: m.ID, What: what, Before: before}
	if state == enhancer.Pruned {
		n.After = m.Tokens
	}
	d.Notes = append(d.Notes, n)
}
