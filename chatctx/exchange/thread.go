package exchange

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// The kinds of messages that readers set.
const (
	injected      = "injected"
	summary       = "summary"
	interrupted   = "interrupted"
	denied        = "denied"         // the result of a call that was not run; intake knows it too
	orphaned      = "orphan"         // a result whose call is not on its path
	failure       = "error"          // a program's report that no answer came, in place of the model's answer
	branchSummary = "branch summary" // of an abandoned branch, told to the model on another one
	notice        = "notice"         // a program's message to the person, for example about a command that was run
)

// thread collects the records of one conversation and makes a tree from them. One record may become several consecutive messages: a user's record with results
// of tools and a text becomes a message for each result, and one for the text.
type thread struct {
	r       *reading
	at      place
	records []sourceNode
	seen    map[string]int    // the record index of each id
	tail    map[string]string // the id of the last message of a record that became several
	warned  bool              // of repeated ids
	// byTime orders siblings by their times, for files whose own order means nothing.
	byTime bool
	loose  []byte // content of records that belong to no message: JSON values with commas before them
}

// atEnd passes on what was collected from a file, even if it broke off: err is what ended the reading. It returns an error of the file, or one that ends the
// import.
func (r *reading) atEnd(err error, emit func() error) error {
	var sink sinkError
	if err != nil && (errors.As(err, &sink) || r.ctx.Err() != nil) {
		return err
	}
	if e := emit(); e != nil {
		return e
	}
	return err
}

func (r *reading) thread(at place) *thread {
	return &thread{r: r, at: at, seen: map[string]int{}, tail: map[string]string{}}
}

// add adds a record with its id, below the record parent ("" for a root), and its messages: none for a structural record. Messages that can never be stored are
// reported and left out, but keep their place. A repeated id is a repetition if the message is the same, and otherwise gets a new id.
func (t *thread) add(at place, id, parent string, msgs ...*chatctx.Message) {
	if i, twice := t.seen[id]; twice {
		if t.again(i, msgs) {
			t.r.duplicated()
			return
		}
		id = t.rename(at, id)
	}
	rec := sourceNode{id: id, parent: parent, skipped: len(msgs) > 0}
	t.seen[id] = len(t.records)
	first := id
	for i, m := range msgs {
		if key, is := t.r.wordless[m]; is {
			delete(t.r.wordless, m)
			t.r.skip(1, at, "the message %q is left out: its words seem to be under %q, where this format has none", show.Clip(id, 80), key)
			if raw := m.Meta.ProviderData[t.r.format]; raw != nil {
				t.loose = append(append(t.loose, ','), raw...)
			}
			continue
		}
		if !t.r.shelf.Has(m) { // messages on the shelf are valid
			if err := m.Validate(); err != nil {
				t.r.skip(skippedOnce(i), at, "the message is left out: %v", err)
				continue
			}
		}
		if rec.message != nil {
			t.records = append(t.records, rec)
			id = fmt.Sprintf("%s/%d", first, i+1)
			rec = sourceNode{id: id, parent: rec.id, further: true}
			t.tail[first] = id
		}
		rec.message, rec.skipped = m, false
	}
	t.records = append(t.records, rec)
}

// again reports whether the messages of a record are those of record i, at the same or another time. The later state, which was continued, stays.
func (t *thread) again(i int, msgs []*chatctx.Message) bool {
	have := &t.records[i]
	if len(msgs) == 0 || have.message == nil {
		return false
	}
	t.r.shelf.back(have.message)
	t.r.shelf.back(msgs...)
	switch now := msgs[0]; {
	case sameMessage(have.message, now) && t.sameFurther(i, msgs):
	case len(msgs) > 1 || t.tail[have.id] != "" || len(now.Content) == 0 && len(now.Calls) == 0 && now.Result == nil: // or the record is yet to be filled
		return false
	case poolstore.Continues(have.message, now):
	case poolstore.Continues(now, have.message) && now.Validate() == nil:
		have.message, now = now, have.message
		msgs = []*chatctx.Message{now}
	default:
		return false
	}
	keepAgain([]*chatctx.Message{have.message}, msgs[:1])
	return true
}

