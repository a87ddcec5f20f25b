package exchange

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// This file makes conversations from the lines of a Claude Code session: it links lines to later ones, repairs links, separates sub-agents, folds replies and
// results, and then makes the tree.

func (c *claudeCode) emit() error {
	c.same = nil
	c.link()
	c.cutCycles()
	c.passLinks()
	names := c.split()
	c.foldReplies()
	c.chainResults()
	messages := false
	for i := range c.lines {
		l := &c.lines[i]
		if l.fold != i || l.kind == ccLink && l.stub == nil {
			c.r.structural(1)
		}
		if l.stub != nil {
			c.r.skip(1, l.at, "%s; it is left out", l.stub.why)
		}
		messages = messages || l.kind != ccLink
	}
	if !messages {
		c.r.warn(place{}, "the session has no messages")
		return nil
	}
	for i := range c.lines {
		if l := &c.lines[i]; l.loose != nil {
			m := c.lines[l.fold].msgs[0]
			m.Meta.ProviderData = appendData(m.Meta.ProviderData, "claude-code records", listOf(l.loose))
		}
	}
	conversation := c.conversation()
	for n, name := range names {
		in := &record.Incoming{Conversation: conversation}
		if n > 0 {
			in.Conversation = conversation + "/" + name
			in.Parent = &record.SourceLink{Format: claudeCodeName, Conversation: conversation}
			if call := strings.TrimPrefix(name, "agent-"); c.asked[call] {
				in.Answers = call
			}
		} else {
			in.Title, in.AppData = firstOf(c.title, c.aiTitle, c.summary), c.appData()
			in.Follows, in.Labels = c.follows, []string{placeLabel(c.cwd)}
			c.subAgent(in)
		}
		if err := c.tree(in, n, n == len(names)-1); err != nil {
			return err
		}
	}
	return nil
}

// link finds the parents that come later in the file, and repairs the links to those that are not in it: since a log is written in order, the message written
// before in the same chain replaces a missing parent.
func (c *claudeCode) link() {
	if !slices.ContainsFunc(c.lines, func(l ccLine) bool { return l.parent != "" && c.find(l.parent) >= 0 }) {
		for i := range c.lines { // written by a program that does not keep parents
			c.lines[i].up, c.lines[i].parent = c.lines[i].prev, ""
		}
	}
	for i := range c.lines {
		l := &c.lines[i]
		if l.up == unlinked {
			l.up = -1
			if first, is := c.ids[l.parent]; is {
				l.up = first
			} else {
				l.up = l.prev
				c.mend(l)
			}
		}
		if l.parent == "" && (l.logical != "" || l.mark == ccCompaction) {
			c.linkCompaction(l)
		}
	}
	for i := range c.lines {
		c.leaveProgress(&c.lines[i])
	}
}

// linkCompaction puts a compaction below the last message before it: the one it names, or the one written before it.
func (c *claudeCode) linkCompaction(l *ccLine) {
	last := c.find(l.logical)
	switch {
	case last >= 0:
		l.up = last
	case l.prev >= 0:
		l.up = l.prev
		c.r.repaired(l.at, "the compaction names no message of the file as the last one before it; it is put below the one written before it")
	case l.logical != "":
		c.follows = firstOf(c.follows, l.logical)
		c.r.warn(l.at, "the messages before this compaction are not in the file; the compaction begins a path of its own")
	}
}

// leaveProgress puts a message of the main chain that names a record of progress as its parent below the message written before it. What that record stands below is the
// call that made progress, without its result and what came after.
func (c *claudeCode) leaveProgress(l *ccLine) {
	if l.kind == ccLink || l.kind == ccResult || l.side || l.up < 0 || l.prev < 0 {
		return
	}
	if p := &c.lines[l.up]; p.mark != ccProgress || !p.side && p.prev == l.prev { // nothing was written between them
		return
	}
	l.up = l.prev
	c.r.repaired(l.at, "the parent %q is a record of a call's progress; the message is put below the one written before it", show.Clip(l.parent, 60))
}

// unlinked is the up of a line whose parent has not been seen yet.
const unlinked = -2

func (c *claudeCode) mend(l *ccLine) {
	switch {
	case l.kind == ccLink && (l.mark != ccCompaction || l.up < 0):
	case l.up >= 0:
		c.r.repaired(l.at, "the parent %q is not in the file; the message is put below the one written before it", show.Clip(l.parent, 60))
	default:
		c.r.warn(l.at, "the parent %q is not in the file; the message begins a path of its own", show.Clip(l.parent, 60))
	}
}

