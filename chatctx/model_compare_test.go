package chatctx_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// law is what must hold of a branch whatever the model says: its revision and high-water mark only go up, and one revision never has two states.
type law struct {
	revision, high uint64
	state          *branchState
}

// obey holds a branch against its law.
func (r *run) obey(c *convo, info *record.BranchInfo, state *branchState) {
	l := r.laws[info.ID]
	if l == nil {
		l = &law{}
		r.laws[info.ID] = l
	}
	high := r.high(c, info.ID)
	switch {
	case info.Revision < l.revision:
		r.fail("branch %s went from revision %d back to %d", info.Name, l.revision, info.Revision)
	case high < l.high:
		r.fail("branch %s went from the high-water mark %d back to %d", info.Name, l.high, high)
	case info.Revision == l.revision && l.state != nil && l.state != state && !l.state.equal(state):
		r.fail("branch %s has two states at revision %d", info.Name, info.Revision)
	}
	*l = law{info.Revision, high, state}
}

// high is a branch's high-water mark, which nobody sees from outside.
func (r *run) high(c *convo, b id) (high uint64) {
	err := base.Of(r.store()).Engine.View(bg, func(tx kv.Tx) error {
		rec, err := branchstore.Get(tx, c.id, b)
		if err == nil {
			high = rec.High
		}
		return err
	})
	r.must(err, "the high-water mark")
	return high
}

// compare holds the store against the model: what each branch and the context are, and the histories of those that changed; deep: everything.
func (r *run) compare(c *convo, changed, deep bool) {
	if !changed && !deep {
		return
	}
	view := r.view(c)
	infos, err := view.Branches(bg)
	r.must(err, "branches")
	if len(infos) != len(c.there()) {
		r.fail("there are %d branches, want %d", len(infos), len(c.there()))
	}
	for _, info := range infos {
		want := c.branches[info.ID]
		if want == nil {
			r.fail("branch %s (%s) should not be there", info.Name, info.ID)
		}
		if l := r.laws[info.ID]; deep || l == nil || l.state != want {
			r.compareBranch(view, info, want)
			r.compareHistory(c, view, info, want, deep)
			if len(want.sessions) > 0 {
				r.compareRequest(c, view, info.Name, want)
			}
		}
		r.obey(c, info, want)
	}
	info, err := view.Info(bg)
	r.must(err, "info")
	if b := c.branches[c.active]; b == nil || info.Active != b.name {
		r.fail("the active branch is %q, want %+v", info.Active, b)
	}
	r.compareContext(c, view, info)
	if deep {
		r.compareCalls(c, view)
		r.compareHeld()
	}
}

func plain(m map[string]json.RawMessage) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}

func plainSessions(in []branch.Session) []session {
	var out []session
	for _, s := range in {
		out = append(out, session{ID: s.ID, Summary: s.Summary, Start: s.Start, PrunedTo: s.PrunedTo, apart: apartOf(&s), Provider: s.Provider, Model: s.Model})
	}
	return out
}

func apartOf(s *branch.Session) string {
	if s.Summary == (id{}) {
		return ""
	}
	return fmt.Sprint(s.Apart)
}

// compareRequest holds what requests to anybody, and to each of two models that compact, begin with: the words of each message of the branch, its own or those of
// a summary, and no others; and each of these models gets its newest compaction that stands.
func (r *run) compareRequest(c *convo, view *chatctx.ChatContext, name string, want *branchState) {
	d, err := view.Draft(bg, name)
	r.must(err, "draft")
	if d.Session.Provider != "" {
		r.fail("a request of %s to anybody begins with a session of %s", name, d.Session.Model)
	}
	r.compareWords(c, d, name, want)
	for _, model := range compacting {
		begins := id{}
		for _, s := range want.sessions {
			if s.Provider == "" || s.Model == model {
				begins = s.ID
			}
		}
		d, err := view.DraftIn(bg, name, func(sessions []branch.Session, _ map[string]json.RawMessage) int {
			return branchstore.CurrentFor(sessions, func(s *branch.Session) bool { return s.Model == model })
		})
		r.must(err, "draft")
		if len(want.sessions) > 0 && d.Session.ID != begins {
			r.fail("a request of %s to model %s begins with session %s, want %s of %+v", name, model, d.Session.ID, begins, want.sessions)
		}
		r.compareWords(c, d, name, want)
	}
}

