package exchange

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// Claude Code's sessions are files of JSON Lines, ~/.claude/projects/<folder>/<session>.jsonl, with the sub-agents of a session in
// <session>/subagents/agent-<id>.jsonl or in the session's own file; and {"loglines": […]} has the same records from the web, and the list that
// claude --output-format json --verbose prints. Records name their parents, which
// may be progress records and attachments. A reply is several lines, and its results are siblings of the message after them: both are folded here before
// branches are looked for.

const claudeCodeName = "claude-code"

func detectClaudeCode(h *head) bool {
	if h.first().get("loglines").is(arrayKind) {
		return true
	}
	return h.any(func(v value) bool {
		if h.array && !v.has("session_id") {
			return false
		}
		switch typ := v.get("type").str(); typ {
		case "user", "assistant":
			m := v.get("message")
			return m.is(objectKind) && m.has("role") && !m.has("convId")
		case "summary":
			return v.has("leafUuid")
		default:
			return v.has("uuid") && v.has("parentUuid") && v.has("sessionId")
		}
	})
}

func readClaudeCode(r *reading) error {
	c := newClaudeCode(r)
	var err error
	if r.head.array || r.head.first().get("loglines").is(arrayKind) {
		err = r.eachItem("loglines", c.record)
	} else {
		err = r.eachLine(c.record)
	}
	return r.atEnd(err, c.emit)
}

// ccLine is a record that has a place: a message, or a link between messages.
type ccLine struct {
	at      place
	id      string
	session int // index in sessions, -1 for none
	prev    int // the message written before it in the same chain, -1 for none
	parent  string
	logical string // of a compaction: the last message before it
	mark    ccMark // of a link
	copyOf  record.NodeLink
	reply   string // the API's id of the reply that this line is a part of
	agent   string
	hash    uint64
	msgs    []*chatctx.Message // nil for a link
	loose   []byte             // content of the records after it that are not messages
	kind    ccKind
	side    bool    // of a sub-agent
	stub    *ccStub // of a message without content

	up     int // the line above, -1 for a root
	fold   int // the line whose reply this one continues, otherwise itself
	above  int // the message above, past links; -1 for none
	newest int // of the first line that has an id: the last line that has it
	group  int
}

// ccStub is a message of which a line has nothing yet. A later line of its id may have it.
type ccStub struct {
	why string
	raw []byte
}

// ccMark says what a link is, where that matters for what stands below it.
type ccMark uint8

const (
	ccCompaction ccMark = iota + 1 // begins what follows a summary
	ccProgress                     // of a call or a sub-agent while it ran: no place from which a conversation goes on
)

// markOf returns the mark of a record that is no message. A hook's progress has none: a person may go back to it.
func markOf(v value) ccMark {
	switch {
	case v.get("subtype").str() == "compact_boundary":
		return ccCompaction
	case v.get("type").str() == "progress" && v.at("data", "type").str() != "hook_progress":
		return ccProgress
	}
	return 0
}

type ccKind uint8

const (
	ccLink ccKind = iota
	ccMessage
	ccReply
	ccResult // a user's line that contains results
)

type claudeCode struct {
	r     *reading
	lines []ccLine
	ids   map[string]int // ids, to their first lines
	same  map[uint64]int // hashes of ccKeys, to lines
	seed  maphash.Seed

	sessions                []string // session ids on lines, in order of appearance
	current                 int      // index in sessions, -1 before the first
	title, aiTitle, summary string
	forkedFrom, follows     string
	cwd                     string
	leaves                  []string // of last-prompt records
	about                   objectWriter
	aboutSet                bool
	told                    []string        // texts about the session that each line repeats
	loose                   []byte          // content of the records before the first message
	heard                   *sieve          // content of the records that are not messages
	lastMessage             int             // the last message of the main chain, -1 for none
	lastSide                map[string]int  // the last message of each sub-agent, by its id
	asked                   map[string]bool // the sub-agents that have the id of the call that asked for them
	warnedIDs               bool
}

// ccKey identifies lines that are the same.
type ccKey struct {
	id, parent string
	hash       uint64
	kind       ccKind
}

func (l *ccLine) key() ccKey { return ccKey{l.id, l.parent, l.hash, l.kind} }

func newClaudeCode(r *reading) *claudeCode {
	return &claudeCode{r: r, ids: map[string]int{}, same: map[uint64]int{}, seed: maphash.MakeSeed(), current: -1, lastMessage: -1, lastSide: map[string]int{}, asked: map[string]bool{}}
}

