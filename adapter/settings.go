package adapter

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx/settings"
)

// Settings are the settings of a draft that concern a request.
type Settings struct {
	Model       string
	Profile     string // of a server that speaks the provider's protocol with deviations
	BaseURL     string
	Temperature *float64
	TopP        *float64
	MaxTokens   int64 // 0: not set
	Stop        []string
	Thinking    *Thinking
	Format      *Format
	Choice      *Choice
	Parallel    *bool
	Cache       bool
	TTL         string // 5m, 1h, or "" for the provider's own
	// Extra are the settings that begin with the provider's name, without it, by name.
	Extra wire.Object
}

// Thinking is how much a model may think before it answers.
type Thinking struct {
	Off    bool
	Level  string // low, medium, high, or "" where a number was given
	Tokens int64  // of that level too
}

// levels are the tokens of the thinking levels.
var levels = []struct {
	name   string
	tokens int64
}{{"low", 1024}, {"medium", 4096}, {"high", 16384}}

// Effort is the level, for providers that take no number: the smallest one that covers it.
func (t *Thinking) Effort() string {
	for _, l := range levels {
		if t.Level == l.name || t.Level == "" && t.Tokens <= l.tokens {
			return l.name
		}
	}
	return "high"
}

// Within is how many tokens of thinking fit an answer of limit tokens in all (0: no limit): a quarter of them stays for the words. note says that this is fewer than was set; "" for nothing.
func (t *Thinking) Within(tokens, limit int64) (fits int64, note string) {
	if fits = tokens; limit > 0 {
		fits = min(tokens, limit-max(limit/4, 1))
	}
	if fits < tokens {
		note = fmt.Sprintf("thinking %d instead of %d tokens: max_tokens is %d, and the answer needs some of them", fits, tokens, limit)
	}
	return fits, note
}

// Crowds says, for a provider that takes no number, that the thinking may leave nothing of max_tokens for the answer; "" where it does not.
func (s *Settings) Crowds() string {
	if t := s.Thinking; t != nil && !t.Off && s.MaxTokens > 0 {
		if fits, _ := t.Within(t.Tokens, s.MaxTokens); fits < t.Tokens {
			return fmt.Sprintf("thinking of some %d tokens may leave nothing for the answer: max_tokens is %d, and the provider takes no number", t.Tokens, s.MaxTokens)
		}
	}
	return ""
}

// Format is how an answer is to look: JSON, or JSON of a Schema.
type Format struct {
	Name   string
	Schema json.RawMessage // nil: any JSON
	Strict *bool
}

// Choice says whether tools are to be called: Mode is auto, none, required, or tool for the one called Tool.
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

// parameters are the settings that go into requests; each provider says which it takes.
var parameters = []string{Temperature, TopP, MaxTokens, Stop, ThinkingKey, ResponseFormat, ToolChoice, ParallelCalls}

// reader takes values out of a draft's settings.
type reader struct {
	from     map[string]json.RawMessage
	provider string
	err      error
}

