package adapter

import "testing"

func TestProviderOf(t *testing.T) {
	for model, want := range map[string]string{
		"claude-opus-4-6": Anthropic, "anthropic/claude-3": Anthropic, "gpt-4o": OpenAI, "gpt-5.6-sol": OpenAI, "o3": OpenAI, "o4-mini": OpenAI, "chatgpt-4o-latest": OpenAI,
		"ft:gpt-4o:org::id": OpenAI, "codex-mini-latest": Responses, "openai-responses/gpt-5": Responses, "gemini-3-pro": Gemini, "models/gemini-2.5-pro": Gemini, "google/gemini": Gemini,
		"llama3.2:3b": Ollama, "qwen3": Ollama, "gpt-oss:20b": Ollama, "gpt-oss": Ollama, "ollama/x": Ollama,
		"meta-llama/llama-3": "", "orca": "", "": "", "openai/": "", "deepseek-chat": "",
	} {
		if got := ProviderOf(model); got != want {
			t.Errorf("%q: %q, want %q", model, got, want)
		}
	}
}

func TestBareModel(t *testing.T) {
	if got := BareModel(&Settings{Model: "anthropic/claude-3"}, Anthropic); got != "claude-3" {
		t.Error(got)
	}
	if got := BareModel(&Settings{Model: "openai/gpt-5", BaseURL: "https://openrouter.ai/api/v1"}, OpenAI); got != "openai/gpt-5" {
		t.Error(got)
	}
}

func TestUndated(t *testing.T) {
	for name, want := range map[string]string{
		"gpt-5-2025-08-07": "gpt-5", "openai/GPT-5": "gpt-5", "claude-sonnet-4-5-20250929": "claude-sonnet-4-5", "claude-sonnet-4-5@20250929": "claude-sonnet-4-5",
		"claude-3-7-sonnet-latest": "claude-3-7-sonnet", "google/gemini-3-flash-preview:free": "gemini-3-flash-preview",
		"ft:o4-mini:acme::aaa": "ft:o4-mini:acme::aaa", "qwen3:8b": "qwen3:8b", "qwen3:free": "qwen3",
		"qwen3-235b-a22b-2507": "qwen3-235b-a22b-2507", "-20250929": "-20250929", "": "",
	} {
		if got := Undated(name); got != want {
			t.Errorf("%q: %q, not %q", name, got, want)
		}
	}
}