// cutCycles makes the first line, in file order, of each cycle a root.
func (c *claudeCode) cutCycles() {
	state := make([]int, len(c.lines))
	for i := range c.lines {
		j := i
		for ; j >= 0 && state[j] == 0; j = c.lines[j].up {
			state[j] = i + 1
		}
		if j >= 0 && state[j] == i+1 {
			first := j
			for k := c.lines[j].up; k != j; k = c.lines[k].up {
				first = min(first, k)
			}
			c.lines[first].up = -1
			c.r.warn(c.lines[first].at, "the messages are each other's parents; the cycle is cut at this one")
		}
		for k := i; k >= 0 && state[k] == i+1; k = c.lines[k].up {
			state[k] = -1
		}
	}
}

// passLinks finds the nearest message above each line. It walks each chain of links once.
func (c *claudeCode) passLinks() {
	known := make([]bool, len(c.lines))
	for i := range c.lines {
		var path []int
		j := i
		for j >= 0 && !known[j] {
			path = append(path, j)
			j = c.lines[j].up
		}
		for _, k := range slices.Backward(path) {
			l := &c.lines[k]
			if l.above = l.up; l.up >= 0 && c.lines[l.up].kind == ccLink {
				l.above = c.lines[l.up].above
			}
			known[k] = true
		}
	}
}

// split assigns each line to a group: 0 is the main conversation, the others are sub-agents, whose names it returns by group. A connected part of the file is a
// sub-agent's if all its messages are.
func (c *claudeCode) split() []string {
	root := c.components()
	own := map[int]bool{} // components with a message of the main chain
	any := false
	for i := range c.lines {
		if l := &c.lines[i]; l.kind != ccLink && !l.side {
			own[root[i]], any = true, true
		}
	}
	names, byName := []string{""}, map[string]int{}
	for i := range c.lines {
		l := &c.lines[i]
		if l.kind == ccLink || own[root[i]] || !any {
			continue
		}
		name := c.lines[root[i]].id
		if l.agent != "" {
			name = "agent-" + l.agent
		}
		if byName[name] == 0 {
			byName[name] = len(names)
			names = append(names, name)
		}
		l.group = byName[name]
	}
	return names
}

// components returns for each line the first line of its connected part.
func (c *claudeCode) components() []int {
	root := make([]int, len(c.lines))
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	for i := range c.lines {
		if up := c.lines[i].up; up >= 0 {
			a, b := find(i), find(up)
			root[max(a, b)] = min(a, b)
		}
	}
	for i := range root {
		root[i] = find(i)
	}
	return root
}

// foldReplies joins the lines of one reply: a line continues an earlier one of the same reply that is above it, past results and links, or that has the same
// message above it.
func (c *claudeCode) foldReplies() {
	type reply struct {
		id    string
		group int
	}
	heads := map[reply]int{}
	for i := range c.lines {
		l := &c.lines[i]
		l.above = c.folded(l.above)
		if l.kind != ccReply || l.reply == "" {
			continue
		}
		key := reply{l.reply, l.group}
		head, ok := heads[key]
		if ok && c.continues(i, head) {
			l.fold = head
			c.merge(&c.lines[head], l)
			continue
		}
		heads[key] = i
	}
	for i := range c.lines { // those whose parents come later in the file
		c.lines[i].above = c.folded(c.lines[i].above)
	}
}

func (c *claudeCode) folded(i int) int {
	if i < 0 {
		return i
	}
	return c.lines[i].fold
}

func (c *claudeCode) continues(i, head int) bool {
	up := c.lines[i].above
	if up == c.lines[head].above {
		return true
	}
	for range maxTries {
		if up < 0 || c.folded(up) == head {
			break
		}
		if c.lines[up].kind != ccResult {
			return false
		}
		up = c.lines[up].above
	}
	return up >= 0 && c.folded(up) == head
}

// merge adds the content of a further line of a reply. The figures of the last line are final.
func (c *claudeCode) merge(head, l *ccLine) {
	c.r.shelf.back(head.msgs...)
	c.r.shelf.back(l.msgs...)
	last := head.msgs[len(head.msgs)-1]
	for i, m := range l.msgs {
		if i > 0 || m.Role != pool.Assistant || last.Role != pool.Assistant {
			head.msgs = append(head.msgs, m)
			continue
		}
		last.Meta = c.laterMeta(last.Meta, m.Meta)
		for _, p := range m.Content {
			switch {
			case p.Type != pool.CallPart:
				if !slices.ContainsFunc(last.Content, func(have pool.Part) bool { return samePart(&have, &p) }) {
					last.Content = append(last.Content, p)
				}
			default:
				k := slices.IndexFunc(m.Calls, func(call pool.Call) bool { return call.ID == p.CallID })
				mergeCall(last, m.Calls[k], p, l.id)
			}
		}
		last.Unfinished = m.Unfinished
	}
	c.r.shelf.put(head.msgs...)
	l.msgs = nil
}

