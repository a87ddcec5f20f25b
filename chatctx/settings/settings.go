// Package settings is the table of all settings, and the rules of how they go together: which belong to one address, and which of a file are
// in force.
//
// A setting has a name and a JSON value. The store, a context and a branch have settings of their own; of two values for one name the
// nearer wins (InForce). The package keeps nothing, and knows nothing of a store.
package settings

import (
	"encoding/json"
	"strings"
)

// A Setting is a row of the table.
type Setting struct {
	Name string // one that ends in a dot stands for all names that begin with it
	Type Type
	// Harmless: a value that comes from a file of somebody else is in force. Such a setting says how a model is asked; it cannot say where
	// a request goes, which key goes along, or what may run.
	Harmless bool
	Default  string // as it is typed; "" for none
	Words    string // what a Word may be, with blanks between
	Does     string // for help: what it does, in a few words
}

// Env is the environment variable that gives the setting where no place does, "" for a row of many names.
func (s *Setting) Env() string {
	if strings.HasSuffix(s.Name, ".") {
		return ""
	}
	return "CHATCTX_" + strings.ToUpper(strings.ReplaceAll(s.Name, ".", "_"))
}

// Type is what values a setting takes.
type Type string

// The types of settings.
const (
	Text     Type = "text"
	Number   Type = "number of 0 or more"
	Count    Type = "whole number of 0 or more" // or off, which is 0
	Positive Type = "whole number of 1 or more"
	Share    Type = "share" // 0.8, 80 or "80 %"
	Truth    Type = "true or false"
	Word     Type = "word" // one of a few
	Time     Type = "time" // 90s, 5m
	Address  Type = "address"
	JSON     Type = "JSON"
)

// Table is every setting that this program knows. What does not stand here comes from a later version, or from a program of its own.
var Table = []Setting{
	{"model", Text, true, "", "", "who is asked"},
	{"provider", Word, true, "", "openai openai-responses anthropic gemini ollama", "where the model is asked; else its name tells"},
	{"base_url", Address, false, "", "", "the address of a server that speaks the provider's protocol"},
	{"key_env", Text, false, "", "", "the environment variable with the key for base_url"},
	{"organization", Text, false, "", "", "the account's organization that requests are for"},
	{"organisation", Text, false, "", "", "the same"},
	{"profile", Text, false, "", "", "the deviations of a server"},
	{"retries", Count, false, "2", "", "how often a failed request is sent again"},
	{"timeout", Time, false, "10m", "", "how long to wait for an answer"},

	{"temperature", Number, true, "", "", "sampling"},
	{"top_p", Number, true, "", "", "sampling"},
	{"max_tokens", Positive, true, "", "", "the longest answer"},
	{"stop", JSON, true, "", "", "texts at which an answer ends"},
	{"thinking", JSON, true, "", "", "how much the model thinks first: off, low, medium, high or tokens"},
	{"response_format", JSON, false, "", "", "what an answer looks like: text, json or a schema"},
	{"tool_choice", JSON, false, "", "", "whether tools are to be called"},
	{"parallel_tool_calls", Truth, false, "", "", "whether several tools may be called at once"},
	{"mode", Text, false, "", "", "a word that rules and tools ask for"},
	{"calls.folder", Text, false, "", "", "the folder in which tools run"},

	{"budget", Count, true, "the model's", "", "the most tokens of a request"},
	{"headroom", Share, true, "10 %", "", "the part of the budget that is kept free"},
	{"keep_blocks", Count, true, "3", "", "how many of the newest blocks stay as they are"},
	{"digest_tokens", Count, true, "400", "", "the room for all digests"},
	{"squeeze", Truth, true, "false", "", "whether a model shortens digests"},
	{"steps.prune", Truth, true, "true", "", "whether old outputs become one line where there is no room"},
	{"steps.tools", Truth, true, "true", "", "whether outputs are shortened or put aside where there is no room"},
	{"steps.history", Truth, true, "true", "", "whether digests take the place of old turns where there is no room"},
	{"steps.squeeze", Truth, true, "true", "", "whether a model may shorten digests where there is no room"},
	{"steps.trim", Truth, true, "true", "", "whether the oldest messages go where there is no room"},
	{"steps.compact", Truth, true, "true", "", "whether a conversation is compacted by itself where there is no room"},
	{"prune.threshold", Count, true, "8000", "", "the size from which outputs are shortened"},
	{"prune.keep", Count, true, "2000", "", "the newest outputs that stay whole, in tokens"},
	{"prune.policy", Word, true, "auto", "auto keep_all keep_none", "which outputs are shortened"},
	{"compact.at", Share, true, "80 %", "", "the part of the budget at which a conversation is compacted"},
	{"compact.keep", Count, true, "4000", "", "the newest tokens that compaction leaves"},
	{"compact.max_messages", Count, true, "off", "", "the number of messages at which a conversation is compacted"},
	{"compact.keep_messages", Count, true, "6", "", "the newest messages that compaction leaves"},
	{"compact.at_turns", Count, true, "off", "", "the number of turns at which a conversation is compacted; a third of them stays"},
	{"compact.provider", Word, true, "", "openai openai-responses anthropic gemini ollama", "where summaries are made"},
	{"compact.model", Text, true, "", "", "who makes summaries"},
	{"compact.system", Text, true, "", "", "what whoever makes summaries is told"},
	{"compact.base_url", Address, false, "", "", "the address of the server that makes summaries"},
	{"compact.key_env", Text, false, "", "", "the environment variable with the key for compact.base_url"},
	{"compact.profile", Text, false, "", "", "the deviations of that server"},
	{"resume.share", Share, true, "70 %", "", "the part of the budget up to which a session is resumed whole"},
	{"cache", Truth, true, "true", "", "whether the provider's cache is used"},
	{"cache.ttl", Word, true, "5m", "5m 1h", "how long it keeps a prefix"},
	{"images.scale", Truth, false, "true", "", "whether images over a provider's limits are scaled down"},
	{"notify", Truth, false, "true", "", "whether send says what was left out"},
	{"prices", JSON, false, "", "", "what a million tokens of a model cost: an object by models, or the path of a file with one"},

	{"embedding.model", Text, false, "", "", "who makes vectors for search"},
	{"embedding.base_url", Address, false, "", "", "the address of the server that makes vectors"},
	{"embedding.key_env", Text, false, "", "", "the environment variable with the key for embedding.base_url"},

	{"openai.", JSON, false, "", "", "a field of OpenAI's Chat Completions, as it is"},
	{"openai-responses.", JSON, false, "", "", "a field of OpenAI's Responses, as it is"},
	{"anthropic.", JSON, false, "", "", "a field of Anthropic's Messages, as it is"},
	{"gemini.", JSON, false, "", "", "a field of Gemini's generateContent, as it is"},
	{"ollama.", JSON, false, "", "", "a field of Ollama's chat, as it is"},
	{"app.", JSON, false, "", "", "a program's own"},
}