// sameFurther reports whether the further messages of a record are those of record i, and keeps with these what only the others say.
func (t *thread) sameFurther(i int, msgs []*chatctx.Message) bool {
	for k := 1; k < len(msgs); k++ {
		if i+k == len(t.records) || !t.records[i+k].further || !t.sameAs(i+k, msgs[k]) {
			return false
		}
	}
	for k := 1; k < len(msgs); k++ {
		keepAgain([]*chatctx.Message{t.records[i+k].message}, msgs[k:k+1])
	}
	return true
}

// skippedOnce counts a record as left out once, even if it would have become several messages.
func skippedOnce(i int) int {
	if i == 0 {
		return 1
	}
	return 0
}

func (t *thread) rename(at place, id string) string {
	if !t.warned {
		t.warned = true
		t.r.warn(at, "two messages with different content have the id %q; both are kept", show.Clip(id, 80))
	}
	for n := 2; ; n++ {
		other := fmt.Sprintf("%s~%d", id, n)
		if _, taken := t.seen[other]; !taken {
			return other
		}
	}
}

// skip reports a record that should have been a message. It stays as a link.
func (t *thread) skip(at place, id, parent, format string, args ...any) {
	t.r.skip(1, at, format, args...)
	if _, twice := t.seen[id]; id != "" && !twice {
		t.seen[id] = len(t.records)
		t.records = append(t.records, sourceNode{id: id, parent: parent, skipped: true})
	}
}

// system begins the thread with a system text that the file has besides its messages; it is not counted as one.
func (t *thread) system(text string) {
	if text == "" {
		return
	}
	t.add(t.at, "system", "", pool.NewText(pool.System, text))
	for i := range t.records {
		t.records[i].further = true
	}
}

// last returns the id of the last record, "" if there is none.
func (t *thread) last() string {
	if len(t.records) == 0 {
		return ""
	}
	return t.records[len(t.records)-1].id
}

// next adds a record below the last one, for a sequence of messages.
func (t *thread) next(at place, id string, msgs ...*chatctx.Message) {
	t.add(at, id, t.last(), msgs...)
}

// contentID returns an id for a conversation without one, made from all its contents, and from the tools that its record names: rows that differ in these
// alone are different conversations.
func (t *thread) contentID(record value) string {
	var all []byte
	for _, key := range []string{"tools", "functions"} {
		var plain bytes.Buffer
		if raw := record.get(key).raw(); len(raw) > 2 && json.Compact(&plain, raw) == nil { // not null or empty
			all = append(append(all, key...), plain.Bytes()...)
		}
	}
	for i := range t.records {
		if m := t.records[i].message; m != nil {
			words := t.r.words(m)
			all = append(all, words[:]...)
		}
	}
	return digestOf(all)
}

// emit makes the tree, pairs calls with results and passes the conversation on. active is the id of the current record.
func (t *thread) emit(in *record.Incoming, active string) error {
	t.build(in, active)
	t.records, t.seen, t.tail = nil, nil, nil // so that they are not in memory while the messages are stored
	return t.r.emit(in)
}

func (t *thread) build(in *record.Incoming, active string) {
	t.looseRecords(in)
	for i := range t.records {
		rec := &t.records[i]
		if tail, ok := t.tail[rec.parent]; ok && !rec.further {
			rec.parent = tail
		}
	}
	if tail, ok := t.tail[active]; ok {
		active = tail
	}
	if !t.byTime {
		t.keepOrder()
	}
	t.r.tree(in, t.records, active, t.at)
	t.r.pairCalls(in, t.at)
	openSessions(in)
}

// keepOrder keeps siblings in the order of the file unless the file lists them.
func (t *thread) keepOrder() {
	listed := make([]map[string]bool, len(t.records))
	for i := range t.records {
		if n := len(t.records[i].children); n > 0 {
			listed[i] = keys(t.records[i].children...)
		}
	}
	for i := range t.records {
		rec := &t.records[i]
		if p, ok := t.seen[rec.parent]; ok && rec.parent != "" && !listed[p][rec.id] {
			t.records[p].children = append(t.records[p].children, rec.id)
		}
	}
}

