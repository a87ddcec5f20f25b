package exchange

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Gemini CLI's sessions are ~/.gemini/tmp/<project>/chats/session-<date>-<id>.json, one object. Since about 0.39 they are JSON Lines: a header, messages (a
// later one of the same id replaces the earlier), {"$set": …} for fields and for the whole list, {"$rewindTo": id}. Messages that were removed there stay here,
// as a side branch. Sub-agents' sessions are in a folder that is named after the session which called them.

const (
	geminiName     = "gemini"
	geminiProvider = "gemini"
)

func detectGemini(h *head) bool {
	v := h.first()
	return !h.array && (v.has("sessionId") && v.has("projectHash") || v.get("history").first().get("parts").is(arrayKind) && v.has("lastUpdated") || geminiBody(v) || h.lined && h.any(geminiLine))
}

// geminiLine reports whether a value is an answer or a change of a session's lines: they show whose they are where the first line, which is about the session, is lost.
func geminiLine(v value) bool {
	return v.get("type").str() == "gemini" && v.has("id") && v.has("timestamp") || v.get("$set").has("lastUpdated") || v.has("$rewindTo")
}

// geminiBody reports whether a value is a request of the API.
func geminiBody(v value) bool { return v.get("contents").first().get("parts").is(arrayKind) }

func readGemini(r *reading) error {
	g := &gemini{r: r, shown: map[string]int{}, known: map[string]int{}, has: map[string]bool{}}
	n := 0
	err := r.eachItem("", func(at place, v value) error {
		n++
		g.record(at, v)
		return nil
	})
	return r.atEnd(err, g.emit)
}

type gemini struct {
	r     *reading
	in    record.Incoming
	about objectWriter
	nodes []geminiNode
	live  []int           // the nodes that are shown
	shown map[string]int  // their ids, to their places in live
	known map[string]int  // ids, to the newest nodes that have them
	has   map[string]bool // names of fields that are in about
	loose []byte          // content of the records besides their messages
	n     int

	subAgent bool
}

// geminiNode is a message as it was shown at some time: below another node, or -1 for none.
type geminiNode struct {
	at     place
	id     string
	parent int
	msgs   []*chatctx.Message
}

func (g *gemini) record(at place, v value) {
	switch set := v.get("$set"); {
	case !v.is(objectKind):
		g.r.skip(1, at, "%s that is not a record is left out", v.kind())
	case set.is(objectKind):
		g.header(set)
		if list := set.get("messages"); list.is(arrayKind) {
			g.replace(at, list)
		}
	case v.has("$rewindTo"):
		g.rewind(at, v.get("$rewindTo").str())
	case geminiBody(v):
		g.in.System = textOf(contentParts(firstPresent(v.at("systemInstruction", "parts"), v.at("system_instruction", "parts"))))
		for m := range v.get("contents").items() {
			g.upsert(at, m)
		}
		for _, k := range []string{"tools", "generationConfig", "toolConfig"} {
			g.about.addIf(true, k, v.get(k))
		}
	case v.has("sessionId") || v.has("history"):
		g.header(v)
		for m := range v.get("messages").items() {
			g.upsert(at, m)
		}
		for m := range v.get("history").items() {
			g.upsert(at, m)
		}
	default:
		g.upsert(at, v)
	}
	if raw := g.r.sieve().rest(v); raw != nil {
		g.loose = append(append(g.loose, ','), raw...)
	}
}

// header reads the fields of the session, new or changed.
func (g *gemini) header(v value) {
	g.in.Conversation = firstOf(g.in.Conversation, v.get("sessionId").str())
	g.in.Title = firstOf(v.get("summary").str(), g.in.Title)
	g.subAgent = g.subAgent || v.get("kind").str() == "subagent"
	if t := firstPresent(v.get("startTime"), v.get("start_time")).time(); t != 0 && g.in.Created == 0 {
		g.in.Created = t
	}
	if t := v.get("lastUpdated").time(); t != 0 {
		g.in.Updated = t
	}
	for _, k := range []string{"projectHash", "kind", "directories", "meta"} {
		if x := v.get(k); x.kind() > nullKind && !g.has[k] { // a later one is kept as a record
			g.has[k] = true
			g.about.addIf(true, k, x)
		}
	}
}

