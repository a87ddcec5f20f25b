package anthropic

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
	suite.Bench(b, wiretest.Stream(
		`data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}}`+"\n\n"+
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`+"\n\n",
		"event: content_block_delta\n"+`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" some words"}}`+"\n\n",
		`data: {"type":"content_block_stop","index":0}`+"\n\n"+`data: {"type":"message_stop"}`+"\n\n"))
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
