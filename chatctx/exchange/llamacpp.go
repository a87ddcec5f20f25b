package exchange

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// The exports of llama.cpp's web UI are JSON Lines: a header with the conversation's name and current message, and messages that name parents and children. The
// root is an empty message.

const llamaName = "llama-webui"

func detectLlama(h *head) bool {
	return h.any(func(v value) bool {
		return v.get("type").str() == "session" && v.has("harness") || v.get("type").str() == "message" && v.get("message").has("convId")
	})
}

func readLlama(r *reading) error {
	l := &llama{r: r, t: r.thread(place{})}
	return r.atEnd(r.eachLine(l.line), l.emit)
}

// llama reads one conversation after another; a header begins each.
type llama struct {
	r       *reading
	t       *thread
	in      *record.Incoming
	current string
}

func (l *llama) line(at place, v value) error {
	switch v.get("type").str() {
	case "session":
		if err := l.emit(); err != nil {
			return err
		}
		l.t, l.current = l.r.thread(at), v.get("currNode").str()
		l.in = &record.Incoming{Conversation: v.get("id").str(), Title: v.get("name").str(), Updated: v.get("lastModified").time()}
		l.r.about(l.in, v)
	case "message":
		l.message(at, v, v.get("message"))
	default:
		l.r.skip(1, at, "the line is no message and is left out; its keys: %s", keyList(v))
	}
	return nil
}

func (l *llama) message(at place, line, v value) {
	if l.in == nil {
		l.in = &record.Incoming{Conversation: v.get("convId").str()}
	}
	id, role := v.get("id").str(), v.get("role").str()
	if !v.is(objectKind) || id == "" || role == "" {
		l.t.skip(at, id, v.get("parent").str(), "the message lacks an id or a role and is left out")
		return
	}
	var msgs []*chatctx.Message
	if v.get("type").str() != "root" {
		msgs = []*chatctx.Message{l.read(at, v, id, role)}
		l.r.whole(at, line, msgs...)
	}
	n := len(l.t.records)
	if msgs == nil {
		l.t.keep(line)
	}
	l.t.add(at, id, v.get("parent").str(), msgs...)
	if len(l.t.records) > n {
		for c := range v.get("children").items() {
			l.t.records[n].children = append(l.t.records[n].children, c.str())
		}
	}
}

func (l *llama) read(at place, v value, id, role string) *chatctx.Message {
	created := v.get("timestamp").time()
	if role == "tool" {
		m := toolResult(v.get("toolCallId").str(), "", contentParts(v.get("content")))
		m.Created = created
		return m
	}
	m := &chatctx.Message{Created: created}
	roleOf(m, role)
	if text := firstOf(v.get("reasoningContent").str(), v.get("thinking").str()); text != "" {
		m.Content = append(m.Content, pool.Part{Type: pool.ThinkingPart, Text: text})
	}
	m.Content = append(m.Content, contentParts(v.get("content"))...)
	for x := range v.get("extra").items() {
		m.Content = append(m.Content, llamaExtra(x))
	}
	if m.Role != pool.Assistant {
		return m
	}
	m.Meta.Model = v.get("model").str()
	if raw, bad := argumentText(v.get("toolCalls").str()); raw != nil && !bad {
		v.get("toolCalls").taken()
		if list, _, err := new(document).parse(raw, false); err == nil {
			l.r.repeatedKeys(at.in("toolCalls"), list)
			for tc := range list.items() {
				c, _ := newCall(tc.get("id").str(), tc.at("function", "name").str(), tc.at("function", "arguments"))
				c.Raw = rawBeyond(tc, keys("id", "type", "function", "index"))
				addCall(m, c, id)
			}
		}
	}
	return m
}

// llamaExtra returns a file of a message.
func llamaExtra(v value) pool.Part {
	name := v.get("name").str()
	if u := firstOf(v.get("base64Url").str(), v.get("url").str()); u != "" {
		return urlPart(u, pool.ImagePart, "", name, v)
	}
	if b := base64Bytes(v.get("base64Data").str()); len(b) > 0 {
		return dataPart(pool.DocumentPart, v.get("mimeType").str(), name, b)
	}
	if text := v.get("content").str(); text != "" {
		return dataPart(pool.DocumentPart, "text/plain", name, []byte(text))
	}
	return unknownPart(v)
}

// emit passes on the conversation read so far.
func (l *llama) emit() error {
	if l.in == nil {
		return nil
	}
	in := l.in
	l.in = nil
	if in.Conversation == "" {
		in.Conversation = l.r.treeID(nil, l.t.records)
	}
	return l.t.emit(in, l.current)
}
