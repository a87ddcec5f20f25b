package openai_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/provider/openai"
	"github.com/chatctx/chatctx/pool"
)

// TestOwn: what a server adds to a reply with thinking goes back to the model that it is from, with the pieces of a stream put together, and to no other model.
func TestOwn(t *testing.T) {
	const stream = `data: {"id":"1","model":"google/gemini-3-flash-preview-20251217","choices":[{"index":0,"delta":{"reasoning":"Look","reasoning_details":[{"type":"reasoning.text","text":"Look","index":0}]}}]}

data: {"choices":[{"index":0,"delta":{"reasoning":" at it","reasoning_details":[{"type":"reasoning.text","text":" at it","signature":"sig","format":null,"index":0}]}}]}

data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"one","id":"a","index":1}]}}]}

data: {"choices":[{"index":0,"delta":{"annotations":[1],"reasoning_details":[{"type":"reasoning.encrypted","data":"two","id":"b","index":1}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"AB+="}}}]},"finish_reason":"tool_calls"}]}

`
	reply, err := wire.NewStream(openai.Provider, io.NopCloser(nil), wire.SSE(strings.NewReader(stream)), openai.NewFold()).Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	const call = `{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}`
	const signed = `"tool_calls":[` + call + `,"extra_content":{"google":{"thought_signature":"AB+="}}}],"reasoning_details":[` +
		`{"type":"reasoning.text","text":"Look at it","index":0,"signature":"sig","format":null},` +
		`{"type":"reasoning.encrypted","data":"one","id":"a","index":1},{"type":"reasoning.encrypted","data":"two","id":"b","index":1}]}`
	const plain = `"tool_calls":[` + call + `}]}`
	for model, want := range map[string]string{
		"google/gemini-3-flash-preview": signed, "Google/Gemini-3-Flash-Preview:nitro": signed, "gemini-3-flash-preview": plain, "models/gemini-3-flash-preview": plain,
		"google/gemini-3-pro-preview": plain, "gpt-4o": plain,
	} {
		name, _ := json.Marshal(model)
		d := &chatctx.Draft{Settings: map[string]json.RawMessage{"model": name}}
		for _, m := range []*pool.Message{pool.NewText(pool.User, "go"), reply} {
			d.Messages = append(d.Messages, &chatctx.DraftMessage{Entry: pool.Entry{Message: m}})
		}
		b, err := openai.Adapter.Adapt(d)
		if err != nil {
			t.Fatal(err)
		}
		if raw, _ := b.MarshalJSON(); !strings.Contains(string(raw), want) {
			t.Errorf("%s: %s", model, raw)
		}
	}
}