// record reads one line.
func (c *claudeCode) record(at place, v value) error {
	typ := v.get("type").str()
	msg := v.get("message")
	c.session(v)
	switch typ {
	case "custom-title":
		c.title = firstOf(v.get("customTitle").str(), v.get("title").str(), c.title)
	case "ai-title":
		c.aiTitle = firstOf(v.get("aiTitle").str(), v.get("title").str(), c.aiTitle)
	case "last-prompt":
		c.leaves = append(c.leaves, v.get("leafUuid").str())
	case "user", "assistant":
		c.message(at, v, typ, msg)
		return nil
	case "summary":
		if !msg.is(objectKind) {
			c.summary = firstOf(v.get("summary").str(), c.summary)
		}
	case "":
		if !v.has("uuid") && !msg.is(objectKind) {
			c.r.skip(1, at, "the record has neither type nor message and is left out; its keys: %s", keyList(v))
			return nil
		}
	}
	switch {
	case msg.is(objectKind) && msg.has("role") && msg.has("content"):
		c.message(at, v, msg.get("role").str(), msg)
	case typ == "attachment" && v.at("attachment", "type").str() == "queued_command" && v.at("attachment", "commandMode").str() == "prompt":
		c.queued(at, v)
	case v.get("uuid").str() != "":
		n := len(c.lines)
		c.add(ccLine{at: at, id: v.get("uuid").str(), logical: v.get("logicalParentUuid").str(), mark: markOf(v), hash: maphash.Bytes(c.seed, v.raw())}, v)
		if len(c.lines) > n {
			c.beside(v)
		}
	default:
		c.beside(v)
	}
	return nil
}

// beside keeps the content of a record that is not a message, with the message written before it.
func (c *claudeCode) beside(v value) {
	if c.heard == nil {
		c.heard = c.r.sieve()
	}
	c.heard.text(c.told...)
	raw := c.heard.news(v)
	if raw == nil {
		return
	}
	into := &c.loose
	for i := len(c.lines) - 1; i >= 0; i-- {
		if c.lines[i].msgs != nil {
			into = &c.lines[i].loose
			break
		}
	}
	*into = append(append(*into, ','), raw...)
}

// session notes the fields that concern the session as a whole.
func (c *claudeCode) session(v value) {
	if id := firstOf(v.get("sessionId").str(), v.get("session_id").str()); id != "" && (c.current < 0 || id != c.sessions[c.current]) {
		if c.current = slices.Index(c.sessions, id); c.current < 0 {
			c.current = len(c.sessions)
			c.sessions = append(c.sessions, id)
		}
	}
	if !c.aboutSet && v.has("cwd") {
		c.aboutSet, c.cwd = true, v.get("cwd").str()
		for _, k := range []string{"cwd", "gitBranch", "version", "entrypoint"} {
			c.about.addIf(true, k, v.get(k))
			c.told = append(c.told, v.get(k).str())
		}
	}
	readFlags(v)
}

// readFlags marks the members of a line as read that say what kind of line it is.
func readFlags(v value) {
	for _, k := range []string{"isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage"} {
		v.get(k).bool()
	}
}

func (c *claudeCode) message(at place, v value, role string, msg value) {
	content, why := msg.get("content"), ""
	m := &chatctx.Message{Created: v.get("timestamp").time()}
	switch {
	case !msg.is(objectKind):
		why = "the message is " + msg.kind().String()
	case content.len() == 0 && content.str() == "" && !c.spread(at, m, msg) && content.kind() <= nullKind:
		why = "the message has no content"
	}
	line := ccLine{at: at, id: v.get("uuid").str(), hash: maphash.Bytes(c.seed, msg.raw()), kind: ccMessage}
	if why != "" {
		c.stub(line, why, v)
		return
	}
	roleOf(m, firstOf(msg.get("role").str(), role))
	if m.Role == pool.Assistant {
		c.answer(m, v, msg)
		line.kind, line.reply = ccReply, msg.get("id").str()
	}
	if f := v.get("forkedFrom"); f.is(objectKind) {
		line.copyOf = record.NodeLink{Conversation: f.get("sessionId").str(), Node: f.get("messageUuid").str()}
		c.forkedFrom = line.copyOf.Conversation
	}
	c.marks(m, v)
	if len(m.Content) > 0 {
		line.msgs = []*chatctx.Message{m}
	} else {
		line.msgs = blocks(m, content, line.id)
	}
	c.r.wholeBut(at, line.msgs, c.told, v)
	for _, one := range line.msgs {
		markText(one)
		if one.Result != nil {
			line.kind = ccResult
		}
	}
	c.add(line, v)
}

// stub keeps the place of a message that has no content, unless its line or a stub of it is known already: then it keeps what this one says.
func (c *claudeCode) stub(line ccLine, why string, v value) {
	if j := c.find(line.id); j >= 0 && (c.lines[j].kind != ccLink || c.lines[j].stub != nil) {
		c.beside(v)
		c.r.duplicated()
		return
	}
	line.kind, line.stub = ccLink, &ccStub{why: why, raw: bytes.Clone(v.raw())}
	c.add(line, v)
}

