package openai

import (
	"testing"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/provider/wiretest"
)

var suite = wiretest.Provider{Fold: NewFold, Frames: wire.SSE, Ext: ".sse"}

func TestReply(t *testing.T) { wiretest.Run(t, suite) }

func TestNoReply(t *testing.T) { suite.NoReply(t) }

func FuzzReply(f *testing.F) { suite.Fuzz(f) }

func BenchmarkReply(b *testing.B) {
	suite.Bench(b, wiretest.Stream("",
		`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764200000,"model":"gpt-test-1","service_tier":"default",`+
			`"system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" some words"},"logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n",
		"data: [DONE]\n\n"))
}
