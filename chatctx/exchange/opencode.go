package exchange

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// opencode's sessions. opencode export writes one object of info and messages. Its storage up to 1.1 has a file for each session, message and part:
// storage/session/PROJECT/SESSION.json, storage/message/SESSION/MESSAGE.json, storage/part/MESSAGE/PART.json. The earliest have all parts in storage/part
// itself, each with its message's id.

const openCodeName = "opencode"

func detectOpenCode(h *head) bool {
	v := h.first()
	switch {
	case h.array:
		return false
	case v.get("info").has("id") && v.get("messages").is(arrayKind):
		m := v.get("messages").first()
		return m.get("info").has("role") || v.get("messages").len() == 0 && v.get("info").has("time")
	case v.has("sessionID") && v.has("part"):
		return true
	}
	return v.has("id") && v.has("projectID") && v.get("time").has("created")
}

var openCodeShape = shape{role: "role", time: "time.created", model: "modelID", provider: "providerID", finish: "finish",
	usage: func(m *chatctx.Message, v value) {
		tokens(m, v.get("tokens"), []string{"input"}, []string{"output"}, []string{"cache.read"}, []string{"reasoning"})
		m.Meta.Completed = v.at("time", "completed").time()
		if e := v.get("error"); e.is(objectKind) {
			m.Meta.Error = firstOf(e.at("data", "message").str(), e.get("message").str(), e.get("name").str())
		}
	}}

var openCodeKinds = map[string]partReader{
	"text": func(t *turn, p value) {
		if p.get("synthetic").bool() {
			t.aside(textPart(p.get("text").str()))
			return
		}
		t.text(p.get("text").str())
	},
	"reasoning": thinking("text", "metadata.anthropic.signature"),
	"tool":      callAndResult("callID", "tool", "state.input", "state.output|state.error", func(p value) bool { return p.at("state", "status").str() == "error" }),
	"file": func(t *turn, p value) {
		t.put(urlPart(p.get("url").str(), pool.DocumentPart, p.get("mime").str(), p.get("filename").str(), p))
	},
	"step-start": beside, "step-finish": beside,
}

// openCode reads a session: its record, and its messages in order, each with its parts.
type openCode struct {
	r  *reading
	t  *thread
	in record.Incoming
	// revert is the first of the messages that were taken back, active the one before it; "" if none were.
	revert, active string
}

func (r *reading) openCode(at place, info value) *openCode {
	o := &openCode{r: r, t: r.thread(at), revert: info.at("revert", "messageID").str()}
	o.in = record.Incoming{Conversation: info.get("id").str(), Title: info.get("title").str(), Created: info.at("time", "created").time(), Updated: info.at("time", "updated").time()}
	if up := info.get("parentID").str(); up != "" {
		o.in.Parent = &record.SourceLink{Format: openCodeName, Conversation: up}
	}
	return o
}

// message reads a message with its parts. Both are records of their own, which are marked as taken.
func (o *openCode) message(at place, id string, info value, parts []value) {
	if id == "" || info.get("role").str() == "" {
		o.t.skip(at, "", "", "the message lacks an id or a role and is left out")
		return
	}
	if id == o.revert {
		o.active = o.t.last()
	}
	m := openCodeShape.message(info)
	if info.get("summary").bool() && m.Role == pool.Assistant {
		m.Kind = summary
	}
	o.say(at, id, m, info, parts)
}

// say adds a message made from parts.
func (o *openCode) say(at place, id string, m *chatctx.Message, info value, parts []value) {
	t := newTurn(m, id)
	for _, p := range parts {
		if line := p.get("part"); line.is(objectKind) {
			p = line
		}
		t.content(p, "type", openCodeKinds)
	}
	msgs := t.done()
	o.r.wholeOf(at, msgs, append([]value{info}, parts...)...)
	o.t.add(at, id, o.t.last(), msgs...)
	o.r.shelf.put(msgs...)
}

