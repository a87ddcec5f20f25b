package enhancer

import (
	"github.com/chatctx/chatctx/enhancer/tokens"
)

// Standard is the pipeline that a request goes through: what is marked excluded goes, what earlier requests left out is left out again, and then the steps run in
// order, each only as far as the draft does not fit: prune, tools, history, squeeze, trim; at last the cache plan. cache keeps counts, c asks a model; both
// may be nil. first are enhancers that run before the steps: what they add counts.
func Standard(o Options, cache tokens.Cache, c Completer, first ...Enhancer) *Pipeline {
	w := o.Window(cache)
	all := append([]Enhancer{Exclude()}, first...)
	all = append(all, Recall(w, o), Prune(w, o), IfOver(Outputs(w, o)))
	if o.Offer {
		all = append(all, OfferArtifacts())
	}
	all = append(all, IfOver(History(w, o)), IfOver(Squeeze(w, o, c)), IfOver(Trim(w, o)), CachePlan(o))
	return &Pipeline{Window: w, Enhancers: all}
}
