// Package settings is the table of all settings, and the rules for their places: which belong to one address, and which of a file are in force.
//
// A setting has a name and a JSON value. The store, a context and a branch have settings of their own; the nearer of two values for one name wins (InForce).
// The package has no state but for the providers that a program adds (AddProvider), and does not depend on a store.
//
// All code that accepts, reads, lists or describes settings uses the table: there is no other list of names, defaults or ranges.
package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// A Setting is a row of the table.
type Setting struct {
	Name  string // a name that ends in a dot stands for all names that begin with it
	Group Group
	Type  Type
	// Min and Max are the range of a Number, a Count, a Share or a Level; Max 0 means no upper bound.
	Min, Max float64
	Off      bool   // a Count may be off
	Words    string // the values of a Word or a Level, separated by blanks
	Default  string // as it is typed; "" means none
	Scope    Scope
	// Harmless means that a value from another person's file is in force. Such a setting says how a model is asked; it cannot say where a request goes, which
	// key goes with it, or what may run.
	Harmless bool
	Does     string // for people: its purpose, in a few words
}

// Env returns the environment variable for the setting if no place has it, "" for a row of many names.
func (s *Setting) Env() string {
	if s.many() {
		return ""
	}
	return "CHATCTX_" + strings.ToUpper(strings.ReplaceAll(s.Name, ".", "_"))
}

func (s *Setting) many() bool { return strings.HasSuffix(s.Name, ".") }

// Title returns the name for people: openai.NAME for a row of many names.
func (s *Setting) Title() string {
	if s.many() {
		return s.Name + "NAME"
	}
	return s.Name
}

// Takes says for people which values the setting takes, with their range.
func (s *Setting) Takes() string {
	switch s.Type {
	case Number:
		return "number" + s.span()
	case Count:
		text := "whole number" + s.span()
		if s.Off {
			text += ", or off"
		}
		return text
	case Share:
		return fmt.Sprintf("share from 0 to %v, or 0 %% to %v %%", s.Max, 100*s.Max)
	case Word:
		return "one of " + strings.Join(strings.Fields(s.Words), ", ")
	case Level:
		return strings.Join(strings.Fields(s.Words), ", ") + ", or number of tokens"
	case Texts:
		return "text, or list of texts"
	case Time:
		return "time such as 90s or 5m"
	case Address:
		return "address such as https://host/v1"
	case Variable:
		return "name of an environment variable"
	case Format:
		return `text, json or {"type": "json_schema", "json_schema": {"name": …, "schema": {…}}}`
	case Choice:
		return "auto, none, required or a tool's name"
	}
	return string(s.Type)
}

func (s *Setting) span() string {
	text := " from " + strconv.FormatFloat(s.Min, 'f', -1, 64)
	if s.Max == 0 {
		return text + " on"
	}
	return text + " to " + strconv.FormatFloat(s.Max, 'f', -1, 64)
}

// Group is the subject of a setting.
type Group string

// The groups of settings.
const (
	Asked      Group = "who is asked"
	Asking     Group = "what goes into a request, as far as the provider takes it"
	Fitting    Group = "what fits into a request"
	Compacting Group = "when and how a conversation is compacted"
	Costing    Group = "cache and prices"
	Working    Group = "tools and search"
	Own        Group = "fields that go to a provider as they are, and those of other programs"
)

// Scope says where a value counts.
type Scope string

// The scopes of settings.
const (
	// Nearest means that the first value counts of a flag of the command, the branch, the context, the store and the environment.
	Nearest Scope = ""
	// Beside is Nearest, but a place with its own address or another provider puts the addresses of wider places out of force, together with these values
	// there. A key counts only for the address of its own place, or if no place has an address.
	Beside Scope = "with its address"
	// OfStore means that only the store has it, it is in force nowhere, and no file brings it along or takes it away.
	OfStore Scope = "of the store"
)

// String returns the scope for people.
func (s Scope) String() string {
	if s == Nearest {
		return "nearest"
	}
	return string(s)
}

// Type says which values a setting takes.
type Type string

