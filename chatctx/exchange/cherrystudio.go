package exchange

import (
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Cherry Studio's backup, version 1, is data.json in a ZIP: the program's local storage (JSON in strings, twice), its tables of topics and, since version 5, of
// message blocks. Answers to one question are beside each other.

const cherryName = "cherry-studio"

func detectCherry(h *head) bool {
	v := h.first()
	return v.get("localStorage").has("persist:cherry-studio") || v.has("indexedDB") && v.has("localStorage")
}

var cherryShape = shape{role: "role", time: "createdAt", model: "model.id|modelId", provider: "model.provider", usage: func(m *chatctx.Message, v value) { openaiUsage(m, v.get("usage")) }}

var cherryKinds = map[string]partReader{
	"main_text": saying("content"), "code": saying("content"),
	"thinking": thinking("content", ""),
	"tool": func(t *turn, p value) {
		raw := p.at("metadata", "rawMcpToolResponse")
		callAndResult("toolId", "toolName", "arguments", "content", func(p value) bool { return p.get("status").str() == "error" || raw.get("status").str() == "error" })(t, p)
	},
	"image": func(t *turn, p value) {
		t.put(urlPart(p.get("url").str(), pool.ImagePart, "", p.at("file", "origin_name").str(), p))
	},
}

func readCherry(r *reading) error {
	return r.eachItem("", func(at place, v value) error {
		store := parsed(v.at("localStorage", "persist:cherry-studio"))
		assistants := parsed(store.get("assistants"))
		r.repeatedKeys(at.in("persist:cherry-studio"), store)
		r.repeatedKeys(at.in("assistants of persist:cherry-studio"), assistants)
		topics := map[string]value{}
		prompts := map[string]string{}
		for a := range assistants.get("assistants").items() {
			for tp := range a.get("topics").items() {
				topics[tp.get("id").str()], prompts[tp.get("id").str()] = tp, a.get("prompt").str()
			}
		}
		blocks := map[string]value{}
		for b := range v.at("indexedDB", "message_blocks").items() {
			id := b.get("id").str()
			if _, twice := blocks[id]; twice {
				r.warn(at, "the block %s occurs more than once; the last one counts", quoteClip(id, 60))
			}
			blocks[id] = b
		}
		others := cherryOthers(v, "", "indexedDB")
		others = append(others, cherryOthers(v.get("indexedDB"), "indexedDB.", "topics", "message_blocks")...)
		r.warn(at, "settings, which may hold keys, and other tables are left out: %s", strings.Join(others, ", "))
		used := map[string]bool{}
		n := 0
		for tp := range v.at("indexedDB", "topics").items() {
			n++
			id := tp.get("id").str()
			c := &cherry{t: r.thread(at.in("topic " + firstOf(id, itoa(n)))), blocks: blocks, used: used, asked: map[string]string{}}
			for m := range tp.get("messages").items() {
				c.message(m)
			}
			about := topics[id]
			in := &record.Incoming{Conversation: id, Title: about.get("name").str(), System: prompts[id], Created: about.get("createdAt").time(), Updated: about.get("updatedAt").time()}
			if about.d != nil {
				r.about(in, about)
			}
			if err := c.t.handOn(in, tp, c.active); err != nil {
				return err
			}
		}
		for _, id := range slices.Sorted(maps.Keys(blocks)) {
			if !used[id] {
				r.warn(at, "the block %s belongs to no message, and is left out", quoteClip(id, 60))
			}
		}
		return nil
	})
}

// cherryOthers names the members that are not read: all but the read ones, and those too if they have the wrong kind.
func cherryOthers(v value, prefix string, read ...string) (out []string) {
	for k, x := range v.members() {
		right := x.is(arrayKind) || prefix == "" && x.is(objectKind)
		if x.kind() >= stringKind && !(right && slices.Contains(read, k)) {
			out = append(out, prefix+show.Clip(k, 60))
		}
	}
	return out
}

type cherry struct {
	t      *thread
	blocks map[string]value
	used   map[string]bool   // blocks that belong to a message
	asked  map[string]string // questions, to the record that has their answers below it
	n      int
	active string
	chosen bool // the active one was chosen among answers to the same question
}

func (c *cherry) message(v value) {
	c.n++
	id, at := firstOf(v.get("id").str(), itoa(c.n)), c.t.at.in("message "+itoa(c.n))
	if v.get("role").str() == "" {
		c.t.skip(at, "", "", "%s that is not a message is left out", v.kind())
		return
	}
	t := newTurn(cherryShape.message(v), id)
	records := []value{v}
	for b := range v.get("blocks").items() {
		block := c.blocks[b.str()]
		if block.d == nil {
			c.t.r.warn(at, "the message names the block %s, which is not in the file", quoteClip(b.str(), 60))
			continue
		}
		c.used[b.str()] = true
		t.content(block, "type", cherryKinds)
		records = append(records, block)
	}
	t.content(v.get("content"), "type", cherryKinds)
	msgs := t.done()
	c.t.r.wholeOf(at, msgs, records...)
	ask, parent := v.get("askId").str(), c.active
	if up, known := c.asked[ask]; known && ask != "" {
		parent = up
	} else if ask != "" {
		c.asked[ask] = parent
	}
	selected := v.get("foldSelected").bool() || v.get("useful").bool()
	beside := parent != c.active
	c.t.add(at, id, parent, msgs...)
	if !beside || selected && !c.chosen {
		c.active = c.t.lastRecord()
	}
	c.chosen = selected || beside && c.chosen
}

// lastRecord returns the id of the last record that the file has as one; a record that became several messages counts once.
func (t *thread) lastRecord() string {
	for i := len(t.records) - 1; i >= 0; i-- {
		if !t.records[i].further {
			return t.records[i].id
		}
	}
	return ""
}
