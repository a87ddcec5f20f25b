package exchange

import (
	"maps"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// opencode's database has its sessions in the tables message and part, or, since its second version, a row in session_message for each prompt, step of an answer,
// command of a shell, compaction and switch. For a while it wrote both: the messages count then.

func detectOpenCodeDB(h *head) bool {
	return h.db.has("part", "message_id", "data") && h.db.has("message", "session_id", "data") || h.db.has("session") && h.db.has("session_message", "session_id", "type", "data")
}

// openCodeDB reads a database of opencode.
type openCodeDB struct {
	r       *reading
	open    map[*gathered]*openCode
	reverts map[string]string // the first messages that were taken back, by session
}

func readOpenCodeDB(r *reading) error {
	d := &openCodeDB{r: r, open: map[*gathered]*openCode{}, reverts: map[string]string{}}
	parts, err := r.db.grouped("part", "message_id", "id")
	if err != nil {
		return err
	}
	g := r.gather()
	err = (&rowFormat{"session", "message", "session_id", []string{"time_created", "id"}, nil, d.about, func(t *gathered, at place, v value) {
		var list []value
		for p, err := range parts.of(v.get("id").str()) {
			if err != nil {
				r.warn(at, "parts of the message cannot be read: %v", err)
				break
			}
			list = append(list, p.asValue(r, at.in("part "+p.str("id"))))
		}
		o := d.session(t)
		o.message(at, v.get("id").str(), v, list)
		t.active = o.active
	}}).into(g)
	if err == nil {
		err = d.records(g)
	}
	err = r.atEnd(err, g.emit)
	r.unasked(parts)
	return err
}

// records reads session_message.
func (d *openCodeDB) records(g *gather) error {
	whole := maps.Clone(d.open) // sessions that have messages
	twice := map[*gathered]bool{}
	return (&rowFormat{"", "session_message", "session_id", []string{"time_created", "id"}, nil, nil, func(t *gathered, at place, v value) {
		if whole[t] != nil {
			if !twice[t] {
				d.r.warn(t.at, "the session's rows of session_message are left out, since the table message has the session too")
			}
			twice[t] = true
			return
		}
		o := d.session(t)
		o.record(at, v.get("id").str(), v)
		t.active = o.active
	}}).into(g)
}

func (d *openCodeDB) about(in *record.Incoming, v value) {
	below(openCodeName, "parent_id")(in, v)
	d.reverts[in.Conversation] = v.at("revert", "messageID").str()
}

func (d *openCodeDB) session(t *gathered) *openCode {
	o := d.open[t]
	if o == nil {
		o = &openCode{r: d.r, t: t.thread, revert: d.reverts[t.in.Conversation]}
		d.open[t] = o
	}
	return o
}

var openCodeRecord = shape{role: "type", time: "time.created|time_created", model: "model.id", provider: "model.providerID", finish: "finish", usage: openCodeShape.usage}

var openCodeStepKinds = map[string]partReader{"text": openCodeKinds["text"], "reasoning": openCodeKinds["reasoning"], "tool": openCodeCall}

// record reads a row of session_message.
func (o *openCode) record(at place, id string, v value) {
	if id == o.revert {
		o.active = o.t.last()
	}
	m := openCodeRecord.message(v)
	t := newTurn(m, id)
	switch v.get("type").str() {
	case "user":
		t.text(v.get("text").str())
		for f := range v.get("files").items() {
			t.put(urlPart(f.get("uri").str(), pool.DocumentPart, f.get("mime").str(), f.get("name").str(), f))
		}
	case "assistant":
		t.content(v.get("content"), "type", openCodeStepKinds)
	case "synthetic":
		t.aside(textPart(v.get("text").str()))
	case "shell":
		t.aside(textPart(v.get("command").str()), textPart(v.get("output").str()))
	case "compaction":
		m.Role, m.Kind = pool.Assistant, summary
		t.text(v.get("summary").str())
	default:
		unread := unreadRecord(v)
		unread.Created = m.Created
		o.t.take(at, id, o.t.last(), v, unread)
		return
	}
	o.t.take(at, id, o.t.last(), v, t.done()...)
}

// openCodeCall reads a call of a step, and its result if it has ended.
func openCodeCall(t *turn, p value) {
	if t.now.Role != pool.Assistant {
		keeping(t, p)
		return
	}
	name, state := p.get("name").str(), p.get("state")
	call := t.call(p.get("id").str(), name, state.get("input"))
	switch state.get("status").str() {
	case "completed":
		out := state.get("content")
		if out.len() == 0 {
			out = state.get("structured")
		}
		t.result(call, name, out, false)
	case "error":
		t.result(call, name, state.pick("error.message|error"), true)
	}
}
