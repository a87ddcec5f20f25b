package exchange

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"maps"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// Nothing that a record says is lost: what its reader did not put into a message is found here by comparing the two, and kept beside it.
// A reader therefore names only what it understands.

// structuralKeys are, for each format and under "" for all of them, the members whose strings and numbers say how a file hangs together and
// nothing that is to be read: ids, links, kinds, times. docs/formats.md lists them. A list or object under such a key is looked into all the
// same.
var structuralKeys = map[string]map[string]bool{
	"": keys("id", "uuid", "type", "role", "kind", "timestamp", "ts", "parent", "parentId", "parent_id", "children", "created", "updated", "createdAt",
		"updatedAt", "created_at", "updated_at"),
	chatgptName: keys("create_time", "update_time", "current_node", "status", "recipient"),
	claudeCodeName: keys("parentUuid", "logicalParentUuid", "sessionId", "session_id", "agentId", "messageUuid", "leafUuid", "userType",
		"sourceToolAssistantUUID", "messageId"),
	codexName:       keys("call_id", "session_id"),
	claudeAIName:    keys("parent_message_uuid", "sender", "current_leaf_message_uuid"),
	libreChatName:   keys("messageId", "conversationId", "parentMessageId", "sender"),
	openWebUIName:   keys("parentId", "childrenIds", "currentId"),
	geminiName:      keys("$rewindTo", "start_time", "startTime", "lastUpdated", "sessionId"),
	aiStudioName:    keys("createTime", "updateTime"),
	takeoutName:     keys("header", "products", "activityControls", "time"),
	shareGPTName:    keys("from"),
	oasstName:       keys("message_id", "parent_id", "message_tree_id", "user_message_id", "parent_message_id", "created_date"),
	llamaName:       keys("harness", "convId", "currNode", "lastModified"),
	piName:          keys("parentId"),
	anythingName:    keys("sent_at", "workspaceId", "thread_id"),
	gooseName:       keys("session_id", "message_id", "created_timestamp"),
	crushName:       keys("session_id"),
	termLLMName:     keys("Type", "session_id", "sequence", "turn_index", "parent_id"),
	openCodeName:    keys("session_id", "message_id", "time_created", "time_updated", "sessionID", "messageID", "parentID", "start", "end"),
	janName:         keys("object", "thread_id", "completed_at"),
	pydanticName:    keys("part_kind"),
	lmStudioName:    keys("stepIdentifier"),
	sillyTavernName: keys("send_date", "create_date"),
	deepSeekName:    keys("inserted_at", "message_id", "parent_id", "current_message_id"),
	grokName:        keys("_id", "response_id", "conversation_id", "parent_response_id", "leaf_response_id", "create_time", "modify_time", "sender", "$numberLong"),
	qwenName:        keys("parentUuid", "sessionId"),
	vscodeName:      keys("requestId", "sessionId", "creationDate", "lastMessageDate", "k"),
	bigAGIName:      keys("ft", "fId", "pt"),
	cherryName:      keys("topicId", "assistantId", "askId", "blocks", "messageId"),
	zedName:         keys("data_type"),
	kiroName:        keys("message_id", "conversation_id"),
	continueName:    keys("sessionId", "toolCallId"),
	cursorName:      keys("agentId", "latestRootBlobId"),
	langGraphName:   keys("thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "channel"),
	clineName:       keys("sessionId", "session_id"),
}

// isStructural tells whether a member is structural: a string or number under such a key, or a list of them.
func (s *sieve) isStructural(key, v value) bool {
	if !s.structural[string(key.bytes(&s.key))] || v.is(objectKind) {
		return false
	}
	for it := range v.items() {
		if it.kind() >= arrayKind {
			return false
		}
	}
	return true
}

// take adds a record's messages to the thread, and what of the record they do not say beside the first of them.
func (t *thread) take(at place, id, parent string, v value, msgs ...*chatctx.Message) {
	t.r.whole(at, v, msgs...)
	t.add(at, id, parent, msgs...)
	t.r.shelf.put(msgs...)
}

// whole puts beside the first of a record's messages what of the record none of them says. Of a record that is not valid Unicode all is kept.
func (r *reading) whole(at place, v value, msgs ...*chatctx.Message) {
	if len(msgs) > 0 {
		r.wholeOf(at, msgs, v)
	}
}

// wholeOf is whole for messages that are made of several records: what is left of each is in a list.
func (r *reading) wholeOf(at place, msgs []*chatctx.Message, records ...value) {
	r.wholeBut(at, msgs, nil, records...)
}

// listOf is a list of JSON values with commas before them; nil for none.
func listOf(values []byte) json.RawMessage {
	if values == nil {
		return nil
	}
	values[0] = '['
	return append(values, ']')
}

// wholeBut is wholeOf where the texts of told are kept elsewhere.
func (r *reading) wholeBut(at place, msgs []*chatctx.Message, told []string, records ...value) {
	s := r.emptied()
	s.text(told...)
	for _, m := range msgs {
		s.message(m)
	}
	var rest, raw []byte
	for _, v := range records {
		if !v.tok().used && r.damage(at, v) {
			raw = append(append(raw, v.raw()...), '\n')
		} else if left := s.rest(v); left != nil {
			rest = append(append(rest, ','), left...)
		}
		v.taken()
	}
	if raw != nil {
		source(msgs[0]).Raw = raw[:len(raw)-1]
	}
	switch {
	case rest == nil:
		return
	case len(records) == 1:
		rest = rest[1:]
	default:
		rest = listOf(rest)
	}
	msgs[0].Meta.ProviderData = withData(msgs[0].Meta.ProviderData, r.format, joined(msgs[0].Meta.ProviderData[r.format], rest))
}

// joined is what was kept of something, and more of it: members of one object, where no key is in both.
func joined(have, more json.RawMessage) json.RawMessage {
	if have == nil || more == nil {
		return append(have, more...)
	}
	w := objectWriter{}
	a, _, errA := new(document).parse(have, false)
	b, _, errB := new(document).parse(more, false)
	if errA != nil || errB != nil || !a.is(objectKind) || !b.is(objectKind) {
		w.addRaw("kept", have)
		w.addRaw("more", more)
		return w.done()
	}
	for k, x := range a.members() {
		w.addRaw(k, x.copied())
	}
	for k, x := range b.members() {
		for a.has(k) {
			k += "+"
		}
		w.addRaw(k, x.copied())
	}
	return w.done()
}

// beside puts what is left of a value beside a message, as whole does, and looks for no damage in it.
func (r *reading) beside(v value, m *chatctx.Message) {
	s := r.emptied()
	s.message(m)
	if left := s.rest(v); left != nil {
		m.Meta.ProviderData = withData(m.Meta.ProviderData, r.format, joined(m.Meta.ProviderData[r.format], left))
	}
	v.taken()
}

// moreWords is what JSON says in words that other JSON does not; nil for nothing.
func (r *reading) moreWords(have, raw json.RawMessage) json.RawMessage {
	v, _, err := new(document).parse(raw, false)
	if have == nil || err != nil {
		return raw
	}
	s := r.sieve()
	s.now = have
	if v, _, err = new(document).parse(s.rest(v), false); err != nil {
		return nil // nothing is left
	}
	return r.sieve().news(v)
}

// withData sets a value in what may be nil.
func withData(data map[string]json.RawMessage, name string, raw json.RawMessage) map[string]json.RawMessage {
	if data == nil {
		data = map[string]json.RawMessage{}
	}
	data[name] = raw
	return data
}

// keepAgain keeps what a repeated record says beside the same message in other words than the one before.
func keepAgain(have, again []*chatctx.Message) {
	if len(have) == 0 || len(again) == 0 {
		return
	}
	known := have[0].Meta.ProviderData
	for k, raw := range again[0].Meta.ProviderData {
		same := false
		for _, x := range known {
			same = same || bytes.Equal(x, raw)
		}
		if !same {
			have[0].Meta.ProviderData = appendData(have[0].Meta.ProviderData, k, raw)
		}
	}
	was, now := &have[0].Meta, &again[0].Meta
	for name, f := range map[string]struct{ was, now *string }{"model": {&was.Model, &now.Model}, "provider": {&was.Provider, &now.Provider},
		"finish_reason": {&was.FinishReason, &now.FinishReason}, "error": {&was.Error, &now.Error}} {
		if *f.was == "" {
			*f.was = *f.now
		} else if *f.now != "" && *f.now != *f.was {
			was.ProviderData = appendData(was.ProviderData, "again "+name, jsonText(*f.now))
		}
	}
	if !figuresOnly(now.Usage, was.Usage) {
		was.ProviderData = appendData(was.ProviderData, "again usage", now.Usage)
	}
}

// before keeps of an earlier state of messages what the later one no longer says.
func (r *reading) before(earlier, later []*chatctx.Message) {
	s := r.sieve()
	for _, m := range later {
		s.message(m)
	}
	for _, m := range earlier {
		text, err := json.Marshal(m)
		if err != nil {
			continue // it was read, so that it can be written
		}
		if v, _, err := new(document).parse(text, false); err == nil {
			if raw := s.rest(v); raw != nil && bytes.Contains(raw, []byte(`"`)) {
				later[0].Meta.ProviderData = appendData(later[0].Meta.ProviderData, r.format+" before", raw)
			}
		}
	}
}

// appendData adds a value under a name that is not taken.
func appendData(data map[string]json.RawMessage, name string, raw json.RawMessage) map[string]json.RawMessage {
	for data[name] != nil {
		name += "+"
	}
	return withData(data, name, raw)
}

// link adds a record that holds no message but a place among them. What it says all the same is kept with the conversation.
func (t *thread) link(at place, id, parent string, v value) {
	t.keep(v)
	t.add(at, id, parent)
}

// keep keeps what a record says that belongs to no message.
func (t *thread) keep(v value) {
	if raw := t.r.sieve().rest(v); raw != nil {
		t.loose = append(append(t.loose, ','), raw...)
	}
	v.taken()
}

// about puts into the app data of a conversation what its record says beside its messages, which were taken, and the texts of said.
func (r *reading) about(in *chatctx.Incoming, v value, said ...string) {
	in.Labels = append(in.Labels, labelsOf(v)...)
	s := r.sieve()
	s.text(said...)
	s.text(in.Title, in.System, in.Prompt, in.Conversation)
	if raw := s.rest(v); raw != nil {
		in.AppData = appData(r.format, joined(in.AppData[r.format], raw))
	}
	v.taken()
}

func (r *reading) sieve() *sieve {
	if r.structuralOf != r.format {
		r.structuralOf, r.structuralKeys = r.format, maps.Clone(structuralKeys[""])
		maps.Copy(r.structuralKeys, structuralKeys[r.format])
	}
	return &sieve{structural: r.structuralKeys, said: heard{}.with("")}
}

// emptied is a sieve for the moment: the same one each time, so that records cost no memory for it.
func (r *reading) emptied() *sieve {
	if r.own == nil || len(r.own.said) > 1000 {
		r.own = r.sieve()
		return r.own
	}
	clear(r.own.said)
	r.own.said.with("")
	r.own.data, r.own.now = nil, nil
	return r.own
}

// sieve holds what was said, to find what was not.
type sieve struct {
	structural map[string]bool // keys, of all formats and of this one
	said       heard
	data       map[pool.Hash]bool
	now        []byte // JSON that is kept: what is the beginning or a part of a string of it was said
	doc        document
	buf, key   []byte
}

// heard are texts, as two hashes of each: a sieve hears all that a file says, and holds none of it.
type heard map[[2]uint64]bool

var heardSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func (h heard) with(t string) heard {
	h[[2]uint64{maphash.String(heardSeeds[0], t), maphash.String(heardSeeds[1], t)}] = true
	return h
}

func (h heard) has(t []byte) bool {
	return h[[2]uint64{maphash.Bytes(heardSeeds[0], t), maphash.Bytes(heardSeeds[1], t)}]
}

func (s *sieve) text(list ...string) {
	for _, t := range list {
		s.said.with(t)
	}
}

// all is message, and true.
func (s *sieve) all(m *chatctx.Message) bool {
	s.message(m)
	return true
}

func (s *sieve) message(m *chatctx.Message) {
	s.text(m.Meta.Model, m.Meta.Provider, m.Meta.FinishReason, m.Meta.Error)
	if m.Source != nil {
		s.text(m.Source.Role)
	}
	s.parts(m.Content)
	for i := range m.Calls {
		s.text(m.Calls[i].ID, m.Calls[i].Tool, string(m.Calls[i].Arguments))
		if v, _, err := s.doc.parse(m.Calls[i].Arguments, false); err == nil {
			s.text(v.get("input").str()) // arguments that are no JSON are put there
		}
	}
	if res := m.Result; res != nil {
		s.text(res.RequestID, res.Tool, res.Text)
		s.parts(res.Parts)
	}
}

func (s *sieve) parts(parts []pool.Part) {
	for i := range parts {
		p := &parts[i]
		s.text(p.Text, p.Name, p.URL, p.MediaType, p.Signature, p.Redacted)
		if len(p.Data) > 0 {
			if s.data == nil {
				s.data = map[pool.Hash]bool{}
			}
			s.data[pool.HashOf(p.Data)] = true
			s.text(string(p.Data))
		}
	}
}

// has tells whether a string was said: as a text, or as the bytes that it encodes.
func (s *sieve) has(v value) bool {
	b := v.bytes(&s.buf)
	return s.said.has(b) || s.hasText(string(b))
}

func (s *sieve) hasText(t string) bool {
	if s.said.has([]byte(t)) {
		return true
	}
	if s.now != nil && inValues(s.now, bytes.Trim(jsonText(t), `"`)) {
		return true
	}
	if len(t) > 1 && (t[0] == '{' || t[0] == '[') {
		var b bytes.Buffer
		if json.Compact(&b, []byte(t)) == nil && s.said.has(b.Bytes()) {
			return true
		}
	}
	if s.data == nil {
		return false
	}
	if b, _, ok := dataURL(t); ok {
		return s.data[pool.HashOf(b)]
	}
	b := base64Bytes(t)
	return len(b) > 0 && s.data[pool.HashOf(b)]
}

// inValues tells whether a text is in a string of some JSON that is no key.
func inValues(raw, text []byte) bool {
	for {
		i := bytes.Index(raw, text)
		if i < 0 {
			return false
		}
		after := raw[i+len(text):]
		if i == 0 || raw[i-1] != '"' || !bytes.HasPrefix(after, []byte(`":`)) {
			return true
		}
		raw = after
	}
}

// rest is a copy of the value with no more than what was not said; nil for nothing. null, empty texts and empty containers say nothing. Of a
// key that stands twice the last counts.
func (s *sieve) rest(v value) json.RawMessage {
	if v.is(objectKind) && !v.tok().used {
		return s.members(v)
	}
	return s.left(v)
}

// left is rest of something in a record: what nothing was read of is kept as it is, with what is structural elsewhere.
func (s *sieve) left(v value) json.RawMessage {
	if v.tok().used {
		return nil
	}
	switch v.kind() {
	case stringKind:
		if s.has(v) {
			return nil
		}
		return v.copied()
	case boolKind, numberKind:
		return v.copied()
	case arrayKind:
		if s.untouched(v) {
			return v.copied()
		}
		var b []byte
		for it := range v.items() {
			if raw := s.left(it); raw != nil {
				b = append(append(b, ','), raw...)
			}
		}
		if b == nil {
			return nil
		}
		b[0] = '['
		return append(b, ']')
	case objectKind:
		if s.untouched(v) {
			return v.copied()
		}
		return s.members(v)
	}
	return nil
}

// untouched tells whether nothing of a list or object was read, and something is in it: then it is kept as it is.
func (s *sieve) untouched(v value) bool {
	says := false
	return s.walk(v, &says) && says
}

func (s *sieve) walk(v value, says *bool) bool {
	switch t := v.tok(); {
	case t.used:
		return false
	case t.kind == stringKind:
		empty := t.end-t.start == 2
		if !empty && s.has(v) {
			return false
		}
		*says = *says || !empty
	case t.kind == numberKind || t.kind == boolKind:
		*says = true
	}
	for it := range v.items() {
		if !s.walk(it, says) {
			return false
		}
	}
	for k, x := range v.fields() {
		if s.isStructural(k, x) {
			continue
		}
		if !s.walk(x, says) {
			return false
		}
	}
	return true
}

// news is what of a record was not said before, and from now on is; nil where it says nothing new in words.
func (s *sieve) news(v value) json.RawMessage {
	raw := s.rest(v)
	if bytes.IndexByte(raw, '"') < 0 {
		return nil
	}
	before := len(s.said)
	s.hear(v)
	if len(s.said) == before {
		return nil // no more than names and numbers
	}
	return raw
}

// hear notes the strings of a value as said.
func (s *sieve) hear(v value) {
	if v.is(stringKind) {
		s.text(v.str())
	}
	for it := range v.items() {
		s.hear(it)
	}
	for k, x := range v.fields() {
		if !s.isStructural(k, x) {
			s.hear(x)
		}
	}
}

func (s *sieve) members(v value) json.RawMessage {
	twice := v.repeated()
	w := objectWriter{}
	for k, x := range v.fields() {
		if twice != nil && v.get(k.str()).i != x.i || s.isStructural(k, x) {
			continue
		}
		if raw := s.left(x); raw != nil {
			w.addRaw(k.str(), raw)
		}
	}
	return w.done()
}

// pick is the first member that there is and is not null: a path is keys with points between, and bars stand between paths.
func (v value) pick(paths string) value {
	for more := true; more && paths != ""; {
		var path string
		path, paths, more = strings.Cut(paths, "|")
		x := v
		for deeper := true; deeper; {
			var key string
			key, path, deeper = strings.Cut(path, ".")
			x = x.get(key)
		}
		if x.kind() > nullKind {
			return x
		}
	}
	return value{}
}
