package exchange

import (
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// big-AGI's files contain all conversations, or one. Messages are fragments, each with a part of content, a thought or an attachment; in the first version a
// message is a text.

const bigAGIName = "big-agi"

func detectBigAGI(h *head) bool {
	return h.any(func(v value) bool { return bigAGIItem(v) || bigAGIItem(v.get("conversations").first()) })
}

func bigAGIItem(v value) bool { return v.get("messages").is(arrayKind) && v.has("systemPurposeId") }

var bigAGIShape = shape{role: "role", time: "created", model: "generator.aix.mId|generator.name|originLLM", provider: "generator.aix.vId",
	content: "fragments|text", key: "ft", kinds: map[string]partReader{"content": bigAGIFragment, "attachment": bigAGIFragment, "void": bigAGIFragment},
	usage: func(m *chatctx.Message, v value) {
		tokens(m, v.at("generator", "metrics"), []string{"TIn"}, []string{"TOut"}, []string{"TCacheRead"}, []string{"TOutR"})
	}}

var bigAGIParts = map[string]partReader{
	"text": saying("text"),
	"ma":   thinking("aText", "textSignature"),
	"doc": func(t *turn, p value) {
		if text := p.at("data", "text").str(); text != "" {
			t.put(dataPart(pool.DocumentPart, "text/plain", p.pick("l1Title|ref").str(), []byte(text)))
		} else {
			keeping(t, p)
		}
	},
	"tool_invocation": calling("id", "invocation.name|invocation.type", "invocation.args|invocation.code"),
	"tool_response": func(t *turn, p value) {
		failed := p.get("error")
		m := t.result(p.get("id").str(), p.at("response", "name").str(), firstPresent(p.at("response", "result"), p.get("response")), failed.bool() || failed.str() != "")
		m.Meta.Error = failed.str()
	},
}

// bigAGIFragment reads the part in a fragment.
func bigAGIFragment(t *turn, f value) {
	p := f.get("part")
	if read := bigAGIParts[p.get("pt").str()]; read != nil {
		read(t, p)
	} else if p.get("pt").str() != "ph" { // a placeholder
		keeping(t, f)
	}
}

func readBigAGI(r *reading) error {
	return r.eachItem("conversations", func(at place, v value) error {
		if !v.get("messages").is(arrayKind) {
			r.skipContext(0, at, "a conversation without a list of messages")
			return nil
		}
		t := r.thread(at)
		bigAGIShape.line(t, v.get("messages"), func(v value, msgs []*chatctx.Message) {
			if strings.HasPrefix(v.get("sender").str(), "Bot") && msgs[0].Role == pool.User {
				msgs[0].Role = pool.Assistant
			}
			for flag := range v.get("userFlags").items() {
				for i := range msgs {
					msgs[i].Unsent = msgs[i].Unsent || flag.str() == "aix.skip"
				}
			}
		})
		in := &record.Incoming{Conversation: v.get("id").str(), Title: v.pick("userTitle|autoTitle").str(), Created: v.get("created").time(), Updated: v.get("updated").time()}
		return t.handOn(in, v, "")
	})
}
