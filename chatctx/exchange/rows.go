package exchange

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Some programs keep their sessions in SQLite: a table of sessions and one of messages. A row is read as an object of its columns, so the formats' tables treat
// it like one in a JSON file.

// asValue returns a row as an object. A column of JSON is that JSON, under its name without _json; the members of one named data are the row's own.
// A warning names the keys that occur more than once in it, with the place of the row.
func (w row) asValue(r *reading, at place) value { return w.asValueOf(r, at, nil) }

// asValueOf is asValue for some columns; nil means all.
func (w row) asValueOf(r *reading, at place, columns []string) value {
	o := objectWriter{}
	if w.table == nil {
		return value{}
	}
	if columns == nil {
		columns = w.table.Columns
	}
	for _, name := range columns {
		raw := w.object(name)
		v, _, err := new(document).parse(raw, false)
		if err != nil {
			continue
		}
		r.repeatedKeys(at, v)
		x := v.get(name)
		if name == "data" && x.is(objectKind) {
			for k, y := range x.members() {
				o.addRaw(k, y.copied())
			}
			continue
		}
		o.addRaw(strings.TrimSuffix(name, "_json"), x.copied())
	}
	v, _, err := new(document).parse(o.done(), false)
	if err != nil {
		return value{}
	}
	return v
}

// rowFormat describes a program's two tables.
type rowFormat struct {
	sessions, messages string
	of                 string   // the column of messages with the session's id
	order              []string // of messages
	only               []string // the known columns of messages; nil means all, since unused ones are kept
	about              func(in *record.Incoming, v value)
	message            func(t *gathered, at place, v value)
}

func (f *rowFormat) read(r *reading) error {
	g := r.gather()
	return r.atEnd(f.into(g), g.emit)
}

// into reads both tables.
func (f *rowFormat) into(g *gather) error {
	r := g.r
	if err := f.readSessions(g); err != nil {
		return err
	}
	for w, err := range r.db.sorted(f.messages, f.order...) {
		if err != nil {
			return err
		}
		v := w.asValueOf(r, place{what: f.messages + " " + w.str("id")}, f.only)
		id := idText(v.pick(f.of))
		if thread := v.get("thread_id"); thread.kind() > nullKind {
			id = "thread " + idText(thread)
		}
		t := g.of(place{what: "session " + id}, id)
		f.message(t, t.at.in("row "+w.str("id")), v)
	}
	return nil
}

// readSessions begins a conversation for each session.
func (f *rowFormat) readSessions(g *gather) error {
	for w, err := range g.r.db.rows(f.sessions) {
		if err != nil {
			return err
		}
		v := w.asValue(g.r, place{what: f.sessions + " " + w.str("id")})
		t := g.of(place{what: "session " + v.pick("id|session_id").str()}, v.pick("id|session_id").str())
		t.in.Title, t.in.Created, t.in.Updated = v.pick("title|name|description").str(), v.pick("created_at|time_created").time(), v.pick("updated_at|time_updated").time()
		if f.about != nil {
			f.about(&t.in, v)
		}
		g.r.about(&t.in, v)
	}
	return nil
}

// below returns a function that sets a session's parent.
func below(format, column string) func(in *record.Incoming, v value) {
	return func(in *record.Incoming, v value) {
		if up := v.get(column).str(); up != "" {
			in.Parent = &record.SourceLink{Format: format, Conversation: up}
		}
	}
}

const (
	crushName = "crush"
	zedName   = "zed"
)

func detectGooseDB(h *head) bool {
	return h.db.has("messages", "session_id", "content_json") && h.db.has("sessions")
}
func detectCrush(h *head) bool {
	return h.db.has("sessions", "summary_message_id") && h.db.has("messages", "parts")
}
func detectKiroDB(h *head) bool     { return h.db.has("conversations_v2", "value") }
func detectAgentsDB(h *head) bool   { return h.db.has("agent_messages", "session_id", "message_data") }
func detectAnythingDB(h *head) bool { return h.db.has("workspace_chats", "prompt", "response") }
func detectZed(h *head) bool        { return h.db.has("threads", "data_type", "data") }

