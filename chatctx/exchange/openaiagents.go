package exchange

import (
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Items of OpenAI's Responses API, as its Agents SDK stores them: a list, one a line, or under input in a request, with the answer under output. Consecutive
// reasoning, text and calls are one message of the model.

const agentsName = "openai-agents"

func detectAgents(h *head) bool {
	if !h.array && (agentsItems(h.first().get("input").list()) || agentsItems(h.first().get("output").list())) {
		return true
	}
	return agentsItems(h.values)
}

// agentsItems recognizes a list of items by those that no other program has.
func agentsItems(list []value) bool {
	found := false
	for _, v := range list {
		switch v.get("type").str() {
		case "function_call", "function_call_output", "reasoning":
			found = found || v.has("call_id") || v.get("summary").is(arrayKind)
		case "message", "":
			t := v.get("content").first().get("type").str()
			found = found || t == "output_text" || t == "input_text"
			if !v.has("role") {
				return false
			}
		default:
			if !v.has("id") && !v.has("call_id") {
				return false
			}
		}
	}
	return found
}

func readAgents(r *reading) error {
	if v := r.head.first(); !r.head.array && (v.get("input").kind() >= stringKind || v.get("output").is(arrayKind)) && !v.has("call_id") {
		return r.eachItem("", readAgentsRequest(r))
	}
	a := newAgents(r, place{})
	n := 0
	err := r.eachItem("", func(at place, v value) error {
		n++
		a.item(at, itoa(n), v)
		return nil
	})
	return r.atEnd(err, func() error { return a.handOn(&record.Incoming{}, value{}) })
}

// readAgentsRequest returns a function that reads a request or a response, or both in one.
func readAgentsRequest(r *reading) func(at place, v value) error {
	return func(at place, v value) error {
		a := newAgents(r, at)
		a.model = v.get("model").str()
		in := &record.Incoming{System: v.get("instructions").str(), Conversation: v.get("id").str()}
		if s := v.get("input"); s.is(stringKind) {
			a.t.add(at, "input", "", pool.NewText(pool.User, s.str()))
		}
		n := 0
		for _, list := range []string{"input", "output"} {
			for it := range v.get(list).items() {
				n++
				a.item(at.in("item "+itoa(n)), itoa(n), it)
			}
		}
		a.flush()
		a.r.about(in, v)
		return a.handOn(in, value{})
	}
}

type agents struct {
	r     *reading
	t     *thread
	model string
	last  string // the record above the next one
	// the items of the model's message being read, and the place and id of the first
	group []value
	at    place
	id    string
}

func newAgents(r *reading, at place) *agents { return &agents{r: r, t: r.thread(at)} }

func (a *agents) handOn(in *record.Incoming, v value) error {
	a.flush()
	return a.t.handOn(in, v, a.last)
}

// item reads one item. The items of a model's message wait until it is complete.
func (a *agents) item(at place, id string, v value) {
	typ, role := v.get("type").str(), v.get("role").str()
	said := role == "assistant" && (typ == "message" || typ == "")
	switch {
	case !v.is(objectKind) || typ == "" && role == "":
		a.t.skip(at, "", "", "%s that is not an item is left out", v.kind())
		return
	case strings.HasSuffix(typ, "_output") || role != "" && role != "assistant":
		a.flush()
		a.take(at, id, a.other(v), v)
		return
	case typ == "reasoning" || said:
		for _, g := range a.group {
			if g.get("type").str() != "reasoning" {
				a.flush()
				break
			}
		}
	}
	if len(a.group) == 0 {
		a.at, a.id = at, id
	}
	v.taken()
	a.group = append(a.group, v.clone())
}

func (a *agents) take(at place, id string, msgs []*chatctx.Message, records ...value) {
	a.r.wholeOf(at, msgs, records...)
	before := len(a.t.records)
	a.t.add(at, id, a.last, msgs...)
	if a.last = a.t.lastRecord(); len(a.t.records) == before { // another branch has it already
		a.last = firstOf(a.t.tail[id], id)
	}
}

// other reads a message that is not the model's, or a result.
func (a *agents) other(v value) []*chatctx.Message {
	if v.has("role") {
		m := &chatctx.Message{}
		roleOf(m, v.get("role").str())
		t := newTurn(m, "")
		t.content(v.get("content"), "type", nil)
		return t.done()
	}
	out := v.get("output")
	m := resultOf(v.get("call_id").str(), v.get("name").str(), out)
	m.Result.IsError = v.get("status").str() == "incomplete"
	return []*chatctx.Message{m}
}

// flush adds the model's message that was read.
func (a *agents) flush() {
	if len(a.group) == 0 {
		return
	}
	m := &chatctx.Message{Role: pool.Assistant, Meta: pool.Metadata{Provider: openAIProvider, Model: a.model}}
	t := newTurn(m, a.id)
	for _, v := range a.group {
		switch v.get("type").str() {
		case "message", "":
			t.content(v.get("content"), "type", nil)
		case "function_call":
			t.call(firstOf(v.get("call_id").str(), v.get("id").str()), v.get("name").str(), v.get("arguments"))
		case "reasoning":
			t.put(pool.Part{Type: pool.ThinkingPart, Text: reasoningText(v), Signature: v.get("encrypted_content").str(), Provider: openAIProvider, Model: a.model, Raw: v.keep()})
		default:
			t.put(unknownPart(v))
		}
	}
	group := a.group
	a.group = nil
	a.take(a.at, a.id, t.done(), group...)
}

// reasoningText joins the readable texts of a reasoning item.
func reasoningText(v value) string {
	var texts []string
	for _, list := range []value{v.get("summary"), v.get("content")} {
		for it := range list.items() {
			if t := it.get("text").str(); t != "" {
				texts = append(texts, t)
			}
		}
	}
	return strings.Join(texts, "\n\n")
}

// readAgentsBranches reads a database whose sessions have branches. A table of its own says which messages each branch has, in which order; messages that
// branches share are listed in each.
func readAgentsBranches(r *reading) error {
	r.db.knows("message_structure", "message_type", "user_turn_number", "branch_turn_number")
	items, err := r.db.grouped("agent_messages", "id")
	if err != nil {
		return err
	}
	g := r.gather()
	if err := (&rowFormat{sessions: "agent_sessions"}).readSessions(g); err != nil {
		return r.atEnd(err, g.emit)
	}
	open := map[string]*agents{}
	branch, listed := "", map[string]bool{}
	for w, err := range r.db.sorted("message_structure", "session_id", "branch_id", "sequence_number", "message_id") {
		if err != nil {
			return r.atEnd(err, g.emit)
		}
		session, id := w.str("session_id"), w.str("message_id")
		t := g.of(place{what: "session " + session}, session)
		a := open[session]
		if a == nil {
			a = &agents{r: r, t: t.thread}
			open[session], t.end = a, a.flush
		}
		if now := session + "/" + w.str("branch_id"); now != branch {
			a.flush()
			branch, a.last = now, ""
			t.keep(w.asRow(t.r, t.at, "branch_id"))
		}
		for item, err := range items.of(id) {
			if err != nil {
				return r.atEnd(err, g.emit)
			}
			a.item(t.at.in("row "+id), id, item.asRow(r, t.at.in("row "+id), "message_data").get("message_data"))
			listed[id] = true
		}
	}
	for w, err := range r.db.sorted("agent_messages", "id") {
		if err != nil {
			return r.atEnd(err, g.emit)
		}
		if id := w.str("id"); !listed[id] {
			t := g.of(place{what: "session " + w.str("session_id")}, w.str("session_id"))
			t.skip(t.at.in("row "+id), "", "", "the message is on no branch and is left out")
		}
	}
	return g.emit()
}
