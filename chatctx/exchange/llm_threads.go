package exchange

import (
	"encoding/json"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// The schema since 0.32: messages by their hashes. Connected messages are one conversation, and each thread's tip is the end of one of its paths.

// llmMessage is a message of the store, with its hash.
type llmMessage struct {
	hash, parent, role string
	data               json.RawMessage
}

func (l *llm) threads() error {
	all := map[string]*llmMessage{}
	var order []*llmMessage
	below := map[string][]*llmMessage{}
	for w, err := range l.r.db.rows("messages") {
		if err != nil {
			return err
		}
		m := &llmMessage{hash: w.str("hash"), parent: w.str("parent_hash"), role: w.str("role"), data: w.json("provider_metadata")}
		all[m.hash], order = m, append(order, m)
		below[m.parent] = append(below[m.parent], m)
	}
	var turns, tips, parts *groups
	for _, t := range []struct {
		to                   **groups
		table, column, order string
	}{
		{&turns, "turns", "tip_message_hash", "id"}, {&tips, "threads", "tip_message_hash", "datetime_utc"}, {&parts, "parts", "message_hash", "position"},
	} {
		var err error
		if *t.to, err = l.r.db.grouped(t.table, t.column, t.order); err != nil {
			return err
		}
	}
	for _, root := range order {
		if root.parent != "" && all[root.parent] != nil {
			continue
		}
		c := &llmTree{l: l, t: l.r.thread(place{what: "message " + root.hash}), turns: turns, parts: parts}
		if err := c.read(root, below); err != nil {
			return err
		}
		if err := c.emit(root.hash, tips); err != nil {
			return err
		}
	}
	l.r.unasked(parts)
	return nil
}

type llmTree struct {
	l      *llm
	t      *thread
	turns  *groups
	parts  *groups
	hashes []string
}

// read adds the messages below a root, parents first.
func (c *llmTree) read(root *llmMessage, below map[string][]*llmMessage) error {
	todo := []*llmMessage{root}
	for len(todo) > 0 {
		m := todo[0]
		todo = append(todo[1:], below[m.hash]...)
		if _, again := c.t.seen[m.hash]; again {
			continue
		}
		msgs, err := c.message(m)
		if err != nil {
			return err
		}
		c.hashes = append(c.hashes, m.hash)
		c.t.add(place{what: "message " + m.hash}, m.hash, m.parent, msgs...)
	}
	return nil
}

// emit passes the tree on. The tip of the newest thread is its current message.
func (c *llmTree) emit(root string, tips *groups) error {
	in := &record.Incoming{Conversation: root}
	active, w := "", objectWriter{}
	for _, h := range c.hashes {
		for t, err := range tips.of(h) {
			if err != nil {
				return err
			}
			if at := t.time("datetime_utc"); active == "" || at >= in.Updated {
				active, in.Updated, in.Title = h, at, firstOf(t.str("name"), in.Title)
			}
			w.addRaw(t.str("id"), t.object("name", "tip_message_hash", "forked_from", "datetime_utc"))
		}
	}
	in.AppData = appData(llmName, w.done())
	if active == "" {
		active = c.t.newestEnd()
	}
	return c.t.emit(in, active)
}

// message reads a message's parts, and the figures of the turn that it ends.
func (c *llmTree) message(m *llmMessage) ([]*chatctx.Message, error) {
	p := &llmParts{l: c.l, m: &chatctx.Message{}, id: m.hash}
	if m.role != "tool" {
		roleOf(p.m, m.role)
	}
	p.tool = m.role == "tool"
	if m.data != nil && string(m.data) != "{}" {
		p.m.Meta.ProviderData = map[string]json.RawMessage{llmName: m.data}
	}
	for w, err := range c.turns.of(m.hash) {
		if err != nil {
			return nil, err
		}
		p.m.Created = w.time("datetime_utc")
		p.m.Meta.Model = firstOf(w.str("resolved_model"), w.str("model"))
		p.m.Meta.InputTokens, p.m.Meta.OutputTokens = w.count("input_tokens"), w.count("output_tokens")
		p.m.Meta.Usage = w.json("token_details")
	}
	for w, err := range c.parts.of(m.hash) {
		if err == nil {
			err = p.part(w)
		}
		if err != nil {
			return nil, err
		}
	}
	return p.messages(), nil
}

type llmParts struct {
	l       *llm
	m       *chatctx.Message
	id      string
	tool    bool
	results []*chatctx.Message
}

func (p *llmParts) messages() []*chatctx.Message {
	switch {
	case !p.tool:
		return append([]*chatctx.Message{p.m}, p.results...)
	case len(p.results) == 0:
		return []*chatctx.Message{toolResult("", "", p.m.Content)}
	}
	return p.results
}

func (p *llmParts) part(w row) error {
	payload := w.json("payload")
	var d document
	v, _, err := d.parse(payload, false)
	if err != nil {
		v = value{}
	}
	p.l.r.repeatedKeys(place{what: "a part of the message " + p.id}, v)
	text := firstOf(w.str("text"), v.get("text").str())
	switch w.str("type") {
	case "text":
		p.m.Content = append(p.m.Content, textPart(text))
	case "reasoning":
		part := pool.Part{Type: pool.ThinkingPart, Text: text, Signature: v.get("signature").str(), Redacted: v.get("redacted").str()}
		if payload != nil && string(payload) != "{}" {
			part.Raw = payload
		}
		p.m.Content = append(p.m.Content, part)
	case "tool_call":
		if p.m.Role != pool.Assistant {
			break
		}
		c, _ := newCall(firstOf(v.get("tool_call_id").str(), v.get("id").str()), firstOf(w.str("tool_name"), v.get("name").str()),
			firstPresent(v.get("arguments"), v.get("args"), v.get("input")))
		addCall(p.m, c, p.id)
	case "tool_result":
		m := toolResult(firstOf(v.get("tool_call_id").str(), v.get("id").str()), firstOf(w.str("tool_name"), v.get("name").str()), nil)
		switch out := firstPresent(v.get("output"), v.get("result"), v.get("content")); {
		case out.is(stringKind) || out.d == nil:
			m.Result.Text = firstOf(out.str(), text)
		default:
			m.Result.JSON = out.keep()
		}
		m.Result.IsError = v.get("exception").str() != "" || v.get("is_error").bool()
		m.Created = p.m.Created
		p.results = append(p.results, m)
	case "attachment":
		id := firstOf(v.get("attachment_id").str(), v.get("id").str(), v.get("sha256").str(), v.get("hash").str())
		part, err := p.l.attachment(id)
		if err != nil {
			return err
		}
		p.m.Content = append(p.m.Content, part)
	default:
		if payload == nil {
			payload = object("text", text)
		}
		p.m.Content = append(p.m.Content, pool.Part{Type: firstOf(w.str("type"), "unknown"), Raw: payload})
	}
	return nil
}
