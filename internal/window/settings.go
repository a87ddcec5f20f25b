package window

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/tokens"
)

// Options are the settings of the window, with what a turn adds to them.
type Options struct {
	enhancer.Options
	// Sent says which parts of a branch go to the provider; nil means all that any provider takes.
	Sent *tokens.Sent
	// InForce returns the index of the session, of a branch's, with which requests begin; nil means branchstore.Current.
	InForce func(sessions []branch.Session) int
	// ProviderCompacts means that a compaction that is due is left to the provider, see Request.Provider.
	ProviderCompacts bool
	// KeepsNothing makes a compaction keep no message but those with calls that wait for a result, and what follows them.
	KeepsNothing bool
}

// DefaultOptions returns the options of no settings.
func DefaultOptions() Options {
	o, _ := OptionsOf(nil, nil) // only values that are set can be invalid
	return o
}

// OptionsOf returns the options of the settings in force on a branch, with those of the environment below them; getenv may be nil. Settings that neither has
// get their default from package settings. A budget that is not set is that of the model, from package tokens. Invalid values are an settings.ErrSetting.
func OptionsOf(inForce map[string]json.RawMessage, getenv func(string) string) (Options, error) {
	for _, name := range slices.Sorted(maps.Keys(inForce)) {
		if _, known := settings.Lookup(name); known {
			if err := settings.Check(name, inForce[name]); err != nil {
				return Options{}, err
			}
		}
	}
	v := settings.Values(settings.WithEnv(inForce, getenv))
	o := Options{Options: enhancer.Options{
		Model: v.Text("model"), Encoding: v.Text("encoding"), Budget: v.Count("budget"), Headroom: v.Share("headroom"), KeepBlocks: v.Count("keep_blocks"), DigestTokens: v.Count("digest_tokens"), Squeeze: v.Truth("squeeze"),
		PruneThreshold: v.Count("prune.threshold"), PruneKeep: v.Count("prune.keep"), PrunePolicy: v.Text("prune.policy"),
		CompactAt: v.Share("compact.at"), CompactKeep: v.Count("compact.keep"), CompactMessages: v.Count("compact.max_messages"), CompactKeepMessages: v.Count("compact.keep_messages"),
		CompactTurns: v.Count("compact.at_turns"), CompactProvider: v.Text("compact.provider"), CompactModel: v.Text("compact.model"), CompactSystem: v.Text("compact.system"),
		ResumeShare: v.Share("resume.share"), Notify: v.Truth("notify"), Cache: v.Truth("cache"), CacheTTL: v.Text("cache.ttl"),
	}}
	for _, step := range settings.Names(stepSetting) {
		if !v.Truth(stepSetting + step) {
			o.StepsOff = append(o.StepsOff, step)
		}
	}
	if o.Budget == 0 && !v.Off("budget") {
		o.Budget = tokens.ForModel(o.Model).Budget()
	}
	if o.Budget > 0 {
		o.CompactKeep = min(o.CompactKeep, int(tailShare*float64(o.Window(nil).Limit())))
	}
	prices, err := cost.Parse(v["prices"])
	if err != nil {
		return o, fmt.Errorf("%w %w", settings.ErrSetting, err)
	}
	o.Prices = prices
	return o, nil
}

// stepSetting begins the names of the settings that turn steps off: steps.NAME=false. The effect of earlier requests stays. Without trim, a draft that does not
// fit is an error.
const stepSetting = "steps."

// CompactStep is the name of automatic compaction among the steps that can be turned off.
const CompactStep = "compact"

// Off reports whether a step is turned off.
func (o Options) Off(step string) bool { return slices.Contains(o.StepsOff, step) }

// Window returns a new window for the settings. cache keeps counts and may be nil.
func (o Options) Window(cache tokens.Cache) *Window {
	c := tokens.NewCounter(o.Model, o.Sent, cache)
	c.Model = c.Model.In(o.Encoding)
	return &Window{Counter: c, Budget: o.Budget, Headroom: o.Headroom}
}