// compareWords holds the words with which a request begins.
func (r *run) compareWords(c *convo, d *chatctx.Draft, name string, want *branchState) {
	texts := map[string]bool{}
	put := func(m *chatctx.Message) {
		text := m.Text()
		if m.Result != nil {
			text = m.Result.Text
		}
		for word := range strings.SplitSeq(text, "; ") {
			texts[word] = true
		}
	}
	for _, m := range d.Messages {
		put(m.Message)
	}
	if d.Summary != nil {
		put(d.Summary.Message)
	}
	held := map[string]bool{"": true}
	for i, at := range want.list {
		m := c.messages[at]
		for word := range strings.SplitSeq(m.text, "; ") {
			held[word] = true
			if !texts[word] && c.ctx.marks[at] != "excluded" {
				r.fail("a request of %s lacks %q, its message %d of %d; sessions %+v", name, word, i+1, len(want.list), want.sessions)
			}
		}
	}
	for word := range texts {
		if !held[word] {
			r.fail("a request of %s has %q, which it does not hold; sessions %+v", name, word, want.sessions)
		}
	}
}

func (r *run) compareBranch(view *chatctx.ChatContext, info *record.BranchInfo, want *branchState) {
	got := &branchState{name: info.Name, list: want.list, system: info.System, prompt: info.Prompt, settings: plain(info.Settings), data: plain(info.AppData),
		sessions: plainSessions(info.Sessions), tokens: -1, queue: nil}
	if info.Tokens != nil {
		got.tokens = info.Tokens.Input
	}
	if len(want.queue) > 0 || r.rng.Intn(8) == 0 {
		waits, err := queueOn(view, info.Name)
		r.must(err, "queue")
		for _, e := range waits {
			got.queue = append(got.queue, e.ID)
		}
	} else {
		got.queue = want.queue
	}
	if !got.equal(want) {
		r.fail("branch %s is\n%+v, want\n%+v", info.Name, *got, *want)
	}
	if info.Messages != len(want.list) {
		r.fail("branch %s has %d messages, want %d", info.Name, info.Messages, len(want.list))
	}
}

func (r *run) compareHistory(c *convo, view *chatctx.ChatContext, info *record.BranchInfo, want *branchState, deep bool) {
	snap, err := view.Snapshot(bg, info.Name)
	r.must(err, "snapshot")
	got, err := snap.IDs(bg)
	r.must(err, "ids")
	if !slices.Equal(got, want.list) {
		r.fail("branch %s holds\n%s, want\n%s", info.Name, shorts(got), shorts(want.list))
	}
	from := max(1, len(got)-3)
	if deep {
		from = 1
	}
	at, turns := from, 0
	for e, err := range snap.Entries(bg, from, 0) {
		r.must(err, "entries")
		m := c.messages[got[at-1]]
		r.compareMessage(c, e.Message, m)
		if e.Position != at {
			r.fail("the message at %d says it is at %d", at, e.Position)
		}
		if m.turn() {
			turns++
		}
		at++
	}
	if deep {
		n, err := snap.Turns(bg)
		r.must(err, "turns")
		if n != turns {
			r.fail("branch %s has %d turns, want %d", info.Name, n, turns)
		}
	}
}

func shorts(list []id) string {
	var out []string
	for _, m := range list {
		out = append(out, record.Short(m))
	}
	return strings.Join(out, " ")
}

func (r *run) compareMessage(c *convo, got *chatctx.Message, want *message) {
	text := got.Text()
	if got.Result != nil {
		text = got.Result.Text
	}
	thinks := slices.ContainsFunc(got.Content, func(p pool.Part) bool { return p.Type == pool.ThinkingPart })
	if got.Role != want.role || got.Kind != want.kind || text != want.text || thinks != want.thinks || got.Unfinished != want.unfinished || len(got.Calls) != len(want.calls) {
		r.fail("message %s is %s %q %q, thinks %t, unfinished %t, %d calls; want %+v", record.Short(got.ID), got.Role, got.Kind, text, thinks, got.Unfinished, len(got.Calls), *want)
	}
	if got.Result != nil && (got.Result.RequestID != want.answers || got.Result.IsError != want.isError) {
		r.fail("message %s answers %s, error %t; want %+v", record.Short(got.ID), got.Result.RequestID, got.Result.IsError, *want)
	}
	// The id of what stood for less than a batch on a branch that is gone was never seen.
	unseen := c.messages[want.root] != nil && c.messages[want.root].ours
	if root, known := r.rootOf(c, got); known && root != want.root && !unseen {
		r.fail("message %s is a copy of %s, want one of %s", record.Short(got.ID), record.Short(root), record.Short(want.root))
	}
	for i, call := range got.Calls {
		k := callKey{want.id, i}
		if s := c.calls[k]; call.ID != want.calls[i].id || call.Status != s.status || call.Execution != s.execution {
			r.fail("call %d of %s is %s, %s/%s; want %s, %s/%s", i+1, record.Short(want.id), call.ID, call.Status, call.Execution, want.calls[i].id, s.status, s.execution)
		}
	}
}

