package exchange

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// The message history of Pydantic AI is a list of requests, whose parts have several roles, and responses.

const pydanticName = "pydantic-ai"

func detectPydantic(h *head) bool {
	return h.array && h.any(func(v value) bool {
		return (v.get("kind").str() == "request" || v.get("kind").str() == "response") && v.get("parts").first().get("part_kind").is(stringKind)
	})
}

var pydanticKinds = map[string]partReader{
	"text":                saying("content"),
	"thinking":            thinking("content", "signature"),
	"tool-call":           calling("tool_call_id", "tool_name", "args"),
	"builtin-tool-call":   calling("tool_call_id", "tool_name", "args"),
	"builtin-tool-return": pydanticResult,
	"tool-return":         pydanticResult,
	"retry-prompt": func(t *turn, p value) {
		if p.get("tool_name").str() == "" {
			t.aside(contentParts(p.get("content"))...)
			return
		}
		t.result(p.get("tool_call_id").str(), p.get("tool_name").str(), p.get("content"), true)
	},
	"system-prompt": func(t *turn, p value) {
		t.out = append(t.out, &chatctx.Message{Role: pool.System, Created: t.now.Created, Content: contentParts(p.get("content"))})
	},
	"user-prompt": func(t *turn, p value) { t.content(p.get("content"), "kind", pydanticContent) },
}

func pydanticResult(t *turn, p value) {
	outcome := p.get("outcome").str()
	t.result(p.get("tool_call_id").str(), p.get("tool_name").str(), p.get("content"), outcome == "failed" || outcome == "denied")
}

var pydanticContent = map[string]partReader{
	"text-content": saying("content|text"),
	"image-url":    pydanticURL, "audio-url": pydanticURL, "video-url": pydanticURL, "document-url": pydanticURL,
	"binary": func(t *turn, p value) {
		t.put(urlPart(p.get("data").str(), pool.DocumentPart, p.get("media_type").str(), p.get("identifier").str(), p))
	},
}

func pydanticURL(t *turn, p value) {
	kind := pool.DocumentPart
	if p.get("kind").str() == "image-url" {
		kind = pool.ImagePart
	}
	t.put(urlPart(p.get("url").str(), kind, p.get("media_type").str(), "", p))
}

func readPydantic(r *reading) error {
	t := r.thread(place{})
	in := &record.Incoming{}
	n := 0
	err := r.eachItem("", func(at place, v value) error {
		n++
		m := &chatctx.Message{Role: pool.User, Created: v.pick("timestamp").time()}
		if m.Created == 0 {
			m.Created = v.get("parts").first().get("timestamp").time()
		}
		switch v.get("kind").str() {
		case "response":
			m.Role = pool.Assistant
			m.Meta.Model, m.Meta.Provider, m.Meta.FinishReason = v.get("model_name").str(), v.get("provider_name").str(), v.get("finish_reason").str()
			tokens(m, v.get("usage"), []string{"input_tokens", "request_tokens"}, []string{"output_tokens", "response_tokens"}, []string{"cache_read_tokens"}, nil)
		case "request":
			in.System = firstOf(in.System, v.get("instructions").str())
		default:
			t.skip(at, "", "", "%s that is neither a request nor a response is left out", v.kind())
			return nil
		}
		in.Conversation = firstOf(in.Conversation, v.get("conversation_id").str())
		tu := newTurn(m, itoa(n))
		tu.content(v.get("parts"), "part_kind", pydanticKinds)
		t.take(at, itoa(n), t.last(), v, tu.done()...)
		return nil
	})
	return r.atEnd(err, func() error { return t.handOn(in, value{}, "") })
}
