package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

// A provider can compact a conversation itself: its reply has a part that stands for all that the request held. That part begins a session which only this
// provider and model can read, so that requests to others go on with the messages, or with our own summary.

// session returns the index of the session with which a request begins: the newest that a provider began after our own, if the request is for this provider and
// its model, else our own.
func (t *Turn) session(sessions []branch.Session, inForce map[string]json.RawMessage) int {
	own := branchstore.Current(sessions)
	if own == len(sessions)-1 {
		return own
	}
	all := t.settings(inForce)
	provider, err := providerOf(all, t.getenv)
	if err != nil {
		return own // making a body reports it
	}
	model := adapter.Undated(modelOf(all, provider))
	return branchstore.CurrentFor(sessions, func(s *branch.Session) bool { return s.Provider == provider && adapter.Undated(s.Model) == model })
}

// modelOf returns the model of settings as a provider names it.
func modelOf(inForce map[string]json.RawMessage, provider string) string {
	return adapter.BareModel(&adapter.Settings{Model: textSetting(inForce, "model"), BaseURL: textSetting(inForce, "base_url")}, provider)
}

// compacted begins a session with the newest compaction that a reply brings, if it brings any. One of a reply that broke off may be a piece of it.
func (r *Request) compacted(m *chatctx.Message, e *chatctx.Ending) {
	if m.Unfinished || pool.OutcomeOf(m) == pool.BrokenOff && m.Meta.FinishReason != "compaction" {
		return
	}
	for _, p := range slices.Backward(m.Content) {
		if p.Type != pool.CompactionPart || p.Provider != r.Provider || len(p.Raw) == 0 || failedCompaction(p.Raw) {
			continue
		}
		summary := &pool.Message{ID: pool.NewID(), Role: pool.Assistant, Kind: "summary", Content: []pool.Part{p}, Meta: pool.Metadata{Provider: p.Provider, Model: p.Model}}
		if e.Sessions == nil {
			if e.Sessions = r.info.Sessions; branchstore.Current(e.Sessions) < 0 {
				e.Sessions = window.Sessions(r.info, r.Draft.Session)
			}
		}
		e.Loose = append(e.Loose, summary)
		e.Begins = &branch.Session{ID: pool.NewID(), Start: r.covered + 1, Summary: summary.ID, Created: pool.Now(), Apart: r.apart, Provider: r.Provider, Model: r.Model}
		return
	}
}

// failedCompaction reports whether a compaction says that it failed: it stands for nothing.
func failedCompaction(raw json.RawMessage) bool {
	var v struct {
		Content   json.RawMessage `json:"content"`
		Encrypted string          `json:"encrypted_content"`
	}
	return json.Unmarshal(raw, &v) != nil || v.Encrypted == "" && (len(v.Content) == 0 || string(v.Content) == "null")
}

// management is the field by which a provider is asked to compact.
const management = ".context_management"

// leastTrigger has the providers that can compact, with the smallest request, in tokens, at which each does.
var leastTrigger = map[string]int{adapter.Anthropic: 50_000, adapter.Responses: 1000}

// byProvider returns the size of a request, in tokens, at which the provider is to compact, 0 if it decides; ok means that compact.by leaves it to the provider,
// which can do it within the budget.
func byProvider(inForce map[string]json.RawMessage, provider string, o window.Options) (trigger int, ok bool) {
	least, can := leastTrigger[provider]
	if !can || textSetting(inForce, "compact.by") != "provider" {
		return 0, false
	}
	if o.Budget == 0 {
		return 0, true
	}
	trigger = max(least, int(o.CompactAt*float64(o.Budget)))
	return trigger, trigger <= o.Window(nil).Limit()
}

// askCompaction asks the provider to compact, if that is left to it.
func (t *Turn) askCompaction(req *Request) {
	key := req.Provider + management
	o, err := window.OptionsOf(req.Draft.Settings, t.getenv)
	trigger, ok := byProvider(req.Draft.Settings, req.Provider, o)
	if err != nil || !ok || req.Draft.Settings[key] != nil {
		return // other settings are refused where they are used
	}
	field := `[{"type":"compaction"}]`
	switch {
	case req.Provider == adapter.Anthropic && trigger > 0:
		field = fmt.Sprintf(`{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":%d}}]}`, trigger)
	case req.Provider == adapter.Anthropic:
		field = `{"edits":[{"type":"compact_20260112"}]}`
	case trigger > 0:
		field = fmt.Sprintf(`[{"type":"compaction","compact_threshold":%d}]`, trigger)
	}
	req.Draft.Settings[key] = json.RawMessage(field)
}

