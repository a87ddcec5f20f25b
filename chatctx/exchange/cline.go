package exchange

import (
	"path"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Tasks of Cline and of Roo Code are folders with api_conversation_history.json, a list of messages in the form of Anthropic's API, and files about it. Cline's
// store since 2026 is SESSION.messages.json with a manifest SESSION.json.

const (
	clineName = "cline"
	rooName   = "roo-code"
)

var clineWrappers = []string{"<task>", "<feedback>", "<user_message>", "<environment_details>"}

func detectCline(h *head) bool {
	v := h.first()
	if !h.array {
		return v.has("sessionId") && v.has("agent") && v.get("messages").is(arrayKind) && v.has("version")
	}
	if v.get("ts").is(numberKind) && (v.get("type").str() == "say" || v.get("type").str() == "ask") {
		return true
	}
	text := firstOf(v.get("content").str(), v.get("content").first().get("text").str())
	return v.get("role").is(stringKind) && v.has("content") &&
		(h.any(func(v value) bool { return v.get("ts").is(numberKind) && v.has("role") }) || startsWith(text, clineWrappers))
}

func readCline(r *reading) error {
	if !r.head.array {
		return r.eachItem("", func(at place, v value) error {
			c := newCline(r, at)
			c.in.Conversation, c.in.Updated = v.get("sessionId").str(), v.get("updated_at").time()
			for m := range v.get("messages").items() {
				c.message(m)
			}
			r.besideJSON(path.Join(path.Dir(r.file.path), c.in.Conversation+".json"), c.manifest)
			return c.t.handOn(&c.in, v, "")
		})
	}
	dir := path.Dir(r.file.path)
	c := newCline(r, place{})
	c.in.Conversation = r.folderName()
	if r.besideJSON(path.Join(dir, "history_item.json"), c.manifest) {
		c.in.Format = rooName
	}
	if r.head.first().has("say") || r.head.first().has("ask") {
		return c.shown(dir)
	}
	if c.in.Conversation = r.folderName(); r.file.path == "-" || !strings.HasPrefix(r.stem(), "api_") {
		c.in.Conversation = ""
	}
	err := r.eachItem("", func(at place, v value) error {
		c.at = at
		c.message(v)
		return nil
	})
	return r.atEnd(err, func() error { return c.t.handOn(&c.in, value{}, "") })
}

type cline struct {
	r  *reading
	t  *thread
	at place
	n  int
	in record.Incoming
}

func newCline(r *reading, at place) *cline { return &cline{r: r, t: r.thread(at), at: at} }

// manifest reads a file beside the messages that describes them.
func (c *cline) manifest(v value) {
	c.in.Title = v.pick("metadata.title|task|prompt").str()
	c.in.Created = v.pick("started_at|ts").time()
	if up := v.pick("parentTaskId").str(); up != "" {
		c.in.Parent = &record.SourceLink{Format: rooName, Conversation: up}
	}
	c.r.about(&c.in, v)
}

func (c *cline) message(v value) {
	c.n++
	at, id := c.at.in("message "+itoa(c.n)), firstOf(v.get("id").str(), itoa(c.n))
	m := &chatctx.Message{Created: v.get("ts").time(), Role: pool.Assistant}
	switch role := v.get("role").str(); {
	case role != "":
		roleOf(m, role)
	case v.get("type").str() != "reasoning":
		c.t.skip(at, "", "", "%s that is not a message is left out", v.kind())
		return
	default:
		m.Content = []pool.Part{unknownPart(v)}
	}
	m.Meta.Model, m.Meta.Provider = v.pick("modelInfo.modelId|modelInfo.id").str(), v.pick("modelInfo.providerId|modelInfo.provider").str()
	msgs := []*chatctx.Message{m}
	if v.has("content") {
		msgs = asides(blocks(m, v.get("content"), id), func(p pool.Part) bool { return startsWith(p.Text, []string{"<environment_details>"}) })
	}
	gone := v.pick("condenseParent|truncationParent").str() != ""
	for _, m := range msgs {
		m.Unsent = m.Unsent || gone
		if v.get("isSummary").bool() && m.Role != pool.ToolRole && m.Kind == "" {
			m.Kind = summary
		}
	}
	c.t.take(at, id, c.t.last(), v, msgs...)
}

// shown reads ui_messages.json, which holds what the person saw. It replaces the messages only if none of them can be read.
func (c *cline) shown(dir string) error {
	history, messages := path.Join(dir, "api_conversation_history.json"), false
	there := c.r.besideJSON(history, func(v value) {
		for m := range v.items() {
			messages = messages || m.get("role").is(stringKind) && m.has("content")
		}
	})
	if messages {
		return nil
	}
	if there {
		c.r.warn(place{}, "%s has no messages; what the program showed is taken instead", history)
	}
	err := c.r.eachItem("", func(at place, v value) error {
		c.n++
		var m *chatctx.Message
		switch kind := v.pick("say|ask").str(); {
		case c.n == 1 || kind == "user_feedback" || kind == "task":
			m = pool.NewText(pool.User, v.get("text").str())
		case kind == "text" || kind == "completion_result":
			m = pool.NewText(pool.Assistant, v.get("text").str())
		default:
			m = unreadRecord(v)
		}
		m.Created = v.get("ts").time()
		c.t.take(at, itoa(c.n), c.t.last(), v, m)
		return nil
	})
	return c.r.atEnd(err, func() error { return c.t.handOn(&c.in, value{}, "") })
}
