package exchange

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// DeepSeek's export is a list of conversations, each with a mapping like ChatGPT's, whose messages are fragments. Its site answers with a session and a list of
// messages that name their parents.

const deepSeekName = "deepseek"

func detectDeepSeek(h *head) bool {
	return h.any(func(v value) bool {
		if v.at("data", "biz_data").has("chat_messages") {
			return true
		}
		for _, n := range v.get("mapping").members() {
			if n.get("message").has("fragments") {
				return true
			}
		}
		return v.get("mapping").is(objectKind) && v.has("inserted_at")
	})
}

var deepSeekKinds = map[string]partReader{
	"REQUEST": saying("content"), "RESPONSE": saying("content"), "THINK": thinking("content", ""),
}

func readDeepSeek(r *reading) error {
	return r.eachItem("", func(at place, v value) error {
		d := &deepSeek{r: r, t: r.thread(at)}
		about, active := v, v.get("current_node").str()
		if data := v.at("data", "biz_data"); data.is(objectKind) {
			about = data.get("chat_session")
			active = idText(about.get("current_message_id"))
			for m := range data.get("chat_messages").items() {
				d.message(at, idText(m.get("message_id")), idText(m.get("parent_id")), m, m)
			}
		}
		for id, n := range v.get("mapping").members() {
			d.message(at, firstOf(n.get("id").str(), id), n.get("parent").str(), n.get("message"), n)
		}
		for id, n := range v.get("mapping").members() {
			if i, ok := d.t.seen[firstOf(n.get("id").str(), id)]; ok {
				for c := range n.get("children").items() {
					d.t.records[i].children = append(d.t.records[i].children, c.str())
				}
			}
		}
		in := &record.Incoming{Conversation: about.get("id").str(), Title: about.get("title").str(), Created: about.get("inserted_at").time(), Updated: about.get("updated_at").time()}
		if active == "" {
			active = d.t.newestEnd()
		}
		return d.t.handOn(in, v, active)
	})
}

// idText returns an id that is a text or a number.
func idText(v value) string {
	if v.is(numberKind) {
		v.taken()
		return string(v.raw())
	}
	return v.str()
}

type deepSeek struct {
	r *reading
	t *thread
}

// message reads a message; a node without one is the root.
func (d *deepSeek) message(at place, id, parent string, v, record value) {
	at = at.in("message " + id)
	if !v.is(objectKind) {
		d.t.add(at, id, parent)
		return
	}
	m := &chatctx.Message{Role: pool.Assistant, Created: v.get("inserted_at").time()}
	if v.get("fragments").first().get("type").str() == "REQUEST" {
		m.Role = pool.User
	}
	if role := firstOf(v.get("role").str(), v.at("author", "role").str()); role != "" {
		roleOf(m, role)
	}
	if m.Role == pool.Assistant {
		m.Meta.Provider, m.Meta.Model = deepSeekName, v.get("model").str()
		m.Meta.OutputTokens = v.get("accumulated_token_usage").count()
	}
	t := newTurn(m, id)
	t.think(v.get("reasoning_content").str(), "")
	if body := v.pick("fragments|content"); body.has("parts") {
		t.content(body.get("parts"), "type", nil)
	} else {
		t.content(body, "type", deepSeekKinds)
	}
	for f := range v.get("files").items() {
		t.put(fileReference(f))
	}
	d.t.take(at, id, parent, record, t.done()...)
}