func readOpenCode(r *reading) error {
	if r.head.first().has("part") {
		return readOpenCodeStream(r)
	}
	return r.eachItem("", func(at place, v value) error {
		if !v.get("messages").is(arrayKind) {
			return readOpenCodeSession(r, at, v)
		}
		o := r.openCode(at, v.get("info"))
		n := 0
		for m := range v.get("messages").items() {
			n++
			o.message(at.in("message "+itoa(n)), m.at("info", "id").str(), m.get("info"), m.get("parts").list())
		}
		return o.t.handOn(&o.in, v, o.active)
	})
}

// readOpenCodeStream reads the output of opencode run --format json: the parts of answers, one a line, without the prompts.
func readOpenCodeStream(r *reading) error {
	o := &openCode{r: r, t: r.thread(place{})}
	var parts []value
	var id string
	var at place
	say := func() {
		if len(parts) > 0 {
			o.say(at, id, &chatctx.Message{Role: pool.Assistant, Created: parts[0].get("timestamp").time()}, value{}, parts)
		}
		parts = nil
	}
	err := r.eachLine(func(where place, v value) error {
		o.in.Conversation = firstOf(o.in.Conversation, v.get("sessionID").str())
		if next := v.at("part", "messageID").str(); next != id || next == "" {
			say()
			id, at = firstOf(next, "line "+itoa(where.line)), where
		}
		parts = append(parts, v.clone())
		return nil
	})
	say()
	return r.atEnd(err, func() error { return o.t.handOn(&o.in, value{}, "") })
}

// readOpenCodeSession reads a session whose messages and parts are files beside it.
func readOpenCodeSession(r *reading, at place, info value) error {
	o := r.openCode(at, info)
	root := path.Dir(path.Dir(path.Dir(r.file.path)))
	if path.Base(path.Dir(r.file.path)) == "info" { // the first generation: session/info, session/message, session/part
		root = path.Dir(path.Dir(r.file.path))
	}
	names := r.under(path.Join(root, "message", o.in.Conversation))
	if len(names) == 0 {
		r.warn(at, "the messages of the session %s are not beside it; import the whole storage folder", o.in.Conversation)
	}
	folders := slices.ContainsFunc(names, func(name string) bool {
		return len(r.openCodeParts(root, o.in.Conversation, strings.TrimSuffix(path.Base(name), ".json"))) > 0
	})
	var loose map[string][]value
	if !folders && len(names) > 0 {
		loose = r.openCodeLooseParts(at, root)
	}
	for _, name := range names {
		r.besideJSON(name, func(m value) {
			id := m.get("id").str()
			parts := loose[id]
			for _, name := range r.openCodeParts(root, o.in.Conversation, id) {
				r.besideJSON(name, func(p value) { parts = append(parts, p) })
			}
			o.message(at.in(name), id, m, parts)
		})
	}
	return o.t.handOn(&o.in, info, o.active)
}

// openCodeParts returns the paths of a message's parts, where they have a folder of their own.
func (r *reading) openCodeParts(root, session, message string) []string {
	if list := r.under(path.Join(root, "part", message)); len(list) > 0 {
		return list
	}
	return r.under(path.Join(root, "part", session, message))
}

// openCodeLooseParts reads the parts that lie in the folder of parts itself, in the order of their names, by the ids of their messages. The first session of a storage reports
// those that belong to no message.
func (r *reading) openCodeLooseParts(at place, root string) map[string][]value {
	parts, dir := map[string][]value{}, path.Join(root, "part")
	for _, name := range r.under(dir) {
		if path.Dir(name) == dir {
			r.besideJSON(name, func(p value) {
				id := p.get("messageID").str()
				parts[id] = append(parts[id], p)
			})
		}
	}
	if sessions := r.under(path.Join(root, "session")); len(sessions) == 0 || sessions[0] != r.file.path {
		return parts
	}
	messages := map[string]bool{}
	for _, name := range r.under(path.Join(root, "message")) {
		messages[strings.TrimSuffix(path.Base(name), ".json")] = true
	}
	for _, id := range slices.Sorted(maps.Keys(parts)) {
		if !messages[id] {
			r.skip(len(parts[id]), at, "parts belong to the message %q, which is not there, and are left out: %d", id, len(parts[id]))
		}
	}
	return parts
}
