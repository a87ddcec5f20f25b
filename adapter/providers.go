package adapter

import (
	"slices"
	"strings"

	"github.com/chatctx/chatctx/internal/settings"
)

// Names of the providers that have an adapter.
const (
	OpenAI    = "openai"           // Chat Completions
	Responses = "openai-responses" // OpenAI's Responses
	Anthropic = "anthropic"        // Messages
	Gemini    = "gemini"           // generateContent
	Ollama    = "ollama"           // chat
)

// ProviderOf returns the provider that a model's name implies, "" if it implies none. A name may begin with a provider's name and a slash. The registered providers
// are asked first (Service.Implied).
func ProviderOf(model string) string {
	model = strings.ToLower(strings.TrimSpace(model))
	if p, rest, ok := strings.Cut(model, "/"); ok {
		switch {
		case slices.Contains(settings.Providers(), p) && rest != "":
			return p
		case p == "google" || p == "models":
			return Gemini
		}
		return ""
	}
	for _, s := range Services() {
		if s.Implied != nil && s.Implied(model) {
			return s.Name
		}
	}
	for _, m := range []struct{ prefix, provider string }{
		{"claude", Anthropic}, {"gpt-oss", Ollama}, {"gpt-", OpenAI}, {"chatgpt-", OpenAI}, {"codex-", Responses}, {"gemini", Gemini},
		{"computer-use-", Responses},
	} {
		if strings.HasPrefix(model, m.prefix) {
			return m.provider
		}
	}
	if len(model) >= 2 && model[0] == 'o' && model[1] >= '1' && model[1] <= '9' && (len(model) == 2 || model[2] == '-') {
		return OpenAI
	}
	if strings.Contains(model, ":") && !strings.HasPrefix(model, "ft:") {
		return Ollama
	}
	if strings.HasPrefix(model, "ft:gpt") {
		return OpenAI
	}
	for _, family := range []string{"llama", "qwen", "gemma", "phi", "deepseek-r1", "mistral", "mixtral", "granite", "llava", "smollm"} {
		if strings.HasPrefix(model, family) {
			return Ollama
		}
	}
	return ""
}

// BareModel returns a model's name as its provider knows it: without the provider's name in front. With a base_url the name is unchanged, since on another
// server that may be a part of the name.
func BareModel(s *Settings, provider string) string {
	model := strings.TrimSpace(s.Model)
	if s.BaseURL != "" {
		return model
	}
	return strings.TrimPrefix(model, provider+"/")
}

// Undated returns what tells a model from others: its name in lower case without a provider in front, the date of its release, "-latest", and OpenRouter's choice
// of a server behind a colon. What else stands behind a colon, as with Ollama's and with fine-tuned models, is a part of the name.
func Undated(model string) string {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	if n := strings.LastIndexByte(name, ':'); n >= 0 && slices.Contains(served, name[n+1:]) {
		name = name[:n]
	}
	name = strings.TrimSuffix(name, "-latest")
	for _, date := range []string{"-0000-00-00", "-00000000", "@00000000"} {
		if n := len(name) - len(date); n > 0 && strings.Map(zero, name[n:]) == date {
			return name[:n]
		}
	}
	return name
}

// served are OpenRouter's words for how a model is served (https://openrouter.ai/docs/guides/routing/model-variants).
var served = []string{"free", "nitro", "floor", "online", "extended", "exacto", "thinking", "beta"}

// zero returns 0 for every digit.
func zero(r rune) rune {
	if r >= '0' && r <= '9' {
		return '0'
	}
	return r
}