// newestEnd returns the end of the path that was written last, among those from a root of the file's own, for formats without a current path.
func (t *thread) newestEnd() string {
	hasChild := map[string]bool{}
	for i := range t.records {
		hasChild[t.records[i].parent] = true
	}
	best, orphaned := "", t.orphans()
	var at pool.Time
	for i := range t.records {
		rec := &t.records[i]
		if rec.message != nil && !hasChild[rec.id] && !orphaned[rec.id] && (best == "" || rec.message.Created > at) {
			best, at = rec.id, rec.message.Created
		}
	}
	if best == "" {
		return t.last()
	}
	return best
}

// orphans returns the messages below a parent that is not in the file.
func (t *thread) orphans() map[string]bool {
	below := map[string][]string{}
	var todo []string
	for i := range t.records {
		rec := &t.records[i]
		below[rec.parent] = append(below[rec.parent], rec.id)
		if _, there := t.seen[rec.parent]; !there && rec.parent != "" && !rec.further {
			todo = append(todo, rec.id)
		}
	}
	lost := map[string]bool{}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !lost[id] {
			lost[id] = true
			todo = append(todo, below[id]...)
		}
	}
	return lost
}

// sameMessage reports whether two records of one id have the same content.
func sameMessage(a, b *chatctx.Message) bool {
	return a.Role == b.Role && a.Created == b.Created && poolstore.Words(a) == poolstore.Words(b)
}

// message returns the first message of the record with an id; nil if there is no such record, or if its message was left out.
func (t *thread) message(id string) *chatctx.Message {
	if i, there := t.seen[id]; there {
		return t.records[i].message
	}
	return nil
}

// sameAs is sameMessage for the message of record i, even if it is on the shelf. A message that was left out is like no other.
func (t *thread) sameAs(i int, m *chatctx.Message) bool {
	if t.records[i].message == nil {
		return false
	}
	t.r.shelf.back(t.records[i].message)
	return sameMessage(t.records[i].message, m)
}

// digest returns an id made from the contents of messages, independent of their place and time.
func digest(msgs []*chatctx.Message) string {
	var all []byte
	for _, m := range msgs {
		words := poolstore.Words(m)
		all = append(all, words[:]...)
	}
	return digestOf(all)
}

func digestOf(words []byte) string {
	sum := sha256.Sum256(words)
	return "sha256:" + hex.EncodeToString(sum[:16])
}

// words returns the words of a message, even if it is on the shelf.
func (r *reading) words(m *chatctx.Message) pool.Hash {
	whole, err := r.shelf.Get(m)
	if err != nil {
		r.shelf.err = errors.Join(r.shelf.err, err)
		return pool.Hash{}
	}
	return poolstore.Words(whole)
}

// pairCalls gives results without a call's id that of the call that they answer, closes all calls, and marks the results whose call is not above them. The
// nodes must be in the order of tree: those below a node follow it without a gap.
func (r *reading) pairCalls(in *record.Incoming, at place) {
	p := &pairing{in: in, end: make([]int, len(in.Nodes)), holders: map[string][]int{}, answers: map[answer]*chatctx.Message{}}
	for i := range in.Nodes {
		p.end[i] = i + 1
		for _, c := range in.Nodes[i].Message.Calls {
			if h := p.holders[c.ID]; len(h) == 0 || h[len(h)-1] != i {
				p.holders[c.ID] = append(h, i)
			}
		}
	}
	for i := len(in.Nodes) - 1; i >= 0; i-- {
		if up := in.Nodes[i].Parent - 1; up >= 0 {
			p.end[up] = max(p.end[up], p.end[i])
		}
	}
	orphans := 0
	for i := range in.Nodes {
		if m := in.Nodes[i].Message; m.Result != nil && !p.pair(i, m) {
			orphans++
		}
	}
	for i := range in.Nodes {
		p.settle(i)
	}
	if orphans > 0 {
		r.warn(at, "tool results have no call before them; they are kept and marked: %d", orphans)
	}
}

// answer is a call of a node; it maps to its result.
type answer struct {
	node int
	call string
}

type pairing struct {
	in      *record.Incoming
	end     []int            // the node after the last one below each node
	holders map[string][]int // the nodes that have a call with each id
	answers map[answer]*chatctx.Message
}

// maxTries bounds how many calls of one id are examined for a result, and how far up the search for one without an id goes.
const maxTries = 100

