package exchange

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// anthropicProvider is the provider that signed these blocks.
const anthropicProvider = "anthropic"

// blocks returns the messages for content in the form of Anthropic's API, a string or blocks: copies of m with what its role says, and a tool message for each
// result, in the order of the blocks. There is at least one. record is the id of the record, for calls without an id.
func blocks(m *chatctx.Message, v value, record string) []*chatctx.Message {
	b := &blockReader{model: m.Meta.Model, template: *m, record: record}
	switch v.kind() {
	case stringKind:
		b.open().Content = []pool.Part{textPart(v.str())}
	case arrayKind:
		for it := range v.items() {
			b.block(it)
		}
	case nullKind, absent:
	default:
		b.open().Content = []pool.Part{unknownPart(v)}
	}
	if len(b.out) == 0 {
		b.open()
	}
	return b.out
}

type blockReader struct {
	template chatctx.Message
	model    string
	record   string
	out      []*chatctx.Message
	now      *chatctx.Message // the message for the next blocks; nil after a result
}

// open returns the message for the next block. Only the first message of a record has its figures.
func (b *blockReader) open() *chatctx.Message {
	if b.now == nil {
		m := b.template
		b.template.Meta = pool.Metadata{Model: m.Meta.Model, Provider: m.Meta.Provider}
		if m.Source != nil {
			own := *m.Source
			m.Source = &own
		}
		b.now = &m
		b.out = append(b.out, b.now)
	}
	return b.now
}

func (b *blockReader) block(v value) {
	switch {
	case v.is(stringKind):
		b.put(textPart(v.str()))
		return
	case v.is(nullKind):
		return
	case !v.is(objectKind):
		b.put(textPart(string(v.keep())))
		return
	}
	switch v.get("type").str() {
	case "text":
		p := textPart(v.get("text").str())
		if v.get("citations").len() > 0 {
			p.Raw = v.keep()
			b.own(&p)
		}
		b.put(p)
	case "thinking":
		p := pool.Part{Type: pool.ThinkingPart, Text: v.get("thinking").str(), Signature: v.get("signature").str()}
		p.Raw = rawBeyond(v, thinkingKnown)
		b.own(&p)
		b.put(p)
	case "redacted_thinking":
		p := pool.Part{Type: pool.ThinkingPart, Redacted: v.get("data").str(), Raw: rawBeyond(v, redactedKnown)}
		b.own(&p)
		b.put(p)
	case "tool_use":
		b.call(v)
	case "tool_result":
		b.result(v)
	case "image", "document":
		b.put(sourcePart(v))
	default:
		p := unknownPart(v)
		b.own(&p)
		b.put(p)
	}
}

var (
	thinkingKnown = keys("type", "thinking", "signature", "cache_control")
	redactedKnown = keys("type", "data", "cache_control")
	toolUseKnown  = keys("type", "id", "name", "input", "cache_control")
)

// rawBeyond returns the block if it has other members than the known ones; else nil.
func rawBeyond(v value, known map[string]bool) json.RawMessage {
	if unknownFields(v, known) == nil {
		return nil
	}
	return v.keep()
}

func (b *blockReader) own(p *pool.Part) {
	if b.template.Role == pool.Assistant {
		p.Provider, p.Model = anthropicProvider, b.model
	}
}

func (b *blockReader) put(p pool.Part) {
	m := b.open()
	m.Content = append(m.Content, p)
}

// call adds a tool_use. Only an assistant can call; for other roles the block is kept unchanged.
func (b *blockReader) call(v value) {
	if b.template.Role != pool.Assistant {
		b.put(unknownPart(v))
		return
	}
	c, _ := newCall(v.get("id").str(), v.get("name").str(), v.get("input"))
	c.Provider, c.Model, c.Raw = anthropicProvider, b.model, rawBeyond(v, toolUseKnown)
	addCall(b.open(), c, b.record)
}

func (b *blockReader) result(v value) {
	var parts []pool.Part
	switch c := v.get("content"); c.kind() {
	case stringKind:
		parts = []pool.Part{textPart(c.str())}
	case arrayKind:
		for it := range c.items() {
			parts = append(parts, resultPart(it))
		}
	case objectKind:
		parts = []pool.Part{resultPart(c)}
	}
	m := toolResult(v.get("tool_use_id").str(), v.get("name").str(), parts)
	m.Created = b.template.Created
	m.Result.IsError = v.get("is_error").bool()
	b.now, b.out = nil, append(b.out, m)
}

func resultPart(v value) pool.Part {
	switch {
	case v.is(stringKind):
		return textPart(v.str())
	case v.get("type").str() == "text" && v.get("text").is(stringKind):
		return textPart(v.get("text").str())
	case v.get("type").str() == "image" || v.get("type").str() == "document":
		return sourcePart(v)
	}
	return unknownPart(v)
}

// anthropicUsage reads usage from Anthropic's API, whose input_tokens do not include those of the cache.
func anthropicUsage(m *chatctx.Message, usage value) {
	if !usage.is(objectKind) {
		return
	}
	m.Meta.CacheRead = usage.get("cache_read_input_tokens").count()
	m.Meta.CacheWrite = usage.get("cache_creation_input_tokens").count()
	m.Meta.OutputTokens = usage.get("output_tokens").count()
	if n := usage.get("input_tokens").count(); n != nil {
		m.Meta.InputTokens = n
		for _, more := range []*int64{m.Meta.CacheRead, m.Meta.CacheWrite} {
			if more != nil {
				*n += *more
			}
		}
	}
	m.Meta.Usage = usage.keep()
}

// startsWith reports whether a text begins with one of the marks, after white space.
func startsWith(s string, marks []string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.HasPrefix(s, mark) })
}
