package ollama

import (
	"testing"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/provider/wiretest"
)

var suite = wiretest.Provider{Fold: NewFold, Frames: wire.JSONLines, Ext: ".ndjson"}

func TestReply(t *testing.T) { wiretest.Run(t, suite) }

func FuzzReply(f *testing.F) { suite.Fuzz(f) }

func BenchmarkReply(b *testing.B) {
	suite.Bench(b, wiretest.Stream("",
		`{"model":"qwen-test","created_at":"2026-11-27T10:00:00.000000001Z","message":{"role":"assistant","content":" some words"},"done":false}`+"\n",
		`{"model":"qwen-test","done":true,"done_reason":"stop"}`+"\n"))
}
