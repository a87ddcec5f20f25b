package exchange

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Kiro CLI's conversations are turns of a user's content and an assistant's, as values in its database or as files of their own. Their transcript repeats the
// turns for people.

const kiroName = "kiro-cli"

func detectKiro(h *head) bool {
	return h.any(func(v value) bool {
		first := v.get("history").first()
		return v.has("conversation_id") && first.has("user") && (first.has("assistant") || first.get("user").has("content"))
	})
}

func readKiro(r *reading) error {
	return r.eachItem("", func(at place, v value) error {
		in, t := r.kiro(at, v)
		return t.handOn(in, v, "")
	})
}

// kiro reads one conversation.
func (r *reading) kiro(at place, v value) (*record.Incoming, *thread) {
	t := r.thread(at)
	n := 0
	for turn := range v.get("history").items() {
		n++
		id, where := itoa(n), at.in("turn "+itoa(n))
		if !turn.is(objectKind) {
			t.skip(where, "", "", "%s that is not a turn is left out", turn.kind())
			continue
		}
		user := turn.get("user")
		msgs := kiroUser(user, id)
		asked := len(msgs)
		if said := turn.get("assistant"); said.is(objectKind) {
			msgs = append(msgs, kiroAssistant(said, id)...)
			msgs[asked].Created = turn.at("request_metadata", "stream_end_timestamp_ms").time()
		}
		r.whole(where, turn, msgs...)
		t.add(where, id, t.last(), msgs[:asked]...)
		if len(msgs) > asked {
			t.add(where, firstOf(source(msgs[asked]).Node, id+"/answer"), t.last(), msgs[asked:]...)
		}
	}
	return &record.Incoming{Conversation: v.get("conversation_id").str()}, t
}

func kiroUser(v value, id string) []*chatctx.Message {
	t := newTurn(&chatctx.Message{Role: pool.User, Created: v.get("timestamp").time()}, id)
	for kind, x := range v.get("content").members() {
		switch list := x.pick("tool_use_results"); {
		case kind == "Prompt" || x.has("prompt") && list.d == nil:
			t.text(x.get("prompt").str())
		case list.is(arrayKind):
			for res := range list.items() {
				t.result(res.pick("tool_use_id|id").str(), "", firstPresent(res.get("content"), res), res.get("status").str() == "Error")
			}
			t.text(x.get("prompt").str())
		default:
			t.put(pool.Part{Type: "kiro_" + kind, Raw: x.keep()})
		}
	}
	return t.done()
}

func kiroAssistant(v value, id string) []*chatctx.Message {
	m := &chatctx.Message{Role: pool.Assistant}
	t := newTurn(m, id)
	for _, x := range v.members() { // Response or ToolUse
		source(m).Node = x.get("message_id").str()
		t.text(x.get("content").str())
		for c := range x.get("tool_uses").items() {
			t.call(c.get("id").str(), c.pick("name|orig_name").str(), firstPresent(c.get("args"), c.get("orig_args")))
		}
	}
	return t.done()
}