// mergeCall adds a call, which stands at p, to a reply that does not have it. One that has the id of another call gets an id of its own.
func mergeCall(m *chatctx.Message, c pool.Call, p pool.Part, record string) {
	if !slices.ContainsFunc(m.Calls, func(have pool.Call) bool { return have.ID == c.ID }) {
		m.Calls, m.Content = append(m.Calls, c), append(m.Content, p)
		return
	}
	for i := range m.Calls {
		if have := &m.Calls[i]; have.ID == c.ID && have.Tool == c.Tool && bytes.Equal(have.Arguments, c.Arguments) {
			if c.Raw != nil && !bytes.Equal(have.Raw, c.Raw) {
				m.Meta.ProviderData = appendData(m.Meta.ProviderData, "again", c.Raw)
			}
			return
		}
	}
	addCall(m, c, record)
}

// laterMeta returns the metadata of the last of a reply's lines, with the words of an earlier line that it lacks.
func (c *claudeCode) laterMeta(was, now pool.Metadata) pool.Metadata {
	usage, data := was.Usage, was.ProviderData
	for name, raw := range now.ProviderData {
		if more := c.r.moreWords(data[name], raw); more != nil {
			data = withData(data, name, joined(data[name], more))
		}
	}
	for name, f := range map[string]struct {
		was string
		now *string
	}{"model": {was.Model, &now.Model}, "stop_reason": {was.FinishReason, &now.FinishReason}, "error": {was.Error, &now.Error}} {
		if *f.now == "" {
			*f.now = f.was
		} else if f.was != "" && f.was != *f.now {
			data = appendData(data, "claude-code "+name, jsonText(f.was))
		}
	}
	if !figuresOnly(usage, now.Usage) {
		data = appendData(data, "claude-code usage", usage)
	}
	now.ProviderData = data
	return now
}

// figuresOnly reports whether the last account of a reply's usage has all words of an earlier one.
func figuresOnly(was, last json.RawMessage) bool {
	v, _, err := new(document).parse(was, false)
	if err != nil {
		return true
	}
	for k, x := range v.fields() {
		if raw := x.raw(); bytes.IndexByte(raw, '"') >= 0 && !bytes.Contains(last, raw) || !bytes.Contains(last, k.raw()) && x.kind() >= stringKind {
			return false
		}
	}
	return true
}

// samePart reports whether a part was written again, by a retry.
func samePart(a, b *pool.Part) bool {
	return a.Type == b.Type && a.Text == b.Text && a.Signature == b.Signature && a.Redacted == b.Redacted && string(a.Raw) == string(b.Raw) && len(a.Data) == len(b.Data)
}

// chainResults puts the results of one reply one below the other, and the messages after them below the last: in the file they are siblings.
func (c *claudeCode) chainResults() {
	below := make([][]int, len(c.lines))
	for i := range c.lines {
		if l := &c.lines[i]; l.above >= 0 && l.kind != ccLink && l.fold == i {
			below[l.above] = append(below[l.above], i)
		}
	}
	for i := range c.lines {
		if l := &c.lines[i]; l.kind == ccReply && l.fold == i && len(below[i]) > 0 {
			c.chain(i, below)
		}
	}
}

func (c *claudeCode) chain(head int, below [][]int) {
	results := c.resultsOf(head, below)
	if len(results) == 0 {
		return
	}
	answered := map[string]bool{}
	chained := map[int]bool{head: true}
	tail := head
	for _, i := range results {
		if again := c.answers(i, answered); again {
			continue
		}
		c.lines[i].above, tail = tail, i
		chained[i] = true
	}
	for up := range chained {
		for _, i := range below[up] {
			if l := &c.lines[i]; l.kind != ccResult && i > tail {
				l.above = tail
			}
		}
	}
}

// resultsOf returns the lines of results that follow a reply without anything between, in the file's order.
func (c *claudeCode) resultsOf(head int, below [][]int) []int {
	var results []int
	todo := []int{head}
	for len(todo) > 0 {
		up := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, i := range below[up] {
			if c.lines[i].kind == ccResult {
				results, todo = append(results, i), append(todo, i)
			}
		}
	}
	slices.Sort(results)
	return results
}

