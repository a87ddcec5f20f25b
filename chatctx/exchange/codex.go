package exchange

import (
	"bytes"
	"cmp"
	"path"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// Codex's rollouts are files of JSON Lines, ~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl, compressed or not. The conversation is the response items,
// in order. Events repeat some of it, and report titles, figures and turns that were rolled back. Items have no ids and no parents: an item's id is made from
// its contents and those before it, so that a fork, which repeats its parent's items, has its parent's ids there.

const codexName = "codex"

// codexProvider is the provider of the native items.
const codexProvider = "openai-responses"

func detectCodex(h *head) bool {
	if h.array {
		return false
	}
	return h.any(func(v value) bool {
		switch v.get("type").str() {
		case "session_meta", "response_item", "event_msg", "turn_context":
			return v.has("payload")
		}
		return v.get("record_type").str() == "state"
	}) || codexHeader(h.first())
}

// codexHeader reports whether a line is the first one of a file from the time before lines had types.
func codexHeader(v value) bool {
	return v.has("id") && v.has("timestamp") && v.has("instructions") && !v.has("type")
}

// detectBareCodex detects the oldest files: lines of messages with a time, without a header. They have no system messages: files of other programs with such lines do.
func detectBareCodex(h *head) bool {
	v := h.first()
	return !h.array && !h.any(func(v value) bool { return v.get("role").str() == "system" }) && v.get("role").is(stringKind) && (v.get("content").is(stringKind) || v.get("message").is(stringKind)) && !v.has("id") &&
		(v.has("created") || v.has("created_at") || v.has("timestamp"))
}

func readCodex(r *reading) error {
	c := &codex{r: r, heard: r.sieve()}
	return r.atEnd(r.eachLine(c.line), c.emit)
}

type codex struct {
	r     *reading
	items []codexItem

	id, forkedFrom, parent, title string
	base                          string // the rollout that has the history before the first line, which this one does not repeat
	model                         string
	created                       pool.Time
	instructions                  string
	labels                        []string
	about                         objectWriter
	hasUser, hasAssistant         bool               // among the response items
	thinking                      []pool.Part        // reasoning that waits for the message that it led to
	thoughtAt                     place              // of the first of them
	thoughtTime                   pool.Time          // its time
	answer                        *chatctx.Message   // the message that gets further calls; nil after anything else
	lastAnswer                    *chatctx.Message   // the message that gets the figures
	summaries                     []*chatctx.Message // of compactions
	compactedAt                   map[int]int        // items, to the compaction before them: an index of summaries
	loose                         []byte             // content of the records before the first item
	heard                         *sieve             // content that was kept so far
	heardTo                       int                // the first item that heard lacks
	last                          map[string][]byte  // of each kind that is kept whole, the record before
	settled                       int                // the first item that may be put on the shelf
}

// codexItem is a message, or a step back.
type codexItem struct {
	at    place
	m     *chatctx.Message
	event bool      // from an event: counts only if no response item has the same
	loose []byte    // content of the records after it that are not items
	words pool.Hash // of its beginning, once it is on the shelf
	back  int       // number of turns that are left
}

func (c *codex) line(at place, v value) error {
	payload := v.get("payload")
	created := cmp.Or(v.get("timestamp").time(), payload.get("timestamp").time(), v.get("created").time(), v.get("created_at").time())
	switch v.get("type").str() {
	case "session_meta":
		c.meta(payload)
	case "turn_context":
		c.model = firstOf(payload.get("model").str(), c.model)
	case "response_item":
		c.item(at, payload, created)
	case "event_msg":
		c.event(at, payload, created)
	case "compacted":
		c.compacted(payload, created)
	case "codex/event/raw_item":
		c.item(at, firstValue(payload.get("item"), payload), created)
	case "":
		switch {
		case codexHeader(v):
			c.meta(v)
		case v.has("record_type"):
		case v.has("role"):
			c.item(at, v, created)
		default:
			c.r.skip(1, at, "the line is no record and is left out; its keys: %s", keyList(v))
		}
	case "world_state", "inter_agent_communication", "inter_agent_communication_metadata", "error", "turn.completed":
	default:
		if !payload.is(objectKind) {
			c.item(at, v, created)
		}
	}
	c.beside(v)
	c.settle()
	return nil
}

// beside keeps the content of a record that is not an item, as far as it is new, with the item before it.
func (c *codex) beside(v value) {
	for ; c.heardTo < len(c.items); c.heardTo++ {
		if it := &c.items[c.heardTo]; it.m != nil && !it.event {
			c.heard.message(it.m)
		}
	}
	if c.answer != nil {
		c.heard.message(c.answer)
	}
	c.heard.parts(c.thinking)
	c.heard.text(c.instructions, c.id)
	for _, m := range c.summaries {
		c.heard.message(m)
	}
	if raw := c.heard.news(v); raw != nil {
		c.keep(raw)
	}
}

// keep keeps the content of a record with the item before it.
func (c *codex) keep(raw []byte) {
	into := &c.loose
	for i := len(c.items) - 1; i >= 0; i-- {
		if c.items[i].m != nil && !c.items[i].event {
			into = &c.items[i].loose
			break
		}
	}
	*into = append(append(*into, ','), raw...)
}

// settle puts the items on the shelf that nothing more is added to.
func (c *codex) settle() {
	for ; c.settled < c.heardTo; c.settled++ {
		it := &c.items[c.settled]
		if it.m == nil {
			continue
		}
		if it.m == c.answer || it.m == c.lastAnswer {
			break
		}
		it.words = beginning(it.m)
		c.r.shelf.put(it.m)
	}
}

// firstValue returns the first of the values that is an object.
func firstValue(list ...value) value {
	for _, v := range list {
		if v.is(objectKind) {
			return v
		}
	}
	return value{}
}

// meta reads a header. The first one is the file's own; others belong to what a fork repeats.
func (c *codex) meta(v value) {
	if c.id != "" {
		return
	}
	c.id = v.get("id").str()
	c.created, c.labels = v.get("timestamp").time(), labelsOf(v)
	c.forkedFrom = v.get("forked_from_id").str()
	c.base = v.at("history_base", "thread_id").str()
	c.parent = firstOf(v.at("source", "subagent", "thread_spawn", "parent_thread_id").str(), v.get("parent_thread_id").str())
	c.instructions = firstOf(v.at("base_instructions", "text").str(), v.get("base_instructions").str(), v.get("instructions").str())
	for _, k := range []string{"cwd", "originator", "cli_version", "source", "model_provider", "git", "forked_from_id", "parent_thread_id", "session_id"} {
		c.about.addIf(true, k, v.get(k))
	}
}

func (c *codex) put(at place, m *chatctx.Message) {
	c.items = append(c.items, codexItem{at: at, m: m})
}

// item reads a response item.
func (c *codex) item(at place, v value, created pool.Time) {
	switch typ := v.get("type").str(); typ {
	case "message", "":
		c.message(at, v, created)
	case "reasoning":
		c.reasoning(at, v, created)
	case "function_call", "custom_tool_call", "local_shell_call", "tool_search_call", "tool_call":
		c.call(at, v, created)
	case "function_call_output", "custom_tool_call_output", "tool_search_output", "tool_result", "function_result", "local_shell_call_output":
		c.output(at, v, created)
	case "agent_message":
		m := &chatctx.Message{Role: pool.User, Created: created, Kind: "agent", Content: contentParts(v.get("content"))}
		source(m).Role = "agent"
		c.flush()
		c.put(at, m)
	case "additional_tools", "configuration_update":
		c.setting(typ, v)
	case "compaction", "context_compaction", "compaction_trigger", "ghost_snapshot", "token_count":
		c.r.structural(1)
	default:
		c.native(at, v, created)
	}
}

// setting keeps an item that says with what the model works from there on: it is no message. All of it counts, also words that were heard, but not the same again.
func (c *codex) setting(typ string, v value) {
	c.r.structural(1)
	c.heard.hear(v)
	raw := v.keep()
	if bytes.Equal(raw, c.last[typ]) {
		return
	}
	if c.last == nil {
		c.last = map[string][]byte{}
	}
	c.last[typ] = raw
	c.keep(raw)
}

// codexInjected are the beginnings of texts that the program inserts as a user's. The list grows with its versions.
var codexInjected = []string{"<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>", "<skill>", "<user_shell_command>",
	"<subagent_notification>", "<permissions instructions>", "<INSTRUCTIONS>"}

func (c *codex) message(at place, v value, created pool.Time) {
	role := v.get("role").str()
	if role == "" {
		c.r.skip(1, at, "the message has no role and is left out")
		return
	}
	m := &chatctx.Message{Created: created, Content: contentParts(firstPresent(v.get("content"), v.get("message")))}
	roleOf(m, role)
	switch m.Role {
	case pool.Assistant:
		c.hasAssistant = true
		m = c.reply(at, m, firstOf(v.get("model").str(), c.model))
	case pool.User:
		if startsWith(m.Text(), codexInjected) {
			m.Kind, m.Hidden = injected, true
		} else {
			c.hasUser = true
		}
		c.flush()
		c.put(at, m)
	default:
		m.Kind, m.Hidden = injected, true
		c.flush()
		c.put(at, m)
	}
	c.r.whole(at, v, m)
}

// firstPresent returns the first of the values that exists and is not null.
func firstPresent(list ...value) value {
	for _, v := range list {
		if v.kind() > nullKind {
			return v
		}
	}
	return value{}
}

// reply begins a message of the model, with the reasoning that led to it.
func (c *codex) reply(at place, m *chatctx.Message, model string) *chatctx.Message {
	m.Role, m.Meta.Provider, m.Meta.Model = pool.Assistant, codexProvider, model
	if n := len(c.thinking); n > 0 {
		m.Content = append(c.thinking, m.Content...)
		c.thinking = nil
		c.r.structural(n)
	}
	c.put(at, m)
	c.answer, c.lastAnswer = m, m
	return m
}

// flush makes a message from reasoning that led to nothing.
func (c *codex) flush() {
	c.answer = nil
	if n := len(c.thinking); n > 0 {
		c.r.structural(-1) // the first is the message
		c.reply(c.thoughtAt, &chatctx.Message{Created: c.thoughtTime}, c.model)
		c.answer = nil
	}
}

func (c *codex) reasoning(at place, v value, created pool.Time) {
	p := pool.Part{Type: pool.ThinkingPart, Text: reasoningText(v), Signature: v.get("encrypted_content").str(),
		Provider: codexProvider, Model: c.model}
	if p.Text == "" && p.Signature == "" {
		c.r.structural(1)
		return
	}
	p.Raw = v.keep()
	if len(c.thinking) == 0 {
		c.thoughtAt, c.thoughtTime = at, created
	}
	c.answer = nil
	c.thinking = append(c.thinking, p)
}

// call reads a call of any kind. Consecutive calls, also after a text, belong to one reply.
func (c *codex) call(at place, v value, created pool.Time) {
	id := firstOf(v.get("call_id").str(), v.get("id").str())
	args := firstPresent(v.get("arguments"), v.get("action"), v.get("input"))
	call, bad := newCall(id, firstOf(v.get("name").str(), v.at("function", "name").str(), strings.TrimSuffix(v.get("type").str(), "_call")), args)
	if v.get("type").str() == "custom_tool_call" {
		call.Arguments = object("input", v.get("input").str())
	} else if bad {
		c.r.warn(at, "the arguments of a call of %s are not JSON; they are kept as text", show.Clip(call.Tool, 60))
	}
	call.Provider, call.Model, call.Raw = codexProvider, c.model, v.keep()
	c.heard.repeatedArguments(c.r, at, []pool.Call{call}, v)
	m := c.current(at, created)
	addCall(m, call, "line"+itoa(at.line))
}

// current returns the message of the model's answer, and begins one if there is none, or if thinking has come since.
func (c *codex) current(at place, created pool.Time) *chatctx.Message {
	if c.answer == nil || len(c.thinking) > 0 {
		return c.reply(at, &chatctx.Message{Created: created}, c.model)
	}
	c.r.structural(1)
	return c.answer
}

func (c *codex) output(at place, v value, created pool.Time) {
	c.flush()
	id := firstOf(v.get("call_id").str(), v.get("id").str())
	tool := firstOf(v.get("name").str(), v.at("function", "name").str())
	out := firstPresent(v.get("output"), v.get("result"), v.get("tools"))
	var m *chatctx.Message
	switch body := firstPresent(out.get("content"), out.get("output")); {
	case out.is(arrayKind) && !v.has("tools"):
		m = toolResult(id, tool, contentParts(out))
	case out.is(objectKind) && out.get("type").is(stringKind):
		m = toolResult(id, tool, contentParts(out))
	case out.is(objectKind) && body.kind() > nullKind:
		m = toolResult(id, tool, contentParts(body))
		code, ok := out.at("metadata", "exit_code").int()
		m.Result.IsError = ok && code != 0 || out.get("success").is(boolKind) && !out.get("success").bool()
		keepRest(m, codexName, out, keys("content", "output", "success"))
	default:
		m = toolOutput(id, tool, out)
	}
	m.Created = created
	c.r.whole(at, v, m)
	c.put(at, m)
}

// native keeps an item that only its provider understands, in the model's message.
func (c *codex) native(at place, v value, created pool.Time) {
	p := unknownPart(v)
	if v.get("type").str() == "image_generation_call" {
		if b := base64Bytes(v.get("result").str()); len(b) > 0 {
			p = filePart("", b)
		}
	}
	p.Provider, p.Model = codexProvider, c.model
	m := c.current(at, created)
	m.Content = append(m.Content, p)
}

// event reads what only events contain. Their messages count if the file has no response items for them.
func (c *codex) event(at place, v value, created pool.Time) {
	switch v.get("type").str() {
	case "thread_name_updated":
		c.title = firstOf(v.get("thread_name").str(), c.title)
	case "thread_rolled_back":
		if n, ok := v.get("num_turns").int(); ok && n > 0 {
			c.flush()
			c.items = append(c.items, codexItem{at: at, back: int(min(n, 1<<30))})
		}
	case "turn_aborted":
		if c.answer != nil {
			c.answer.Unfinished = true
		}
	case "token_count":
		if last := v.at("info", "last_token_usage"); c.lastAnswer != nil {
			openaiUsage(c.lastAnswer, last)
			c.lastAnswer = nil
		}
	case "user_message":
		if !c.hasUser {
			c.items = append(c.items, codexItem{at: at, m: &chatctx.Message{Role: pool.User, Created: created,
				Content: contentParts(v.get("message"))}, event: true})
			v.get("message").taken()
		}
	case "agent_message":
		if !c.hasAssistant {
			c.items = append(c.items, codexItem{at: at, event: true, m: &chatctx.Message{Role: pool.Assistant, Created: created,
				Content: contentParts(v.get("message")), Meta: pool.Metadata{Model: c.model, Provider: codexProvider}}})
			v.get("message").taken()
		}
	}
}

// compacted notes a compaction, which begins a session: from there on the model saw this summary and what follows.
func (c *codex) compacted(v value, created pool.Time) {
	text := v.get("message").str()
	if text == "" {
		return
	}
	c.flush()
	m := pool.NewText(pool.User, text)
	m.ID, m.Kind, m.Created = pool.NewID(), summary, created
	if c.compactedAt == nil {
		c.compactedAt = map[int]int{}
	}
	c.compactedAt[len(c.items)] = len(c.summaries)
	c.summaries = append(c.summaries, m)
}

var rolloutID = compiled(`([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\.jsonl`)

func (c *codex) emit() error {
	c.flush()
	in := &record.Incoming{Title: c.title, Created: c.created, Labels: c.labels}
	if m := rolloutID().FindStringSubmatch(path.Base(c.r.file.path)); m != nil {
		c.id = m[1]
	}
	c.keepRepeated()
	c.about.addRaw("records", listOf(c.loose))
	for i := range c.items {
		if it := &c.items[i]; it.loose != nil {
			it.m.Meta.ProviderData = appendData(it.m.Meta.ProviderData, "codex records", listOf(it.loose))
		}
	}
	if b := c.about.done(); b != nil {
		in.AppData = appData(codexName, b)
	}
	if up := firstOf(c.parent, c.base); up != "" {
		in.Parent = &record.SourceLink{Format: codexName, Conversation: up}
	}
	if c.base != "" {
		c.r.warn(place{}, "the history before the first line is in the session %s; import that too, and this one is put below it", quoteClip(c.base, 60))
	}
	t := c.r.thread(place{})
	t.system(c.instructions)
	p := &codexPath{c: c, t: t}
	for i := range c.items {
		if it := &c.items[i]; !it.event || !c.repeated(it.m) {
			p.step(it)
		}
		if it := c.items[i]; it.m != nil {
			in.Updated = cmp.Or(it.m.Created, in.Updated)
		}
	}
	if len(t.records) == 0 {
		c.r.warn(place{}, "the session has no messages")
		return nil
	}
	if in.Conversation = c.id; in.Conversation == "" {
		in.Conversation = t.records[0].id
	}
	t.build(in, p.at)
	c.sessions(in)
	return c.r.emit(in)
}

// keepRepeated keeps the contents of events that are left out because there are response items, if none of these contains them.
func (c *codex) keepRepeated() {
	last := -1
	for i := range c.items {
		it := &c.items[i]
		if it.m != nil && !it.event {
			last = i
		}
		if it.event && c.repeated(it.m) && !c.heard.hasText(c.r.shelf.text(it.m)) {
			into := &c.loose
			if last >= 0 {
				into = &c.items[last].loose
			}
			*into = append(append(*into, ','), object("message", c.r.shelf.text(it.m))...)
		}
	}
}

// repeated reports whether the response items contain the messages of the event's role.
func (c *codex) repeated(m *chatctx.Message) bool {
	return m.Role == pool.User && c.hasUser || m.Role == pool.Assistant && c.hasAssistant
}

// codexPath walks along the items and gives them ids.
type codexPath struct {
	c     *codex
	t     *thread
	at    string   // id of the last one
	turns []string // the beginnings of turns: the id above each prompt
}

func (p *codexPath) step(it *codexItem) {
	if it.back > 0 {
		n := max(len(p.turns)-it.back, 0)
		if n < len(p.turns) {
			p.at, p.turns = p.turns[n], p.turns[:n]
		}
		return
	}
	if typed(it.m) {
		p.turns = append(p.turns, p.at)
	}
	if it.words == (pool.Hash{}) {
		it.words = beginning(it.m)
	}
	above, from := p.at, len(p.t.records)
	if above == "" && from > 0 && p.t.records[0].further {
		above = p.t.records[0].id
	}
	before := poolstore.Words(pool.NewText(pool.User, p.at))
	id := digestOf(append(before[:], it.words[:]...))
	p.t.add(it.at, id, above, it.m)
	if len(p.t.records) == from {
		return
	}
	rec := &p.t.records[from]
	p.at = rec.id
	if p.c.base != "" {
		return // it repeats nothing
	}
	if p.c.forkedFrom != "" {
		rec.copyOf = record.NodeLink{Conversation: p.c.forkedFrom, Node: rec.id}
	} else if p.c.parent != "" {
		rec.copyOf = record.NodeLink{Conversation: p.c.parent, Node: rec.id}
	}
}

// beginning returns the words of a message with only its first part and call: more may have been added since it was copied.
func beginning(m *chatctx.Message) pool.Hash {
	first := *m
	first.Calls, first.Content = first.Calls[:min(len(first.Calls), 1)], first.Content[:min(len(first.Content), 1)]
	return poolstore.Words(&first)
}

// sessions begins a session at each compaction, on the branches that contain the message after it.
func (c *codex) sessions(in *record.Incoming) {
	if len(c.summaries) == 0 {
		return
	}
	starts := map[*chatctx.Message]*chatctx.Message{} // the first message after a compaction, to its summary
	for i := len(c.items) - 1; i >= 0; i-- {
		if n, ok := c.compactedAt[i]; ok && c.items[i].m != nil {
			starts[c.items[i].m] = c.summaries[n]
		}
	}
	for i := range in.Branches {
		b := &in.Branches[i]
		for at, n := range pathTo(in, b.Leaf) {
			if sum := starts[in.Nodes[n].Message]; sum != nil {
				addSession(b, at+1, sum)
			}
		}
	}
	if n, ok := c.compactedAt[len(c.items)]; ok { // the compaction was the last item
		addSession(&in.Branches[0], len(pathTo(in, in.Branches[0].Leaf))+1, c.summaries[n])
	}
	for _, m := range c.summaries {
		c.r.summary(in, m)
	}
}
