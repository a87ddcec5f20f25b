package tokens

import (
	"path"
	"strings"

	"github.com/pkoukk/tiktoken-go"
)

// Model is what counting needs to know of a model.
type Model struct {
	Name     string // as asked for
	Base     string // without provider prefixes
	Family   string // openai, anthropic, gemini, other
	Encoding Encoding
	// Own means that Encoding is the model's own, not an approximation.
	Own bool
	// Window is how many tokens a request and its answer may have together, Output how many an answer may have; 0 if the table lacks the model. Source and Date
	// are the origin of these figures and when it was read.
	Window, Output int
	Source, Date   string
}

// Budget returns what a request may take: the window less the output limit, but at least half the window, since GPT-4's output limit is its whole window. 0
// means unknown.
func (m Model) Budget() int { return m.Window - min(m.Output, m.Window/2) }

// ForModel returns what is known of a model by its name, with or without a provider before it: openai/gpt-4o, openrouter/anthropic/claude-sonnet-4.5,
// us.anthropic.claude-opus-4-1-v1:0, ft:gpt-4o:org, models/gemini-2.5-pro. Every name is accepted: an unknown model is counted by cl100k_base.
func ForModel(name string) Model {
	m := Model{Name: name, Base: baseName(name), Encoding: CL100k}
	m.Family = family(m.Base)
	m.Encoding, m.Own = encodingOf(m.Base)
	if w := windowOf(m.Base); w != nil {
		m.Window, m.Output, m.Source, m.Date = w.window, w.output, w.source, w.date
	}
	return m
}

// In returns the model with the encoding of a name, which also may be gpt2 or o200k_harmony. It counts as the model's own unless that is known to be another, or
// known to nobody outside, as Claude's and Gemini's are. An unknown name changes nothing.
func (m Model) In(name string) Model {
	if e, ok := encodingNamed(name); ok {
		m.Own = e == m.Encoding && m.Own || m.Family == "other"
		m.Encoding = e
	}
	return m
}

func baseName(name string) string {
	s := strings.ToLower(strings.TrimSpace(name))
	s = s[strings.LastIndexByte(s, '/')+1:]
	s = strings.TrimPrefix(s, "ft:")
	if i := strings.Index(s, "anthropic."); i >= 0 {
		s = s[i+len("anthropic."):]
	}
	if rest, ok := strings.CutPrefix(s, "gpt-35"); ok { // Azure's names have no dots
		s = "gpt-3.5" + rest
	}
	if strings.HasPrefix(s, "claude") {
		s = strings.ReplaceAll(s, ".", "-")
	}
	return s
}

func family(base string) string {
	_, own := encodingOf(base)
	switch {
	case own:
		return "openai"
	case strings.HasPrefix(base, "claude"):
		return "anthropic"
	case strings.HasPrefix(base, "gemini"):
		return "gemini"
	}
	return "other"
}

// encodingOf returns the encoding of a model without prefixes, and whether it is the model's own: that of tiktoken-go's tables, else that of ours.
func encodingOf(base string) (Encoding, bool) {
	name, _, _ := strings.Cut(base, ":") // gpt-4o:extended
	if e, ok := encodingNamed(ofLibrary(name)); ok {
		return e, true
	}
	for _, r := range unlisted {
		if fits, _ := path.Match(r.names, base); fits {
			return r.encoding, true
		}
	}
	return CL100k, false
}

