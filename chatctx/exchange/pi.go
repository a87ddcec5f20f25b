package exchange

import (
	"cmp"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/pool"
)

// pi's sessions are JSON Lines: a header and entries that name their parents. In the first version entries have no ids and follow each other. The last entry is
// the current one.

const piName = "pi-mono"

func detectPi(h *head) bool {
	v := h.first()
	return v.get("type").str() == "session" && v.has("cwd") && !v.has("harness") || h.lined && v.get("type").str() != "session" && h.any(piMessage)
}

// piMessage reports whether a value is a message of a session whose first line is lost.
func piMessage(v value) bool {
	m := v.get("message")
	return v.get("type").str() == "message" && v.has("timestamp") && m.has("role") && m.get("content").is(arrayKind) && !m.has("convId") && !v.has("uuid") && !v.has("sessionId")
}

func readPi(r *reading) error {
	p := &pi{r: r, t: r.thread(place{}), labels: objectWriter{}}
	return r.atEnd(r.eachLine(p.entry), p.emit)
}

type pi struct {
	r         *reading
	t         *thread
	in        record.Incoming
	n         int // number of entries after the header
	last      string
	model     string
	provider  string
	about     objectWriter
	labels    objectWriter
	tags      map[string]string // by the ids of the entries
	compacted []piCompaction
	entries   []string // ids in order: the first version names entries by index
}

// piCompaction is a point after which the model saw a summary and the entries from kept on.
type piCompaction struct {
	at, kept string // the entry of the compaction, and the first one that was kept
	summary  *chatctx.Message
}

func (p *pi) entry(at place, v value) error {
	typ := v.get("type").str()
	if typ == "session" && p.n == 0 && p.in.Conversation == "" {
		p.header(v)
		return nil
	}
	p.n++
	id := v.get("id").str()
	parent := v.get("parentId").str()
	if id == "" {
		id, parent = "line "+itoa(at.line), p.last
	} else if !v.has("parentId") {
		parent = p.last
	}
	p.entries = append(p.entries, id)
	created := v.get("timestamp").time()
	p.in.Updated = cmp.Or(created, p.in.Updated)
	switch typ {
	case "message":
		p.message(at, id, parent, v, created)
	case "custom_message":
		m := &chatctx.Message{Role: pool.User, Kind: injected, Created: created, Content: contentParts(v.get("content"))}
		m.Hidden = v.get("display").is(boolKind) && !v.get("display").bool()
		p.t.take(at, id, parent, v, m)
	case "branch_summary":
		m := pool.NewText(pool.User, v.get("summary").str())
		m.Kind, m.Created = branchSummary, created
		p.t.take(at, id, parent, v, m)
	default:
		p.other(id, v, created)
		p.t.link(at, id, parent, v)
	}
	p.last = id
	return nil
}

func (p *pi) header(v value) {
	p.in.Conversation, p.in.Created = v.get("id").str(), v.get("timestamp").time()
	p.provider, p.model = v.get("provider").str(), v.get("modelId").str()
	p.in.Labels = labelsOf(v)
	for k, x := range v.members() {
		structural := k == "type" || k == "id" || k == "timestamp"
		p.about.addIf(!structural || x.kind() >= arrayKind, k, x)
	}
}

// other reads entries that are not messages.
func (p *pi) other(id string, v value, created pool.Time) {
	switch v.get("type").str() {
	case "model_change":
		p.provider, p.model = v.get("provider").str(), firstOf(v.get("modelId").str(), v.get("model").str())
	case "session_info":
		p.in.Title = firstOf(v.get("name").str(), p.in.Title)
		if v.get("name").is(stringKind) {
			v.get("name").taken()
		}
	case "label":
		if p.tags == nil {
			p.tags = map[string]string{}
		}
		p.tags[v.get("targetId").str()] = v.get("label").str()
		p.labels.addIf(true, v.get("targetId").str(), v.get("label"))
	case "compaction":
		if v.get("summary").is(stringKind) {
			v.get("summary").taken()
		}
		m := pool.NewText(pool.User, v.get("summary").str())
		m.ID, m.Kind, m.Created = pool.NewID(), summary, created
		kept := v.get("firstKeptEntryId").str()
		if n, ok := v.get("firstKeptEntryIndex").int(); ok && kept == "" && n >= 1 && n <= int64(len(p.entries)) {
			kept = p.entries[n-1] // counted from 0, where the header is the first
		}
		p.compacted = append(p.compacted, piCompaction{at: id, kept: kept, summary: m})
	}
}

func (p *pi) message(at place, id, parent string, entry value, created pool.Time) {
	v := entry.get("message")
	role := v.get("role").str()
	if !v.is(objectKind) || role == "" {
		p.t.skip(at, id, parent, "the entry has no message with a role and is left out")
		return
	}
	if t := v.get("timestamp").time(); created == 0 {
		created = t
	}
	m := &chatctx.Message{Created: created}
	switch role {
	case "toolResult":
		p.result(m, v)
	case "bashExecution":
		m.Role, m.Kind = pool.User, notice
		source(m).Role = role
		m.Content = []pool.Part{textPart("$ " + v.get("command").str() + "\n" + v.get("output").str())}
	case "branchSummary", "compactionSummary":
		m.Role, m.Kind = pool.User, branchSummary
		m.Content = contentParts(firstPresent(v.get("summary"), v.get("content")))
		source(m).Role = role
	case "custom", "hookMessage":
		m.Role, m.Kind, m.Content = pool.User, injected, contentParts(v.get("content"))
		source(m).Role = role
	default:
		roleOf(m, role)
		p.content(m, v, id)
	}
	p.t.take(at, id, parent, entry, m)
}

