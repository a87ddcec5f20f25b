package exchange

import (
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/pool"
)

// Cursor's state.vscdb is a table of keys and JSON. composerData:ID is a conversation, which lists or contains its messages; bubbleId:ID:BUBBLE is one of them.
// Messages that the list does not name were edited away or rolled back: they stay beside the path.

func detectCursorDB(h *head) bool { return h.db.has("cursorDiskKV", "key", "value") }

// cursorChat is a conversation and its messages, in the order in which they come.
type cursorChat struct {
	data    value
	bubbles map[string]value
	order   []string
}

func readCursorDB(r *reading) error {
	chats := map[string]*cursorChat{}
	var order []string
	of := func(id string) *cursorChat {
		if chats[id] == nil {
			chats[id], order = &cursorChat{bubbles: map[string]value{}}, append(order, id)
		}
		return chats[id]
	}
	for w, err := range r.db.rows("cursorDiskKV") {
		if err != nil {
			return r.atEnd(err, func() error { return cursorChats(r, order, chats) })
		}
		kind, id, _ := strings.Cut(w.str("key"), ":")
		if kind != "composerData" && kind != "bubbleId" {
			continue // contents of files, checkpoints, requests under way
		}
		v, _, err := new(document).parse([]byte(w.str("value")), false)
		if err != nil || !v.is(objectKind) {
			if len(w.str("value")) > 0 {
				r.skip(1, place{what: w.str("key")}, "the value is no JSON object and is left out")
			}
			continue
		}
		r.repeatedKeys(place{what: w.str("key")}, v)
		if kind == "composerData" {
			of(id).data = v
			continue
		}
		composer, bubble, _ := strings.Cut(id, ":")
		c := of(composer)
		c.bubbles[bubble], c.order = v, append(c.order, bubble)
	}
	return cursorChats(r, order, chats)
}

func cursorChats(r *reading, order []string, chats map[string]*cursorChat) error {
	for _, id := range order {
		if err := chats[id].emit(r, id); err != nil {
			return err
		}
	}
	return nil
}

func (c *cursorChat) emit(r *reading, id string) error {
	at := place{what: "composer " + id}
	t := r.thread(at)
	in := &record.Incoming{Conversation: id, Title: c.data.get("name").str(), Created: c.data.get("createdAt").time(), Updated: c.data.get("lastUpdatedAt").time()}
	listed := map[string]bool{}
	last, missing := "", 0
	add := func(bubble string, v value, parent string) {
		if !v.is(objectKind) {
			missing++
			return
		}
		listed[bubble] = true
		cursorBubble(t, at.in("bubble "+bubble), bubble, parent, v)
		last = bubble
	}
	for v := range c.data.get("conversation").items() {
		add(firstOf(v.get("bubbleId").str(), itoa(len(listed)+1)), v, last)
	}
	for v := range c.data.get("fullConversationHeadersOnly").items() {
		bubble := v.get("bubbleId").str()
		add(bubble, c.bubbles[bubble], last)
	}
	end := last
	for _, bubble := range c.order {
		if !listed[bubble] {
			add(bubble, c.bubbles[bubble], "")
		}
	}
	if missing > 0 {
		r.warn(at, "the list names %s that the file does not have", plural.Count(missing, "message"))
	}
	if len(t.records) == 0 {
		return nil // a chat that was begun and never used
	}
	return t.handOn(in, c.data, firstOf(end, last))
}

// cursorBubble reads a message. A tool's is a call together with its result.
func cursorBubble(t *thread, at place, id, parent string, v value) {
	m := &chatctx.Message{Role: pool.User, Created: v.pick("createdAt|timingInfo.clientStartTime").time()}
	if n, _ := v.get("type").int(); n == 2 {
		m.Role, m.Meta.Model = pool.Assistant, v.at("modelInfo", "modelName").str()
	}
	turn := newTurn(m, id)
	turn.think(v.at("thinking", "text").str(), v.at("thinking", "signature").str())
	turn.text(v.get("text").str())
	if tool := v.get("toolFormerData"); tool.get("name").is(stringKind) && m.Role == pool.Assistant {
		name := tool.get("name").str()
		call := turn.call(tool.get("toolCallId").str(), name, parsed(tool.pick("rawArgs|params")))
		if out := tool.pick("result|error"); out.d != nil {
			turn.result(call, name, out, tool.get("error").kind() > nullKind || tool.get("status").str() == "error")
		}
	}
	t.take(at, id, parent, v, turn.done()...)
}
