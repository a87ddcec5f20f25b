package exchange

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Messages of Vercel's AI SDK: those of its chat hooks in the generations with toolInvocations (v4) and with parts alone (v5), and model messages. One stored
// chat may contain all three. A list is one conversation; an object may hold it under messages.

const vercelName = "vercel-ai"

func detectVercel(h *head) bool {
	if !h.array && h.any(func(v value) bool {
		first := v.get("messages").first()
		return v.has("headId") && first.has("parentId") && first.get("message").has("role") || v.get("messages").first().get("parts").first().get("type").is(stringKind) && v.get("messages").first().has("role")
	}) {
		return true
	}
	return h.array && h.first().get("role").is(stringKind) && h.any(vercelMessage)
}

// vercelMessage reports whether a message is the SDK's and not OpenAI's.
func vercelMessage(v value) bool {
	if v.get("parts").first().get("type").is(stringKind) || v.has("toolInvocations") || v.has("experimental_attachments") || v.get("role").str() == "data" {
		return true
	}
	for p := range v.get("content").items() {
		switch p.get("type").str() {
		case "tool-call", "tool-result", "reasoning":
			return true
		}
		if p.has("mediaType") || p.has("mimeType") {
			return true
		}
	}
	return false
}

func readVercel(r *reading) error {
	if !r.head.array {
		return r.eachItem("", func(at place, v value) error { return readVercelChat(r, at, v, v.get("messages")) })
	}
	c := &vercel{r: r, t: r.thread(place{})}
	err := r.eachItem("", func(at place, v value) error {
		c.at = at
		c.message(v)
		return nil
	})
	return r.atEnd(err, func() error {
		return c.t.emit(&record.Incoming{Conversation: c.t.contentID(value{})}, c.t.last())
	})
}

func readVercelChat(r *reading, at place, v, list value) error {
	in := &record.Incoming{Conversation: v.get("id").str(), Title: v.get("title").str(), Created: v.get("createdAt").time(),
		Updated: v.get("updatedAt").time()}
	c := &vercel{r: r, t: r.thread(at), at: at}
	for m := range list.items() {
		if inner := m.get("message"); inner.is(objectKind) { // those of assistant-ui, which name their parents
			c.messageBelow(inner, m.get("parentId").str())
		} else {
			c.message(m)
		}
	}
	if in.Conversation == "" {
		in.Conversation = c.t.contentID(v)
	}
	r.about(in, v)
	return c.t.emit(in, firstOf(v.get("headId").str(), c.t.last()))
}

type vercel struct {
	r  *reading
	t  *thread
	at place
	n  int
	id string // of the next message, if its file has one
}

func (c *vercel) message(v value) { c.messageBelow(v, c.t.last()) }

func (c *vercel) messageBelow(v value, parent string) {
	c.n++
	id := firstOf(c.id, v.get("id").str(), "message "+itoa(c.n))
	at := c.at.in("message " + itoa(c.n))
	role := v.get("role").str()
	if role == "" {
		c.t.skip(at, "", "", "%s that is not a message is left out", v.kind())
		return
	}
	m := &chatctx.Message{Created: firstPresent(v.get("createdAt"), v.at("metadata", "createdAt")).time()}
	if role == "data" {
		m.Hidden, m.Unsent, m.Kind = true, true, "data"
	}
	if role != "tool" {
		roleOf(m, role)
	}
	m.Meta.Model = firstOf(v.at("metadata", "model").str(), v.at("metadata", "modelId").str())
	if role == "tool" { // content besides results
		m.Role, source(m).Role = pool.User, role
	}
	p := &vercelParts{turn: newTurn(m, id)}
	p.all(v)
	msgs := p.done()
	if role == "tool" && len(msgs) == 1 && msgs[0] == m && len(m.Content) == 0 {
		msgs = []*chatctx.Message{toolResult("", "", nil)} // results that are invalid
	}
	c.r.whole(at, v, msgs...)
	c.t.add(at, id, parent, msgs...)
}

// vercelParts makes consecutive messages from a message's parts: a step of the model, the results of its calls, the next step.
type vercelParts struct {
	*turn
	seen []string // ids of calls
}

