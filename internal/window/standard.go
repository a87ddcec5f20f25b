package window

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/tokens"
)

// Standard returns the pipeline that each request goes through. Messages marked excluded go, what earlier requests left out is left out again, and then the
// steps run in order, each only as far as the draft does not fit: prune, tools, history, squeeze, trim; at last the cache plan. cache keeps counts, c asks a
// model; both may be nil. own are a program's enhancers: they run after exclude, so that their additions count, or where Before and After put them. Additions
// after trim may make the request too long.
func Standard(o Options, cache tokens.Cache, c enhancer.Completer, own ...enhancer.Enhancer) *Pipeline {
	w := o.Window(cache)
	all := []enhancer.Enhancer{Exclude(), Recall(w, o), Prune(w, o), enhancer.IfOver(Outputs(w, o))}
	if o.Offer {
		all = append(all, OfferArtifacts())
	}
	all = append(all, enhancer.IfOver(History(w, o)), enhancer.IfOver(Squeeze(w, o, c)), enhancer.IfOver(Trim(w, o)), CachePlan(o))
	for i, e := range all {
		if o.Off(e.Name()) {
			all[i] = switchedOff(e, w, o)
		}
	}
	return &Pipeline{Window: w, Enhancers: place(all, own)}
}

// switchedOff returns a step that does nothing. Without trim, a draft that does not fit is an error.
func switchedOff(e enhancer.Enhancer, w *Window, o Options) enhancer.Enhancer {
	return enhancer.Func(e.Name(), func(_ context.Context, d *chatctx.Draft) error {
		if s := (steps{w: w, d: d, o: o}); e.Name() == "trim" && w.Over(d) > 0 {
			return s.budgetError()
		}
		return nil
	})
}

// place puts a program's enhancers among the steps.
func place(steps, own []enhancer.Enhancer) []enhancer.Enhancer {
	groups := make([][]enhancer.Enhancer, 2*len(steps)) // before and after each step
	for _, e := range own {
		step, after := steps[0].Name(), true
		if p, ok := e.(interface{ Place() (string, bool) }); ok {
			step, after = p.Place()
		}
		at := slices.IndexFunc(steps, func(s enhancer.Enhancer) bool { return s.Name() == step })
		if at < 0 {
			at, e = 0, misplaced(e.Name(), step, steps)
		}
		group := 2 * at
		if after {
			group++
		}
		groups[group] = append(groups[group], e)
	}
	var out []enhancer.Enhancer
	for i, s := range steps {
		out = append(append(append(out, groups[2*i]...), s), groups[2*i+1]...)
	}
	return out
}

// misplaced returns an enhancer that fails, for one whose step does not exist.
func misplaced(name, step string, steps []enhancer.Enhancer) enhancer.Enhancer {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.Name()
	}
	return enhancer.Func(name, func(context.Context, *chatctx.Draft) error {
		return fmt.Errorf("its place is beside the step %q, which does not exist: the steps are %s", step, strings.Join(names, ", "))
	})
}