// fill puts a message in the place of its stub. What else the stub says is kept beside it.
func (c *claudeCode) fill(i int, line ccLine) {
	stub := c.lines[i].stub
	line.prev = c.lines[i].prev
	c.lines[i] = line
	c.r.duplicated()
	if v, _, err := new(document).parse(stub.raw, false); err == nil {
		readFlags(v)
		c.beside(v)
	}
}

// spread repairs a text that was written as an object of its characters: {"0": "h", "1": "i"}. It reports whether it found one.
func (c *claudeCode) spread(at place, m *chatctx.Message, msg value) bool {
	var b strings.Builder
	for i := 0; ; i++ {
		ch := msg.get(strconv.Itoa(i))
		if !ch.is(stringKind) {
			break
		}
		b.WriteString(ch.str())
	}
	if b.Len() == 0 {
		return false
	}
	m.Content = []pool.Part{textPart(b.String())}
	c.r.repaired(at, "the text was written character by character; it is put together")
	return true
}

// answer reads the fields that concern a reply.
func (c *claudeCode) answer(m *chatctx.Message, v, msg value) {
	m.Meta.Provider = anthropicProvider
	if model := msg.get("model").str(); model != "<synthetic>" {
		m.Meta.Model = model
	}
	m.Meta.FinishReason = oneOfFew(msg.get("stop_reason").str())
	anthropicUsage(m, msg.get("usage"))
	m.Unfinished = v.get("isAbortedMidStream").bool()
	if v.get("isApiErrorMessage").bool() {
		m.Kind, m.Unsent = failure, true
		m.Meta.Error = textOf(contentParts(msg.get("content")))
	}
}

// marks marks messages that nobody typed.
func (c *claudeCode) marks(m *chatctx.Message, v value) {
	switch {
	case v.get("isCompactSummary").bool():
		m.Kind = summary
	case v.get("type").str() == "summary":
		m.Kind = summary
	case v.get("isMeta").bool():
		m.Kind, m.Hidden = injected, true
	case v.get("isVisibleInTranscriptOnly").bool():
		m.Hidden, m.Unsent = true, true
	}
}

// ccInjected are the beginnings of texts that the program puts into a user's message. The list grows with its versions.
var ccInjected = []string{"<system-reminder>", "<local-command-caveat>", "Caveat: The messages below were generated by the user while running local commands",
	"<task-notification>", "<user-prompt-submit-hook>"}

// ccNotices are the beginnings of texts about commands that the person ran, without the model.
var ccNotices = []string{"<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-stderr>", "<bash-input>", "<bash-stdout>",
	"<bash-stderr>"}

// markText marks messages that nobody typed by the beginning of their text.
func markText(m *chatctx.Message) {
	if m.Role != pool.User || m.Kind != "" {
		return
	}
	switch text := m.Text(); {
	case strings.HasPrefix(text, "[Request interrupted by user"):
		m.Kind = interrupted
	case startsWith(text, ccInjected):
		m.Kind, m.Hidden = injected, true
	case startsWith(text, ccNotices):
		m.Kind = notice
	}
}

// queued reads a prompt that was typed during a reply.
func (c *claudeCode) queued(at place, v value) {
	m := &chatctx.Message{Role: pool.User, Created: v.get("timestamp").time()}
	msgs := blocks(m, v.at("attachment", "prompt"), v.get("uuid").str())
	c.r.wholeBut(at, msgs, c.told, v)
	c.add(ccLine{at: at, id: v.get("uuid").str(), hash: maphash.Bytes(c.seed, v.raw()), kind: ccMessage, msgs: msgs}, v)
}

