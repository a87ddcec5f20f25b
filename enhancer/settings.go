package enhancer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/enhancer/tokens"
)

// Options are the settings of the window. Zero values of its numbers are taken as they are: DefaultOptions has the usual ones.
type Options struct {
	Model          string
	Budget         int     // tokens; 0: none
	Headroom       float64 // share of the budget
	KeepBlocks     int
	DigestTokens   int // for all digests together
	Squeeze        bool
	PruneThreshold int // tokens
	PruneKeep      int // tokens
	PrunePolicy    string
	// CompactAt is the share of the budget at which a conversation is compacted; CompactMessages the number of messages, 0: off.
	CompactAt           float64
	CompactKeep         int // tokens
	CompactMessages     int
	CompactKeepMessages int
	CompactTurns        int // 0: off
	CompactProvider     string
	CompactModel        string
	CompactSystem       string
	ResumeShare         float64 // of the budget, up to which a session is resumed whole
	Notify              bool
	Cache               bool
	CacheTTL            string // 5m or 1h
	Prices              *cost.Prices
	// StepsOff are the steps that are switched off.
	StepsOff []string
	// What follows is no setting: a program sets it.

	// Offer gives the model ArtifactTool once an output was put aside, for a program that answers such calls by ReadArtifact.
	Offer bool
	// Rules are tried on outputs before OutputRules, outputs of any size: the first that fits and makes one shorter wins.
	Rules []Rule
	// TextRules shorten old answers, one after the other, where the outputs were not enough. Texts of users are never changed.
	TextRules []Rule
	// Sent says what of a branch goes to the provider; nil: all that any takes.
	Sent *tokens.Sent
	// Artifacts keeps what is put aside; nil: nothing needs to be kept, since the branch has it.
	Artifacts ArtifactStore
}

// DefaultOptions are the settings where nothing is set.
func DefaultOptions() Options {
	o, _ := OptionsOf(nil, nil) // only values that are set can be wrong
	return o
}

// ErrSetting: a value that a setting of the window cannot have. The error names it.
var ErrSetting = settings.ErrSetting

// OptionsOf reads the settings in force on a branch, with those of the environment under them; getenv may be nil. What neither sets has the default of the table in package settings.
// A budget that is not set is the model's, by the table of package tokens.
func OptionsOf(inForce map[string]json.RawMessage, getenv func(string) string) (Options, error) {
	for _, name := range slices.Sorted(maps.Keys(inForce)) {
		if _, known := settings.Lookup(name); known {
			if err := settings.Check(name, inForce[name]); err != nil {
				return Options{}, err
			}
		}
	}
	v := settings.Values(settings.WithEnv(inForce, getenv))
	o := Options{
		Model: v.Text("model"), Budget: v.Count("budget"), Headroom: v.Share("headroom"), KeepBlocks: v.Count("keep_blocks"), DigestTokens: v.Count("digest_tokens"), Squeeze: v.Truth("squeeze"),
		PruneThreshold: v.Count("prune.threshold"), PruneKeep: v.Count("prune.keep"), PrunePolicy: v.Text("prune.policy"),
		CompactAt: v.Share("compact.at"), CompactKeep: v.Count("compact.keep"), CompactMessages: v.Count("compact.max_messages"), CompactKeepMessages: v.Count("compact.keep_messages"),
		CompactTurns: v.Count("compact.at_turns"), CompactProvider: v.Text("compact.provider"), CompactModel: v.Text("compact.model"), CompactSystem: v.Text("compact.system"),
		ResumeShare: v.Share("resume.share"), Notify: v.Truth("notify"), Cache: v.Truth("cache"), CacheTTL: v.Text("cache.ttl"),
	}
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
		return o, fmt.Errorf("%w %w", ErrSetting, err)
	}
	o.Prices = prices
	return o, nil
}

// stepSetting begins the names of the settings that switch steps off: steps.NAME=false. What earlier requests did stays done. Without trim, what does not fit is an error.
const stepSetting = "steps."

// CompactStep is the name of automatic compaction among the steps that can be switched off.
const CompactStep = "compact"

// Off reports whether a step is switched off.
func (o Options) Off(step string) bool { return slices.Contains(o.StepsOff, step) }

// Window is the room that the settings give. cache keeps counts and may be nil.
func (o Options) Window(cache tokens.Cache) *Window {
	return &Window{Counter: tokens.NewCounter(o.Model, o.Sent, cache), Budget: o.Budget, Headroom: o.Headroom}
}
