package ollama_test

import (
	"testing"

	"github.com/chatctx/chatctx/adapter/adaptertest"
	"github.com/chatctx/chatctx/internal/provider/ollama"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Of(ollama.Provider, ollama.Adapter, "llama3.2:3b", "gpt-oss:20b"))
}

func BenchmarkBody(b *testing.B) {
	adaptertest.Bench(b, adaptertest.Of(ollama.Provider, ollama.Adapter, "llama3.2"))
}

func TestGolden(t *testing.T) {
	adaptertest.Golden(t, adaptertest.Of(ollama.Provider, ollama.Adapter, "llama3.2"), "testdata/request.json")
}
