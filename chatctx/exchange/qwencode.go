package exchange

import (
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Qwen Code's sessions are lines that name their parents like those of Claude Code, with content in the form of Gemini's API. A line with a known id is a later
// state of the same message. A rewind is below the message that it goes back to, and what follows is below the rewind.

const qwenName = "qwen-code"

func detectQwen(h *head) bool {
	return h.any(func(v value) bool {
		return v.has("uuid") && v.has("sessionId") && v.get("message").get("parts").is(arrayKind)
	})
}

type qwen struct {
	r    *reading
	t    *thread
	in   record.Incoming
	last string
}

func readQwen(r *reading) error {
	q := &qwen{r: r, t: r.thread(place{})}
	err := r.eachLine(func(at place, v value) error {
		q.line(at, v)
		return nil
	})
	return r.atEnd(err, func() error { return q.t.handOn(&q.in, value{}, q.last) })
}

func (q *qwen) line(at place, v value) {
	id, parent := v.get("uuid").str(), v.get("parentUuid").str()
	q.in.Conversation = firstOf(q.in.Conversation, v.get("sessionId").str())
	if id == "" {
		q.t.skip(at, "", "", "the record has no uuid and is left out")
		return
	}
	if title := v.at("systemPayload", "customTitle").str(); title != "" {
		q.in.Title = title
	}
	if parts := v.get("message").get("parts"); parts.len() == 0 {
		if v.get("type").str() == "system" || parts.is(arrayKind) {
			q.t.link(at, id, parent, v)
			q.last = id
		} else {
			q.t.skip(at, id, parent, "the message has no parts and is left out")
		}
		return
	}
	msgs := q.message(v, id)
	q.r.whole(at, v, msgs...)
	if i, known := q.t.seen[id]; known && q.t.replace(i, parent, msgs) {
		q.r.duplicated()
	} else {
		q.t.add(at, id, parent, msgs...)
		q.last = q.t.last()
	}
	q.r.shelf.put(msgs...)
}

// replace replaces a message with a later state. It returns false if that is another message, or one that became several.
func (t *thread) replace(i int, parent string, msgs []*chatctx.Message) bool {
	rec := &t.records[i]
	if rec.parent != parent || rec.message == nil || len(msgs) != 1 || msgs[0].Role != rec.message.Role || msgs[0].Validate() != nil || t.tail[rec.id] != "" {
		return false
	}
	t.r.shelf.back(rec.message)
	var gone []pool.Part
	for _, p := range rec.message.Content { // a state may contain only new parts
		if p.Type == pool.CallPart || !slices.ContainsFunc(msgs[0].Content, func(q pool.Part) bool { return q.Type == p.Type && strings.HasPrefix(q.Text, p.Text) }) {
			gone = append(gone, p)
		}
	}
	for _, c := range rec.message.Calls {
		if slices.ContainsFunc(msgs[0].Calls, func(d pool.Call) bool { return d.ID == c.ID }) {
			gone = slices.DeleteFunc(gone, func(p pool.Part) bool { return p.CallID == c.ID && p.Type == pool.CallPart })
		} else {
			msgs[0].Calls = append(msgs[0].Calls, c)
		}
	}
	msgs[0].Content = append(gone, msgs[0].Content...)
	t.r.before([]*chatctx.Message{rec.message}, msgs)
	rec.message = msgs[0]
	return true
}

func (q *qwen) message(v value, id string) []*chatctx.Message {
	m := &chatctx.Message{Role: pool.User, Created: v.get("timestamp").time()}
	switch v.get("type").str() {
	case "assistant":
		m.Role, m.Meta.Provider, m.Meta.Model = pool.Assistant, "qwen", v.get("model").str()
		tokens(m, v.get("usageMetadata"), []string{"promptTokenCount"}, []string{"candidatesTokenCount"}, []string{"cachedContentTokenCount"}, []string{"thoughtsTokenCount"})
	case "system":
		m.Role = pool.System
	}
	if v.get("subtype").str() == "notification" {
		m.Kind, m.Hidden = injected, true
	}
	msgs := geminiParts(m, v.at("message", "parts"), id)
	if res := v.get("toolCallResult"); msgs[0].Result != nil {
		msgs[0].Result.IsError = res.get("status").str() == "error"
	}
	return asides(msgs, func(p pool.Part) bool { return strings.HasPrefix(p.Text, "<qwen:") })
}
