package exchange

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// ChatGPT's data export is conversations.json, one array, or conversations-000.json and so on, with the files of the messages beside them. A conversation is a
// map of nodes that name their parents. A tool call is an assistant message whose recipient is not all, and its result is the tool message below it.

const chatgptName = "chatgpt"

func detectChatGPT(h *head) bool {
	return h.any(func(v value) bool {
		if isChatGPT(v) || isChatGPT(v.get("raw_provider_payload")) {
			return true
		}
		for it := range v.get("conversations").items() {
			if isChatGPT(it) {
				return true
			}
		}
		return false
	})
}

func isChatGPT(v value) bool { return v.get("mapping").is(objectKind) }

// readChatGPT reads an array of conversations, a single one, or an object that contains the array or one conversation as a browser extension saved it.
func readChatGPT(r *reading) error {
	r.large = func(at place, s *splitter) error {
		c := chatgpt{r: r, at: at}
		return c.large(s)
	}
	return r.eachItem("conversations", func(at place, v value) error {
		c := chatgpt{r: r, at: at, outer: v}
		if p := v.get("raw_provider_payload"); isChatGPT(p) {
			v = p
		}
		return c.conversation(v)
	})
}

// chatgpt is one conversation being read.
type chatgpt struct {
	r     *reading
	at    place
	model string // the conversation's, for answers that name none
	outer value  // the conversation with the object that a browser extension saved around it
}

func (c *chatgpt) conversation(v value) error {
	mapping := v.get("mapping")
	switch {
	case !v.is(objectKind):
		c.r.skipContext(0, c.at, "%s where a conversation should be", v.kind())
		return nil
	case !v.has("mapping"):
		c.r.skipContext(0, c.at, "a conversation without mapping")
		return nil
	case !mapping.is(objectKind):
		c.r.skipContext(0, c.at, "the mapping is %s and no object", mapping.kind())
		return nil
	}
	id, before := firstOf(v.get("conversation_id").str(), v.get("id").str()), c.r.trouble()
	digest, seen, err := c.r.seenBefore(id, v)
	if err != nil {
		return err
	}
	if seen {
		c.count(mapping)
		return nil
	}
	in := c.head(v, id)
	nodes := newNodes(mapping.len())
	for key, node := range mapping.members() {
		c.add(nodes, key, node)
	}
	return c.finish(in, v, nodes, digest, before)
}

// finish passes a conversation on when its nodes are read.
func (c *chatgpt) finish(in *record.Incoming, v value, nodes *nodes, digest pool.Hash, before int) error {
	records := nodes.records
	if nodes.bad > 0 && nodes.bad == nodes.all {
		c.r.skipContext(0, c.at, "no node of the conversation could be read")
		return nil
	}
	if in.Conversation == "" {
		in.Conversation = c.r.treeID(v.get("create_time").raw(), records)
	}
	c.r.about(in, c.outer)
	c.r.tree(in, records, v.get("current_node").str(), c.at)
	pairResults(in)
	if c.r.trouble() == before {
		in.Digest = digest
	}
	return c.r.emit(in)
}

// head reads the conversation's own fields.
func (c *chatgpt) head(v value, id string) *record.Incoming {
	if v.get("title").broken() {
		c.r.warn(c.at, "half characters or bytes of the title that are not UTF-8 are replaced")
	}
	c.model = v.get("default_model_slug").str()
	in := &record.Incoming{
		Conversation: id,
		Title:        v.get("title").str(),
		Created:      v.get("create_time").time(),
		Updated:      v.get("update_time").time(),
	}
	return in
}

// count counts the nodes of a conversation that the store has already.
func (c *chatgpt) count(mapping value) {
	for _, node := range mapping.members() {
		if node.get("message").is(objectKind) {
			c.r.duplicated()
		} else {
			c.r.structural(1)
		}
	}
}

// treeID makes an id for a conversation without one, from values that a longer version of it has too.
func (r *reading) treeID(created []byte, records []sourceNode) string {
	h := sha256.New()
	h.Write(created)
	for i := range records {
		if records[i].parent == "" {
			h.Write([]byte(records[i].id))
		}
	}
	for i := range records {
		if m := records[i].message; m != nil && typed(m) {
			h.Write([]byte(r.shelf.text(m)))
			break
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)[:12])
}

