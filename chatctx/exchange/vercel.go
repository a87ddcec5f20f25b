package exchange

import (
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// Messages of Vercel's AI SDK: those of its chat hooks in the generations with toolInvocations (v4) and with parts alone (v5), and model
// messages; one stored chat may hold all three. A list is one conversation; an object may hold it under messages.

const vercelName = "vercel-ai"

func detectVercel(h *head) bool {
	if !h.array && h.any(func(v value) bool {
		return v.get("messages").first().get("parts").first().get("type").is(stringKind) && v.get("messages").first().has("role")
	}) {
		return true
	}
	return h.array && h.first().get("role").is(stringKind) && h.any(vercelMessage)
}

// vercelMessage tells a message of the SDK from one of OpenAI's.
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
		c.message(v)
		return nil
	})
	return r.atEnd(err, func() error {
		return c.t.emit(&chatctx.Incoming{Conversation: c.t.contentID()}, c.t.last())
	})
}

var vercelChatKnown = keys("id", "title", "messages", "createdAt", "updatedAt")

func readVercelChat(r *reading, at place, v, list value) error {
	in := &chatctx.Incoming{Conversation: v.get("id").str(), Title: v.get("title").str(), Created: v.get("createdAt").time(),
		Updated: v.get("updatedAt").time(), AppData: appData(vercelName, leftover(v, vercelChatKnown))}
	c := &vercel{r: r, t: r.thread(at), at: at}
	for m := range list.items() {
		c.message(m)
	}
	if in.Conversation == "" {
		in.Conversation = c.t.contentID()
	}
	return c.t.emit(in, c.t.last())
}

type vercel struct {
	r  *reading
	t  *thread
	at place
	n  int
}

var vercelKnown = keys("id", "role", "content", "parts", "createdAt", "reasoning", "toolInvocations", "experimental_attachments")

func (c *vercel) message(v value) {
	c.n++
	id := firstOf(v.get("id").str(), "message "+itoa(c.n))
	at := c.at.in("message " + itoa(c.n))
	role := v.get("role").str()
	if role == "" {
		c.t.skip(at, "", "", "%s that is no message", v.kind())
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
	keepRest(m, vercelName, v, vercelKnown)
	p := &vercelParts{m: m, id: id, tool: role == "tool"}
	p.all(v)
	msgs := p.messages()
	if c.r.damage(at, v) {
		source(msgs[0]).Raw = append([]byte(nil), v.raw()...)
	}
	c.t.next(at, id, msgs...)
}

// vercelParts makes messages in a row of a message's parts: a step of the model's, the results of its calls, the next step.
type vercelParts struct {
	m       *chatctx.Message // that parts go into
	id      string
	tool    bool // a message of results
	out     []*chatctx.Message
	results []*chatctx.Message
	seen    []string // ids of calls
}

func (p *vercelParts) all(v value) {
	parts := v.get("parts")
	if parts.len() == 0 {
		p.put(pool.ThinkingPart, v.get("reasoning"))
		if v.get("content").is(arrayKind) {
			parts = v.get("content")
		} else if v.get("content").str() != "" {
			p.put(pool.TextPart, v.get("content"))
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
		p.m.Content = append(p.m.Content, urlPart(a.get("url").str(), pool.DocumentPart, a.get("contentType").str(), a.get("name").str(), a))
	}
}

// put adds a text of a type, where there is one.
func (p *vercelParts) put(typ string, v value) {
	if v.is(stringKind) {
		p.step()
		p.m.Content = append(p.m.Content, pool.Part{Type: typ, Text: v.str()})
	}
}

// step begins the next step of the model's where results stand between.
func (p *vercelParts) step() {
	if len(p.results) > 0 {
		p.flush()
		p.m = &chatctx.Message{Role: p.m.Role, Created: p.m.Created, Meta: pool.Metadata{Model: p.m.Meta.Model}}
	}
}

func (p *vercelParts) flush() {
	if !p.tool {
		p.out = append(p.out, p.m)
	}
	p.out = append(p.out, p.results...)
	p.results = nil
}

func (p *vercelParts) messages() []*chatctx.Message {
	p.flush()
	if len(p.out) == 0 { // results that are none
		return []*chatctx.Message{toolResult("", "", nil)}
	}
	return p.out
}

func (p *vercelParts) part(v value) {
	switch typ := v.get("type").str(); {
	case typ == "text":
		p.put(pool.TextPart, v.get("text"))
	case typ == "reasoning":
		p.step()
		p.m.Content = append(p.m.Content, vercelThinking(v))
	case typ == "step-start":
		p.step()
	case typ == "file" || typ == "image":
		p.step()
		p.m.Content = append(p.m.Content, urlPart(firstOf(v.get("url").str(), v.get("data").str(), v.get("image").str()), pool.DocumentPart,
			firstOf(v.get("mediaType").str(), v.get("mimeType").str()), firstOf(v.get("filename").str(), v.get("name").str()), v))
	case typ == "tool-invocation":
		inv := v.get("toolInvocation")
		p.invocation(inv, inv.get("toolName").str())
	case typ == "tool-call":
		p.step()
		p.call(v, v.get("toolName").str())
	case typ == "tool-result":
		p.result(v.get("toolCallId").str(), v.get("toolName").str(), firstPresent(v.get("output"), v.get("result")), v.get("isError").bool())
	case typ == "dynamic-tool":
		p.invocation(v, v.get("toolName").str())
	case strings.HasPrefix(typ, "tool-"):
		p.invocation(v, strings.TrimPrefix(typ, "tool-"))
	default:
		p.step()
		p.m.Content = append(p.m.Content, unknownPart(v))
	}
}

func vercelThinking(v value) pool.Part {
	part := pool.Part{Type: pool.ThinkingPart, Text: firstOf(v.get("text").str(), v.get("reasoning").str())}
	for _, k := range []string{"providerOptions", "providerMetadata"} {
		for provider, o := range v.get(k).members() {
			if part.Provider == "" {
				part.Provider = provider
			}
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
	if p.m.Role != pool.Assistant {
		p.m.Content = append(p.m.Content, unknownPart(v))
		return
	}
	c, _ := newCall(id, tool, firstPresent(v.get("input"), v.get("args"), v.get("rawInput")))
	addCall(p.m, c, p.id)
}

// invocation is a call, and its result where it has come.
func (p *vercelParts) invocation(v value, tool string) {
	p.call(v, tool)
	id := v.get("toolCallId").str()
	switch v.get("state").str() {
	case "result", "output-available":
		p.result(id, tool, firstPresent(v.get("result"), v.get("output")), false)
	case "output-error":
		p.result(id, tool, v.get("errorText"), true)
	case "output-denied":
		p.result(id, tool, firstPresent(v.at("approval", "reason"), v.get("errorText")), true)
	}
}

// result adds a result. The output of model messages says of what type it is.
func (p *vercelParts) result(call, tool string, out value, isError bool) {
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
	}
	m.Created, m.Result.IsError = p.m.Created, isError
	p.results = append(p.results, m)
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