// answers notes the calls that a line of results answers. again reports that one of them was answered already, so the line is another branch.
func (c *claudeCode) answers(i int, answered map[string]bool) (again bool) {
	for _, m := range c.lines[i].msgs {
		if m.Result != nil && answered[m.Result.RequestID] {
			return true
		}
	}
	for _, m := range c.lines[i].msgs {
		if m.Result != nil {
			answered[m.Result.RequestID] = true
		}
	}
	return false
}

// subAgent links the conversation of a sub-agent's own file to its session's, and takes its title from the file beside it.
func (c *claudeCode) subAgent(in *record.Incoming) {
	if !c.ofAgent() {
		return
	}
	in.Parent = &record.SourceLink{Format: claudeCodeName, Conversation: c.sessions[0]}
	name, _, _ := strings.Cut(c.r.file.path, ".jsonl")
	c.r.besideJSON(name+".meta.json", func(v value) {
		in.Title = firstOf(in.Title, v.get("description").str())
		w := objectWriter{}
		w.addRaw("agent", v.keep())
		in.Answers = v.get("toolUseId").str()
		in.AppData = appData(claudeCodeName, joined(in.AppData[claudeCodeName], w.done()))
	})
}

// tree passes one group on as a conversation. last says that no other comes after it.
func (c *claudeCode) tree(in *record.Incoming, group int, last bool) error {
	t := c.r.thread(place{})
	names := c.names()
	active := -1
	for i := range c.lines {
		l := &c.lines[i]
		if l.group != group || l.kind == ccLink || l.fold != i {
			continue
		}
		parent := ""
		if l.above >= 0 {
			parent = names[l.above]
		}
		from := len(t.records)
		t.add(l.at, names[i], parent, l.msgs...)
		if link := c.copied(l, in.Conversation); link.Conversation != "" {
			for k := from; k < len(t.records); k++ {
				t.records[k].copyOf = record.NodeLink{Conversation: link.Conversation, Node: link.Node + strings.TrimPrefix(t.records[k].id, names[i])}
			}
		}
		if active < 0 || !l.side || group > 0 || c.lines[active].side {
			active = i
		}
		in.Created, in.Updated = cmp.Or(in.Created, l.msgs[0].Created), cmp.Or(l.msgs[0].Created, in.Updated)
	}
	if leaf := c.leaf(group); leaf >= 0 {
		active = leaf
	}
	at := ""
	if active >= 0 {
		at = names[c.newest(active)]
	}
	if last {
		c.lines, c.ids = nil, nil // frees their memory while the messages are stored
	}
	return t.emit(in, at)
}

// names returns a unique id for each message among the lines.
func (c *claudeCode) names() []string {
	names := make([]string, len(c.lines))
	count := make(map[string]int, len(c.lines))
	for i := range c.lines {
		l := &c.lines[i]
		if c.ids[l.id] != i && !c.warnedIDs {
			c.warnedIDs = true
			c.r.warn(l.at, "two messages at different places have the id %q; both are kept", show.Clip(l.id, 60))
		}
		if l.kind == ccLink || l.fold != i {
			continue
		}
		names[i] = l.id
		if count[l.id]++; count[l.id] > 1 {
			names[i] = fmt.Sprintf("%s~%d", l.id, count[l.id])
		}
	}
	return names
}

// copied returns the message of another session that a line repeats: the one that it names, or the one with its id in the session whose id it has.
func (c *claudeCode) copied(l *ccLine, conversation string) record.NodeLink {
	if l.copyOf.Conversation != "" {
		return l.copyOf
	}
	if l.session < 0 || strings.Contains(conversation, "/") || c.sessions[l.session] == conversation {
		return record.NodeLink{}
	}
	return record.NodeLink{Conversation: c.sessions[l.session], Node: l.id}
}

// leaf returns the session's current message according to the newest last-prompt record, -1 if there is none.
func (c *claudeCode) leaf(group int) int {
	for _, id := range slices.Backward(c.leaves) {
		at := c.find(id)
		if at < 0 {
			continue
		}
		if c.lines[at].kind == ccLink {
			at = c.lines[at].above
		}
		if at = c.folded(at); at >= 0 && c.lines[at].group == group {
			return at
		}
	}
	return -1
}

// newest returns the end of the path written last, among those through a message.
func (c *claudeCode) newest(at int) int {
	below := make([][]int, len(c.lines))
	for i := range c.lines {
		if l := &c.lines[i]; l.kind != ccLink && l.fold == i && l.above >= 0 {
			below[l.above] = append(below[l.above], i)
		}
	}
	newest, todo := -1, []int{at}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], below[i]...)
		if len(below[i]) == 0 {
			newest = max(newest, i)
		}
	}
	return newest
}
