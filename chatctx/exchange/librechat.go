package exchange

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// LibreChat's exports are {conversationId, messages[]}, flat with parents in any order, or nested in children. They do not say which message is the current
// one.

const libreChatName = "librechat"

func detectLibreChat(h *head) bool {
	return h.any(func(v value) bool {
		m := v.get("messages").first()
		return m.has("messageId") && (m.has("parentMessageId") || m.has("isCreatedByUser")) || v.has("conversationId") && v.has("exportAt")
	})
}

func readLibreChat(r *reading) error {
	return r.eachItem("", func(at place, v value) error {
		if !v.get("messages").is(arrayKind) {
			r.skipContext(0, at, "a conversation without a list of messages")
			return nil
		}
		in := &record.Incoming{Conversation: v.get("conversationId").str(), Title: v.get("title").str()}
		in.System = v.at("options", "promptPrefix").str()
		c := &libreChat{r: r, t: r.thread(at), at: at}
		c.t.byTime = !v.get("recursive").bool()
		c.messages(v.get("messages"))
		if in.Conversation == "" {
			in.Conversation = c.r.treeID(nil, c.t.records)
		}
		r.about(in, v)
		return c.t.emit(in, c.t.newestEnd())
	})
}

var ()

type libreChat struct {
	r  *reading
	t  *thread
	at place
	n  int
}

// messages reads the list, and the lists of children in it, without recursion.
func (c *libreChat) messages(list value) {
	type level struct {
		v      value
		parent string
	}
	todo := []level{{v: list}}
	for len(todo) > 0 {
		l := todo[0]
		todo = todo[1:]
		for m := range l.v.items() {
			c.n++
			at := c.at.in("message " + itoa(c.n))
			if !m.is(objectKind) {
				c.t.skip(at, "", "", "%s that is not a message is left out", m.kind())
				continue
			}
			id := firstOf(m.get("messageId").str(), itoa(c.n))
			parent := l.parent
			if p := m.get("parentMessageId").str(); p != "" {
				if parent = p; claudeAIRoot(p) {
					parent = ""
				}
			}
			c.message(at, id, parent, m)
			if m.get("children").len() > 0 {
				todo = append(todo, level{m.get("children"), id})
			}
		}
	}
}

func (c *libreChat) message(at place, id, parent string, v value) {
	m := &chatctx.Message{Role: pool.User, Created: v.get("createdAt").time()}
	if created := v.get("isCreatedByUser"); created.is(boolKind) && !created.bool() || !created.is(boolKind) && v.get("sender").str() != "User" {
		m.Role = pool.Assistant
		m.Meta.Model, m.Meta.FinishReason = v.get("model").str(), v.get("finish_reason").str()
		m.Meta.OutputTokens = v.get("tokenCount").count()
	}
	m.Unfinished = v.get("unfinished").bool()
	msgs := []*chatctx.Message{m}
	if body := v.get("content"); body.len() > 0 {
		msgs = libreChatContent(m, body, id)
	} else if text := v.get("text"); text.is(stringKind) {
		m.Content = texts(text)
	}
	if v.get("error").bool() {
		m.Kind, m.Unsent, m.Meta.Error = failure, true, firstOf(m.Text(), "error")
	}
	for _, list := range []string{"files", "attachments"} {
		for f := range v.get(list).items() {
			m.Content = append(m.Content, pool.Part{Type: "file_reference", Name: f.get("filename").str(), Raw: f.keep()})
		}
	}
	if v.get("children").is(arrayKind) {
		v.get("children").taken() // each is a record
	}
	c.r.whole(at, v, msgs...)
	c.t.add(at, id, parent, msgs...)
}

// libreChatContent reads parts: the model's words, and a result after each call that has one.
func libreChatContent(m *chatctx.Message, v value, id string) []*chatctx.Message {
	msgs, now := []*chatctx.Message{m}, m
	var results []*chatctx.Message
	for p := range v.items() {
		if len(results) > 0 && p.get("type").str() != "tool_call" {
			now = &chatctx.Message{Role: m.Role, Created: m.Created, Meta: pool.Metadata{Model: m.Meta.Model}}
			msgs = append(append(msgs, results...), now)
			results = nil
		}
		switch p.get("type").str() {
		case "think":
			now.Content = append(now.Content, pool.Part{Type: pool.ThinkingPart, Text: firstOf(p.get("think").str(), p.at("think", "value").str())})
		case "tool_call":
			tc := p.get("tool_call")
			call, _ := newCall(tc.get("id").str(), firstOf(tc.get("name").str(), tc.at("function", "name").str()),
				firstPresent(tc.get("args"), tc.at("function", "arguments")))
			addCall(now, call, id)
			if out := firstPresent(tc.get("output"), tc.at("function", "output")); out.d != nil {
				res := toolOutput(now.Calls[len(now.Calls)-1].ID, call.Tool, out)
				res.Created = m.Created
				results = append(results, res)
			}
		case "error":
			now.Meta.Error = firstOf(p.get("error").str(), "error")
			now.Content = append(now.Content, unknownPart(p))
		default:
			now.Content = append(now.Content, contentPart(p))
		}
	}
	return append(msgs, results...)
}