func readGooseDB(r *reading) error {
	return (&rowFormat{"sessions", "messages", "session_id", []string{"created_timestamp", "id"}, nil, below(gooseName, "parent_session_id"), func(t *gathered, at place, v value) {
		gooseShape.next(t.thread, at, v, firstOf(v.get("message_id").str(), idText(v.get("id"))), gooseSeen)
	}}).read(r)
}

var crushShape = shape{role: "role", time: "created_at", model: "model", provider: "provider", content: "parts", key: "type", parted: true, kinds: map[string]partReader{
	"text":        saying("data.text"),
	"reasoning":   thinking("data.thinking", "data.signature"),
	"tool_call":   calling("data.id", "data.name", "data.input"),
	"tool_result": answering("data.tool_call_id", "data.name", "data.content", "data.is_error"),
	"finish":      beside,
	"image_url":   func(t *turn, p value) { t.put(urlPart(p.at("data", "url").str(), pool.ImagePart, "", "", p)) },
	"binary": func(t *turn, p value) {
		t.put(urlPart(p.at("data", "Data").str(), pool.DocumentPart, p.at("data", "MIMEType").str(), p.at("data", "Path").str(), p))
	},
}}

func readCrush(r *reading) error {
	return (&rowFormat{"sessions", "messages", "session_id", []string{"created_at"}, nil, below(crushName, "parent_session_id"), func(t *gathered, at place, v value) {
		crushShape.next(t.thread, at, v, v.get("id").str(), func(v value, msgs []*chatctx.Message) {
			if n, _ := v.get("is_summary_message").int(); n == 1 {
				msgs[0].Kind = summary
			}
		})
	}}).read(r)
}

func readKiroDB(r *reading) error {
	for w, err := range r.db.rows("conversations_v2") {
		if err != nil {
			return err
		}
		at := place{what: "conversation " + w.str("conversation_id")}
		v := w.asValue(r, at)
		if !v.get("value").is(objectKind) {
			r.skipContext(0, at, "its value is %s", v.get("value").kind())
			continue
		}
		in, t := r.kiro(at, v.get("value"))
		in.Conversation, in.Created, in.Updated = firstOf(in.Conversation, v.get("conversation_id").str()), v.get("created_at").time(), v.get("updated_at").time()
		if err := t.handOn(in, v, ""); err != nil {
			return err
		}
	}
	return nil
}

func readAgentsDB(r *reading) error {
	open := map[*gathered]*agents{}
	if r.db.has("message_structure", "message_id", "branch_id") {
		return readAgentsBranches(r)
	}
	f := &rowFormat{messages: "agent_messages", of: "session_id", order: []string{"id"}, only: []string{"id", "session_id", "message_data"}, message: func(t *gathered, at place, v value) {
		a := open[t]
		if a == nil {
			a = &agents{r: r, t: t.thread}
			open[t] = a
			t.end = a.flush
		}
		item := v.get("message_data")
		if item.get("__enc__").d != nil {
			r.skip(1, at, "the message is encrypted and is left out")
			return
		}
		a.item(at, idText(v.get("id")), item)
	}}
	if r.db.has("agent_sessions") {
		f.sessions = "agent_sessions"
	}
	return f.read(r)
}

func readAnythingDB(r *reading) error {
	return (&rowFormat{"", "workspace_chats", "workspaceId", []string{"id"}, nil, nil, func(t *gathered, at place, v value) {
		anythingTurn(t.thread, at, idText(v.get("id")), v, v.get("response"))
	}}).read(r)
}

// Zed's threads: one row each, with everything as JSON, mostly packed.

var zedKinds = map[string]partReader{
	"Text":     func(t *turn, p value) { t.text(p.get("Text").str()) },
	"Thinking": thinking("Thinking.text", "Thinking.signature"),
	"ToolUse":  calling("ToolUse.id", "ToolUse.name", "ToolUse.input"),
	"RedactedThinking": func(t *turn, p value) {
		t.put(pool.Part{Type: pool.ThinkingPart, Redacted: p.get("RedactedThinking").str(), Raw: p.keep()})
	},
}