// The types of settings.
const (
	Text    Type = "text"
	Number  Type = "number"
	Count   Type = "whole number"
	Share   Type = "share" // 0.8 or "80 %"
	Truth   Type = "true or false"
	Word    Type = "word"  // one of a few words
	Level   Type = "level" // one of a few words, or a Count
	Texts   Type = "texts" // a text or a list of texts
	Time    Type = "time"  // a duration: 90s, 5m
	Address Type = "address"
	// Variable is the name of an environment variable. An error about a value does not repeat it, since a person may have put the key itself there.
	Variable Type = "variable"
	Format   Type = "form of an answer"
	Choice   Type = "choice of tools"
	JSON     Type = "JSON"
	Pattern  Type = "template, {\"text\": …, \"system\": …}"
)

// most is the largest whole number of a setting, which fits an int on every machine.
const most = 1_000_000_000

// All returns every setting of this version, and those of the providers that the program added. Other settings are from a later version or from another program.
func All() []Setting { return slices.Clone(rows()) }

// AddProvider adds a provider that the program brings along: it becomes a value of the settings provider and compact.provider, and settings whose names begin with
// its name and a dot are its own, sent as they are. does says what these are. A name that is known already changes nothing.
func AddProvider(name, does string) {
	adding.Lock()
	defer adding.Unlock()
	if slices.Contains(Providers(), name) {
		return
	}
	list := slices.Clone(rows())
	for i := range list {
		if list[i].Name == "provider" || list[i].Name == "compact.provider" {
			list[i].Words += " " + name
		}
	}
	list = append(list, Setting{Name: name + ".", Group: Own, Type: JSON, Does: does})
	added.Store(&list)
}

// added is the table with the providers that the program added, nil without any. It is never changed, only replaced.
var (
	adding sync.Mutex
	added  atomic.Pointer[[]Setting]
)

// rows returns the table that is in force. Nobody changes it.
func rows() []Setting {
	if all := added.Load(); all != nil {
		return *all
	}
	return table
}

