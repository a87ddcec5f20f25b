package exchange

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Grok's export, prod-grok-backend.json, contains conversations, each with responses that name their parents.

const grokName = "grok"

func detectGrok(h *head) bool {
	return h.any(func(v value) bool {
		first := v.get("conversations").first()
		return grokItem(v) || grokItem(first)
	})
}

func grokItem(v value) bool {
	return v.get("conversation").is(objectKind) && v.get("responses").is(arrayKind)
}

// grokShape leaves the content to grokMessage.
var grokShape = shape{role: "sender", time: "create_time.$date.$numberLong|create_time.$date|create_time", model: "model", failure: "error"}

func readGrok(r *reading) error {
	return r.eachItem("conversations", func(at place, v value) error {
		if !grokItem(v) {
			r.skipContext(0, at, "a conversation without a list of responses")
			return nil
		}
		about := v.get("conversation")
		t := r.thread(at)
		n, linked := 0, false
		for it := range v.get("responses").items() {
			linked = linked || grokResponse(it).get("parent_response_id").str() != ""
		}
		for it := range v.get("responses").items() {
			n++
			where, m := at.in("response "+itoa(n)), grokResponse(it)
			if m.get("sender").str() == "" {
				t.skip(where, "", "", "%s that is not a response is left out", it.kind())
				continue
			}
			id, parent := firstOf(m.pick("_id|response_id").str(), itoa(n)), t.last()
			if linked {
				parent = m.get("parent_response_id").str()
			}
			t.take(where, id, parent, it, grokMessage(m, id)...)
		}
		in := &record.Incoming{Conversation: about.pick("id|conversation_id").str(), Title: about.get("title").str(),
			Created: about.get("create_time").time(), Updated: about.get("modify_time").time()}
		active := about.get("leaf_response_id").str()
		if active == "" && linked {
			active = t.newestEnd()
		}
		return t.handOn(in, v, active)
	})
}

func grokResponse(v value) value {
	if m := v.get("response"); m.is(objectKind) {
		return m
	}
	return v
}

func grokMessage(v value, id string) []*chatctx.Message {
	m := grokShape.message(v)
	switch v.get("sender").str() {
	case "human", "HUMAN", "user":
		m.Role = pool.User
	default:
		m.Role, m.Meta.Model, m.Meta.Provider = pool.Assistant, v.get("model").str(), "xai"
	}
	m.Unfinished = v.get("partial").bool()
	t := newTurn(m, id)
	for th := range v.get("agent_thinking_traces").items() {
		t.think(th.get("thinking_trace").str(), "")
	}
	if len(m.Content) == 0 {
		t.think(v.get("thinking_trace").str(), "")
	}
	t.text(v.get("message").str())
	for _, list := range []string{"file_attachments", "image_attachments"} {
		for f := range v.get(list).items() {
			t.put(pool.Part{Type: "file_reference", Name: firstOf(f.str(), f.pick("name|file_name").str()), Raw: f.keep()})
		}
	}
	for u := range v.get("generated_image_urls").items() {
		t.put(urlPart(u.str(), pool.ImagePart, "", "", u))
	}
	return t.done()
}
