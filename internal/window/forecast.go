package window

import (
	"context"
	"errors"
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// Forecast says how large a branch's next request is. All parts of the program that show the window use this number.
type Forecast struct {
	// Tokens is the size of the request after all steps; if Due, an upper bound.
	Tokens int
	// Due means that a compaction comes before the request, so the size of its summary is not known yet.
	Due       bool
	Budget    int    // 0 means none
	Exactness string // exact, calibrated or approximate; see package tokens
	// Reported are the provider's figures for the last reply, nil if it gave none.
	Reported *Reported
}

// Reported are a provider's figures for a reply.
type Reported struct {
	Message       pool.ID
	Input, Output int64
}

// Percent returns the share of the budget, rounded, 0 without a budget.
func (f *Forecast) Percent() int {
	if f.Budget == 0 {
		return 0
	}
	return (200*f.Tokens + f.Budget) / (2 * f.Budget)
}

// String returns the forecast in short: 12.4k of 100k tokens (12 %), with ≤ before a bound.
func (f *Forecast) String() string {
	text := ofBudget(f.Tokens, f.Budget)
	if f.Due {
		text = "≤ " + text + ", a compaction is due"
	}
	return text
}

// Foresee begins the forecast for a draft as the store returns it, without changing the draft. If no compaction is due, call Settled after Pipeline.Run to set
// the size. A program that does not compact ignores Due.
func (p *Pipeline) Foresee(ctx context.Context, o Options, d *chatctx.Draft) (*Forecast, error) {
	w := p.window()
	if err := w.Measure(ctx, d); err != nil {
		return nil, err
	}
	f := &Forecast{Budget: o.Budget, Exactness: tokens.Exact, Reported: lastReported(d)}
	if !w.Counter.Model.Own {
		f.Exactness = tokens.Approximate
		if _, ok := w.Counter.Ratio(d); ok {
			f.Exactness = tokens.Calibrated
		}
	}
	plan, own, err := planDue(ctx, w, o, d)
	if plan == nil || err != nil {
		return f, err
	}
	f.Due, f.Tokens = true, plan.atMost(own)
	if limit := own.Limit(); limit > 0 {
		f.Tokens = min(f.Tokens, limit) // the steps make it fit
	}
	return f, nil
}

// Settled completes the forecast after the steps ran.
func (f *Forecast) Settled(r *enhancer.Report) {
	if !f.Due {
		f.Tokens = r.After
	}
}

// planDue returns the plan of the compaction that is due, nil if none is, or if it would clear too little. It does not change the draft.
func planDue(ctx context.Context, w *Window, o Options, d *chatctx.Draft) (*Plan, *Window, error) {
	own := &Window{Counter: w.Counter, Budget: w.Budget, Headroom: w.Headroom}
	c := *d
	c.Messages = make([]*chatctx.DraftMessage, len(d.Messages))
	for i, m := range d.Messages {
		one := *m
		c.Messages[i] = &one
	}
	if err := Exclude().Enhance(ctx, &c); err != nil {
		return nil, nil, err
	}
	if err := own.Measure(ctx, &c); err != nil || !Due(own, o, &c) {
		return nil, nil, err
	}
	p, err := PlanCompaction(ctx, own, o, &c)
	if errors.Is(err, enhancer.ErrNothingToCompact) {
		return nil, nil, nil
	}
	if err == nil && p.gains(own) != nil {
		return nil, nil, nil
	}
	return p, own, err
}

func lastReported(d *chatctx.Draft) *Reported {
	for i := len(d.Messages) - 1; i >= 0; i-- {
		m := d.Messages[i]
		if in, out := m.Meta.InputTokens, m.Meta.OutputTokens; m.Role == pool.Assistant && in != nil && out != nil {
			return &Reported{m.ID, *in, *out}
		}
	}
	return nil
}

// String returns the figures in words.
func (r *Reported) String() string {
	return fmt.Sprintf("the provider counted %d tokens in, %d out for the last reply", r.Input, r.Output)
}

// Shares returns the tokens of each message of a draft, in the provider's figures as Size is, so that they and fixed add up to Size. fixed is what prompts,
// tools and the conversation as a whole take.
func (w *Window) Shares(d *chatctx.Draft) (of map[pool.ID]int, fixed int) {
	s := w.counter().Sizes(d)
	of, sum := make(map[pool.ID]int, len(d.Messages)+1), s.Total()-s.Messages-s.Summary
	fixed = w.scale(sum)
	before := fixed
	add := func(m *chatctx.DraftMessage) {
		sum += w.of(d, m)
		now := w.scale(sum)
		of[m.ID], before = now-before, now
	}
	if d.Summary != nil {
		add(d.Summary)
	}
	for _, m := range d.Messages {
		add(m)
	}
	return of, fixed
}
