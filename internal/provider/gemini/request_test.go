package gemini_test

import (
	"testing"

	"github.com/chatctx/chatctx/adapter/adaptertest"
	"github.com/chatctx/chatctx/internal/provider/gemini"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Of(gemini.Provider, gemini.Adapter, "gemini-2.0-flash", "gemini-2.5-pro", "gemini-2.5-flash", "gemini-3-pro", "gemini-3.5-flash"))
}

func BenchmarkBody(b *testing.B) {
	adaptertest.Bench(b, adaptertest.Of(gemini.Provider, gemini.Adapter, "gemini-3-pro"))
}

func TestGolden(t *testing.T) {
	adaptertest.Golden(t, adaptertest.Of(gemini.Provider, gemini.Adapter, "gemini-3-pro"), "testdata/request.json")
}
