package gemini

import (
	"errors"
	"testing"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/adapter/wire/wiretest"
)

var suite = wiretest.Provider{Fold: NewFold, Frames: wire.SSE, Ext: ".sse"}

func TestReply(t *testing.T) { wiretest.Run(t, suite) }

func FuzzReply(f *testing.F) { suite.Fuzz(f) }

func BenchmarkReply(b *testing.B) {
	suite.Bench(b, wiretest.Stream("",
		`data: {"candidates":[{"content":{"parts":[{"text":" some words, of which Gemini sends many at a time"}],"role":"model"},"index":0}],`+
			`"usageMetadata":{"promptTokenCount":40,"totalTokenCount":40},"modelVersion":"gemini-test-1","responseId":"r"}`+"\n\n",
		`data: {"candidates":[{"finishReason":"STOP"}]}`+"\n\n"))
}

// An answer in one piece that is no reply is an error, not an empty message.
func TestNoReply(t *testing.T) {
	for _, body := range []string{`{}`, `{"error":{"type":"overloaded_error","code":"server_error","status":"UNAVAILABLE","message":"busy"},"type":"error"}`, `{"detail":"not found"}`} {
		m, err := wire.DecodeWhole([]byte(body), NewFold())
		var e *wire.Error
		if m != nil || !errors.As(err, &e) || e.Kind != wire.Overloaded {
			t.Errorf("%s: %v, %v", body, m, err)
		}
	}
}