// nodes holds the nodes of a conversation that were read so far.
type nodes struct {
	records  []sourceNode
	at       map[string]int
	all, bad int // the numbers of all nodes, and of those that could not be read
}

func newNodes(n int) *nodes { return &nodes{records: make([]sourceNode, 0, n), at: map[string]int{}} }

// add reads a node.
func (c *chatgpt) add(n *nodes, key string, node value) {
	rec, ok := c.node(key, node)
	n.all++
	if !ok {
		n.bad++
	}
	if i, twice := n.at[key]; twice {
		c.r.duplicated()
		n.records[i] = rec
		return
	}
	n.at[key] = len(n.records)
	n.records = append(n.records, rec)
}

// large reads a conversation that is too large for memory, one node after another. It reads the members beside the nodes after them.
func (c *chatgpt) large(s *splitter) error {
	before := c.r.trouble()
	var nodes *nodes
	beside, tooLarge := []byte{'{'}, false
	err := s.members(func(key []byte) error {
		if b, err := s.peek(); string(key) != `"mapping"` || b != '{' || err != nil {
			text, err := s.value()
			if err == errTooLarge {
				tooLarge = true
				return nil
			}
			beside = append(append(append(append(beside, key...), ':'), text...), ',')
			return err
		}
		nodes = newNodes(0)
		return s.members(func(key []byte) error { return c.largeNode(s, nodes, key) })
	})
	switch {
	case err == io.ErrUnexpectedEOF:
		c.r.skipContext(0, c.at, "the file ends in the middle of this item")
		return err
	case err != nil:
		return err
	case tooLarge:
		c.r.skipContext(0, c.at, "an item with a member of more than %d MB is left out", c.r.limits.Item>>20)
		return nil
	}
	beside = append(bytes.TrimSuffix(beside, []byte{','}), '}')
	v, _, err := new(document).parse(beside, false)
	if err != nil {
		c.r.skipContext(0, c.at, "%s of the item", notRead(err))
		return nil
	}
	c.r.repeatedKeys(c.at, v)
	c.outer = v
	if nodes == nil {
		return c.conversation(v)
	}
	in := c.head(v, firstOf(v.get("conversation_id").str(), v.get("id").str()))
	for i := range nodes.records { // the conversation's model, for answers that name none
		if m := nodes.records[i].message; m != nil && m.Role == pool.Assistant && m.Meta.Model == "" {
			m.Meta.Model = c.model
		}
	}
	return c.finish(in, v, nodes, pool.Hash{}, before)
}

func (c *chatgpt) largeNode(s *splitter, n *nodes, key []byte) error {
	if err := c.r.ctx.Err(); err != nil {
		return err
	}
	text, err := s.value()
	switch {
	case err == errTooLarge:
		c.r.skip(1, c.at, "a node of more than %d MB is left out", c.r.limits.Item>>20)
		return nil
	case err != nil:
		return err
	}
	name, _, err := new(document).parse(key, false)
	if err != nil {
		return c.badNode(err)
	}
	id := name.str()
	v, _, err := c.r.doc.parse(text, false)
	if err != nil {
		return c.badNode(err)
	}
	at := c.at.in("node " + show.Clip(id, 60))
	if _, twice := n.at[id]; twice {
		c.r.warn(at, "the node occurs more than once; the last one counts")
	}
	c.r.repeatedKeys(at, v)
	c.add(n, id, v)
	return nil
}

func (c *chatgpt) badNode(err error) error {
	c.r.skip(1, c.at, "a node is not JSON and is left out: %v", err)
	return nil
}

