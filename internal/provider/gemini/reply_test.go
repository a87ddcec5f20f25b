package gemini

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
		`data: {"candidates":[{"content":{"parts":[{"text":" some words, of which Gemini sends many at a time"}],"role":"model"},"index":0}],`+
			`"usageMetadata":{"promptTokenCount":40,"totalTokenCount":40},"modelVersion":"gemini-test-1","responseId":"r"}`+"\n\n",
		`data: {"candidates":[{"finishReason":"STOP"}]}`+"\n\n"))
}
