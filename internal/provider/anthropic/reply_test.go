package anthropic

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
	suite.Bench(b, wiretest.Stream(
		`data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}}`+"\n\n"+
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`+"\n\n",
		"event: content_block_delta\n"+`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" some words"}}`+"\n\n",
		`data: {"type":"content_block_stop","index":0}`+"\n\n"+`data: {"type":"message_stop"}`+"\n\n"))
}