// pair finds the call of a result: by its id, the nearest above; without an id, the first open call of the nearest message above.
func (p *pairing) pair(i int, m *chatctx.Message) bool {
	if m.Result.RequestID == "" {
		return p.pairByPlace(i, m)
	}
	list := p.holders[m.Result.RequestID]
	n, _ := slices.BinarySearch(list, i)
	for try := n - 1; try >= 0 && try >= n-maxTries; try-- {
		if h := list[try]; i < p.end[h] {
			p.answered(h, m)
			return true
		}
	}
	m.Kind = cmp.Or(m.Kind, orphaned)
	return false
}

func (p *pairing) answered(holder int, m *chatctx.Message) {
	p.answers[answer{holder, m.Result.RequestID}] = m
}

func (p *pairing) pairByPlace(i int, m *chatctx.Message) bool {
	up := p.in.Nodes[i].Parent - 1
	for range maxTries {
		if up < 0 {
			break
		}
		above := p.in.Nodes[up].Message
		for _, c := range above.Calls {
			if _, done := p.answers[answer{up, c.ID}]; !done && (m.Result.Tool == "" || m.Result.Tool == c.Tool) {
				m.Result.RequestID = c.ID
				p.answered(up, m)
				return true
			}
		}
		if above.Role == pool.User {
			break
		}
		up = p.in.Nodes[up].Parent - 1
	}
	m.Result.RequestID = "result-" + p.in.Nodes[i].ID
	m.Kind = cmp.Or(m.Kind, orphaned)
	return false
}

// settle closes a node's calls: those with a result were run, unless that says that they were denied, and the others are denied. An imported call never waits.
func (p *pairing) settle(i int) {
	calls := p.in.Nodes[i].Message.Calls
	for k := range calls {
		c := &calls[k]
		switch m := p.answers[answer{i, c.ID}]; {
		case m == nil:
			c.Status, c.Execution, c.Reason = pool.Denied, pool.NotRun, "no result"
		case m.Kind == denied:
			c.Status, c.Execution, c.Reason = pool.Denied, pool.NotRun, "denied in the file"
		case m.Result.IsError:
			c.Status, c.Execution = pool.Approved, pool.Failed
		default:
			c.Status, c.Execution = pool.Approved, pool.Done
		}
	}
}

// pathTo returns the indexes of the nodes from the root to a leaf.
func pathTo(in *record.Incoming, leaf int) []int {
	var path []int
	for n := leaf; n > 0; n = in.Nodes[n-1].Parent {
		path = append(path, n-1)
	}
	slices.Reverse(path)
	return path
}

// openSessions begins a session of each branch after every summary on it, so that messages that a compaction removed are not sent again.
func openSessions(in *record.Incoming) {
	if !slices.ContainsFunc(in.Nodes, func(n record.Node) bool { return compacted(n.Message) }) {
		return
	}
	for i := range in.Branches {
		b := &in.Branches[i]
		for at, n := range pathTo(in, b.Leaf) {
			m := in.Nodes[n].Message
			if !compacted(m) {
				continue
			}
			if m.ID == (pool.ID{}) {
				m.ID = pool.NewID()
			}
			addSession(b, at+2, m)
		}
	}
}

// compacted reports whether a message stands for all messages before it.
func compacted(m *chatctx.Message) bool { return m.Kind == summary && m.Role == pool.User }

// addSession begins a session at a position of the branch, from 1, with its summary.
func addSession(b *record.IncomingBranch, start int, sum *chatctx.Message) {
	if len(b.Sessions) == 0 {
		b.Sessions = []branch.Session{{ID: pool.NewID(), Start: 1}}
	}
	b.Sessions = append(b.Sessions, branch.Session{ID: pool.NewID(), Start: start, Summary: sum.ID, Created: sum.Created})
}

// summary adds the summary of a compaction to a conversation: to the loose messages if sessions begin with it, else to the app data.
func (r *reading) summary(in *record.Incoming, m *chatctx.Message) {
	for i := range in.Branches {
		if slices.ContainsFunc(in.Branches[i].Sessions, func(s branch.Session) bool { return s.Summary == m.ID }) {
			in.Loose = append(in.Loose, m)
			return
		}
	}
	if raw, err := json.Marshal(m); err == nil {
		w := objectWriter{}
		w.addRaw("summary", raw)
		in.AppData = appData(r.format, joined(in.AppData[r.format], w.done()))
	}
}