// node reads one node. It reports a bad one, which stays as a link only.
func (c *chatgpt) node(key string, v value) (sourceNode, bool) {
	parent := v.get("parent")
	rec := sourceNode{id: key, parent: parent.str(), orphan: !v.has("parent")}
	for ch := range v.get("children").items() {
		rec.children = append(rec.children, ch.str())
	}
	msg, at := v.get("message"), c.at.in("node "+show.Clip(key, 60))
	why := ""
	switch role, content := msg.at("author", "role"), msg.get("content"); {
	case !v.is(objectKind):
		why = "the node is " + v.kind().String()
	case msg.kind() <= nullKind:
		return rec, true
	case !msg.is(objectKind):
		why = "the message is " + msg.kind().String()
	case role.str() == "":
		why = "the message has no author"
	case content.kind() > nullKind && !content.is(objectKind) && !content.is(stringKind):
		why = "the content is " + content.kind().String()
	}
	if why != "" {
		c.r.skip(1, at, "%s; it is left out", why)
		rec.skipped = true
		return rec, false
	}
	rec.message = c.message(key, msg)
	if from := msg.get("metadata"); from.get("branching_from_conversation_id").str() != "" {
		rec.copyOf = record.NodeLink{Conversation: from.get("branching_from_conversation_id").str(), Node: from.get("branching_from_message_id").str()}
	}
	c.r.whole(at, msg, rec.message)
	c.r.beside(v, rec.message)
	c.r.shelf.put(rec.message)
	return rec, true
}

// message reads the parts of a message that do not depend on its neighbours.
func (c *chatgpt) message(key string, v value) *chatctx.Message {
	meta := v.get("metadata")
	m := &chatctx.Message{Created: v.get("create_time").time()}
	switch role := pool.Role(v.at("author", "role").str()); role {
	case pool.System, pool.User, pool.Assistant, pool.ToolRole:
		m.Role = role
	default:
		m.Role = pool.User
		source(m).Role = string(role)
	}
	m.Hidden = meta.get("is_visually_hidden_from_conversation").bool()
	if meta.get("is_user_system_message").bool() {
		m.Hidden, m.Kind = true, "injected"
	}
	if w, ok := v.get("weight").float(); ok && w == 0 {
		m.Unsent = true
	}
	if m.Role == pool.Assistant {
		m.Meta.Provider = "openai"
		m.Meta.Model = firstOf(meta.get("model_slug").str(), c.model)
	}
	m.Meta.FinishReason = meta.at("finish_details", "type").str()
	m.Unfinished = v.get("status").str() == "in_progress" || m.Meta.FinishReason == "interrupted"
	c.content(m, key, v)
	return m
}

// content reads the parts, and makes a call or a result from a message that is one.
func (c *chatgpt) content(m *chatctx.Message, key string, v value) {
	content := v.get("content")
	parts := c.parts(m, content)
	parts = append(parts, c.attachments(v, parts)...)
	to := v.get("recipient").str()
	switch {
	case m.Role == pool.ToolRole:
		m.Result = result(parts, v)
		m.Result.RequestID = "result-" + key
	case m.Role == pool.Assistant && to != "" && to != "all" && callable(content.get("content_type").str()):
		m.Calls = []pool.Call{{ID: "call-" + key, Tool: to, Arguments: arguments(textOf(parts)), Provider: "openai"}}
		m.Content = append(withoutText(parts), pool.Part{Type: pool.CallPart, CallID: "call-" + key})
	default:
		m.Content = parts
	}
}

// callable reports whether a content of this type may be the body of a tool call.
func callable(contentType string) bool {
	switch contentType {
	case "text", "code", "multimodal_text", "":
		return true
	}
	return false
}

// arguments returns a call's body as JSON: as it is if it is an object, otherwise under input.
func arguments(body string) json.RawMessage {
	if v, rest, err := new(document).parse([]byte(body), false); err == nil && v.is(objectKind) && skipSpace(rest, 0) == len(rest) {
		return v.keep()
	}
	return object("input", body)
}

// result makes a tool's answer from its parts: a single text becomes the answer's text.
func result(parts []pool.Part, v value) *pool.Result {
	res := toolResult("", v.at("author", "name").str(), parts).Result
	res.IsError = v.at("content", "content_type").str() == "system_error" ||
		strings.HasPrefix(v.at("metadata", "aggregate_result", "status").str(), "failed")
	return res
}