// upsert adds a message, or replaces the shown message of its id.
func (g *gemini) upsert(at place, v value) {
	g.n++
	id := firstOf(v.get("id").str(), itoa(g.n))
	at = at.in("message " + show.Clip(id, 60))
	if !v.is(objectKind) {
		g.r.skip(1, at, "%s that is not a message is left out", v.kind())
		return
	}
	msgs := geminiMessage(v, id)
	g.r.whole(at, v, msgs...)
	if i, ok := g.shown[id]; ok {
		g.r.before(g.nodes[g.live[i]].msgs, msgs)
		g.nodes[g.live[i]].msgs = msgs
		g.r.duplicated()
		return
	}
	g.append(geminiNode{at: at, id: id, parent: g.last(), msgs: msgs})
}

func (g *gemini) last() int {
	if len(g.live) == 0 {
		return -1
	}
	return g.live[len(g.live)-1]
}

// append adds a message after the last one that is shown. A message that was removed and comes back at its place is the same again.
func (g *gemini) append(n geminiNode) {
	i, again := g.known[n.id]
	if again = again && g.nodes[i].parent == n.parent && sameMessage(g.nodes[i].msgs[0], n.msgs[0]); again {
		g.r.duplicated()
	} else {
		i = len(g.nodes)
		g.nodes = append(g.nodes, n)
	}
	g.known[n.id] = i
	g.shown[n.id] = len(g.live)
	g.live = append(g.live, i)
}

// cut removes the messages from a place on from those that are shown.
func (g *gemini) cut(from int) {
	for _, i := range g.live[from:] {
		delete(g.shown, g.nodes[i].id)
	}
	g.live = g.live[:from]
}

// replace sets the list of messages that are shown. At its beginning, as long as the ids are the same, they are later states of the messages there.
func (g *gemini) replace(at place, list value) {
	same := 0
	for v := range list.items() {
		if id := v.get("id").str(); same == len(g.live) || id == "" || g.nodes[g.live[same]].id != id {
			break
		}
		same++
	}
	g.cut(same)
	for v := range list.items() {
		g.upsert(at, v)
	}
}

func (g *gemini) rewind(at place, id string) {
	i, ok := g.shown[id]
	if !ok {
		g.r.warn(at, "the conversation goes back to the message %q, which is not in the file; what follows begins a path of its own", show.Clip(id, 60))
	}
	g.cut(i)
}

func (g *gemini) emit() error {
	t := g.r.thread(place{})
	names := make([]string, len(g.nodes))
	for i := range g.nodes {
		n := &g.nodes[i]
		names[i] = n.id
		for k := 2; ; k++ {
			if _, taken := t.seen[names[i]]; !taken {
				break
			}
			names[i] = n.id + "~" + itoa(k)
		}
		parent := ""
		if n.parent >= 0 {
			parent = names[n.parent]
		}
		t.add(n.at, names[i], parent, n.msgs...)
	}
	active := ""
	if i := g.last(); i >= 0 {
		active = names[i]
	}
	in := &g.in
	in.AppData = appData(geminiName, g.about.done())
	if g.subAgent {
		if parent := g.r.folderName(); parent != "chats" && parent != in.Conversation && parent != "" {
			in.Parent = &record.SourceLink{Format: geminiName, Conversation: parent}
		}
	}
	t.loose = g.loose
	return t.handOn(in, value{}, active)
}

// geminiMessage reads one message, with a result after each call that has one.
func geminiMessage(v value, id string) []*chatctx.Message {
	m := &chatctx.Message{Created: firstPresent(v.get("timestamp"), v.get("ts")).time()}
	switch typ := firstOf(v.get("type").str(), v.get("role").str()); typ {
	case "gemini", "model", "assistant":
		m.Role = pool.Assistant
		m.Meta.Provider, m.Meta.Model = geminiProvider, v.get("model").str()
		tokens(m, v.get("tokens"), []string{"input"}, []string{"output"}, []string{"cached"}, []string{"thoughts"})
	case "user":
		m.Role = pool.User
	default:
		m.Role, m.Kind, m.Unsent = pool.User, notice, true
		if typ == "error" {
			m.Kind = failure
		}
		source(m).Role = typ
	}
	for th := range v.get("thoughts").items() {
		text := th.get("description").str()
		if s := th.get("subject").str(); s != "" {
			text = s + "\n" + text
		}
		m.Content = append(m.Content, pool.Part{Type: pool.ThinkingPart, Text: text, Provider: geminiProvider, Model: m.Meta.Model, Raw: th.keep()})
	}
	msgs := geminiParts(m, firstPresent(v.get("content"), v.get("parts")), id)
	if m.Role == pool.User && startsWith(m.Text(), []string{"<session_context>"}) {
		m.Kind, m.Hidden = injected, true
	}
	return append(msgs, geminiCalls(msgs[len(msgs)-1], v.get("toolCalls"), id)...)
}

