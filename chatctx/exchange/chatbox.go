package exchange

import (
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

// Chatbox's export is one object with the keys of its storage: a session under each session:ID (in older ones all under chat-sessions). A message with forks
// has lists of messages that continue it in other ways; threads are earlier chats of a session.

const chatboxName = "chatbox"

func detectChatbox(h *head) bool {
	v := h.first()
	if v.has("chat-sessions-list") || v.get("chat-sessions").first().has("messages") {
		return true
	}
	for k := range v.members() {
		if strings.HasPrefix(k, "session:") {
			return v.has("__exported_at") || v.has("__exported_items")
		}
	}
	return false
}

var chatboxShape = shape{role: "role", time: "timestamp", model: "model", provider: "aiProvider", finish: "finishReason", failure: "error",
	content: "contentParts|content", key: "type", kinds: map[string]partReader{
		"text":      saying("text"),
		"reasoning": thinking("text", "signature"),
		"tool-call": callAndResult("toolCallId", "toolName", "args", "result", func(p value) bool { return p.get("state").str() == "error" }),
		"image":     keeping,
	},
	usage: func(m *chatctx.Message, v value) {
		tokens(m, v.get("usage"), []string{"inputTokens"}, []string{"outputTokens"}, []string{"cachedInputTokens"}, []string{"reasoningTokens"})
		m.Unfinished = v.get("generating").bool()
		if v.get("isSummary").bool() {
			m.Kind = summary
		}
	}}

// readChatbox leaves out everything but sessions: the settings contain keys of providers.
func readChatbox(r *reading) error {
	return r.eachItem("", func(at place, v value) error {
		var others []string
		listed := map[string]value{}
		for it := range v.get("chat-sessions-list").items() {
			id := it.get("id").str()
			if _, twice := listed[id]; twice {
				r.warn(at, "the session %s occurs more than once in the list; the last one counts", quoteClip(id, 60))
			}
			listed[id] = it
		}
		for k, x := range v.members() {
			var err error
			switch {
			case strings.HasPrefix(k, "session:"):
				err = readChatboxSession(r, at.in(k), x, listed)
			case k == "chat-sessions":
				for s := range x.items() {
					if err == nil {
						err = readChatboxSession(r, at.in("session "+s.get("id").str()), s, listed)
					}
				}
			case k != "chat-sessions-list" || !x.is(arrayKind):
				others = append(others, k)
			}
			if err != nil {
				return err
			}
		}
		for _, id := range slices.Sorted(maps.Keys(listed)) {
			r.warn(at, "the list names the session %s, which is not in the file; it is left out", quoteClip(id, 60))
		}
		if len(others) > 0 {
			r.warn(at, "settings, which may hold keys, are left out: %s", strings.Join(others, ", "))
		}
		return nil
	})
}

// readChatboxSession reads a session with its item of the list, which it takes out of there.
func readChatboxSession(r *reading, at place, v value, listed map[string]value) error {
	if !v.get("messages").is(arrayKind) {
		r.skipContext(0, at, "a session without a list of messages")
		return nil
	}
	id := v.get("id").str()
	for th := range v.get("threads").items() {
		t := r.thread(at.in("thread " + th.get("id").str()))
		chatboxShape.line(t, th.get("messages"), nil)
		in := &record.Incoming{Conversation: id + "/" + th.get("id").str(), Title: th.get("name").str(), Created: th.get("createdAt").time()}
		if err := t.handOn(in, th, ""); err != nil {
			return err
		}
	}
	t := r.thread(at)
	chatboxShape.line(t, v.get("messages"), nil)
	active := t.last()
	for from, fork := range v.get("messageForksHash").members() {
		for list := range fork.get("lists").items() {
			parent := from
			for m := range list.get("messages").items() {
				if node := m.get("id").str(); node != "" && m.is(objectKind) {
					t.take(at.in("message "+node), node, parent, m, chatboxShape.read(m, node)...)
					parent = node
				}
			}
		}
	}
	in := &record.Incoming{Conversation: id, Title: v.get("name").str()}
	r.about(in, v)
	if it, ok := listed[id]; ok {
		delete(listed, id)
		r.about(in, it)
	}
	return t.handOn(in, value{}, active)
}