func readZed(r *reading) error {
	for w, err := range r.db.rows("threads") {
		if err != nil {
			return err
		}
		at := place{what: "thread " + w.str("id")}
		text := []byte(w.str("data"))
		if w.str("data_type") == "zstd" {
			z, err := zstd.NewReader(bytes.NewReader(w.bytes("data")), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
			if err == nil {
				text, err = io.ReadAll(io.LimitReader(z, int64(r.limits.Item)+1))
				z.Close()
			}
			if err == nil && len(text) > r.limits.Item {
				err = errors.New("it unpacks to more than the limit")
			}
			if err != nil {
				r.skipContext(0, at, "the thread is damaged and is left out: %v", err)
				continue
			}
		}
		v, _, err := new(document).parse(text, false)
		if err != nil {
			r.skipContext(0, at, "the thread is left out: %s", notRead(err))
			continue
		}
		r.repeatedKeys(at, v)
		in := &record.Incoming{Conversation: w.str("id"), Title: firstOf(v.pick("title|summary").str(), w.str("summary")), Created: w.time("created_at"), Updated: w.time("updated_at")}
		below(zedName, "parent_id")(in, w.asRow(r, at, "parent_id"))
		t := r.thread(at)
		n := 0
		for m := range v.get("messages").items() {
			n++
			zedMessage(t, at.in("message "+itoa(n)), itoa(n), m)
		}
		r.about(in, w.asRow(r, at, slices.DeleteFunc(slices.Clone(w.table.Columns), func(c string) bool { return c == "data" })...), in.Title)
		if err := t.handOn(in, v, ""); err != nil {
			return err
		}
	}
	return nil
}

// asRow returns columns of a row as an object. The report names the keys that stand twice in their JSON.
func (w row) asRow(r *reading, at place, names ...string) value {
	v, _, err := new(document).parse(w.object(names...), false)
	if err != nil {
		return value{}
	}
	r.repeatedKeys(at, v)
	return v
}

func zedMessage(t *thread, at place, id string, v value) {
	m := &chatctx.Message{Role: pool.User}
	tu := newTurn(m, id)
	switch {
	case v.is(stringKind): // Resume
		t.link(at, id, t.last(), v)
		return
	case v.get("User").is(objectKind):
		id = firstOf(v.at("User", "id").str(), id)
		zedContent(tu, v.at("User", "content"))
	case v.get("Agent").is(objectKind):
		m.Role = pool.Assistant
		zedContent(tu, v.at("Agent", "content"))
		for call, res := range v.at("Agent", "tool_results").members() {
			out := firstPresent(res.get("content"), res.get("output"))
			if text := out.first().get("Text"); text.is(stringKind) && out.len() == 1 {
				out = text
			}
			tu.result(call, res.get("tool_name").str(), out, res.get("is_error").bool())
		}
	case v.get("role").str() != "": // before 0.2
		roleOf(m, v.get("role").str())
		tu.content(v.get("segments"), "type", map[string]partReader{"text": saying("text"), "thinking": thinking("text", "signature"), "redacted_thinking": keeping})
		for c := range v.get("tool_uses").items() {
			tu.call(c.get("id").str(), c.get("name").str(), c.get("input"))
		}
		for res := range v.get("tool_results").items() {
			tu.result(res.pick("tool_use_id|id").str(), res.get("tool_name").str(), firstPresent(res.get("content"), res.get("output")), res.get("is_error").bool())
		}
	default:
		t.skip(at, "", "", "%s that is not a message is left out", v.kind())
		return
	}
	t.take(at, id, t.last(), v, tu.done()...)
}

// zedContent reads parts that are named by their only member.
func zedContent(t *turn, list value) {
	for p := range list.items() {
		name := ""
		for k := range p.members() {
			name = k
		}
		if read := zedKinds[name]; read != nil {
			read(t, p)
		} else {
			part := unknownPart(p)
			part.Type = firstOf(name, part.Type)
			t.put(part)
		}
	}
}
