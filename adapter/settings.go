package adapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/settings"
)

// Settings are the settings of a draft for a request.
type Settings struct {
	Model       string
	Profile     string // of a server that deviates from the provider's protocol
	BaseURL     string
	Temperature *float64
	TopP        *float64
	MaxTokens   int64 // 0 if not set
	Stop        []string
	Thinking    *Thinking
	Format      *Format
	Choice      *Choice
	Parallel    *bool
	Cache       bool
	TTL         string // 5m, 1h, or "" for the provider's default
	// Extra are the settings whose names begin with the provider's name, without that.
	Extra map[string]json.RawMessage
}

// Thinking says how much a model may think before it answers.
type Thinking struct {
	Off    bool
	Level  string // low, medium, high, or "" if a number was given
	Tokens int64  // also set for a level
}

// levels are the thinking levels with their tokens.
var levels = []struct {
	name   string
	tokens int64
}{{"low", 1024}, {"medium", 4096}, {"high", 16384}}

// Effort returns the level for providers that accept no number: the smallest one with enough tokens.
func Effort(t *Thinking) string {
	for _, l := range levels {
		if t.Level == l.name || t.Level == "" && t.Tokens <= l.tokens {
			return l.name
		}
	}
	return "high"
}

// Within returns how many tokens of thinking fit an answer of at most limit tokens in all (0 means no limit): a quarter of them stays for the words. note says
// that this is fewer than was set; "" if it is not.
func (t *Thinking) Within(tokens, limit int64) (fits int64, note string) {
	if fits = tokens; limit > 0 {
		fits = min(tokens, limit-max(limit/4, 1))
	}
	if fits < tokens {
		note = fmt.Sprintf("thinking %d instead of %d tokens: max_tokens is %d, and the answer needs some of them", fits, tokens, limit)
	}
	return fits, note
}

// Format says what an answer looks like: JSON, or JSON of a Schema.
type Format struct {
	Name   string
	Schema json.RawMessage // nil means any JSON
	Strict *bool
}

// Choice says whether tools are called: Mode is auto, none, required, or tool for the one named Tool.
type Choice struct{ Mode, Tool string }

// The keys of parameters, for Rules.Parameters.
const (
	Temperature    = "temperature"
	TopP           = "top_p"
	MaxTokens      = "max_tokens"
	Stop           = "stop"
	ThinkingKey    = "thinking"
	ResponseFormat = "response_format"
	ToolChoice     = "tool_choice"
	ParallelCalls  = "parallel_tool_calls"
)

// reader reads values from a draft's settings and keeps the first error.
type reader struct {
	from     map[string]json.RawMessage
	provider string
	err      error
}

// readSettings reads all settings for a provider's requests, and refuses those that the provider does not know.
func readSettings(from map[string]json.RawMessage, rules *Rules) (*Settings, error) {
	r := &reader{from: from, provider: rules.Provider}
	if err := r.known(rules.Parameters); err != nil {
		return nil, err
	}
	v := settings.Values(from)
	s := &Settings{Model: v.Text("model"), Profile: v.Text("profile"), BaseURL: v.Text("base_url"), Temperature: v.Number(Temperature), TopP: v.Number(TopP), MaxTokens: int64(v.Count(MaxTokens)),
		Cache: v.Truth("cache"), Stop: r.stop(), Thinking: r.thinking(), Format: r.format(), Choice: r.choice(), Extra: r.extra()}
	if v.Has(ParallelCalls) {
		parallel := v.Truth(ParallelCalls)
		s.Parallel = &parallel
	}
	if v.Has("cache.ttl") {
		s.TTL = v.Text("cache.ttl")
	}
	if r.err == nil && strings.TrimSpace(s.Model) == "" {
		r.err = ErrNoModel
	}
	return s, r.err
}

func (r *reader) fail(key, why string) {
	if r.err == nil {
		r.err = &SettingError{Key: key, Provider: r.provider, Why: why}
	}
}