// readSettings reads all that concerns a provider's requests, and refuses what it does not know.
func readSettings(from map[string]json.RawMessage, rules *Rules) (*Settings, error) {
	r := &reader{from: from, provider: rules.Provider}
	s := &Settings{Cache: true}
	if err := r.known(rules.Parameters); err != nil {
		return nil, err
	}
	scale := true
	r.value(ScaleImages, &scale, "takes true or false")
	r.value("model", &s.Model, "takes a name")
	r.value("profile", &s.Profile, "takes a name")
	r.value("base_url", &s.BaseURL, "takes an address")
	r.value(Temperature, &s.Temperature, "takes a number")
	r.value(TopP, &s.TopP, "takes a number")
	r.value(MaxTokens, &s.MaxTokens, "takes a whole number")
	r.value(ParallelCalls, &s.Parallel, "takes true or false")
	r.value("cache", &s.Cache, "takes true or false")
	r.value("cache.ttl", &s.TTL, "takes 5m or 1h")
	s.Stop, s.Thinking, s.Format, s.Choice = r.stop(), r.thinking(), r.format(), r.choice()
	r.check(s)
	s.Extra = r.extra()
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

// known refuses, by name, the first setting that is not in the table, or that this provider does not take.
func (r *reader) known(taken []string) error {
	for _, key := range sortedKeys(r.from) {
		if _, ok := settings.Lookup(key); !isNull(r.from[key]) && (!ok || slices.Contains(parameters, key) && !slices.Contains(taken, key)) {
			return &SettingError{Key: key, Provider: r.provider, Why: "does not know it"}
		}
	}
	return nil
}

func sortedKeys(m map[string]json.RawMessage) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// value decodes a setting into to, which stays as it is where there is none.
func (r *reader) value(key string, to any, why string) {
	if raw := r.from[key]; !isNull(raw) && json.Unmarshal(raw, to) != nil {
		r.fail(key, why)
	}
}

func (r *reader) check(s *Settings) {
	for key, v := range map[string]*float64{Temperature: s.Temperature, TopP: s.TopP} {
		if v != nil && (*v < 0 || math.IsNaN(*v)) {
			r.fail(key, "takes no negative number")
		}
	}
	if s.MaxTokens < 0 || s.MaxTokens == 0 && !isNull(r.from[MaxTokens]) {
		r.fail(MaxTokens, "takes a number from 1 on")
	}
	if s.TTL != "" && s.TTL != "5m" && s.TTL != "1h" {
		r.fail("cache.ttl", "takes 5m or 1h")
	}
}

func (r *reader) stop() []string {
	raw := r.from[Stop]
	if isNull(raw) {
		return nil
	}
	var one string
	list := []string{}
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil {
		r.fail(Stop, "takes a text or a list of texts")
	}
	var kept []string
	for _, s := range list {
		if s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

func (r *reader) thinking() *Thinking {
	raw := r.from[ThinkingKey]
	if isNull(raw) {
		return nil
	}
	var word string
	var tokens float64
	if json.Unmarshal(raw, &tokens) == nil && tokens >= 0 && tokens < 1e9 {
		return &Thinking{Off: tokens < 1, Tokens: int64(tokens)}
	}
	if json.Unmarshal(raw, &word) == nil {
		if word == "off" {
			return &Thinking{Off: true}
		}
		for _, l := range levels {
			if word == l.name {
				return &Thinking{Level: l.name, Tokens: l.tokens}
			}
		}
	}
	r.fail(ThinkingKey, "takes off, low, medium, high or a number of tokens")
	return nil
}

// format reads text, json, or a schema as OpenAI's Chat Completions or Responses have it.
func (r *reader) format() *Format {
	raw := r.from[ResponseFormat]
	if isNull(raw) {
		return nil
	}
	const why = `takes text, json or {"type":"json_schema","json_schema":{"name":…,"schema":{…}}}`
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
	if json.Unmarshal(raw, &o.Type) != nil && json.Unmarshal(raw, &o) != nil {
		r.fail(ResponseFormat, why)
		return nil
	}
	switch o.Type {
	case "text":
		return nil
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
	r.fail(ResponseFormat, why)
	return nil
}

// choice reads auto, none, required (or any), a tool's name, or one of the providers' objects that name a tool.
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
	if json.Unmarshal(raw, &o.Type) != nil && json.Unmarshal(raw, &o) != nil {
		r.fail(ToolChoice, "takes auto, none, required or a tool's name")
		return nil
	}
	name := o.Name + o.Function.Name
	switch {
	case name != "":
		return &Choice{"tool", name}
	case o.Type == "auto", o.Type == "none", o.Type == "required":
		return &Choice{Mode: o.Type}
	case o.Type == "any":
		return &Choice{Mode: "required"}
	case o.Type != "" && raw[0] == '"':
		return &Choice{"tool", o.Type}
	}
	r.fail(ToolChoice, "takes auto, none, required or a tool's name")
	return nil
}

// fromBranch are the fields that the branch gives; nothing goes through in their place.
var fromBranch = map[string]bool{"messages": true, "contents": true, "input": true, "system": true, "systemInstruction": true,
	"instructions": true, "model": true, "stream": true, "stream_options": true}

func (r *reader) extra() wire.Object {
	var o wire.Object
	for _, key := range sortedKeys(r.from) {
		name, ok := strings.CutPrefix(key, r.provider+".")
		if !ok || name == "" || isNull(r.from[key]) {
			continue
		}
		if fromBranch[name] {
			r.fail(key, "gets this from the branch")
		}
		value, ok := cleanJSON(r.from[key])
		if !ok {
			r.fail(key, "takes JSON")
		}
		o = append(o, wire.Member{Name: name, Value: value})
	}
	return o
}

// Apply puts what goes through untouched into a body's fields: an object over one of the fields in merge is merged with it,
// a list of tools is left to the caller, everything else takes the field's place.
func (s *Settings) Apply(fields *wire.Object, merge ...string) {
	for _, m := range s.Extra {
		if m.Name == "tools" {
			continue
		}
		value := m.Value
		for _, name := range merge {
			if old := fields.Get(name); name == m.Name && old != nil {
				value = wire.Merge(old, value)
			}
		}
		fields.Set(m.Name, value)
	}
}

// ExtraTools are the provider's own tools, which stand after those of the draft.
func (s *Settings) ExtraTools() []json.RawMessage {
	raw := s.Extra.Get("tools")
	var list []json.RawMessage
	if raw != nil && json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	return list
}
