package responses_test

import (
	"testing"

	"github.com/chatctx/chatctx/adapter/adaptertest"
	"github.com/chatctx/chatctx/internal/provider/responses"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Of(responses.Provider, responses.Adapter, "gpt-4o", "gpt-4.1-mini", "gpt-5", "gpt-5.1", "gpt-5.4", "gpt-5.6-sol", "o3", "gpt-5-chat-latest"))
}

func BenchmarkBody(b *testing.B) {
	adaptertest.Bench(b, adaptertest.Of(responses.Provider, responses.Adapter, "gpt-5"))
}

func TestGolden(t *testing.T) {
	adaptertest.Golden(t, adaptertest.Of(responses.Provider, responses.Adapter, "gpt-5.1"), "testdata/request.json")
}