func (p *pi) content(m *chatctx.Message, v value, id string) {
	if m.Role == pool.Assistant {
		m.Meta.Provider, m.Meta.Model = firstOf(v.get("provider").str(), p.provider), firstOf(v.get("model").str(), p.model)
		m.Meta.FinishReason, m.Meta.Error = v.get("stopReason").str(), v.get("errorMessage").str()
		m.Unfinished = m.Meta.FinishReason == "aborted"
		piUsage(m, v.get("usage"))
	}
	if !v.get("content").is(arrayKind) {
		m.Content = contentParts(v.get("content"))
		return
	}
	for b := range v.get("content").items() {
		switch typ := b.get("type").str(); {
		case typ == "thinking":
			m.Content = append(m.Content, pool.Part{Type: pool.ThinkingPart, Text: b.get("thinking").str(), Provider: m.Meta.Provider, Model: m.Meta.Model,
				Signature: firstOf(b.get("thinkingSignature").str(), b.get("signature").str()), Raw: rawBeyond(b, keys("type", "thinking"))})
		case typ == "toolCall" && m.Role == pool.Assistant:
			c, _ := newCall(b.get("id").str(), b.get("name").str(), b.get("arguments"))
			c.Provider, c.Model, c.Raw = m.Meta.Provider, m.Meta.Model, rawBeyond(b, keys("type", "id", "name", "arguments"))
			addCall(m, c, id)
		default:
			m.Content = append(m.Content, contentPart(b))
		}
	}
}

// piUsage reads figures. pi's input lacks the tokens from the cache, which are added.
func piUsage(m *chatctx.Message, u value) {
	if !u.is(objectKind) {
		return
	}
	m.Meta.InputTokens, m.Meta.OutputTokens = u.get("input").count(), u.get("output").count()
	m.Meta.CacheRead, m.Meta.CacheWrite = u.get("cacheRead").count(), u.get("cacheWrite").count()
	for _, more := range []*int64{m.Meta.CacheRead, m.Meta.CacheWrite} {
		if m.Meta.InputTokens != nil && more != nil {
			*m.Meta.InputTokens += *more
		}
	}
	m.Meta.Usage = u.keep()
}

func (p *pi) result(m *chatctx.Message, v value) {
	r := toolResult(v.get("toolCallId").str(), v.get("toolName").str(), contentParts(v.get("content")))
	m.Role, m.Result = pool.ToolRole, r.Result
	m.Result.IsError = v.get("isError").bool()
}

func (p *pi) emit() error {
	in := &p.in
	p.about.addRaw("labels", p.labels.done())
	in.AppData = appData(piName, p.about.done())
	if in.Conversation == "" {
		in.Conversation = p.r.treeID(nil, p.t.records)
	}
	p.t.build(in, p.last)
	p.sessions(in)
	p.tag(in)
	return p.r.emit(in)
}

// tag makes tags of the labels that entries have at the end.
func (p *pi) tag(in *record.Incoming) {
	for i, n := range in.Nodes {
		if label := p.tags[n.ID]; label != "" {
			if in.Tags == nil {
				in.Tags = map[string]int{}
			}
			in.Tags[branchstore.PlainName(label)] = i + 1
		}
	}
}

// sessions begins a session at the first entry that a compaction kept, on the branches that go through the compaction.
func (p *pi) sessions(in *record.Incoming) {
	if len(p.compacted) == 0 {
		return
	}
	for i := range in.Branches {
		b := &in.Branches[i]
		end := p.last
		if i > 0 {
			end = in.Nodes[b.Leaf-1].ID
		}
		starts := p.starts(end)
		for _, c := range p.compacted {
			start, ok := starts[c.at]
			if !ok {
				continue
			}
			if kept, ok := starts[c.kept]; ok {
				start = kept
			}
			if n := len(b.Sessions); n > 0 {
				start = max(start, b.Sessions[n-1].Start)
			}
			addSession(b, start, c.summary)
		}
	}
	for _, c := range p.compacted {
		p.r.summary(in, c.summary)
	}
}

// starts returns, for each entry on the path to end, the position of the first message at or after it.
func (p *pi) starts(end string) map[string]int {
	var path []*sourceNode
	for i, ok := p.t.seen[end]; ok && len(path) < len(p.t.records); i, ok = p.t.seen[p.t.records[i].parent] {
		path = append(path, &p.t.records[i])
	}
	starts := make(map[string]int, len(path))
	at := 1
	for _, rec := range slices.Backward(path) {
		starts[rec.id] = at
		if rec.message != nil {
			at++
		}
	}
	return starts
}
