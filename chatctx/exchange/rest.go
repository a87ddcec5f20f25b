package exchange

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Nothing in a record is lost: whatever its reader did not put into a message is found here by comparing the two, and kept with it. So a reader names only what
// it understands.

// structuralKeys are, for each format and under "" for all of them, the members whose strings and numbers only connect the parts of a file: ids, links, kinds,
// times. docs/formats.md lists them. A list or object under such a key is examined anyway.
var structuralKeys = map[string]map[string]bool{
	"": keys("id", "uuid", "type", "role", "kind", "timestamp", "ts", "parent", "parentId", "parent_id", "children", "created", "updated", "createdAt",
		"updatedAt", "created_at", "updated_at"),
	chatgptName: keys("create_time", "update_time", "current_node", "status", "recipient"),
	claudeCodeName: keys("parentUuid", "logicalParentUuid", "sessionId", "session_id", "agentId", "parent_tool_use_id", "messageUuid", "leafUuid", "userType",
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

// isStructural reports whether a member is structural: a string or number under such a key, or a list of them.
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

// take adds a record's messages to the thread, and keeps the rest of the record with the first of them.
func (t *thread) take(at place, id, parent string, v value, msgs ...*chatctx.Message) {
	t.r.whole(at, v, msgs...)
	t.add(at, id, parent, msgs...)
	t.r.shelf.put(msgs...)
}

// whole keeps the content of a record that its messages lack with the first of them. A record that is not valid Unicode is kept whole.
func (r *reading) whole(at place, v value, msgs ...*chatctx.Message) {
	if len(msgs) > 0 {
		r.wholeOf(at, msgs, v)
	}
}

// wholeOf is whole for messages made from several records: the rest of each is in a list.
func (r *reading) wholeOf(at place, msgs []*chatctx.Message, records ...value) {
	r.wholeBut(at, msgs, nil, records...)
}

// listOf turns JSON values with commas before them into a list; nil for none.
func listOf(values []byte) json.RawMessage {
	if values == nil {
		return nil
	}
	values[0] = '['
	return append(values, ']')
}

// wholeBut is wholeOf with the texts of told kept elsewhere.
func (r *reading) wholeBut(at place, msgs []*chatctx.Message, told []string, records ...value) {
	s := r.emptied()
	s.text(told...)
	for _, m := range msgs {
		s.message(m)
		s.repeatedArguments(r, at, m.Calls, records...)
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
	if key := contentKey(rest); key != "" && !slices.ContainsFunc(msgs, hasWords) {
		if r.wordless == nil {
			r.wordless = map[*chatctx.Message]string{}
		}
		r.wordless[msgs[0]] = key
	}
	msgs[0].Meta.ProviderData = withData(msgs[0].Meta.ProviderData, r.format, joined(msgs[0].Meta.ProviderData[r.format], rest))
}

// hasWords reports whether a message has anything that a reader of its record understood as content, or needs none.
func hasWords(m *chatctx.Message) bool {
	return len(m.Content) > 0 || len(m.Calls) > 0 || m.Result != nil || m.Meta.Error != "" || m.Hidden || m.Unsent
}

// contentKeys are the names under which programs keep the words of a message.
var contentKeys = keys("text", "body", "parts", "content", "contents", "message", "messages", "msg", "value", "response", "prompt", "completion", "input", "output", "answer", "question",
	"reply", "markdown", "html", "blocks", "segments", "chunks", "data", "payload", "said")

// contentKey returns the first of those names that has something in what a reader left of a record, "" for none.
func contentKey(rest json.RawMessage) string {
	v, _, err := new(document).parse(rest, false)
	if err != nil {
		return ""
	}
	records := []value{v}
	if v.is(arrayKind) {
		records = v.list()
	}
	for _, one := range records {
		for key, has := range one.members() {
			if contentKeys[strings.ToLower(key)] && (has.len() > 0 || has.is(stringKind) && strings.TrimSpace(has.str()) != "") {
				return strings.Clone(key)
			}
		}
	}
	return ""
}

// manyKept is how much kept content is merged member by member.
const manyKept = 64 << 10

// joined returns kept content with more of it: the members of one object, if no key is in both.
func joined(have, more json.RawMessage) json.RawMessage {
	if have == nil || more == nil {
		return append(have, more...)
	}
	if n := len(have); n > manyKept && have[0] == '{' { // reading it again for each record would take too long
		return append(append(append(append(have[:n-1], `,"more at `...), itoa(n)+`":`...), more...), '}')
	}
	w := objectWriter{}
	a, _, errA := new(document).parse(have, false)
	b, _, errB := new(document).parse(more, false)
	if errA != nil || errB != nil || !a.is(objectKind) || !b.is(objectKind) {
		w.addRaw("kept", have)
		w.addRaw("more", more)
		return w.done()
	}
	has := map[string]int{}
	for _, v := range []value{a, b} {
		for k, x := range v.members() {
			w.addRaw(distinct(has, k), x.copied())
		}
	}
	return w.done()
}

// distinct returns a key with a mark if it stood before. It counts the keys in has.
func distinct(has map[string]int, k string) string {
	for has[k]++; has[k] > 1; has[k]++ {
		mark := "+"
		if n := has[k] - 1; n > 1 {
			mark += itoa(n)
		}
		k += mark
	}
	return k
}

// beside keeps the rest of a value with a message, as whole does, without checking it for damage.
func (r *reading) beside(v value, m *chatctx.Message) {
	s := r.emptied()
	s.message(m)
	if left := s.rest(v); left != nil {
		m.Meta.ProviderData = withData(m.Meta.ProviderData, r.format, joined(m.Meta.ProviderData[r.format], left))
	}
	v.taken()
}

// moreWords returns the words of raw that have lacks; nil if there are none.
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

// withData sets a value in a map, which may be nil.
func withData(data map[string]json.RawMessage, name string, raw json.RawMessage) map[string]json.RawMessage {
	if data == nil {
		data = map[string]json.RawMessage{}
	}
	data[name] = raw
	return data
}

// keepAgain keeps the content of a repeated record that the first one's message lacks.
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
	said := extras(have[0])
	for _, raw := range extras(again[0]) {
		if raw != nil && !slices.ContainsFunc(said, func(x json.RawMessage) bool { return bytes.Equal(x, raw) }) {
			have[0].Meta.ProviderData = appendData(have[0].Meta.ProviderData, "again", raw)
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

// extras are what the parts, calls and result of a message say in JSON, beside their texts.
func extras(m *chatctx.Message) []json.RawMessage {
	var all []json.RawMessage
	parts := m.Content
	for i := range m.Calls {
		all = append(all, m.Calls[i].Arguments, m.Calls[i].Raw)
	}
	if m.Result != nil {
		all = append(all, m.Result.JSON)
		parts = slices.Concat(parts, m.Result.Parts)
	}
	for i := range parts {
		all = append(all, parts[i].Raw)
	}
	return all
}

// before keeps the content of earlier states of messages that the later ones lack, in one list.
func (r *reading) before(earlier, later []*chatctx.Message) {
	s := r.sieve()
	for _, m := range later {
		s.message(m)
	}
	name := r.format + " before"
	var states []byte
	add := func(items []byte) {
		if states = append(states, ','); len(states) == 1 {
			states[0] = '['
		}
		states = append(states, items...)
	}
	for _, m := range earlier {
		was := *m
		was.Meta.ProviderData = maps.Clone(was.Meta.ProviderData)
		if older := was.Meta.ProviderData[name]; older != nil {
			add(older[1 : len(older)-1])
			delete(was.Meta.ProviderData, name)
		}
		text, err := json.Marshal(&was)
		if err != nil {
			continue // it was read, so it can be written
		}
		if v, _, err := new(document).parse(text, false); err != nil {
			add(text) // nested too deeply to be looked through
		} else if raw := s.rest(v); raw != nil && bytes.Contains(raw, []byte(`"`)) {
			add(raw)
		}
	}
	if states != nil {
		later[0].Meta.ProviderData = withData(later[0].Meta.ProviderData, name, append(states, ']'))
	}
}

// appendData adds a value under a new name.
func appendData(data map[string]json.RawMessage, name string, raw json.RawMessage) map[string]json.RawMessage {
	free := name
	for n := 1; data[free] != nil; n++ {
		free = name + "+"
		if n > 1 {
			free += itoa(n)
		}
	}
	return withData(data, free, raw)
}

// link adds a record that has no message but a place among them. Any content is kept with the conversation.
func (t *thread) link(at place, id, parent string, v value) {
	t.keep(v)
	t.add(at, id, parent)
}

// keep keeps the content of a record that belongs to no message.
func (t *thread) keep(v value) {
	if raw := t.r.sieve().rest(v); raw != nil {
		t.loose = append(append(t.loose, ','), raw...)
	}
	v.taken()
}

// about keeps the content of a conversation's record, besides its messages, which were taken, and the texts of said, in the app data.
func (r *reading) about(in *record.Incoming, v value, said ...string) {
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

// emptied returns an empty sieve for short use: the same one each time, so that records need no memory for it.
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

// sieve has the content that was kept, to find the rest.
type sieve struct {
	structural map[string]bool // the keys of all formats and of this one
	said       heard
	data       map[pool.Hash]bool
	now        []byte // JSON that is kept: the beginnings and parts of its strings count as kept
	doc        document
	buf, key   []byte
}

// heard is a set of texts, stored as two hashes each, since a sieve sees all content of a file.
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

// all calls message and returns true.
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
			s.text(v.get("input").str()) // arguments that are not JSON are stored there
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

// has reports whether a string was kept: as a text, or as the bytes that it encodes.
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

// inValues reports whether a text is in a string of some JSON that is not a key.
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

// rest returns a copy of the value with only the content that was not kept; nil if there is none. null, empty texts and empty containers are no content. Of a
// repeated key the last one counts.
func (s *sieve) rest(v value) json.RawMessage {
	if v.is(objectKind) && !v.tok().used {
		return s.members(v)
	}
	return s.left(v)
}

// left is rest for a part of a record: a part of which nothing was read is kept whole, with its structural members.
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

// untouched reports whether a list or object has content and nothing of it was read: then it is kept whole.
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

// news returns the content of a record that was not kept before, and marks it as kept; nil if it has no new words.
func (s *sieve) news(v value) json.RawMessage {
	raw := s.rest(v)
	if bytes.IndexByte(raw, '"') < 0 {
		return nil
	}
	before := len(s.said)
	s.hear(v)
	if len(s.said) == before {
		return nil // it has only names and numbers
	}
	return raw
}

// hear marks the strings of a value as kept.
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

// pick returns the first member that exists and is not null: a path is keys joined by points, and bars separate paths.
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
