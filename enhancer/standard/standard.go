// Package standard has the steps that make a request fit, for programs that send it by themselves; package chatctx/turn runs them in any case.
//
//	draft, err := c.Draft(ctx, "")
//	options, err := standard.Options(draft.Settings, os.Getenv)
//	options.Budget = 8000
//	report, err := standard.Fit(ctx, c, draft, options, nil)
//	for _, m := range draft.Messages {
//		fmt.Println(m.Role, m.Text())
//	}
//	fmt.Println(report.Before, report.After)
//
// A provider caches the beginning of a request, so a change near the beginning costs the whole of it. Therefore boundaries move in jumps, and the draft's
// Session keeps them: the next Fit applies it first, and the program that sends the request stores it.
package standard

import (
	"context"
	"encoding/json"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

// Fit makes a draft fit. Messages marked excluded go, what earlier requests left out is left out again, and then the steps run in order, each only as far as the
// draft does not fit: prune, tools, history, squeeze, trim; at last the cache plan. c keeps counts, and model shortens digests further; both may be nil. own are
// a program's enhancers: they run after exclude, so that their additions count, or where Before and After put them. Additions after trim may make the request
// too long. An error names the step; the draft must not be sent then. It is an *enhancer.BudgetError if the draft cannot be made to fit.
func Fit(ctx context.Context, c *chatctx.ChatContext, d *chatctx.Draft, o enhancer.Options, model enhancer.Completer, own ...enhancer.Enhancer) (*enhancer.Report, error) {
	var cache tokens.Cache
	if c != nil {
		cache = c
	}
	return window.Standard(window.Options{Options: o}, cache, model, own...).Run(ctx, d)
}

// Options returns the options of the settings in force on a branch, with those of the environment below them; both may be nil. Settings that neither has get
// their default. A budget that is not set is that of the model. Invalid values are a settings.ErrSetting.
func Options(inForce map[string]json.RawMessage, getenv func(string) string) (enhancer.Options, error) {
	o, err := window.OptionsOf(inForce, getenv)
	return o.Options, err
}

// Inject returns an Enhancer that puts a text (a file, something retrieved) into the draft as a pinned user message of kind injected, before the last user
// message, or at the end if there is none. The same text is put in once.
func Inject(name, text string) enhancer.Enhancer { return window.Inject(name, text) }

// AddTools returns an Enhancer that adds tool definitions, except those whose name the draft has already.
func AddTools(tools ...record.Tool) enhancer.Enhancer { return window.AddTools(tools...) }

// SetSystem returns an Enhancer that replaces the branch's system prompt by a text.
func SetSystem(text string) enhancer.Enhancer { return window.SetSystem(text) }

// Pin returns an Enhancer that pins the messages with the ids, as the mark in the store does.
func Pin(ids ...pool.ID) enhancer.Enhancer { return window.Pin(ids...) }

// Exclude returns an Enhancer that leaves out the messages with the ids and those marked excluded in the store. It leaves out the results with a call, and the
// call with a result, so that no half is sent.
func Exclude(ids ...pool.ID) enhancer.Enhancer { return window.Exclude(ids...) }

// TrimTo returns an Enhancer that keeps the last n messages and those that must stay: pinned ones, the last turn, and both halves of a call and its results. The
// messages begin with a user message if one is among them.
func TrimTo(n int) enhancer.Enhancer { return window.TrimTo(n) }
