package anthropic_test

import (
	"testing"

	"github.com/chatctx/chatctx/adapter/adaptertest"
	"github.com/chatctx/chatctx/internal/provider/anthropic"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Of(anthropic.Provider, anthropic.Adapter, "claude-3-haiku-20240307", "claude-3-5-sonnet-20241022", "claude-3-7-sonnet-20250219",
		"claude-sonnet-4-20250514", "claude-opus-4-1-20250805", "claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-4-8", "claude-fable-5-1", "claude-mythos-preview", "glm-4.6"))
}

func BenchmarkBody(b *testing.B) {
	adaptertest.Bench(b, adaptertest.Of(anthropic.Provider, anthropic.Adapter, "claude-opus-4-6"))
}

func TestGolden(t *testing.T) {
	adaptertest.Golden(t, adaptertest.Of(anthropic.Provider, anthropic.Adapter, "claude-opus-4-6"), "testdata/request.json")
}
