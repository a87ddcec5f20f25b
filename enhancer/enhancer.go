// Package enhancer is what a step on the way to a provider needs: an Enhancer changes a draft before it becomes a request.
//
// A program's own steps stand among those of this module:
//
//	glossary := enhancer.Func("glossary", func(_ context.Context, d *chatctx.Draft) error {
//		d.Prompt += "\nA gull is a boat."
//		d.Notes = append(d.Notes, chatctx.Note{Step: "glossary", What: "explains gull"})
//		return nil
//	})
//	talk := turn.Turn{Context: c, Enhancers: []enhancer.Enhancer{enhancer.Before("history", glossary)}}
//	out, err := talk.Send(ctx, pool.NewText(pool.User, "Any gulls?"))
//
// Package enhancer/standard has the module's own steps, which make a draft fit, for programs that send requests by themselves.
//
// All enhancers keep these rules: the store is never changed; a user message is sent whole, is in a digest or is left out, and is never edited; a call and
// its result stay together; pinned messages stay; the same draft gives the same bytes; a second run changes nothing. Without a budget nothing is shortened.
package enhancer

import (
	"context"

	"github.com/chatctx/chatctx/chatctx"
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

// IfOver returns an Enhancer that is skipped while the draft fits the window.
func IfOver(e Enhancer) Enhancer { return ifOver{e} }

type ifOver struct{ Enhancer }

// OnlyIfOver marks it for the pipeline.
func (ifOver) OnlyIfOver() {}

// Before returns an Enhancer that Standard runs right before the step with a name: exclude, recall, prune, tools, history, squeeze, trim, cache. Several at one
// place run in the order given. If there is no such step, the request fails.
func Before(step string, e Enhancer) Enhancer { return placed{e, step, false} }

// After returns an Enhancer that Standard runs right after the step with a name; see Before.
func After(step string, e Enhancer) Enhancer { return placed{e, step, true} }

type placed struct {
	Enhancer
	step  string
	after bool
}

// Place tells the pipeline where it runs.
func (p placed) Place() (step string, after bool) { return p.step, p.after }