func (p *vercelParts) all(v value) {
	parts := v.get("parts")
	if parts.len() == 0 {
		if text := v.get("reasoning"); text.is(stringKind) {
			p.turn.put(pool.Part{Type: pool.ThinkingPart, Text: text.str()})
		}
		if parts = v.get("content"); parts.is(stringKind) {
			p.text(parts.str())
		}
	}
	for it := range parts.items() {
		p.part(it)
	}
	for inv := range v.get("toolInvocations").items() {
		if !slices.Contains(p.seen, inv.get("toolCallId").str()) {
			p.invocation(inv, inv.get("toolName").str())
		}
	}
	for a := range v.get("experimental_attachments").items() {
		p.turn.put(urlPart(a.get("url").str(), pool.DocumentPart, a.get("contentType").str(), a.get("name").str(), a))
	}
}

func (p *vercelParts) part(v value) {
	switch typ := v.get("type").str(); {
	case typ == "text":
		p.text(v.get("text").str())
	case typ == "reasoning":
		p.turn.put(vercelThinking(v))
	case typ == "step-start":
	case typ == "file" || typ == "image":
		p.turn.put(urlPart(v.pick("url|data|image").str(), pool.DocumentPart, v.pick("mediaType|mimeType").str(), v.pick("filename|name").str(), v))
	case typ == "tool-invocation":
		inv := v.get("toolInvocation")
		p.invocation(inv, inv.get("toolName").str())
	case typ == "tool-call":
		p.call(v, v.get("toolName").str())
	case typ == "tool-result":
		p.result(v.get("toolCallId").str(), v.get("toolName").str(), v.pick("output|result"), v.get("isError").bool())
	case typ == "dynamic-tool":
		p.invocation(v, v.get("toolName").str())
	case strings.HasPrefix(typ, "tool-"):
		p.invocation(v, strings.TrimPrefix(typ, "tool-"))
	default:
		p.turn.put(unknownPart(v))
	}
}

func vercelThinking(v value) pool.Part {
	part := pool.Part{Type: pool.ThinkingPart, Text: firstOf(v.get("text").str(), v.get("reasoning").str())}
	for _, k := range []string{"providerOptions", "providerMetadata"} {
		for provider, o := range v.get(k).members() {
			part.Provider = cmp.Or(part.Provider, provider)
			part.Signature = firstOf(part.Signature, o.get("signature").str(), o.get("thoughtSignature").str(), o.get("reasoningEncryptedContent").str())
			part.Redacted = firstOf(part.Redacted, o.get("redactedData").str())
		}
	}
	part.Raw = rawBeyond(v, keys("type", "text", "reasoning", "state"))
	return part
}

func (p *vercelParts) call(v value, tool string) {
	id := v.get("toolCallId").str()
	p.seen = append(p.seen, id)
	if p.now.Role != pool.Assistant {
		p.turn.put(unknownPart(v))
		return
	}
	p.turn.call(id, tool, v.pick("input|args|rawInput"))
}

// invocation reads a call, and its result if there is one.
func (p *vercelParts) invocation(v value, tool string) {
	p.call(v, tool)
	id := v.get("toolCallId").str()
	switch v.get("state").str() {
	case "result", "output-available":
		p.result(id, tool, firstPresent(v.get("result"), v.get("output")), false)
	case "output-error":
		p.result(id, tool, v.get("errorText"), true)
	case "output-denied":
		p.result(id, tool, firstPresent(v.at("approval", "reason"), v.get("errorText")), true).Kind = denied
	}
}

// result adds a result. The output in model messages says which type it has.
func (p *vercelParts) result(call, tool string, out value, isError bool) *chatctx.Message {
	var m *chatctx.Message
	switch val := out.get("value"); out.get("type").str() {
	case "content":
		m = toolResult(call, tool, vercelResultParts(val))
	case "text", "json", "error-text", "error-json":
		if out.has("value") {
			m = toolOutput(call, tool, val)
			isError = isError || strings.HasPrefix(out.get("type").str(), "error")
			break
		}
		fallthrough
	default:
		m = toolOutput(call, tool, out)
		if out.get("type").str() == "execution-denied" {
			isError, m.Kind = true, denied
		}
	}
	m.Created, m.Result.IsError = p.now.Created, isError
	p.results = append(p.results, m)
	return m
}

func vercelResultParts(v value) []pool.Part {
	var parts []pool.Part
	for it := range v.items() {
		if it.get("type").str() == "text" {
			parts = append(parts, textPart(it.get("text").str()))
		} else {
			parts = append(parts, urlPart(firstOf(it.get("data").str(), it.get("url").str()), pool.DocumentPart, it.get("mediaType").str(), "", it))
		}
	}
	return parts
}
