package exchange

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// goose's sessions are JSON Lines up to 1.9: a first line about the session and one for each message. goose session export writes one object with the messages
// under conversation.

const gooseName = "goose"

func detectGoose(h *head) bool {
	v := h.first()
	if v.has("working_dir") && (v.has("message_count") || v.has("description") || v.has("conversation")) {
		return true
	}
	// A first line of March 2025 has neither folder nor count, or is missing: then the messages show whose they are.
	headed := v.has("description") && !v.has("role")
	return h.any(func(v value) bool {
		t := v.get("content").first().get("type").str()
		return v.has("role") && v.get("created").is(numberKind) && (t == "toolRequest" || t == "toolResponse" || headed && t != "")
	})
}

var gooseShape = shape{role: "role", time: "created|created_timestamp", content: "content", key: "type", kinds: map[string]partReader{
	"text": saying("text"),
	"image": func(t *turn, p value) {
		t.put(urlPart(p.get("data").str(), pool.ImagePart, p.get("mimeType").str(), "", p))
	},
	"thinking":     thinking("thinking", "signature"),
	"toolRequest":  calling("id", "toolCall.value.name", "toolCall.value.arguments"),
	"toolResponse": gooseResult,
	"redactedThinking": func(t *turn, p value) {
		t.put(pool.Part{Type: pool.ThinkingPart, Redacted: p.get("data").str(), Provider: anthropicProvider})
	},
}}

func gooseResult(t *turn, p value) {
	res := p.get("toolResult")
	out := res.pick("value.content|value|error")
	failed := res.get("status").str() == "error" || res.at("value", "isError").bool()
	m := t.result(p.get("id").str(), "", out, failed)
	for i := range m.Result.Parts { // images have the same form as in messages
		if raw := m.Result.Parts[i].Raw; m.Result.Parts[i].Type != pool.TextPart && raw != nil {
			if v, _, err := new(document).parse(raw, false); err == nil && v.get("type").str() == "image" {
				m.Result.Parts[i] = urlPart(v.get("data").str(), pool.ImagePart, v.get("mimeType").str(), "", v)
			}
		}
	}
}

// gooseSeen marks messages that the person or the model does not see.
func gooseSeen(v value, msgs []*chatctx.Message) {
	about := v.get("metadata")
	for _, m := range msgs {
		m.Hidden = m.Hidden || about.get("userVisible").is(boolKind) && !about.get("userVisible").bool()
		m.Unsent = m.Unsent || about.get("agentVisible").is(boolKind) && !about.get("agentVisible").bool()
	}
}

// gooseSession matches the id by which a session's file is named.
var gooseSession = compiled(`^\d{8}_\d+$`)

func readGoose(r *reading) error {
	t := r.thread(place{})
	in := &record.Incoming{}
	if name := r.stem(); gooseSession().MatchString(name) {
		in.Conversation = name
	}
	n := 0
	err := r.eachItem("", func(at place, v value) error {
		n++
		if v.has("role") {
			gooseShape.next(t, at, v, firstOf(v.get("id").str(), itoa(n)), gooseSeen)
			return nil
		}
		if !v.is(objectKind) {
			r.skip(1, at, "%s that is not a message is left out", v.kind())
			return nil
		}
		gooseShape.line(t, v.get("conversation"), gooseSeen)
		in.Conversation = firstOf(v.get("id").str(), in.Conversation)
		in.Title = firstOf(in.Title, v.get("name").str(), v.get("description").str())
		in.Created, in.Updated = v.get("created_at").time(), v.get("updated_at").time()
		r.about(in, v)
		return nil
	})
	return r.atEnd(err, func() error { return t.handOn(in, value{}, "") })
}