// geminiParts reads content: a text, or parts in the form of the API.
func geminiParts(m *chatctx.Message, v value, id string) []*chatctx.Message {
	if !v.is(arrayKind) {
		if !v.is(stringKind) || v.str() != "" {
			m.Content = append(m.Content, contentParts(v)...)
		}
		return []*chatctx.Message{m}
	}
	msgs := []*chatctx.Message{m}
	for p := range v.items() {
		call, res := p.get("functionCall"), p.get("functionResponse")
		switch {
		case res.is(objectKind):
			msgs = append(msgs, geminiResponse(res, res.get("id").str(), m.Created))
		case call.is(objectKind) && m.Role == pool.Assistant:
			c, _ := newCall(call.get("id").str(), call.get("name").str(), call.get("args"))
			c.Provider, c.Model, c.Raw = firstOf(m.Meta.Provider, geminiProvider), m.Meta.Model, rawBeyond(p, keys("functionCall"))
			addCall(m, c, id)
		default:
			m.Content = append(m.Content, geminiPart(m, p))
		}
	}
	if len(m.Content) == 0 && len(msgs) > 1 { // nothing but results
		return msgs[1:]
	}
	return msgs
}

func geminiPart(m *chatctx.Message, p value) pool.Part {
	data := firstPresent(p.get("inlineData"), p.get("inlineFile"), p.get("inlineImage"))
	switch {
	case p.is(stringKind):
		return textPart(p.str())
	case p.get("text").is(stringKind):
		part := textPart(p.get("text").str())
		if p.get("thought").bool() {
			part.Type = pool.ThinkingPart
		}
		if sig := p.get("thoughtSignature").str(); sig != "" || part.Type == pool.ThinkingPart {
			part.Signature, part.Provider, part.Model, part.Raw = sig, firstOf(m.Meta.Provider, geminiProvider), m.Meta.Model, p.keep()
		}
		return part
	case data.is(objectKind):
		if b := base64Bytes(data.get("data").str()); len(b) > 0 {
			return dataPart(pool.DocumentPart, firstOf(data.get("mimeType").str(), data.get("mime_type").str()), data.get("displayName").str(), b)
		}
	case p.at("fileData", "fileUri").str() != "":
		return mediaKind(pool.Part{Type: pool.DocumentPart, URL: p.at("fileData", "fileUri").str(), MediaType: p.at("fileData", "mimeType").str()})
	}
	part := unknownPart(p)
	if part.Type == "unknown" {
		for k := range p.members() {
			part.Type = firstOf(k, part.Type)
			break
		}
	}
	part.Provider = firstOf(m.Meta.Provider, geminiProvider)
	return part
}

func geminiResponse(res value, call string, created pool.Time) *chatctx.Message {
	m := toolOutput(call, res.get("name").str(), res.get("response"))
	m.Created = created
	return m
}

// geminiCalls adds the calls of a reply, and returns their results.
func geminiCalls(m *chatctx.Message, list value, id string) []*chatctx.Message {
	var results []*chatctx.Message
	for tc := range list.items() {
		if m.Role != pool.Assistant || !tc.is(objectKind) {
			continue
		}
		c, _ := newCall(tc.get("id").str(), tc.get("name").str(), tc.get("args"))
		addCall(m, c, id)
		call := m.Calls[len(m.Calls)-1]
		res := tc.get("result")
		response := res.first().get("functionResponse")
		var answer *chatctx.Message
		switch {
		case response.is(objectKind) && res.len() == 1:
			answer = geminiResponse(response, call.ID, 0)
		case res.kind() > nullKind:
			answer = toolOutput(call.ID, call.Tool, res)
		default:
			continue
		}
		answer.Created = tc.get("timestamp").time()
		answer.Result.IsError = tc.get("status").str() == "error"
		keepRest(answer, geminiName, tc, keys("id", "name", "args", "result", "status", "timestamp"))
		results = append(results, answer)
	}
	return results
}
