package exchange

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Open WebUI's exports are an array of {id, chat}, one {chat}, or a single chat. A chat's history is a map of messages that name parents and children; the list
// messages is a copy of the path on the screen, and the only content of old files.

const openWebUIName = "open-webui"

func detectOpenWebUI(h *head) bool {
	return h.any(func(v value) bool { return openWebUIChat(v).d != nil })
}

// openWebUIChat returns the chat in an item, an absent value if there is none.
func openWebUIChat(v value) value {
	for _, c := range []value{v.get("chat"), v} {
		switch {
		case c.at("history", "messages").is(objectKind):
			return c
		case c.is(objectKind) && c.i != v.i && c.get("messages").is(arrayKind):
			return c
		}
	}
	return value{}
}

func readOpenWebUI(r *reading) error {
	return r.eachItem("", func(at place, v value) error {
		chat := openWebUIChat(v)
		if chat.d == nil {
			r.skipContext(0, at, "no chat with messages in this item")
			return nil
		}
		return readOpenWebUIChat(r, at, v, chat)
	})
}

func readOpenWebUIChat(r *reading, at place, v, chat value) error {
	in := &record.Incoming{
		Conversation: firstOf(v.get("id").str(), chat.get("id").str()), Title: firstOf(v.get("title").str(), chat.get("title").str()),
		Created: v.get("created_at").time(), Updated: v.get("updated_at").time(),
	}
	if in.Created == 0 {
		in.Created = chat.get("timestamp").time()
	}
	in.System = chat.get("system").str()
	c := &openWebUI{r: r, t: r.thread(at), at: at}
	active := chat.at("history", "currentId").str()
	if all := chat.at("history", "messages"); all.is(objectKind) && all.len() > 0 {
		c.history(all)
		active = c.standing(active)
	} else {
		active = c.list(chat.get("messages"))
	}
	if in.Conversation == "" {
		in.Conversation = c.r.treeID(chat.get("timestamp").raw(), c.t.records)
	}
	r.about(in, v)
	return c.t.emit(in, active)
}

type openWebUI struct {
	r  *reading
	t  *thread
	at place
}

// list reads a chat without a history: consecutive messages.
func (c *openWebUI) list(v value) string {
	n := 0
	for m := range v.items() {
		n++
		id := firstOf(m.get("id").str(), itoa(n))
		c.message(c.at.in("message "+itoa(n)), id, c.t.last(), m)
	}
	return c.t.last()
}

// history reads the map. If a message does not say what its parent is, it is the one that lists the message as a child.
func (c *openWebUI) history(all value) {
	told := map[string]string{}
	for id, m := range all.members() {
		for child := range m.get("childrenIds").items() {
			if s := child.str(); told[s] == "" {
				told[s] = id
			}
		}
	}
	for id, m := range all.members() {
		parent := m.get("parentId").str()
		if m.get("parentId").kind() < nullKind {
			parent = told[id]
		}
		c.message(c.at.in("message "+show.Clip(id, 60)), id, parent, m)
		if i, ok := c.t.seen[id]; ok {
			for child := range m.get("childrenIds").items() {
				if s := child.str(); all.has(s) {
					c.t.records[i].children = append(c.t.records[i].children, s)
				}
			}
		}
	}
}

// standing returns the chat's current message: the one above it if it is an empty node of the program.
func (c *openWebUI) standing(id string) string {
	if i, ok := c.t.seen[id]; ok && c.t.records[i].message == nil {
		return c.t.records[i].parent
	}
	return id
}

func (c *openWebUI) message(at place, id, parent string, v value) {
	role, body := v.get("role").str(), v.get("content")
	switch {
	case !v.is(objectKind):
		c.t.skip(at, id, parent, "%s that is not a message is left out", v.kind())
		return
	case role == "" && body.kind() <= nullKind && v.get("output").len() == 0:
		c.t.add(at, id, parent) // an empty node of the program
		return
	case role == "":
		role = c.alternate(parent)
		c.r.repaired(at, "the message has no role; it is taken as %s", role)
	}
	m := &chatctx.Message{Created: v.get("timestamp").time()}
	roleOf(m, role)
	if m.Role == pool.Assistant {
		m.Meta.Model = v.get("model").str()
		m.Unfinished = v.get("done").is(boolKind) && !v.get("done").bool()
		openaiUsage(m, v.get("usage"))
		m.Meta.Error = firstOf(v.at("error", "content").str(), v.get("error").str())
	}
	msgs := []*chatctx.Message{m}
	if out := v.get("output"); out.len() > 0 && m.Role == pool.Assistant {
		msgs = openWebUIOutput(m, out, id)
		keepText(msgs[0], body)
	} else {
		m.Content = contentParts(body)
	}
	for f := range v.get("files").items() {
		m.Content = append(m.Content, openWebUIFile(f))
	}
	c.r.whole(at, v, msgs...)
	c.t.add(at, id, parent, msgs...)
}

// alternate guesses a role: a reply follows a user's message, and a user's message anything else.
func (c *openWebUI) alternate(parent string) string {
	if i, ok := c.t.seen[parent]; ok && c.t.records[i].message != nil && c.t.records[i].message.Role == pool.User {
		return "assistant"
	}
	return "user"
}

// keepText keeps the text with its <details>, which the output items describe better.
func keepText(m *chatctx.Message, body value) {
	if body.is(stringKind) && body.str() != m.Text() {
		w := objectWriter{}
		w.addRaw("content", body.keep())
		if have, ok := m.Meta.ProviderData[openWebUIName]; ok {
			w.addRaw("message", have)
		}
		m.Meta.ProviderData = appData(openWebUIName, w.done())
	}
}

// openWebUIOutput reads the items of a reply, in the form of OpenAI's Responses: messages of the model and results, in order.
func openWebUIOutput(m *chatctx.Message, out value, id string) []*chatctx.Message {
	msgs := []*chatctx.Message{m}
	now := m
	for it := range out.items() {
		if it.get("type").str() == "function_call_output" {
			res := toolResult(it.get("call_id").str(), "", contentParts(it.get("output")))
			res.Created = m.Created
			msgs, now = append(msgs, res), nil
			continue
		}
		if now == nil {
			now = &chatctx.Message{Role: pool.Assistant, Created: m.Created, Meta: pool.Metadata{Model: m.Meta.Model}}
			msgs = append(msgs, now)
		}
		switch it.get("type").str() {
		case "reasoning":
			text := textOf(append(contentParts(it.get("summary")), contentParts(it.get("content"))...))
			now.Content = append(now.Content, pool.Part{Type: pool.ThinkingPart, Text: text, Raw: it.keep()})
		case "function_call":
			call, _ := newCall(it.get("call_id").str(), it.get("name").str(), it.get("arguments"))
			addCall(now, call, id)
		case "message":
			now.Content = append(now.Content, contentParts(it.get("content"))...)
		default:
			now.Content = append(now.Content, unknownPart(it))
		}
	}
	return msgs
}

func openWebUIFile(v value) pool.Part {
	if v.get("type").str() == "image" {
		return urlPart(v.get("url").str(), pool.ImagePart, "", v.get("name").str(), v)
	}
	if text := firstOf(v.at("file", "data", "content").str(), v.at("data", "content").str()); text != "" {
		p := dataPart(pool.DocumentPart, "text/plain", v.get("name").str(), []byte(text))
		return p
	}
	return pool.Part{Type: "file_reference", Name: v.get("name").str(), Raw: v.keep()}
}
