package exchange

import (
	"strings"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"

	"github.com/chatctx/chatctx/chatctx"
)

// Cursor's agent transcripts are agent-transcripts/ID.jsonl: lines of a role and content in the form of Anthropic's API. Messages have no ids and no times;
// calls mostly have no ids, and no results. The program's databases contain the same chats completely.

const cursorName = "cursor"

func detectCursor(h *head) bool {
	v := h.first()
	return !h.array && v.get("role").is(stringKind) && v.get("message").get("content").is(arrayKind) && !v.has("uuid") && !v.has("type")
}

func readCursor(r *reading) error {
	t := r.thread(place{})
	n := 0
	err := r.eachLine(func(at place, v value) error {
		n++
		if v.get("role").str() == "" {
			t.skip(at, "", "", "the line is no message and is left out; its keys: %s", keyList(v))
			return nil
		}
		m := &chatctx.Message{}
		roleOf(m, v.get("role").str())
		msgs := blocks(m, v.at("message", "content"), itoa(n))
		for _, m := range msgs {
			for i := range m.Content { // a placeholder for the model's thoughts
				if p := &m.Content[i]; m.Role == pool.Assistant && p.Type == pool.TextPart && strings.TrimSpace(p.Text) == "[REDACTED]" {
					m.Content[i] = pool.Part{Type: pool.ThinkingPart, Text: p.Text}
				}
			}
		}
		t.take(at, itoa(n), t.last(), v, msgs...)
		return nil
	})
	in := &record.Incoming{}
	if len(r.stem()) == 36 { // a UUID
		in.Conversation = r.stem()
	}
	return r.atEnd(err, func() error { return t.handOn(in, value{}, "") })
}
