package exchange

import (
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Claude.ai's data export is conversations.json, an array, or the same objects as a browser saved them from the site. In newer ones messages name their
// parents; older ones are flat lists. Results of tools are inside the assistant's message.

const claudeAIName = "claude-ai"

func detectClaudeAI(h *head) bool {
	return h.any(func(v value) bool {
		if v.get("chat_messages").is(arrayKind) {
			return true
		}
		for it := range v.get("conversations").items() {
			return it.get("chat_messages").is(arrayKind)
		}
		return false
	})
}

func readClaudeAI(r *reading) error {
	return r.eachItem("conversations", func(at place, v value) error {
		switch {
		case !v.is(objectKind):
			r.skipContext(0, at, "%s where a conversation should be", v.kind())
			return nil
		case !v.get("chat_messages").is(arrayKind):
			r.skipContext(0, at, "a conversation without a list of messages")
			return nil
		}
		return readClaudeAIChat(r, at, v)
	})
}

func readClaudeAIChat(r *reading, at place, v value) error {
	in := &record.Incoming{
		Conversation: v.get("uuid").str(), Title: v.get("name").str(), Created: v.get("created_at").time(), Updated: v.get("updated_at").time(),
	}
	c := &claudeAI{r: r, t: r.thread(at), model: v.get("model").str()}
	for m := range v.get("chat_messages").items() {
		c.linked = c.linked || m.get("parent_message_uuid").kind() > nullKind
	}
	n := 0
	for m := range v.get("chat_messages").items() {
		n++
		c.message(at.in("message "+itoa(n)), n, m)
	}
	if in.Conversation == "" {
		in.Conversation = c.r.treeID(v.get("created_at").raw(), c.t.records)
	}
	active := v.get("current_leaf_message_uuid").str()
	if !v.has("current_leaf_message_uuid") {
		active = c.last // the export does not say where the conversation is; its last message is the newest
	}
	r.about(in, v)
	return c.t.emit(in, active)
}

type claudeAI struct {
	r      *reading
	t      *thread
	model  string
	linked bool // messages name their parents
	last   string
}

// claudeAIRoot reports whether an id is the parent of messages without one: a zero id in one of two forms.
func claudeAIRoot(id string) bool {
	return strings.Trim(id, "0-") == "" || id == "00000000-0000-4000-8000-000000000000"
}

func (c *claudeAI) message(at place, n int, v value) {
	id := firstOf(v.get("uuid").str(), itoa(n))
	parent := c.last
	if c.linked {
		if parent = v.get("parent_message_uuid").str(); claudeAIRoot(parent) {
			parent = ""
		}
	}
	if !v.is(objectKind) {
		c.t.skip(at, "", "", "%s that is not a message is left out", v.kind())
		return
	}
	sender := firstOf(v.get("sender").str(), v.get("role").str())
	if sender == "" {
		c.t.skip(at, id, parent, "a message without a sender")
		return
	}
	m := &chatctx.Message{Created: v.get("created_at").time()}
	roleOf(m, sender)
	if m.Role == pool.Assistant {
		m.Meta.Provider, m.Meta.Model = anthropicProvider, firstOf(v.get("model").str(), c.model)
		m.Meta.FinishReason = v.get("stop_reason").str()
		m.Unfinished = v.get("truncated").bool() || m.Meta.FinishReason == "user_canceled"
	}
	body := v.get("content")
	if body.len() == 0 && !body.is(stringKind) {
		if body = v.get("text"); body.str() == "" {
			body = value{}
		}
	}
	msgs := blocks(m, body, id)
	msgs[0].Content = append(claudeAIFiles(v), msgs[0].Content...)
	c.r.whole(at, v, msgs...)
	c.t.add(at, id, parent, msgs...)
	c.last = id
}

// claudeAIFiles returns the files of a message: pasted texts whole, other files by name.
func claudeAIFiles(v value) []pool.Part {
	var parts []pool.Part
	for a := range v.get("attachments").items() {
		if text := a.get("extracted_content").str(); text != "" {
			p := dataPart(pool.DocumentPart, "text/plain", a.get("file_name").str(), []byte(text))
			p.Raw = unknownFields(a, keys("extracted_content", "file_name"))
			parts = append(parts, p)
		} else {
			parts = append(parts, fileReference(a))
		}
	}
	for f := range v.get("files").items() {
		parts = append(parts, fileReference(f))
	}
	return parts
}

// fileReference returns a part for a file that the export names but does not contain.
func fileReference(v value) pool.Part {
	return pool.Part{Type: "file_reference", Name: firstOf(v.get("file_name").str(), v.get("name").str()), Raw: v.keep()}
}
