package enhancer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer/tokens"
)

// Standard returns the pipeline that each request goes through. Messages marked excluded go, what earlier requests left out is left out again, and then the
// steps run in order, each only as far as the draft does not fit: prune, tools, history, squeeze, trim; at last the cache plan. cache keeps counts, c asks a
// model; both may be nil. own are a program's enhancers: they run after exclude, so that their additions count, or where Before and After put them. Additions
// after trim may make the request too long.
func Standard(o Options, cache tokens.Cache, c Completer, own ...Enhancer) *Pipeline {
	w := o.Window(cache)
	all := []Enhancer{Exclude(), Recall(w, o), Prune(w, o), IfOver(Outputs(w, o))}
	if o.Offer {
		all = append(all, OfferArtifacts())
	}
	all = append(all, IfOver(History(w, o)), IfOver(Squeeze(w, o, c)), IfOver(Trim(w, o)), CachePlan(o))
	for i, e := range all {
		if o.Off(e.Name()) {
			all[i] = switchedOff(e, w, o)
		}
	}
	return &Pipeline{Window: w, Enhancers: place(all, own)}
}

// switchedOff returns a step that does nothing. Without trim, a draft that does not fit is an error.
func switchedOff(e Enhancer, w *Window, o Options) Enhancer {
	return Func(e.Name(), func(_ context.Context, d *chatctx.Draft) error {
		if s := (steps{w: w, d: d, o: o}); e.Name() == "trim" && w.Over(d) > 0 {
			return s.budgetError()
		}
		return nil
	})
}

// Before returns an Enhancer that Standard runs right before the step with a name: exclude, recall, prune, tools, history, squeeze, trim, cache. Several at one
// place run in the order given. If there is no such step, the request fails.
func Before(step string, e Enhancer) Enhancer { return placed{e, step, 0} }

// After returns an Enhancer that Standard runs right after the step with a name; see Before.
func After(step string, e Enhancer) Enhancer { return placed{e, step, 1} }

type placed struct {
	Enhancer
	step   string
	behind int // 1 means after the step
}

// place puts a program's enhancers among the steps.
func place(steps, own []Enhancer) []Enhancer {
	groups := make([][]Enhancer, 2*len(steps)) // before and after each step
	for _, e := range own {
		p, ok := e.(placed)
		if !ok {
			p = placed{e, steps[0].Name(), 1}
		}
		at := slices.IndexFunc(steps, func(s Enhancer) bool { return s.Name() == p.step })
		if at < 0 {
			at, p.Enhancer = 0, misplaced(p, steps)
		}
		groups[2*at+p.behind] = append(groups[2*at+p.behind], p.Enhancer)
	}
	var out []Enhancer
	for i, s := range steps {
		out = append(append(append(out, groups[2*i]...), s), groups[2*i+1]...)
	}
	return out
}

// misplaced returns an enhancer that fails, for one whose step does not exist.
func misplaced(p placed, steps []Enhancer) Enhancer {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.Name()
	}
	return Func(p.Name(), func(context.Context, *chatctx.Draft) error {
		return fmt.Errorf("its place is beside the step %q, which does not exist: the steps are %s", p.step, strings.Join(names, ", "))
	})
}
