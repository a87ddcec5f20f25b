package responses

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
		`data: {"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","content":[]}}`+"\n\n",
		`data: {"type":"response.output_text.delta","sequence_number":12,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" some words","logprobs":[]}`+"\n\n",
		`data: {"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"x"}]}}`+"\n\n"+
			`data: {"type":"response.completed","response":{"status":"completed","output":[]}}`+"\n\n"))
}
