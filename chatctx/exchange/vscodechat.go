package exchange

import (
	"bytes"
	"encoding/json"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Chats of VS Code are chatSessions/ID.json, one object with the requests of a session. Newer ones are JSON Lines, a log of changes to that object: kind 0 is
// the whole object, 1 sets a member, 2 adds items to a list, 3 removes a member.

const vscodeName = "vscode-chat"

func detectVSCode(h *head) bool {
	v := h.first()
	if v.get("kind").is(numberKind) && v.get("v").has("requests") {
		return true
	}
	return !h.array && v.get("requests").is(arrayKind) && v.has("sessionId") && (v.has("responderUsername") || v.has("requesterUsername") || v.has("version"))
}

func readVSCode(r *reading) error {
	if !r.head.first().has("kind") {
		return r.eachItem("", func(at place, v value) error { return readVSCodeSession(r, at, v, value{}) })
	}
	var log changeLog
	err := r.eachLine(func(at place, v value) error {
		if !log.apply(v) {
			r.skip(1, at, "the change belongs to nothing in the file and is left out")
		} else if more := unknownFields(v, keys("kind", "k", "v", "i")); more != nil {
			log.lose(more)
		}
		return nil
	})
	return r.atEnd(err, func() error {
		text, err := json.Marshal(log.root)
		if err != nil {
			return err
		}
		v, _, err := new(document).parse(text, false)
		if err != nil {
			return err
		}
		text, err = json.Marshal(log.gone)
		if err != nil {
			return err
		}
		gone, _, err := new(document).parse(text, false)
		if err != nil {
			return err
		}
		return readVSCodeSession(r, place{}, v, gone)
	})
}

// changeLog is an object built by changes.
type changeLog struct {
	root any
	gone []any // what changes removed
}

// apply makes one change. It returns false for a change that does not fit.
func (c *changeLog) apply(v value) bool {
	kind, ok := v.get("kind").int()
	if !ok {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(v.get("v").keep()))
	d.UseNumber()
	var x any
	if kind != 3 && d.Decode(&x) != nil {
		return false
	}
	if kind == 0 {
		c.lose(c.root)
		c.root = x
		return true
	}
	slot := changeSlot{get: func() any { return c.root }, set: func(x any) { c.root = x }, remove: func() {}}
	if !v.get("k").is(arrayKind) {
		return false
	}
	for k := range v.get("k").items() {
		if slot, ok = slot.in(k); !ok {
			return false
		}
	}
	switch kind {
	case 1:
		c.lose(slot.get())
		slot.set(x)
	case 2:
		list, wasList := slot.get().([]any)
		more, isList := x.([]any)
		if i, given := v.get("i").int(); given && i >= 0 && i < int64(len(list)) {
			c.lose(list[i:])
			list = list[:i]
		}
		if !isList || !wasList && slot.get() != nil {
			return false
		}
		slot.set(append(list[:len(list):len(list)], more...))
	case 3:
		c.lose(slot.get())
		slot.remove()
	default:
		return false
	}
	return true
}

// lose notes a value that is no longer in the object.
func (c *changeLog) lose(x any) {
	if x != nil {
		c.gone = append(c.gone, x)
	}
}

// changeSlot is a place in the object.
type changeSlot struct {
	get    func() any
	set    func(any)
	remove func()
}

// in returns the place of a member or an item in this one.
func (s changeSlot) in(k value) (changeSlot, bool) {
	if i, ok := k.int(); ok && k.is(numberKind) {
		list, isList := s.get().([]any)
		if !isList && s.get() != nil || i < 0 || i > int64(len(list)) {
			return s, false
		}
		if i == int64(len(list)) {
			list = append(list, nil)
			s.set(list)
		}
		return changeSlot{func() any { return list[i] }, func(x any) { list[i] = x }, func() { list[i] = nil }}, true
	}
	o, isObject := s.get().(map[string]any)
	if !k.is(stringKind) {
		return s, false
	}
	if !isObject {
		if s.get() != nil {
			return s, false
		}
		o = map[string]any{}
		s.set(o)
	}
	key := k.str()
	return changeSlot{func() any { return o[key] }, func(x any) { o[key] = x }, func() { delete(o, key) }}, true
}

func readVSCodeSession(r *reading, at place, v, gone value) error {
	t := r.thread(at)
	if gone.len() > 0 { // keep what was removed, unless later text contains it
		s := r.sieve()
		s.now = v.raw()
		t.loose = append(t.loose, ","+string(s.rest(gone))...)
		if len(t.loose) == 1 {
			t.loose = nil
		}
	}
	n := 0
	for req := range v.get("requests").items() {
		n++
		where, id := at.in("request "+itoa(n)), firstOf(req.get("requestId").str(), itoa(n))
		if !req.is(objectKind) {
			t.skip(where, "", "", "%s that is not a request is left out", req.kind())
			continue
		}
		msgs := append([]*chatctx.Message{vscodePrompt(req)}, vscodeAnswer(req, id)...)
		if len(msgs[1].Content) == 0 && msgs[1].Meta.Error == "" {
			msgs = msgs[:1] // no answer came
		}
		r.whole(where, req, msgs...)
		t.add(where, id, t.last(), msgs[0])
		if len(msgs) > 1 {
			t.add(where, id+"/answer", t.last(), msgs[1:]...)
		}
	}
	in := &record.Incoming{Conversation: v.get("sessionId").str(), Title: v.get("customTitle").str(), Created: v.get("creationDate").time(), Updated: v.get("lastMessageDate").time()}
	return t.handOn(in, v, "")
}

func vscodePrompt(req value) *chatctx.Message {
	m := pool.NewText(pool.User, firstOf(req.get("message").str(), req.at("message", "text").str()))
	m.Created = req.get("timestamp").time()
	for it := range req.at("variableData", "variables").items() {
		m.Content = append(m.Content, pool.Part{Type: "file_reference", Name: it.get("name").str(), Raw: it.keep()})
	}
	return m
}

// vscodeAnswer reads the parts of a response. The arguments and results of its calls are in the metadata of the result.
func vscodeAnswer(req value, id string) []*chatctx.Message {
	about := req.at("result", "metadata")
	m := &chatctx.Message{Role: pool.Assistant, Created: req.get("timestamp").time()}
	m.Meta.Model = firstOf(about.get("resolvedModel").str(), req.get("modelId").str())
	m.Meta.Error = req.at("result", "errorDetails", "message").str()
	m.Meta.InputTokens, m.Meta.OutputTokens = about.get("promptTokens").count(), about.get("outputTokens").count()
	m.Unfinished = req.get("isCanceled").bool()
	calls := map[string]value{}
	for round := range about.get("toolCallRounds").items() {
		for c := range round.get("toolCalls").items() {
			calls[c.get("id").str()] = c
		}
	}
	t := newTurn(m, id)
	for p := range req.get("response").items() {
		switch p.get("kind").str() {
		case "":
			t.text(firstOf(p.str(), p.get("value").str(), p.at("content", "value").str()))
		case "thinking":
			t.think(firstOf(p.get("value").str(), p.get("text").str()), "")
		case "toolInvocationSerialized":
			call := p.get("toolCallId").str()
			c := calls[call]
			name := firstOf(c.get("name").str(), p.get("toolId").str())
			got := t.call(call, name, c.get("arguments"))
			if out := about.get("toolCallResults").get(call); out.d != nil {
				t.result(got, name, firstPresent(out.get("content"), out), false)
			} else if out := p.get("resultDetails"); out.kind() > nullKind {
				t.result(got, name, out, false)
			}
		default:
			t.put(unknownPart(p))
		}
	}
	return t.done()
}