// compactor returns what lets the provider compact the branch apart from a request. It is nil if compact.by does not leave that to the provider, or if the provider
// compacts only within a request.
func (t *Turn) compactor(inForce map[string]json.RawMessage) window.Compactor {
	if _, can := t.Client.(wire.Compacter); !t.apart(inForce) || t.Client != nil && !can {
		return nil
	}
	return &compactor{t, inForce}
}

// apart reports whether settings leave it to a provider to compact that can do so apart from a request.
func (t *Turn) apart(inForce map[string]json.RawMessage) bool {
	provider, err := providerOf(inForce, t.getenv) // our own summary needs no provider, or reports that there is none
	return err == nil && provider == adapter.Responses && textSetting(inForce, "compact.by") == "provider"
}

// summariser names who is asked for the summary of an automatic compaction.
func (t *Turn) summariser(inForce map[string]json.RawMessage) window.Named {
	if by := t.compactor(inForce); by != nil {
		return by
	}
	return t.completer(inForce)
}

// compactor asks the provider of a conversation to compact it.
type compactor struct {
	turn     *Turn
	settings map[string]json.RawMessage
}

// Name identifies the server and the model.
func (c *compactor) Name() string {
	return fmt.Sprintf("%s\x00%s\x00%s\x00compact", adapter.Responses, textSetting(c.settings, "base_url"), textSetting(c.settings, "model"))
}

// Compact sends a draft, as the steps leave it.
func (c *compactor) Compact(ctx context.Context, d *chatctx.Draft, took func(*chatctx.Message) error) (*chatctx.Message, error) {
	d.Settings = maps.Clone(c.settings)
	for _, key := range asideSettings {
		delete(d.Settings, key)
	}
	o, err := c.turn.options(ctx, d.Settings, false)
	if err != nil {
		return nil, err
	}
	if _, err := window.Standard(o, c.turn.Context, nil, c.turn.Enhancers...).Run(ctx, d); err != nil {
		return nil, err
	}
	req := &Request{Provider: adapter.Responses, Draft: d}
	if err := req.adapt(); err != nil {
		return nil, err
	}
	client := c.turn.Client
	if client == nil {
		if client, err = c.turn.newClient(adapter.Responses, c.settings); err != nil {
			return nil, err
		}
	}
	id := pool.NewID()
	if err := report(took, &chatctx.Message{ID: id, Meta: pool.Metadata{Provider: adapter.Responses, Model: req.Model, Completed: pool.Now()}}); err != nil {
		return nil, err
	}
	m, err := client.(wire.Compacter).Compact(ctx, req.wire)
	if m != nil {
		m.ID, m.Meta.Completed = id, pool.Now()
	}
	return m, err
}

// compactBeta is the name under which Anthropic offers compaction.
const compactBeta = "compact-2026-01-12"

// takeHeaders removes the settings that belong into headers, and returns the headers. The others go into the body. compacted means that the request has a
// compaction.
func takeHeaders(settings map[string]json.RawMessage, provider string, compacted bool) http.Header {
	if provider != adapter.Anthropic {
		return nil
	}
	var all []string
	for _, key := range []string{adapter.Anthropic + ".beta", adapter.Anthropic + ".betas"} {
		var betas []string
		if raw := settings[key]; raw != nil && json.Unmarshal(raw, &betas) != nil {
			betas = strings.Split(textSetting(settings, key), ",")
		}
		all = append(all, betas...)
		delete(settings, key)
	}
	if compacted || bytes.Contains(settings[adapter.Anthropic+management], []byte(`"compact_20260112"`)) {
		all = append(all, compactBeta)
	}
	var named []string
	for _, b := range all {
		if b = strings.TrimSpace(b); b != "" && !slices.Contains(named, b) {
			named = append(named, b)
		}
	}
	if len(named) == 0 {
		return nil
	}
	return http.Header{"Anthropic-Beta": {strings.Join(named, ",")}}
}