// known refuses the first setting, by name, that is unknown, invalid, or a request parameter that this provider does not accept.
func (r *reader) known(taken []string) error {
	for _, key := range slices.Sorted(maps.Keys(r.from)) {
		var wrong *settings.Error
		row, _ := settings.Lookup(key)
		switch err := settings.Check(key, r.from[key]); {
		case errors.As(err, &wrong) && wrong.Wants != "":
			return &SettingError{Key: key, Provider: r.provider, Why: "takes " + wrong.Wants + ", not " + wrong.Value}
		case errors.As(err, &wrong) && wrong.Idle != "":
			return &SettingError{Key: key, Provider: r.provider, Why: "has no effect: " + wrong.Idle}
		case err != nil, row.Group == settings.Asking && !isNull(r.from[key]) && !slices.Contains(taken, key):
			return &SettingError{Key: key, Provider: r.provider, Why: "does not know it"}
		}
	}
	return nil
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// stop reads a text or a list of texts.
func (r *reader) stop() []string {
	raw := r.from[Stop]
	var one string
	var list, kept []string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else {
		_ = json.Unmarshal(raw, &list) // it is a list, or nothing
	}
	for _, s := range list {
		if s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// thinking reads a level or a number of tokens.
func (r *reader) thinking() *Thinking {
	v := settings.Values(r.from)
	if !v.Has(ThinkingKey) {
		return nil
	}
	word := v.Text(ThinkingKey)
	for _, l := range levels {
		if word == l.name {
			return &Thinking{Level: l.name, Tokens: l.tokens}
		}
	}
	n := int64(v.Count(ThinkingKey))
	return &Thinking{Off: n == 0, Tokens: n} // off is not a number
}

// format reads text, json, or a schema in the form of OpenAI's Chat Completions or Responses.
func (r *reader) format() *Format {
	raw := r.from[ResponseFormat]
	if isNull(raw) {
		return nil
	}
	type schema struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"schema"`
		Strict *bool           `json:"strict"`
	}
	var o struct {
		Type   string  `json:"type"`
		Nested *schema `json:"json_schema"`
		schema
	}
	if json.Unmarshal(raw, &o.Type) != nil {
		_ = json.Unmarshal(raw, &o) // it is one of the two: the setting's type says so
	}
	switch o.Type {
	case "json", "json_object":
		return &Format{}
	case "json_schema":
		if o.Nested != nil {
			o.schema = *o.Nested
		}
		if s, ok := cleanObject(o.Schema); ok {
			return &Format{Name: Form{Extra: "_-", Max: 64}.one(o.Name, "answer"), Schema: s, Strict: o.Strict}
		}
	}
	return nil // text
}

// choice reads auto, none, required (or any), a tool's name, or a provider's object that names a tool.
func (r *reader) choice() *Choice {
	raw := r.from[ToolChoice]
	if isNull(raw) {
		return nil
	}
	var o struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(raw, &o.Type) != nil {
		_ = json.Unmarshal(raw, &o) // it is one of the two: the setting's type says so
	}
	name := o.Name + o.Function.Name
	switch {
	case name != "":
		return &Choice{"tool", name}
	case o.Type == "auto", o.Type == "none", o.Type == "required":
		return &Choice{Mode: o.Type}
	case o.Type == "any":
		return &Choice{Mode: "required"}
	}
	return &Choice{"tool", o.Type}
}

func (r *reader) extra() map[string]json.RawMessage {
	extra := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(r.from)) {
		name, ok := strings.CutPrefix(key, r.provider+".")
		if !ok || name == "" || isNull(r.from[key]) {
			continue
		}
		value, ok := cleanJSON(r.from[key])
		if !ok {
			r.fail(key, "takes JSON")
		}
		extra[name] = value
	}
	return extra
}

// Apply returns a body's fields, an object, with Extra: it merges an object into a field that merge names, leaves tools to the caller, and replaces any other
// field.
func (s *Settings) Apply(fields json.RawMessage, merge ...string) (json.RawMessage, error) {
	o, err := jsontree.ParseObject(fields)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Extra)) {
		value := s.Extra[name]
		switch old := o.Get(name); {
		case name == "tools":
			continue
		case old != nil && slices.Contains(merge, name):
			value = jsontree.Merge(old, value)
		}
		o.Set(name, value)
	}
	return o.Bytes(), nil
}

// ExtraTools returns the provider's own tools from the settings, which come after those of the draft.
func (s *Settings) ExtraTools() []json.RawMessage {
	raw := s.Extra["tools"]
	var list []json.RawMessage
	if raw != nil && json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	return list
}
