package exchange

import (
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// In LM Studio's conversations each message has versions, one of them selected; what follows belongs to that one. The vendor does not describe the format: what
// is not known is kept as it is.

const lmStudioName = "lmstudio"

func detectLMStudio(h *head) bool {
	v := h.first()
	m := v.get("messages").first()
	return !h.array && m.get("versions").is(arrayKind) && m.has("currentlySelected") ||
		v.has("usePerChatPredictionConfig") && v.get("messages").is(arrayKind)
}

var lmStudioShape = shape{role: "role", model: "senderInfo.senderName", content: "content|steps", key: "type", kinds: map[string]partReader{
	"text": saying("text"),
	"contentBlock": func(t *turn, p value) {
		read := t.text
		if p.at("style", "type").str() == "thinking" {
			read = func(s string) { t.think(s, "") }
		}
		for it := range p.get("content").items() {
			if it.get("type").str() == "text" {
				read(it.get("text").str())
			} else {
				keeping(t, it)
			}
		}
	},
	"file": func(t *turn, p value) {
		t.put(pool.Part{Type: "file_reference", Name: p.get("fileIdentifier").str(), Raw: p.keep()})
	},
}}

func readLMStudio(r *reading) error {
	return r.eachItem("", func(at place, v value) error {
		in := &record.Incoming{Title: v.get("name").str(), Created: v.get("createdAt").time(), Conversation: string(v.get("createdAt").raw()), System: v.get("systemPrompt").str()}
		for f := range v.at("perChatPredictionConfig", "fields").items() {
			if f.get("key").str() == "llm.prediction.systemPrompt" {
				in.System = firstOf(f.get("value").str(), in.System)
			}
		}
		t := r.thread(at)
		n, parent := 0, ""
		for m := range v.get("messages").items() {
			n++
			where := at.in("message " + itoa(n))
			chosen, _ := m.get("currentlySelected").int()
			if m.get("versions").first().get("role").str() == "" {
				t.skip(where, "", "", "%s without versions that have a role is left out", m.kind())
				continue
			}
			k, next := 0, parent
			for version := range m.get("versions").items() {
				id := itoa(n) + "." + itoa(k)
				t.take(where, id, parent, version, lmStudioShape.read(version, id)...)
				if k == 0 || k == int(chosen) {
					next = id
				}
				k++
			}
			parent = next
		}
		return t.handOn(in, v, parent)
	})
}
