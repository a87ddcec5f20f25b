package exchange

import (
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// turn makes consecutive messages from one record: words and calls, the results of the calls, the next words.
type turn struct {
	id      string           // of the record, for calls without an id
	now     *chatctx.Message // the message for the next parts
	out     []*chatctx.Message
	results []*chatctx.Message
}

// newTurn begins with a message that has what the record says about all of them, and no content yet.
func newTurn(m *chatctx.Message, id string) *turn { return &turn{id: id, now: m} }

// open returns the message for the next part: a new one after results.
func (t *turn) open() *chatctx.Message {
	if len(t.results) > 0 {
		t.flush()
		t.now = &chatctx.Message{Role: t.now.Role, Kind: t.now.Kind, Hidden: t.now.Hidden, Unsent: t.now.Unsent, Created: t.now.Created,
			Meta: pool.Metadata{Model: t.now.Meta.Model, Provider: t.now.Meta.Provider}}
	}
	return t.now
}

func (t *turn) flush() {
	if len(t.now.Content) > 0 || len(t.results) == 0 && len(t.out) == 0 {
		t.out = append(t.out, t.now)
	}
	t.out, t.results = append(t.out, t.results...), nil
}

// done returns the messages, at least one.
func (t *turn) done() []*chatctx.Message {
	t.flush()
	return t.out
}

func (t *turn) put(parts ...pool.Part) {
	m := t.open()
	m.Content = append(m.Content, parts...)
}

// text adds a text unless it is empty.
func (t *turn) text(s string) {
	if s != "" {
		t.put(textPart(s))
	}
}

// think adds a thought of the model.
func (t *turn) think(text, signature string) {
	if text != "" || signature != "" {
		t.put(pool.Part{Type: pool.ThinkingPart, Text: text, Signature: signature, Provider: t.now.Meta.Provider, Model: t.now.Meta.Model})
	}
}

// call adds a call of the assistant and returns its id. args is a JSON value, or JSON in a string.
func (t *turn) call(id, tool string, args value) string {
	m := t.open()
	c, _ := newCall(id, tool, args)
	c.Provider, c.Model = m.Meta.Provider, m.Meta.Model
	addCall(m, c, t.id)
	return m.Calls[len(m.Calls)-1].ID
}

// aside adds a hidden message that nobody typed: text of a program for the model.
func (t *turn) aside(parts ...pool.Part) {
	m := &chatctx.Message{Role: t.now.Role, Kind: injected, Hidden: true, Created: t.now.Created, Content: parts}
	if len(t.now.Content) > 0 {
		t.results = append(t.results, m)
		t.open()
		return
	}
	t.out = append(t.out, m)
}

// result adds the result of a call: a text, or parts, or any JSON.
func (t *turn) result(id, tool string, out value, failed bool) *chatctx.Message {
	m := resultOf(id, tool, out)
	m.Created, m.Result.IsError = t.now.Created, failed
	t.results = append(t.results, m)
	return m
}

// resultOf returns a tool message of a text, of a list of known parts, or of any other JSON.
func resultOf(id, tool string, out value) *chatctx.Message {
	if !out.is(arrayKind) || !out.first().get("type").is(stringKind) && !out.first().is(stringKind) {
		return toolOutput(id, tool, out)
	}
	return toolResult(id, tool, contentParts(out))
}

// partReader adds a part of a record to its turn.
type partReader func(t *turn, p value)

// content reads a record's content: a text, a part, or a list of both. The member key says which part it is; one that kinds lacks is read as one of OpenAI's
// APIs, and kept whole if it is not one of these.
func (t *turn) content(v value, key string, kinds map[string]partReader) {
	switch v.kind() {
	case stringKind:
		t.text(v.str())
	case objectKind:
		if read := kinds[v.get(key).str()]; read != nil {
			read(t, v)
		} else {
			t.put(contentPart(v))
		}
	case arrayKind:
		for it := range v.items() {
			t.content(it, key, kinds)
		}
	case numberKind, boolKind:
		t.put(textPart(string(v.keep())))
	}
}

// These readers are for the parts that most formats have; the arguments are paths for pick.

func saying(text string) partReader { return func(t *turn, p value) { t.text(p.pick(text).str()) } }

func thinking(text, signature string) partReader {
	return func(t *turn, p value) { t.think(p.pick(text).str(), p.pick(signature).str()) }
}

// calling reads a call. Only an assistant can call: for other roles the part is kept unchanged.
func calling(id, tool, args string) partReader {
	return func(t *turn, p value) {
		if t.now.Role != pool.Assistant {
			keeping(t, p)
			return
		}
		t.call(p.pick(id).str(), p.pick(tool).str(), p.pick(args))
	}
}

func answering(id, tool, out, failed string) partReader {
	return func(t *turn, p value) {
		t.result(p.pick(id).str(), p.pick(tool).str(), p.pick(out), p.pick(failed).bool())
	}
}

// callAndResult reads a part that is a call and, if there is one, its result.
func callAndResult(id, tool, args, out string, failed func(p value) bool) partReader {
	return func(t *turn, p value) {
		if t.now.Role != pool.Assistant {
			keeping(t, p)
			return
		}
		name := p.pick(tool).str()
		call := t.call(p.pick(id).str(), name, p.pick(args))
		if o := p.pick(out); o.d != nil {
			t.result(call, name, o, failed != nil && failed(p))
		}
	}
}

// keeping keeps a part whole.
func keeping(t *turn, p value) { t.put(unknownPart(p)) }

// beside leaves a part out of the message, but its content is kept with it.
func beside(*turn, value) {}

// shape says where the messages of a format have their fields: paths for pick.
type shape struct {
	role, time, model, provider, finish, failure, content string
	call, tool                                            string // of messages that are results
	key                                                   string // that distinguishes parts
	parted                                                bool   // results are parts, also in messages of the role tool
	kinds                                                 map[string]partReader
	usage                                                 func(m *chatctx.Message, v value)
}

// message begins a message with what a record says about it.
func (s *shape) message(v value) *chatctx.Message {
	m := &chatctx.Message{Created: v.pick(s.time).time()}
	roleOf(m, v.pick(s.role).str())
	if m.Role == pool.Assistant {
		m.Meta.Model, m.Meta.Provider, m.Meta.FinishReason = v.pick(s.model).str(), v.pick(s.provider).str(), v.pick(s.finish).str()
		if s.usage != nil {
			s.usage(m, v)
		}
	}
	m.Meta.Error = firstOf(v.pick(s.failure).str(), m.Meta.Error)
	return m
}

// read returns a record's messages.
func (s *shape) read(v value, id string) []*chatctx.Message {
	if role := v.pick(s.role).str(); !s.parted && (role == "tool" || role == "toolResult") {
		m := resultOf(v.pick(s.call).str(), v.pick(s.tool).str(), v.pick(s.content))
		m.Created = v.pick(s.time).time()
		return []*chatctx.Message{m}
	}
	t := newTurn(s.message(v), id)
	t.content(v.pick(s.content), s.key, s.kinds)
	return t.done()
}

// line reads a list of messages, each below the previous one.
func (s *shape) line(t *thread, list value, each func(v value, msgs []*chatctx.Message)) {
	n := 0
	for v := range list.items() {
		n++
		s.next(t, t.at.in("message "+itoa(n)), v, firstOf(v.get("id").str(), itoa(n)), each)
	}
}

// next reads one message, below the previous one.
func (s *shape) next(t *thread, at place, v value, id string, each func(v value, msgs []*chatctx.Message)) {
	if !v.is(objectKind) || v.pick(s.role).str() == "" {
		t.skip(at, "", "", "%s that is not a message is left out", v.kind())
		return
	}
	msgs := s.read(v, id)
	if each != nil {
		each(v, msgs)
	}
	t.take(at, id, t.last(), v, msgs...)
}

// unreadRecord returns a record of a kind that says nothing to a model, kept whole.
func unreadRecord(v value) *chatctx.Message {
	return &chatctx.Message{Role: pool.User, Kind: "record", Hidden: true, Unsent: true, Created: v.pick("timestamp|ts|created_at|time").time(),
		Content: []pool.Part{unknownPart(v)}}
}

// handOn passes a conversation of one record on. It is at its end if active is "".
func (t *thread) handOn(in *record.Incoming, v value, active string) error {
	if v.d != nil {
		t.r.about(in, v)
	}
	if in.Conversation == "" {
		in.Conversation = t.contentID(v)
	}
	return t.emit(in, firstOf(active, t.last()))
}

// looseRecords puts the content of records that belongs to no message into the app data.
func (t *thread) looseRecords(in *record.Incoming) {
	if t.loose == nil {
		return
	}
	w := objectWriter{}
	w.addRaw("about", in.AppData[t.r.format])
	w.addRaw("records", listOf(t.loose))
	in.AppData = appData(t.r.format, w.done())
	t.loose = nil
}

// parsed returns the JSON value in a string; absent if it is not JSON.
func parsed(v value) value {
	if !v.is(stringKind) {
		return v
	}
	d := new(document)
	x, rest, err := d.parse([]byte(v.str()), false)
	if err != nil || skipSpace(rest, 0) != len(rest) {
		return value{}
	}
	return x
}

// gather keeps the threads of a file with mixed records, in the order of their beginnings.
type gather struct {
	r     *reading
	byID  map[string]*gathered
	order []*gathered
}

type gathered struct {
	*thread
	in     record.Incoming
	end    func() // adds what is still being read; nil if nothing is
	active string // the message at which the conversation stands; "" means the last one
}

func (r *reading) gather() *gather { return &gather{r: r, byID: map[string]*gathered{}} }

// of returns the thread of a conversation.
func (g *gather) of(at place, conversation string) *gathered {
	t := g.byID[conversation]
	if t == nil {
		t = &gathered{thread: g.r.thread(at)}
		t.in.Conversation = conversation
		g.byID[conversation], g.order = t, append(g.order, t)
	}
	return t
}

// emit passes all conversations on, each at its end.
func (g *gather) emit() error {
	for _, t := range g.order {
		if t.end != nil {
			t.end()
		}
		if err := t.handOn(&t.in, value{}, t.active); err != nil {
			return err
		}
	}
	return nil
}

// asides makes separate messages from texts in prompts for which told reports that a program put them there.
func asides(msgs []*chatctx.Message, told func(p pool.Part) bool) []*chatctx.Message {
	var out []*chatctx.Message
	for _, m := range msgs {
		if m.Role != pool.User || !slices.ContainsFunc(m.Content, told) {
			out = append(out, m)
			continue
		}
		parts := m.Content
		m.Content = nil
		t := newTurn(m, "")
		for _, p := range parts {
			if p.Type == pool.TextPart && told(p) {
				t.aside(p)
			} else {
				t.put(p)
			}
		}
		out = append(out, t.done()...)
	}
	return out
}
