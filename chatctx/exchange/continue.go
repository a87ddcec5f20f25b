package exchange

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Continue's sessions are ~/.continue/sessions/ID.json: a history of messages, each with what was added to it as context. The results of tools are messages, or
// only in toolCallStates.

const continueName = "continue"

func detectContinue(h *head) bool {
	v := h.first()
	m := v.get("history").first()
	return !h.array && v.has("sessionId") && v.get("history").is(arrayKind) &&
		(m.get("message").has("role") || v.get("history").len() == 0 && v.has("workspaceDirectory"))
}

var continueShape = shape{role: "message.role", content: "message.content", model: "message.model", call: "message.toolCallId", key: "type", kinds: map[string]partReader{
	"text":     saying("text"),
	"imageUrl": func(t *turn, p value) { t.put(urlPart(p.at("imageUrl", "url").str(), pool.ImagePart, "", "", p)) },
}, usage: func(m *chatctx.Message, v value) { openaiUsage(m, v.at("message", "usage")) }}

func readContinue(r *reading) error {
	return r.eachItem("", func(at place, v value) error {
		t := r.thread(at)
		answered := map[string]bool{}
		for it := range v.get("history").items() {
			if m := it.get("message"); m.get("role").str() == "tool" {
				answered[m.get("toolCallId").str()] = true
			}
		}
		n := 0
		for it := range v.get("history").items() {
			n++
			where, id := at.in("message "+itoa(n)), itoa(n)
			if it.at("message", "role").str() == "" {
				t.skip(where, "", "", "%s that is not a message is left out", it.kind())
				continue
			}
			t.take(where, id, t.last(), it, continueItem(it, id, answered)...)
		}
		in := &record.Incoming{Conversation: v.get("sessionId").str(), Title: v.get("title").str()}
		return t.handOn(in, v, "")
	})
}

func continueItem(v value, id string, answered map[string]bool) []*chatctx.Message {
	switch v.at("message", "role").str() {
	case "tool":
		return continueShape.read(v, id)
	case "thinking":
		t := newTurn(&chatctx.Message{Role: pool.Assistant}, id)
		t.think(v.at("message", "content").str(), v.at("message", "signature").str())
		if red := v.at("message", "redactedThinking").str(); red != "" {
			t.put(pool.Part{Type: pool.ThinkingPart, Redacted: red})
		}
		return t.done()
	}
	t := newTurn(continueShape.message(v), id)
	for c := range v.get("contextItems").items() {
		if text := c.get("content").str(); text != "" {
			p := dataPart(pool.DocumentPart, "text/plain", c.get("name").str(), []byte(text))
			t.put(p)
		}
	}
	t.think(v.at("reasoning", "text").str(), "")
	t.content(v.at("message", "content"), "type", continueShape.kinds)
	if t.now.Role != pool.Assistant {
		return t.done()
	}
	for c := range v.at("message", "toolCalls").items() {
		t.call(c.get("id").str(), c.at("function", "name").str(), c.at("function", "arguments"))
	}
	for st := range v.get("toolCallStates").items() {
		call := st.get("toolCallId").str()
		if out := st.get("output"); out.len() > 0 && !answered[call] {
			m := toolOutput(call, st.at("toolCall", "function", "name").str(), out)
			m.Result.IsError = st.get("status").str() == "errored"
			t.results = append(t.results, m)
		}
	}
	return t.done()
}