// table has every setting of this version.
var table = []Setting{
	{Name: "model", Group: Asked, Type: Text, Harmless: true, Does: "the model that is asked"},
	{Name: "provider", Group: Asked, Type: Word, Words: "openai openai-responses anthropic gemini ollama", Harmless: true, Does: "the provider that is asked; without it the model's name decides"},
	{Name: "base_url", Group: Asked, Type: Address, Does: "the address of a server that speaks the provider's protocol"},
	{Name: "key_env", Group: Asked, Type: Variable, Scope: Beside, Does: "the environment variable that holds the key: for the base_url of the same place, or else for the own host of the provider"},
	{Name: "organization", Group: Asked, Type: Text, Scope: Beside, Does: "the account's organization that requests are for"},
	{Name: "organisation", Group: Asked, Type: Text, Scope: Beside, Does: "the same as organization"},
	{Name: "profile", Group: Asked, Type: Text, Scope: Beside, Does: "how a server deviates from the protocol that it speaks"},
	{Name: "retries", Group: Asked, Type: Count, Max: 100, Default: "2", Does: "how often a failed request is sent again"},
	{Name: "timeout", Group: Asked, Type: Time, Default: "10m", Does: "how long to wait for an answer"},

	{Name: "temperature", Group: Asking, Type: Number, Max: 2, Harmless: true, Does: "how freely words are chosen"},
	{Name: "top_p", Group: Asking, Type: Number, Max: 1, Harmless: true, Does: "from how many of the likely words one is chosen"},
	{Name: "max_tokens", Group: Asking, Type: Count, Min: 1, Max: most, Harmless: true, Does: "the longest answer, in tokens"},
	{Name: "stop", Group: Asking, Type: Texts, Harmless: true, Does: "texts at which an answer ends"},
	{Name: "thinking", Group: Asking, Type: Level, Max: most, Words: "off low medium high", Harmless: true, Does: "how much the model thinks first"},
	{Name: "response_format", Group: Asking, Type: Format, Does: "what an answer looks like: text, json or a schema"},
	{Name: "tool_choice", Group: Asking, Type: Choice, Does: "whether the model may or must call tools, or which one"},
	{Name: "parallel_tool_calls", Group: Asking, Type: Truth, Does: "whether several tools may be called at once"},

	{Name: "budget", Group: Fitting, Type: Count, Max: most, Off: true, Default: "the model's", Harmless: true, Does: "the most that a request may take, in tokens"},
	{Name: "encoding", Group: Fitting, Type: Word, Words: "o200k_base o200k_harmony cl100k_base p50k_base p50k_edit r50k_base gpt2", Harmless: true, Does: "how text is cut into tokens for counting; without it the model's name decides"},
	{Name: "headroom", Group: Fitting, Type: Share, Max: 0.9, Default: "10 %", Harmless: true, Does: "the part of the budget that is kept free"},
	{Name: "keep_blocks", Group: Fitting, Type: Count, Max: most, Default: "3", Harmless: true, Does: "how many of the newest blocks stay as they are"},
	{Name: "digest_tokens", Group: Fitting, Type: Count, Max: most, Default: "400", Harmless: true, Does: "the room for all digests, in tokens"},
	{Name: "squeeze", Group: Fitting, Type: Truth, Default: "false", Harmless: true, Does: "whether a model shortens digests"},
	{Name: "steps.prune", Group: Fitting, Type: Truth, Default: "true", Harmless: true, Does: "whether old outputs become one line where there is no room"},
	{Name: "steps.tools", Group: Fitting, Type: Truth, Default: "true", Harmless: true, Does: "whether outputs are shortened or put aside where there is no room"},
	{Name: "steps.history", Group: Fitting, Type: Truth, Default: "true", Harmless: true, Does: "whether digests take the place of old turns where there is no room"},
	{Name: "steps.squeeze", Group: Fitting, Type: Truth, Default: "true", Harmless: true, Does: "whether a model may shorten digests where there is no room"},
	{Name: "steps.trim", Group: Fitting, Type: Truth, Default: "true", Harmless: true, Does: "whether the oldest messages go where there is no room"},
	{Name: "prune.threshold", Group: Fitting, Type: Count, Max: most, Default: "8000", Harmless: true, Does: "the size in tokens from which outputs are shortened"},
	{Name: "prune.keep", Group: Fitting, Type: Count, Max: most, Default: "2000", Harmless: true, Does: "how many of the newest tokens of outputs stay whole"},
	{Name: "prune.policy", Group: Fitting, Type: Word, Words: "auto keep_all keep_none", Default: "auto", Harmless: true, Does: "which outputs are shortened"},
	{Name: "resume.share", Group: Fitting, Type: Share, Max: 1, Default: "70 %", Harmless: true, Does: "the part of the budget up to which a session is resumed whole"},
	{Name: "images.scale", Group: Fitting, Type: Truth, Default: "true", Does: "whether images over a provider's limits are scaled down"},
	{Name: "notify", Group: Fitting, Type: Truth, Default: "true", Does: "whether send says what was left out"},

	{Name: "steps.compact", Group: Compacting, Type: Truth, Default: "true", Harmless: true, Does: "whether a conversation is compacted by itself where there is no room"},
	{Name: "compact.by", Group: Compacting, Type: Word, Words: "self provider", Default: "self", Harmless: true, Does: "who compacts: this program, or the provider itself (anthropic, openai-responses)"},
	{Name: "compact.at", Group: Compacting, Type: Share, Max: 1, Default: "80 %", Harmless: true, Does: "the part of the budget at which a conversation is compacted"},
	{Name: "compact.keep", Group: Compacting, Type: Count, Max: most, Default: "4000", Harmless: true, Does: "how many of the newest tokens a compaction leaves"},
	{Name: "compact.max_messages", Group: Compacting, Type: Count, Max: most, Off: true, Default: "off", Harmless: true, Does: "the number of messages at which a conversation is compacted"},
	{Name: "compact.keep_messages", Group: Compacting, Type: Count, Max: most, Default: "6", Harmless: true, Does: "how many of the newest messages a compaction leaves that compact.max_messages made due"},
	{Name: "compact.at_turns", Group: Compacting, Type: Count, Max: most, Off: true, Default: "off", Harmless: true, Does: "the number of turns at which a conversation is compacted; a third of them stays"},
	{Name: "compact.provider", Group: Compacting, Type: Word, Words: "openai openai-responses anthropic gemini ollama", Harmless: true, Does: "the provider that makes summaries"},
	{Name: "compact.model", Group: Compacting, Type: Text, Harmless: true, Does: "the model that makes summaries, and shorter digests"},
	{Name: "compact.max_tokens", Group: Compacting, Type: Count, Min: 1, Max: most, Harmless: true, Does: "the largest answer, with its thinking, of a model that makes summaries, shorter digests and titles; else twice of what is asked for"},
	{Name: "compact.system", Group: Compacting, Type: Text, Harmless: true, Does: "the system prompt for making summaries"},
	{Name: "compact.base_url", Group: Compacting, Type: Address, Does: "the address of the server that makes summaries"},
	{Name: "compact.key_env", Group: Compacting, Type: Variable, Scope: Beside, Does: "the environment variable that holds the key for compact.base_url, or else for compact.provider"},
	{Name: "compact.profile", Group: Compacting, Type: Text, Scope: Beside, Does: "how that server deviates from its protocol"},

	{Name: "cache", Group: Costing, Type: Truth, Default: "true", Harmless: true, Does: "whether the provider's cache is used"},
	{Name: "cache.ttl", Group: Costing, Type: Word, Words: "5m 1h", Default: "5m", Harmless: true, Does: "how long the provider's cache keeps the beginning of a request"},
	{Name: "prices", Group: Costing, Type: JSON, Does: "what a million tokens of a model cost: an object by models, or the path of a file with one; chatctx cost uses the store's"},

	{Name: "mode", Group: Working, Type: Text, Does: "a word that rules and tools ask for"},
	{Name: "input.piped", Group: Working, Type: Word, Words: "note append ignore", Default: "note", Does: "what a command with a text does with a pipe or a file on standard input: say that it was not read, append it, or ignore it"},
	{Name: "calls.folder", Group: Working, Type: Text, Does: "the folder in which tools run"},
	{Name: "embedding.model", Group: Working, Type: Text, Does: "the model that makes vectors for sessions --search"},
	{Name: "embedding.base_url", Group: Working, Type: Address, Does: "the address of the server that makes vectors"},
	{Name: "embedding.key_env", Group: Working, Type: Variable, Scope: Beside, Does: "the environment variable that holds the key for the embedding.base_url of the same place"},

	{Name: "template.", Group: Working, Type: Pattern, Scope: OfStore, Does: "a text with gaps, which send --template fills"},

	{Name: "openai.", Group: Own, Type: JSON, Does: "a field of OpenAI's Chat Completions, as it is"},
	{Name: "openai-responses.", Group: Own, Type: JSON, Does: "a field of OpenAI's Responses, as it is"},
	{Name: "anthropic.", Group: Own, Type: JSON, Does: "a field of Anthropic's Messages, as it is"},
	{Name: "anthropic.beta", Group: Own, Type: Texts, Does: "further betas for the header of Anthropic's requests"},
	{Name: "anthropic.betas", Group: Own, Type: Texts, Does: "the same as anthropic.beta"},
	{Name: "gemini.", Group: Own, Type: JSON, Does: "a field of Gemini's generateContent, as it is"},
	{Name: "ollama.", Group: Own, Type: JSON, Does: "a field of Ollama's chat, as it is"},
	{Name: "app.", Group: Own, Type: JSON, Does: "a setting of another program"},
}

// Lookup returns the row of a name. Of several rows that fit, the one with the longest name counts.
func Lookup(name string) (s Setting, ok bool) {
	for i := range rows() {
		row := &rows()[i]
		fits := row.Name == name
		if row.many() {
			fits = len(name) > len(row.Name) && strings.HasPrefix(name, row.Name)
		}
		if fits && len(row.Name) > len(s.Name) {
			s, ok = *row, true
		}
	}
	return s, ok
}

// Names returns the names of the table's rows that begin with a prefix, without the prefix.
func Names(prefix string) []string {
	var out []string
	for i := range rows() {
		if name, ok := strings.CutPrefix(rows()[i].Name, prefix); ok && !rows()[i].many() {
			out = append(out, name)
		}
	}
	return out
}

// Providers returns the values of the setting provider, in the order of the table.
func Providers() []string {
	row, _ := Lookup("provider")
	return strings.Fields(row.Words)
}
