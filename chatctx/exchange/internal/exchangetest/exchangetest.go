// Package exchangetest has the stores that tests of exchange and of its formats share.
package exchangetest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Hostile is text that would be a script, or use the network, if it were not escaped.
const Hostile = `</script><script>document.title='owned'</script><img src=x onerror="document.title='owned'"> --> <!-- ]]> &lt; "' ` + "\u2028"

// OnePixel is a PNG of one pixel.
const OnePixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"

// MemoryStore opens a store in memory that is closed when the test ends. In a test, but not in a benchmark, each change runs twice.
func MemoryStore(t testing.TB) *chatctx.Store {
	t.Helper()
	db := memkv.New()
	if _, is := t.(*testing.T); is {
		db = kvtest.Twice{DB: db}
	}
	s, err := chatctx.OpenDB(db, chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// HostileStore returns a store with one context that has Hostile text wherever a page shows any.
func HostileStore(t testing.TB) *chatctx.Store {
	t.Helper()
	ctx := context.Background()
	s := MemoryStore(t)
	assistant := chatctx.Message{Role: pool.Assistant, Meta: pool.Metadata{Model: Hostile[:40]}, Content: []pool.Part{
		{Type: pool.TextPart, Text: "Some **bold** text.\n\n" + Hostile + "\n\n![pixel](https://example.invalid/p.png) [go](javascript:alert(1)) <b>raw</b>\n\n<div onclick=x>\nblock\n</div>\n"},
		{Type: pool.ThinkingPart, Text: Hostile},
		{Type: pool.ImagePart, Name: Hostile, Data: []byte(OnePixel)},
		{Type: "odd" + Hostile, Raw: json.RawMessage(`{"type":"odd","x":"</script>"}`)},
	}, Calls: []pool.Call{{ID: "c1", Tool: Hostile, Arguments: json.RawMessage(`{"a":"</script><img src=x onerror=1>"}`)}}}
	tool := chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c1", Tool: Hostile, Text: Hostile}}
	title := strings.TrimRight(Hostile, " \u2028") // names must not end with white space or contain U+2028
	c, err := s.New(ctx, record.NewContext{Title: title, Messages: []*chatctx.Message{pool.NewText(pool.User, Hostile), &assistant, &tool}})
	if err != nil {
		t.Fatal(err)
	}
	b := c.Begin("")
	b.Fork(title, chatctx.ForkOptions{At: "@1", Stay: true})
	if _, err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(ctx, title, pool.NewText(pool.Assistant, "the other way")); err != nil {
		t.Fatal(err)
	}
	return s
}
