package openai_test

import (
	"testing"

	"github.com/chatctx/chatctx/adapter/adaptertest"
	"github.com/chatctx/chatctx/internal/provider/openai"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Of(openai.Provider, openai.Adapter, "gpt-4o", "gpt-4.1-mini", "gpt-5", "gpt-5.1", "gpt-5.4", "gpt-5.6-sol", "o3", "o1-mini", "gpt-5-chat-latest",
		"llama-3.3-70b"))
}

func BenchmarkBody(b *testing.B) {
	adaptertest.Bench(b, adaptertest.Of(openai.Provider, openai.Adapter, "gpt-5"))
}

func TestGolden(t *testing.T) {
	adaptertest.Golden(t, adaptertest.Of(openai.Provider, openai.Adapter, "gpt-4o"), "testdata/request.json")
}