// parts reads a content by its type.
func (c *chatgpt) parts(m *chatctx.Message, v value) []pool.Part {
	if v.is(stringKind) {
		return texts(v)
	}
	if v.get("content_type").str() == "text" {
		v.get("content_type").taken() // the default
	}
	switch v.get("content_type").str() {
	case "code", "execution_output", "tether_quote", "sonic_webpage", "system_error":
		return texts(v.get("text"))
	case "tether_browsing_display":
		return append(texts(v.get("result")), texts(v.get("summary"))...)
	case "citable_code_output":
		return texts(v.get("output_str"))
	case "computer_output":
		return []pool.Part{c.asset(v.get("screenshot"))}
	case "thoughts":
		m.Hidden = true
		return thoughts(v)
	case "reasoning_recap":
		m.Hidden, m.Unsent, m.Kind = true, true, "recap"
		return append(texts(v.get("content")), c.list(v.get("parts"))...)
	case "user_editable_context":
		m.Hidden, m.Kind = true, "injected"
		return append(texts(v.get("user_profile")), texts(v.get("user_instructions"))...)
	case "model_editable_context":
		m.Hidden, m.Kind = true, "injected"
		return texts(v.get("model_set_context"))
	case "text", "multimodal_text":
		return c.list(v.get("parts"))
	}
	if parts := c.list(v.get("parts")); len(parts) > 0 {
		return parts
	}
	if v.is(objectKind) {
		return []pool.Part{unknownPart(v)}
	}
	return nil
}

// texts returns a text part for a string, nil for any other value.
func texts(v value) []pool.Part {
	if !v.is(stringKind) {
		return nil
	}
	return []pool.Part{{Type: pool.TextPart, Text: v.str()}}
}

// thoughts returns the model's reasoning, one part for each thought. Raw contains a thought's heading.
func thoughts(v value) []pool.Part {
	var parts []pool.Part
	for th := range v.get("thoughts").items() {
		parts = append(parts, pool.Part{Type: pool.ThinkingPart, Text: th.get("content").str(), Provider: "openai", Raw: th.keep()})
	}
	for th := range v.get("parts").items() {
		if th.is(stringKind) {
			parts = append(parts, pool.Part{Type: pool.ThinkingPart, Text: th.str(), Provider: "openai"})
		}
	}
	return parts
}

// list reads parts: strings, and objects of several kinds.
func (c *chatgpt) list(v value) []pool.Part {
	var parts []pool.Part
	for p := range v.items() {
		switch {
		case p.is(stringKind):
			parts = append(parts, pool.Part{Type: pool.TextPart, Text: p.str()})
		case p.is(objectKind):
			parts = append(parts, c.part(p))
		case !p.is(nullKind):
			parts = append(parts, pool.Part{Type: pool.TextPart, Text: string(p.keep())})
		}
	}
	return parts
}

func (c *chatgpt) part(v value) pool.Part {
	switch v.get("content_type").str() {
	case "audio_transcription":
		return pool.Part{Type: pool.TextPart, Text: v.get("text").str(), Raw: v.keep()}
	case "image_asset_pointer", "audio_asset_pointer":
		return c.asset(v)
	}
	return unknownPart(v)
}

// pairResults gives the results the ids of their calls. The file has no such ids: a tool message answers the call above it, past other tool messages and hidden
// ones, if it has the tool's name and is the first to do so. Calls that nothing answers are closed.
func pairResults(in *record.Incoming) {
	answered := make([]bool, len(in.Nodes))
	taken := make([]int, len(in.Nodes)) // the node of a result's call + 1
	for i, node := range in.Nodes {
		if node.Message.Result == nil {
			continue
		}
		call, free := node.Parent-1, true
		for ; call >= 0 && passable(in.Nodes[call].Message); call = in.Nodes[call].Parent - 1 {
			free = free && taken[call] == 0
		}
		if call < 0 || !free || len(in.Nodes[call].Message.Calls) == 0 {
			continue
		}
		c := &in.Nodes[call].Message.Calls[0]
		if !sameTool(c.Tool, node.Message.Result.Tool) {
			continue
		}
		node.Message.Result.RequestID = c.ID
		taken[i], answered[call] = call+1, true
	}
	for i, node := range in.Nodes {
		closeCalls(node.Message, func(string) bool { return answered[i] })
	}
}

// passable reports whether a message may come between a call and its result.
func passable(m *chatctx.Message) bool {
	return m.Result != nil || len(m.Calls) == 0 && m.Hidden
}

// sameTool compares a recipient with a tool's name: web.run belongs to web, and a result may have no name.
func sameTool(recipient, name string) bool {
	tool := func(s string) string { s, _, _ = strings.Cut(s, "."); return s }
	return name == "" || tool(recipient) == tool(name)
}
