package openai

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
		`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764200000,"model":"gpt-test-1","service_tier":"default",`+
			`"system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" some words"},"logprobs":null,"finish_reason":null}],"usage":null}`+"\n\n",
		"data: [DONE]\n\n"))
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