// ofLibrary returns what tiktoken-go calls the encoding of a model, "" if it does not know the model.
func ofLibrary(name string) string {
	if e, ok := tiktoken.MODEL_TO_ENCODING[name]; ok {
		return e
	}
	longest := ""
	for prefix := range tiktoken.MODEL_PREFIX_TO_ENCODING {
		if strings.HasPrefix(name, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	return tiktoken.MODEL_PREFIX_TO_ENCODING[longest]
}

// unlisted are the models that tiktoken-go does not know. Each row has such a name; a test fails when the library learns it.
var unlisted = []struct {
	names    string // a pattern of package path
	encoding Encoding
	example  string
}{
	{"o[1-9]*", O200k, "o3-mini"},
	{"gpt-[5-9]*", O200k, "gpt-5-mini"},
	{"gpt-oss*", O200k, "gpt-oss-20b"},
	{"chatgpt-*", O200k, "chatgpt-4o-latest"},
	{"codex-*", O200k, "codex-mini-latest"},
	{"gpt-4o*", O200k, "gpt-4o_mini"},
	{"gpt-4.*", O200k, "gpt-4.2"},
	{"gpt-4*", CL100k, "gpt-4v"},
	{"gpt-3.5*", CL100k, "gpt-3.5"},
	{"text-embedding-*", CL100k, "text-embedding-ada-002-v2"},
}

// window is a row of the table, for models whose name begins with prefix.
type window struct {
	prefix         string
	window, output int
	source, date   string
}

const (
	openaiModels    = "developers.openai.com/api/docs/models"
	anthropicModels = "platform.claude.com/docs/en/models"
	geminiModels    = "ai.google.dev/gemini-api/docs/models"
	deepseekModels  = "api-docs.deepseek.com/quick_start/pricing"
)

// windows is the table; the longest matching prefix wins. Dates say when the source was read.
var windows = []window{
	{"gpt-3.5-turbo", 16_385, 4_096, openaiModels, "2025-04"},
	{"gpt-4", 8_192, 8_192, openaiModels, "2025-04"},
	{"gpt-4-32k", 32_768, 8_192, openaiModels, "2025-04"},
	{"gpt-4-turbo", 128_000, 4_096, openaiModels, "2025-04"},
	{"gpt-4-1106", 128_000, 4_096, openaiModels, "2025-04"},
	{"gpt-4-0125", 128_000, 4_096, openaiModels, "2025-04"},
	{"gpt-4o", 128_000, 16_384, openaiModels, "2025-04"},
	{"chatgpt-4o", 128_000, 16_384, openaiModels, "2025-04"},
	{"gpt-4.1", 1_047_576, 32_768, openaiModels, "2025-04"},
	{"gpt-4.5", 128_000, 16_384, openaiModels, "2025-04"},
	{"o1", 200_000, 100_000, openaiModels, "2025-04"},
	{"o1-mini", 128_000, 65_536, openaiModels, "2025-04"},
	{"o1-preview", 128_000, 32_768, openaiModels, "2025-04"},
	{"o3", 200_000, 100_000, openaiModels, "2025-04"},
	{"o4-mini", 200_000, 100_000, openaiModels, "2025-04"},
	{"gpt-oss", 131_072, 32_768, openaiModels, "2025-08"},
	{"gpt-5", 400_000, 128_000, openaiModels, "2025-08"},
	{"gpt-5-chat", 128_000, 16_384, openaiModels, "2025-08"},
	{"gpt-5.1-chat", 128_000, 16_384, openaiModels, "2026-11"},
	{"gpt-5.4", 1_050_000, 128_000, openaiModels, "2026-11"},
	{"gpt-5.4-mini", 400_000, 128_000, openaiModels, "2026-11"},
	{"gpt-5.4-nano", 400_000, 128_000, openaiModels, "2026-11"},
	{"gpt-5.5", 1_050_000, 128_000, openaiModels, "2026-11"},
	{"gpt-5.6", 1_050_000, 128_000, openaiModels, "2026-11"},
	{"claude-3", 200_000, 4_096, anthropicModels, "2025-04"},
	{"claude-3-5", 200_000, 8_192, anthropicModels, "2025-04"},
	{"claude-3-7", 200_000, 64_000, anthropicModels, "2025-04"},
	{"claude-opus-4", 200_000, 32_000, anthropicModels, "2025-08"},
	{"claude-sonnet-4", 200_000, 64_000, anthropicModels, "2025-10"},
	{"claude-haiku-4-5", 200_000, 64_000, anthropicModels, "2025-10"},
	{"claude-opus-4-5", 200_000, 64_000, anthropicModels, "2026-11"},
	{"claude-opus-4-6", 1_000_000, 128_000, anthropicModels, "2026-11"},
	{"claude-opus-4-7", 1_000_000, 128_000, anthropicModels, "2026-11"},
	{"claude-opus-4-8", 1_000_000, 128_000, anthropicModels, "2026-11"},
	{"claude-sonnet-4-6", 1_000_000, 128_000, anthropicModels, "2026-11"},
	{"claude-opus-5", 1_000_000, 128_000, anthropicModels, "2026-11"},
	{"claude-sonnet-5", 1_000_000, 128_000, anthropicModels, "2026-11"},
	{"claude-haiku-5", 1_000_000, 128_000, anthropicModels, "2026-11"},
	{"claude-fable-5", 1_000_000, 128_000, anthropicModels, "2026-11"},
	{"claude-mythos-5", 1_000_000, 128_000, anthropicModels, "2026-11"},
	{"gemini-1.5-pro", 2_097_152, 8_192, geminiModels, "2025-04"},
	{"gemini-1.5-flash", 1_048_576, 8_192, geminiModels, "2025-04"},
	{"gemini-2.0", 1_048_576, 8_192, geminiModels, "2025-04"},
	{"gemini-2.5", 1_048_576, 65_536, geminiModels, "2025-08"},
	{"gemini-3", 1_048_576, 65_536, geminiModels, "2026-11"},
	{"deepseek-chat", 128_000, 8_192, deepseekModels, "2025-10"},
	{"deepseek-reasoner", 128_000, 64_000, deepseekModels, "2025-10"},
}

func windowOf(base string) *window {
	var best *window
	for i := range windows {
		w := &windows[i]
		if strings.HasPrefix(base, w.prefix) && (best == nil || len(w.prefix) > len(best.prefix)) {
			best = w
		}
	}
	return best
}
