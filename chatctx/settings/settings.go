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
	Does     string // for help: what it does, in a few words
}

// Type is what values a setting takes.
type Type string

// The types of settings.
const (
	Text    Type = "text"
	Number  Type = "number"
	Count   Type = "whole number"
	Share   Type = "share" // 0.8, 80 or "80 %"
	Truth   Type = "true or false"
	Word    Type = "word" // one of a few
	Time    Type = "time" // 90s, 5m
	Address Type = "address"
	JSON    Type = "JSON"
)

// Table is every setting that this program knows. What does not stand here comes from a later version, or from a program of its own.
var Table = []Setting{
	{"model", Text, true, "who is asked"},
	{"provider", Word, true, "where the model is asked; else its name tells"},
	{"base_url", Address, false, "the address of a server that speaks the provider's protocol"},
	{"key_env", Text, false, "the environment variable with the key for base_url"},
	{"organization", Text, false, "the account's organization that requests are for"},
	{"organisation", Text, false, "the same"},
	{"profile", Text, false, "the deviations of a server"},
	{"retries", Count, false, "how often a failed request is sent again"},
	{"timeout", Time, false, "how long to wait for an answer"},

	{"temperature", Number, true, "sampling"},
	{"top_p", Number, true, "sampling"},
	{"max_tokens", Count, true, "the longest answer"},
	{"stop", JSON, true, "texts at which an answer ends"},
	{"thinking", JSON, true, "how much the model thinks first: off, low, medium, high or tokens"},
	{"response_format", JSON, false, "what an answer looks like: text, json or a schema"},
	{"tool_choice", JSON, false, "whether tools are to be called"},
	{"parallel_tool_calls", Truth, false, "whether several tools may be called at once"},
	{"mode", Text, false, "a word that rules and tools ask for"},

	{"budget", Count, true, "the most tokens of a request"},
	{"headroom", Share, true, "the part of the budget that is kept free"},
	{"keep_blocks", Count, true, "how many of the newest blocks stay as they are"},
	{"digest_tokens", Count, true, "the room for all digests"},
	{"squeeze", Truth, true, "whether a model shortens digests"},
	{"prune.threshold", Count, true, "the size from which outputs are shortened"},
	{"prune.keep", Count, true, "the newest outputs that stay whole, in tokens"},
	{"prune.policy", Word, true, "which outputs are shortened"},
	{"compact.at", Share, true, "the part of the budget at which a conversation is compacted"},
	{"compact.keep", Count, true, "the newest tokens that compaction leaves"},
	{"compact.max_messages", Count, true, "the number of messages at which a conversation is compacted"},
	{"compact.keep_messages", Count, true, "the newest messages that compaction leaves"},
	{"compact.provider", Word, true, "where summaries are made"},
	{"compact.model", Text, true, "who makes summaries"},
	{"compact.system", Text, true, "what whoever makes summaries is told"},
	{"compact.base_url", Address, false, "the address of the server that makes summaries"},
	{"compact.key_env", Text, false, "the environment variable with the key for compact.base_url"},
	{"compact.profile", Text, false, "the deviations of that server"},
	{"resume.share", Share, true, "the part of the budget up to which a session is resumed whole"},
	{"cache", Truth, true, "whether the provider's cache is used"},
	{"cache.ttl", Word, true, "how long it keeps a prefix"},
	{"images.scale", Truth, false, "whether images over a provider's limits are scaled down"},
	{"notify", Truth, false, "whether send says what was left out"},
	{"prices", JSON, false, "prices of models"},

	{"embedding.model", Text, false, "who makes vectors for search"},
	{"embedding.base_url", Address, false, "the address of the server that makes vectors"},
	{"embedding.key_env", Text, false, "the environment variable with the key for embedding.base_url"},

	{"openai.", JSON, false, "a field of OpenAI's Chat Completions, as it is"},
	{"openai-responses.", JSON, false, "a field of OpenAI's Responses, as it is"},
	{"anthropic.", JSON, false, "a field of Anthropic's Messages, as it is"},
	{"gemini.", JSON, false, "a field of Gemini's generateContent, as it is"},
	{"ollama.", JSON, false, "a field of Ollama's chat, as it is"},
	{"app.", JSON, false, "a program's own"},
}

// Lookup finds the row of a name. A longer row counts before a shorter one.
func Lookup(name string) (s Setting, ok bool) {
	for _, row := range Table {
		fits := row.Name == name || strings.HasSuffix(row.Name, ".") && len(name) > len(row.Name) && strings.HasPrefix(name, row.Name)
		if fits && len(row.Name) > len(s.Name) {
			s, ok = row, true
		}
	}
	return s, ok
}

// HeldPrefix begins the names of settings that a file brought and that are not in force: held.base_url is what the file says of base_url.
const HeldPrefix = "held."

// Hold gives the settings of somebody else's file as they may be stored: those that are not harmless, or not known, stand under HeldPrefix until
// a person accepts them. held are their names.
func Hold(from map[string]json.RawMessage) (out map[string]json.RawMessage, held []string) {
	for name, value := range from {
		if out == nil {
			out = make(map[string]json.RawMessage, len(from))
		}
		if row, _ := Lookup(name); !row.Harmless {
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

// Accept is the change of a place's settings that puts held ones in force: all of them, or those that are named.
func Accept(of map[string]json.RawMessage, names ...string) map[string]json.RawMessage {
	set := map[string]json.RawMessage{}
	for name, value := range Held(of) {
		wanted := len(names) == 0
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
