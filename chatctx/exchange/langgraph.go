package exchange

import (
	"github.com/chatctx/chatctx/chatctx/record"
)

// LangGraph's checkpoints in SQLite. Each contains the whole list of messages, in MessagePack or JSON. Those that no other one follows are the ends of paths,
// and the newest of them is the current one of the thread. The classes that a checkpoint names are never instantiated: only the fields of an object are read.

const langGraphName = "langgraph"

func detectLangGraph(h *head) bool {
	return h.db.has("checkpoints", "thread_id", "checkpoint_id", "checkpoint")
}

// graphThread holds the checkpoints of a thread, or of a part of its graph.
type graphThread struct {
	*thread
	in     record.Incoming
	active string
}

func readLangGraph(r *reading) error {
	followed := map[[3]string]bool{}
	for w, err := range r.db.rows("checkpoints") {
		if err != nil {
			return err
		}
		followed[[3]string{w.str("thread_id"), w.str("checkpoint_ns"), w.str("parent_checkpoint_id")}] = true
	}
	threads, order := map[string]*graphThread{}, []*graphThread(nil)
	for w, err := range r.db.sorted("checkpoints", "thread_id", "checkpoint_ns", "checkpoint_id") {
		if err != nil {
			return err
		}
		id := w.str("thread_id")
		if ns := w.str("checkpoint_ns"); ns != "" {
			id += "/" + ns
		}
		t := threads[id]
		if t == nil {
			t = &graphThread{thread: r.thread(place{what: "thread " + id})}
			if t.in.Conversation = id; id != w.str("thread_id") {
				t.in.Parent = &record.SourceLink{Format: langGraphName, Conversation: w.str("thread_id")}
			}
			threads[id], order = t, append(order, t)
		}
		t.keep(w.asRow(t.r, t.at, "metadata"))
		if !followed[[3]string{w.str("thread_id"), w.str("checkpoint_ns"), w.str("checkpoint_id")}] {
			t.path(w)
		}
	}
	for _, t := range order {
		if len(t.records) == 0 {
			r.warn(t.at, "the thread has no messages and is left out")
			continue
		}
		if err := t.handOn(&t.in, value{}, t.active); err != nil {
			return err
		}
	}
	return nil
}

// path reads the messages of a checkpoint, each below the previous one. Those that another path already has are the same.
func (t *graphThread) path(w row) {
	at := t.at.in("checkpoint " + w.str("checkpoint_id"))
	text := w.bytes("checkpoint")
	if text == nil {
		text = []byte(w.str("checkpoint"))
	}
	if w.str("type") == "msgpack" {
		var err error
		if text, err = msgpackJSON(text); err != nil {
			t.skip(at, "", "", "the checkpoint is %v; it is left out", err)
			return
		}
	}
	v, _, err := new(document).parse(text, false)
	if err != nil {
		t.skip(at, "", "", "the checkpoint is not JSON and is left out: %v", err)
		return
	}
	t.r.repeatedKeys(at, v)
	parent, n := "", 0
	for m := range v.at("channel_values", "messages").items() {
		n++
		parent = t.message(at.in("message "+itoa(n)), m, n, parent)
	}
	t.active = firstOf(parent, t.active)
	if ts := v.get("ts").time(); ts > t.in.Updated {
		t.in.Updated = ts
	}
	t.keep(v)
}

// message adds a message of a checkpoint unless the thread has it at that place, and returns its id.
func (t *graphThread) message(at place, m value, n int, parent string) string {
	data := m
	if list := m.get("value").list(); m.has("ext") && len(list) > 2 && list[2].is(objectKind) { // module, class, fields
		data = list[2]
	} else if m.get("kwargs").is(objectKind) {
		data = m.get("kwargs")
	}
	typ := data.get("type").str()
	if c, ok := langChainClasses[typ]; ok {
		typ = c
	}
	if !langChainTypes[typ] || !data.has("content") {
		t.skip(at, "", "", "%s that is not a message is left out", m.kind())
		return parent
	}
	id := firstOf(data.get("id").str(), itoa(n)+" below "+parent)
	msg := langChainRead(typ, data, id)
	if i, there := t.seen[id]; there && t.records[i].parent == parent && t.sameAs(i, msg) {
		data.taken()
		m.taken()
		return id
	}
	t.take(at, id, parent, data, msg)
	m.taken()
	return t.last()
}