// add adds a line under its id. It leaves out a repetition of the same line; it keeps another line of the same id beside the first.
func (c *claudeCode) add(line ccLine, v value) {
	line.side, line.agent = v.get("isSidechain").bool(), oneOfFew(v.get("agentId").str())
	if call := v.get("parent_tool_use_id").str(); call != "" { // as claude prints it, where agents have no names
		line.side, line.agent = true, oneOfFew(call)
		c.asked[line.agent] = true
	}
	parent := v.get("parentUuid")
	line.parent = parent.str()
	if line.id == "" {
		line.id = c.chainID(&line)
	}
	i := len(c.lines)
	stub := c.find(line.id)
	if stub >= 0 && c.lines[stub].stub != nil && line.kind != ccLink {
		i = stub
	}
	line.fold, line.newest, line.above, line.session, line.prev = i, i, -1, c.current, c.lastOf(&line)
	key := maphash.Comparable(c.seed, line.key())
	if j, again := c.same[key]; again && c.lines[j].key() == line.key() {
		if have := &c.lines[j]; have.copyOf == (record.NodeLink{}) {
			have.copyOf = line.copyOf
		}
		c.r.shelf.back(c.lines[j].msgs...)
		keepAgain(c.lines[j].msgs, line.msgs)
		c.r.shelf.put(c.lines[j].msgs...)
		c.r.duplicated()
		return
	}
	if c.writtenOn(&line) {
		c.r.duplicated()
		return
	}
	c.same[key] = i
	if !parent.is(stringKind) && !v.has("parentUuid") && line.kind != ccLink { // written by a program that does not keep parents
		if line.prev >= 0 {
			line.parent = c.lines[line.prev].id
		}
	}
	line.up = c.find(line.parent)
	if line.up >= 0 {
		line.parent = c.lines[line.up].id // one string for both
	} else if line.parent != "" {
		line.up = unlinked // it may come later
	}
	c.r.shelf.put(line.msgs...)
	if i < len(c.lines) {
		c.fill(i, line)
	} else {
		c.lines = append(c.lines, line)
	}
	if first, twice := c.ids[line.id]; twice {
		c.lines[first].newest = i
	} else {
		c.ids[line.id] = i
	}
	if line.kind != ccLink {
		c.setLast(&line, i)
	}
}

// writtenOn reports whether a line is an earlier one at another time. If so, the earlier one keeps the content of the later state.
func (c *claudeCode) writtenOn(line *ccLine) bool {
	j := c.find(line.id)
	if j < 0 || len(line.msgs) != 1 {
		return false
	}
	have := &c.lines[j]
	if have.kind != line.kind || have.parent != line.parent || len(have.msgs) != 1 {
		return false
	}
	c.r.shelf.back(have.msgs...)
	defer func() { c.r.shelf.put(have.msgs...) }()
	was, now := have.msgs[0], line.msgs[0]
	switch {
	case poolstore.Continues(was, now):
	case poolstore.Continues(now, was):
		have.msgs, line.msgs = line.msgs, have.msgs
	default:
		return false
	}
	keepAgain(have.msgs, line.msgs)
	return true
}

// find returns the last line of an id so far, -1 for none.
func (c *claudeCode) find(id string) int {
	if first, is := c.ids[id]; is && id != "" {
		return c.lines[first].newest
	}
	return -1
}

// lastOf returns the message written last in the chain that a line belongs to: the main one, or an agent's; -1 for none.
func (c *claudeCode) lastOf(line *ccLine) int {
	if !line.side {
		return c.lastMessage
	}
	if i, ok := c.lastSide[line.agent]; ok {
		return i
	}
	return -1
}

func (c *claudeCode) setLast(line *ccLine, i int) {
	if line.side {
		c.lastSide[line.agent] = max(c.lastSide[line.agent], i)
	} else {
		c.lastMessage = max(c.lastMessage, i)
	}
}

// chainID makes an id from the contents of a message and of those before it.
func (c *claudeCode) chainID(line *ccLine) string {
	before := ""
	if len(c.lines) > 0 {
		before = c.lines[len(c.lines)-1].id
	}
	return digest(append([]*chatctx.Message{pool.NewText(pool.User, before)}, line.msgs...))
}

// conversation returns the id of the session: the file's name if it is a UUID, otherwise the first id on its lines. The id of a sub-agent's file is made from
// the session's and the agent's.
func (c *claudeCode) conversation() string {
	base, _, _ := strings.Cut(path.Base(c.r.file.path), ".")
	first := slices.IndexFunc(c.lines, func(l ccLine) bool { return l.kind != ccLink })
	if c.ofAgent() {
		name := c.lines[first].id
		switch agent := c.lines[first].agent; {
		case agent != "":
			name = "agent-" + agent
		case strings.HasPrefix(base, "agent-"):
			name = base
		}
		return c.sessions[0] + "/" + name
	}
	if _, err := uuid.Parse(base); err == nil {
		return base
	}
	if len(c.sessions) > 0 {
		return c.sessions[0]
	}
	return c.lines[first].id
}

// ofAgent reports whether the file is a sub-agent's: all its messages are.
func (c *claudeCode) ofAgent() bool {
	return c.lastMessage < 0 && len(c.sessions) > 0
}

// appData returns where a session ran and what it is linked to.
func (c *claudeCode) appData() map[string]json.RawMessage {
	if len(c.sessions) > 1 {
		if b, err := json.Marshal(c.sessions); err == nil {
			c.about.addRaw("sessions", b)
		}
	}
	if c.forkedFrom != "" {
		c.about.addRaw("forked_from", jsonText(c.forkedFrom))
	}
	c.about.addRaw("records", listOf(c.loose))
	if b := c.about.done(); b != nil {
		return map[string]json.RawMessage{claudeCodeName: b}
	}
	return nil
}
