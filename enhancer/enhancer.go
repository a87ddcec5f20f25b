// Package enhancer changes a draft on its way to a provider: it adds tools and context, and makes what is too long fit.
//
// An Enhancer has one method and a name; a Pipeline runs some in order and records what each did. Any program can put its own between
// those that are here: Inject, AddTools, SetSystem, TrimTo, Pin, Exclude; Prune, Outputs, History, Squeeze and Trim, which make a draft fit, in
// this order, the cheapest first, each of them leaving alone what fits already; and Cache, which places the breakpoints of a prompt cache.
//
// What holds for all of them: the store is never touched; a user message is sent whole, stands in a digest or is left out, and is never edited; a call
// and its result stay together; what is pinned stays; the same draft gives the same bytes; doing it again changes nothing. Without a budget
// nothing is changed.
//
// A provider's cache holds the beginning of a request, so a change near the beginning costs the whole of it. Therefore boundaries move in jumps (a step that
// has to clear something clears at least Window.ClearAtLeast tokens), and where they stand is kept in the draft's Session: Recall applies
// that first, and whoever sends the request stores it with that (Changed, Sessions).
//
// Compaction, which begins a new session with a summary, is in this package too: Plan, Compact, Resume.
package enhancer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// Enhancer changes a draft in place. It leaves a note on the draft for what it did, and an error only where the draft cannot go on.
type Enhancer interface {
	Name() string
	Enhance(ctx context.Context, d *chatctx.Draft) error
}

// Func makes an Enhancer of a function.
func Func(name string, f func(ctx context.Context, d *chatctx.Draft) error) Enhancer {
	return function{name, f}
}

type function struct {
	name string
	f    func(ctx context.Context, d *chatctx.Draft) error
}

func (f function) Name() string { return f.name }

func (f function) Enhance(ctx context.Context, d *chatctx.Draft) error { return f.f(ctx, d) }

// IfOver is an Enhancer that a Pipeline leaves out while the draft fits the window.
func IfOver(e Enhancer) Enhancer { return ifOver{e} }

type ifOver struct{ Enhancer }

// Step is what a pipeline records of one enhancer.
type Step struct {
	Name          string
	Before, After int            // tokens
	Skipped       bool           // the draft fitted already
	Notes         []chatctx.Note // what was dropped or replaced, and why
}

// Report is what a pipeline did.
type Report struct {
	Steps []Step
	// Messages are all that the draft held before, in order; State and Step of each say what became of it, also of those that the draft no longer
	// holds.
	Messages      []*chatctx.DraftMessage
	Before, After int // tokens
	Limit         int // the budget less the headroom; 0: none
	// Rules say what each rule did, in the order in which they came to do anything.
	Rules []RuleFigures
	// Paid are messages that say what a model took for digests. They belong into the pool, on no branch, where the draft's Session is stored, which names them.
	Paid []*pool.Message
}

// Pipeline runs enhancers in order.
type Pipeline struct {
	Window    *Window // nil: one without a budget
	Enhancers []Enhancer
}

// Run runs all of them on the draft. An error names the enhancer that failed; the draft is then not to be sent.
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

// window is the pipeline's window, one without a budget where none was given.
func (p *Pipeline) window() *Window {
	if p.Window == nil {
		return &Window{}
	}
	return p.Window
}

// The states of a message in a draft.
const (
	In         = "in"
	Pruned     = "pruned"     // its content is shortened, put aside or one line
	Digested   = "digested"   // a digest stands for it
	Summarised = "summarised" // the session's summary stands for it
	Pinned     = "pinned"     // in, whatever happens
	Excluded   = "excluded"   // left out on demand
	Trimmed    = "trimmed"    // left out for want of room
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

// Completer asks a model. It is what a squeezed digest and a summary need; chatctx/turn has one.
type Completer interface {
	// Complete gives the model's answer to a prompt, of about limit tokens at most.
	Complete(ctx context.Context, system, prompt string, limit int) (Answer, error)
}

// Answer is what a model said apart from a conversation, and what that took.
type Answer struct {
	Text string
	ID   pool.ID // of the message that says what was paid; zero: a new one
	Meta pool.Metadata
}

// Paid is the message that says what an answer took. It has no words: they are in the session.
func (a *Answer) Paid(kind string) *pool.Message {
	m := &pool.Message{ID: a.ID, Role: pool.User, Kind: kind, Hidden: true, Unsent: true, Meta: a.Meta, Created: a.Meta.Completed}
	if m.ID == (pool.ID{}) {
		m.ID = pool.NewID()
	}
	return m
}

// Once has the same asked once: who asks it again meanwhile, or later, has the first answer, whoever gave it. It is for what several requests about one history share. What failed is
// asked again. It may be used by several goroutines.
type Once struct {
	mu    sync.Mutex
	asked map[[32]byte]*question
}

// By is a Completer that asks c what nobody has asked.
func (o *Once) By(c Completer) Completer { return &once{o, c} }

type once struct {
	*Once
	c Completer
}

type question struct {
	mu     sync.Mutex
	done   bool
	answer Answer
}

func (o *once) Complete(ctx context.Context, system, prompt string, limit int) (Answer, error) {
	key := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s", limit, system, prompt))
	o.mu.Lock()
	if o.asked == nil {
		o.asked = map[[32]byte]*question{}
	}
	q := o.asked[key]
	if q == nil {
		q = &question{}
		o.asked[key] = q
	}
	o.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.done {
		return q.answer, nil
	}
	a, err := o.c.Complete(ctx, system, prompt, limit)
	if err == nil {
		q.answer, q.done = a, true
	}
	return a, err
}