// Lookup finds the row of a name. A longer row counts before a shorter one.
func Lookup(name string) (s Setting, ok bool) {
	for _, row := range Table {
		fits := row.Name == name
		if strings.HasSuffix(row.Name, ".") {
			fits = len(name) > len(row.Name) && strings.HasPrefix(name, row.Name)
		}
		if fits && len(row.Name) > len(s.Name) {
			s, ok = row, true
		}
	}
	return s, ok
}

// HeldPrefix begins the names of settings that a file brought and that are not in force: held.base_url is what the file says of base_url.
const HeldPrefix = "held."

// Hold gives the settings of somebody else's file as they may be stored: those that are not harmless, not known or not valid stand under HeldPrefix until
// a person accepts them. held are their names.
func Hold(from map[string]json.RawMessage) (out map[string]json.RawMessage, held []string) {
	for name, value := range from {
		if out == nil {
			out = make(map[string]json.RawMessage, len(from))
		}
		if row, _ := Lookup(name); !row.Harmless || Check(name, value) != nil {
			bare := strings.TrimPrefix(name, HeldPrefix)
			held = append(held, bare)
			name = HeldPrefix + bare
		}
		out[name] = value
	}
	return out, sorted(held)
}

// HoldAll is Hold for settings that nobody but the store's owner sets: all of them are held back.
func HoldAll(from map[string]json.RawMessage) (out map[string]json.RawMessage, held []string) {
	for name, value := range from {
		if out == nil {
			out = make(map[string]json.RawMessage, len(from))
		}
		bare := strings.TrimPrefix(name, HeldPrefix)
		out[HeldPrefix+bare], held = value, append(held, bare)
	}
	return out, sorted(held)
}

// Held are those of a place's settings that are held back, under their own names.
func Held(of map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, value := range of {
		if bare, ok := strings.CutPrefix(name, HeldPrefix); ok {
			out[bare] = value
		}
	}
	return out
}

// Said are a place's settings as the file said them that brought them: an export has what is held back under its own name, unless the place has
// a value for that in force.
func Said(of map[string]json.RawMessage) map[string]json.RawMessage {
	if of == nil {
		return nil
	}
	out := Held(of)
	for name, value := range of {
		if !strings.HasPrefix(name, HeldPrefix) {
			out[name] = value
		}
	}
	return out
}

// Accept is the change of a place's settings that puts held ones in force: those that are named, or all that this version knows and that can have their values.
func Accept(of map[string]json.RawMessage, names ...string) map[string]json.RawMessage {
	set := map[string]json.RawMessage{}
	for name, value := range Held(of) {
		wanted := len(names) == 0 && Check(name, value) == nil
		for _, n := range names {
			wanted = wanted || n == name
		}
		if wanted {
			set[name], set[HeldPrefix+name] = value, null
		}
	}
	return set
}

var null = json.RawMessage("null")