// rootOf follows a message to what it is a copy of in the end; known is false where what leads there is gone.
func (r *run) rootOf(c *convo, m *chatctx.Message) (root id, known bool) {
	for m.CopiedFrom != nil {
		if from := c.messages[*m.CopiedFrom]; from != nil {
			return from.root, true
		}
		from, err := r.view(c).Message(bg, *m.CopiedFrom) // a copy that no branch kept
		if err != nil {
			return id{}, false
		}
		m = from
	}
	return m.ID, true
}

func (r *run) compareContext(c *convo, view *chatctx.ChatContext, info *record.ContextInfo) {
	if info.Title != c.ctx.title || !maps.Equal(plain(info.Settings), c.ctx.settings) && len(info.Settings)+len(c.ctx.settings) > 0 ||
		!maps.Equal(plain(info.AppData), c.ctx.data) && len(info.AppData)+len(c.ctx.data) > 0 || info.Trashed != 0 {
		r.fail("the context is %+v, want %+v", *info, *c.ctx)
	}
	tags, err := view.Tags(bg)
	r.must(err, "tags")
	if !maps.Equal(tags, c.ctx.tags) {
		r.fail("the tags are %v, want %v", tags, c.ctx.tags)
	}
	marks, err := view.Marks(bg)
	r.must(err, "marks")
	if !maps.Equal(marks, c.ctx.marks) {
		r.fail("the marks are %v, want %v", marks, c.ctx.marks)
	}
}

// compareCalls holds the calls and the notes of all messages against the model.
func (r *run) compareCalls(c *convo, view *chatctx.ChatContext) {
	for _, at := range c.all {
		m := c.messages[at]
		note := c.ctx.note(m)
		if len(m.calls) == 0 && note == "" {
			continue
		}
		got, err := view.Message(bg, at)
		r.must(err, "message")
		r.compareMessage(c, got, m)
		if string(got.AppData["n"]) != note {
			r.fail("message %s has the note %s, want %s", record.Short(at), got.AppData["n"], note)
		}
	}
}

// held is a snapshot that somebody keeps, with what it gave.
type held struct {
	snap  *chatctx.Snapshot
	ids   []id
	texts []string
}

// hold keeps a snapshot.
func (r *run) hold(c *convo) error {
	_, name := r.anyBranch(c)
	snap, err := r.view(c).Snapshot(bg, name)
	r.must(err, "snapshot")
	h := &held{snap: snap}
	h.ids, h.texts = r.read(snap)
	r.say("hold a snapshot")
	if r.held = append(r.held, h); len(r.held) > 6 {
		r.held = r.held[1:]
	}
	return nil
}

func (r *run) read(snap *chatctx.Snapshot) (ids []id, texts []string) {
	for e, err := range snap.Entries(bg, 1, 0) {
		r.must(err, "entries of a snapshot")
		ids, texts = append(ids, e.ID), append(texts, e.Text())
	}
	return ids, texts
}

// compareHeld holds the snapshots against what they gave when they were taken.
func (r *run) compareHeld() {
	for _, h := range r.held {
		ids, texts := r.read(h.snap)
		if !slices.Equal(ids, h.ids) || !slices.Equal(texts, h.texts) {
			r.fail("a snapshot of %s changed from\n%s to\n%s", h.snap.Info.Name, shorts(h.ids), shorts(ids))
		}
	}
}

// checkAll holds the store's invariants.
func (r *run) checkAll() {
	r.must(r.store().Maintenance().Check(bg, chatctx.CheckOptions{Full: true}, func(p record.Problem) { r.fail("check: %d %s: %s", p.Invariant, p.Where, p.Text) }), "check")
}

// queueOn returns the messages that wait for a place on a branch.
func queueOn(c *chatctx.ChatContext, branch string) ([]*chatctx.Entry, error) {
	return view.Queued(bg, base.ContextOf(c.Store(), c.ID), branch)
}
