package enhancer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/enhancer/tokens"
)

// Options are the settings of the window. Zero values of its numbers are taken as they are: DefaultOptions has the usual ones.
type Options struct {
	Model          string
	Budget         int     // tokens; 0: the model's, by the table of package tokens
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
	// Artifacts keeps what is put aside; nil: nothing needs to be kept, since the branch has it.
	Artifacts ArtifactStore
}

// DefaultOptions are the settings where nothing is set.
func DefaultOptions() Options {
	return Options{Headroom: 0.1, KeepBlocks: 3, DigestTokens: 400, PruneThreshold: 8000, PruneKeep: 2000, PrunePolicy: PruneAuto,
		CompactAt: 0.8, CompactKeep: 4000, CompactKeepMessages: 6, ResumeShare: 0.7, Notify: true, Cache: true, CacheTTL: "5m"}
}

// ErrSetting: a value that a setting of the window cannot have. The error names it.
var ErrSetting = errors.New("setting")

// OptionsOf reads the settings in force on a branch. What they do not set is looked up in the environment, as CHATCTX_ and the key in capitals with _ for a dot,
// by getenv, which may be nil; what that does not set has its default. null is not set.
func OptionsOf(inForce map[string]json.RawMessage, getenv func(string) string) (Options, error) {
	o := DefaultOptions()
	r := reader{settings: inForce}
	r.env, r.err = settings.FromEnv(getenv)
	if r.err != nil {
		r.err = fmt.Errorf("%w: %w", ErrSetting, r.err)
	}
	r.text("model", &o.Model)
	r.count("budget", &o.Budget)
	r.share("headroom", &o.Headroom)
	r.count("keep_blocks", &o.KeepBlocks)
	r.count("digest_tokens", &o.DigestTokens)
	r.truth("squeeze", &o.Squeeze)
	r.count("prune.threshold", &o.PruneThreshold)
	r.count("prune.keep", &o.PruneKeep)
	r.word("prune.policy", &o.PrunePolicy, PruneAuto, KeepAll, KeepNone)
	r.share("compact.at", &o.CompactAt)
	r.count("compact.keep", &o.CompactKeep)
	r.count("compact.max_messages", &o.CompactMessages)
	r.count("compact.keep_messages", &o.CompactKeepMessages)
	r.count("compact.at_turns", &o.CompactTurns)
	for _, step := range Switchable {
		on := true
		if r.truth("steps."+step, &on); !on {
			o.StepsOff = append(o.StepsOff, step)
		}
	}
	r.text("compact.provider", &o.CompactProvider)
	r.text("compact.model", &o.CompactModel)
	r.text("compact.system", &o.CompactSystem)
	r.share("resume.share", &o.ResumeShare)
	r.truth("notify", &o.Notify)
	r.truth("cache", &o.Cache)
	r.word("cache.ttl", &o.CacheTTL, "5m", "1h")
	r.prices(&o.Prices)
	if o.Budget == 0 {
		o.Budget = tokens.ForModel(o.Model).Budget()
	}
	if o.Budget > 0 {
		o.CompactKeep = min(o.CompactKeep, int(tailShare*float64(o.Window(nil).Limit())))
	}
	return o, r.err
}

// CompactStep is the name of automatic compaction among the steps that can be switched off.
const CompactStep = "compact"

// Switchable are the steps that a setting switches off: steps.NAME=false. What earlier requests did stays done. Without trim, what does not fit is an error.
var Switchable = []string{"prune", "tools", "history", "squeeze", "trim", CompactStep}

// Off reports whether a step is switched off.
func (o Options) Off(step string) bool { return slices.Contains(o.StepsOff, step) }

// Window is the room that the settings give. cache keeps counts and may be nil.
func (o Options) Window(cache tokens.Cache) *Window {
	return &Window{Counter: tokens.NewCounter(o.Model, cache), Budget: o.Budget, Headroom: o.Headroom}
}

// reader reads settings one by one and keeps the first error.
type reader struct {
	settings map[string]json.RawMessage
	env      map[string]json.RawMessage
	err      error
}

// value is a setting, or what the environment says, or nil.
func (r *reader) value(key string) json.RawMessage {
	if v, ok := r.settings[key]; ok && string(v) != "null" {
		return v
	}
	return r.env[key]
}

func (r *reader) fail(key, want string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w %s takes %s, not %s", ErrSetting, key, want, r.value(key))
	}
}

func read[T any](r *reader, key, want string, into *T, fits func(T) bool) {
	raw := r.value(key)
	if raw == nil {
		return
	}
	var v T
	if json.Unmarshal(raw, &v) != nil || fits != nil && !fits(v) {
		r.fail(key, want)
		return
	}
	*into = v
}

func (r *reader) text(key string, into *string) { read(r, key, "a text", into, nil) }

func (r *reader) truth(key string, into *bool) { read(r, key, "true or false", into, nil) }

func (r *reader) count(key string, into *int) {
	if string(r.value(key)) == `"off"` {
		*into = 0
		return
	}
	read(r, key, "a whole number of 0 or more", into, func(n int) bool { return n >= 0 })
}

func (r *reader) word(key string, into *string, words ...string) {
	read(r, key, "one of "+strings.Join(words, ", "), into, func(s string) bool {
		for _, w := range words {
			if s == w {
				return true
			}
		}
		return false
	})
}

func (r *reader) prices(into **cost.Prices) {
	p, err := cost.Parse(r.value("prices"))
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%w %w", ErrSetting, err)
	}
	*into = p
}

// share reads a part of a whole.
func (r *reader) share(key string, into *float64) {
	raw := r.value(key)
	if raw == nil {
		return
	}
	f, ok := settings.ParseShare(raw)
	if !ok {
		r.fail(key, "a percentage like 80 %, or a share like 0.8")
		return
	}
	*into = f
}
