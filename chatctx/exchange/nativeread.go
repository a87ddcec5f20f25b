package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/pool"
)

// nativeTarget receives the stream of a context after its first record: to store it, or to count it.
type nativeTarget interface {
	// Put takes a record, or messages in a row with the states of their calls.
	Put(context.Context, ...record.Streamed) error
	finish(context.Context) (record.Imported, error)
	drop(context.Context) error // gives it up
}

func detectNative(h *head) bool {
	_, ok := h.first().get(nativeName).int()
	return ok && !h.array
}

// readNative reads the store's own export. What a line says beside the messages is left out alone if it is not valid. If a message is damaged or missing, the
// context is not imported at all.
func readNative(r *reading) error {
	r.limits.Line = max(r.limits.Line, r.limits.Item) // images are on one line
	n := &nativeReader{r: r, whole: map[chatctx.ID]bool{}, has: map[chatctx.ID]bool{}, children: map[chatctx.ID][]nativeChild{}, strange: map[string]int{}, there: map[chatctx.ID]bool{}, lines: map[chatctx.ID]int{}, begins: map[string]int{}, held: map[string]bool{}, skipped: r.report.Skipped}
	err := r.eachLine(func(at place, v value) error {
		n.spoiled = n.spoiled || r.report.Skipped > n.skipped // an earlier line could not be read
		n.skipped = r.report.Skipped
		return n.line(at, v)
	})
	if err == nil {
		err = n.unfinished(place{})
	} else if n.target != nil { // also if the import is interrupted, or the file cannot be read on
		err = cmp.Or(err, n.target.drop(context.WithoutCancel(r.ctx)))
	}
	if err == nil {
		n.strayed()
		n.missing()
		n.unknown()
	}
	return err
}

// nativeReader is the state between lines.
type nativeReader struct {
	r        *reading
	target   nativeTarget // of the current context; nil if there is none or it is given up
	title    string
	id       chatctx.ID
	whole    map[chatctx.ID]bool          // contexts that were imported from this file
	begun    place                        // where the current context begins
	inside   bool                         // a context has begun
	spoiled  bool                         // a part of the current context is missing
	messages int                          // of the current context
	has      map[chatctx.ID]bool          // the messages of the current context; true: on a branch
	lines    map[chatctx.ID]int           // of the current context's messages
	begins   map[string]int               // the lines of its branches
	held     map[string]bool              // the settings of the current context that were named as held back
	froms    []nativeFrom                 // branches of the current context that name one that may come later
	refs     []nativeRef                  // what names messages that may come later
	skipped  int                          // in the report so far
	contexts int                          // according to the file
	came     int                          // that have begun so far
	children map[chatctx.ID][]nativeChild // by their parents
	strange  map[string]int               // unknown keys of the current context's messages
	there    map[chatctx.ID]bool          // all messages and branches of the file
	named    []nativeElsewhere            // what names those that may be in other contexts of the file
	out      outside
	// batch are messages that the target does not have yet, with the calls after them. loose means that it is one message on no branch.
	batch []record.Streamed
	size  int
	loose bool
}

// nativeRef is something on a line that names a message. The target takes its record; nil: the target has it.
type nativeRef struct {
	at     place
	what   string
	id     chatctx.ID
	record record.Streamed
}

// nativeFrom is a branch that names the one that it was forked from.
type nativeFrom struct {
	at           place
	branch, from string
}

// lineError is an error that leaves out one line, and nothing else.
type lineError struct{ error }

// ofLine makes an error one of the line's alone.
func ofLine(err error) error {
	if err == nil {
		return nil
	}
	return lineError{err}
}

// line reads one line. An error of the line's own leaves out the line or gives up the context.
func (n *nativeReader) line(at place, v value) error {
	if v.has(nativeName) {
		return n.header(at, v)
	}
	kind, x := "", value{}
	var beside []string
	for k := range v.members() {
		if x.d == nil {
			kind, x = k, v.get(k)
		} else {
			beside = append(beside, k)
		}
	}
	if x.d == nil {
		return nil
	}
	if len(beside) > 0 {
		n.r.warn(at, "other keys on the line of the %s are left out: %s", show.Clip(kind, 40), show.Clip(strings.Join(beside, ", "), 500))
	}
	if kind == "context" {
		return n.begin(at, x)
	}
	if !n.inside {
		n.stray(at, kind)
		return nil
	}
	if kind == "message" || kind == "loose" {
		n.messages++
	}
	if n.spoiled || n.target == nil {
		if kind == "end" {
			return n.unfinished(at)
		}
		return nil
	}
	err := n.member(at, kind, x)
	if alone, is := err.(lineError); is {
		n.r.warn(at, "the line %q is left out: %v", kind, alone.error)
		return nil
	}
	return n.spoil(at, err)
}

// fields reports fields of a line that are left out.
func (n *nativeReader) fields(at place, wrong error) {
	if wrong != nil {
		n.r.warn(at, "fields that cannot be read are left out: %v", wrong)
	}
}

// spoil gives up the current context for an error of the file; any other error ends the reading.
func (n *nativeReader) spoil(at place, err error) error {
	var store sinkError
	if err == nil || errors.As(err, &store) || n.r.ctx.Err() != nil {
		return err
	}
	n.spoiled = true
	n.r.warn(at, "%v", err)
	return nil
}

func (n *nativeReader) header(at place, v value) error {
	version, _ := v.get(nativeName).int()
	if version > nativeVersion {
		return fmt.Errorf("the export is of version %d, and this program reads up to %d: update chatctx", version, nativeVersion)
	}
	h, wrong := decoded[nativeHeader](n.r, at, "first line", v)
	n.fields(at, wrong)
	n.contexts += max(h.Contexts, 0)
	if _, held := settings.HoldAll(h.Settings); len(held) > 0 {
		n.r.warn(at, "these settings of the store are held back: %s; chatctx config --accept shows and takes them", strings.Join(held, ", "))
	}
	if len(h.Settings) > 0 && n.r.settings != nil {
		return n.spoil(at, n.r.settings(h.Settings))
	}
	return nil
}

func (n *nativeReader) begin(at place, v value) error {
	if err := n.unfinished(at); err != nil {
		return err
	}
	n.strayed()
	n.came++
	n.begun = at
	n.inside, n.spoiled, n.messages, n.target = true, false, 0, nil
	n.title = show.Clip(v.get("title").str(), 60)
	c, wrong := decoded[record.Native](n.r, at, "context", v)
	n.fields(at, wrong)
	if c.Parent != (chatctx.ID{}) {
		before := n.whole[c.Parent]
		n.children[c.Parent] = append(n.children[c.Parent], nativeChild{c.ID, n.title, at, c.Task, !before})
		if !before { // it may come later
			c.Parent, c.Task = chatctx.ID{}, nil
		}
	}
	clear(n.held)
	n.r.warnHeld(n.title, n.held, c.Settings)
	n.id = c.ID
	n.taskNames(at, c.Parent, c.Task)
	target, alone, err := n.r.native(c)
	if err != nil {
		return n.spoil(at, err)
	}
	if n.target = target; alone {
		n.r.warn(at, "the parent of the sub-context %q was made here; it stands alone, and the rules of that parent do not hold for it", n.title)
	}
	return nil
}

// unfinished reports the current context if it has no end.
func (n *nativeReader) unfinished(at place) error {
	var err error
	if n.kept(at); n.inside {
		n.r.skipContext(n.messages, n.begun, "the conversation %q is damaged or incomplete and is left out", n.title)
		if n.target != nil {
			err = n.target.drop(n.r.ctx)
		}
	}
	n.inside, n.spoiled, n.target, n.batch, n.size, n.refs, n.froms = false, false, nil, nil, 0, nil, nil
	clear(n.has)
	clear(n.lines)
	clear(n.begins)
	n.skipped = n.r.report.Skipped
	return cmp.Or(n.r.ctx.Err(), err)
}

func (n *nativeReader) member(at place, kind string, v value) error {
	switch kind {
	case "message", "loose":
		return n.message(at, v, kind == "loose")
	case "call":
		return n.call(at, v)
	case "artifact":
		return n.artifact(at, v)
	}
	if err := n.flush(); err != nil {
		return err
	}
	switch kind {
	case "branch":
		return n.branch(at, v)
	case "again":
		ids, wrong := decoded[[]chatctx.ID](n.r, at, kind, v)
		n.fields(at, wrong)
		return n.target.Put(n.r.ctx, record.NativeAgain(n.known(at, ids)))
	case "tag":
		t, err := decoded[record.NativeTag](n.r, at, kind, v)
		n.refer(at, fmt.Sprintf("the tag %q", show.Clip(t.Name, 60)), t.Message, err, &t)
		return ofLine(err)
	case "mark":
		m, err := decoded[record.NativeMark](n.r, at, kind, v)
		n.refer(at, fmt.Sprintf("the mark %q", show.Clip(m.Mark, 60)), m.Message, err, &m)
		return ofLine(err)
	case "end":
		return n.end(at, v)
	}
	n.r.warn(at, "a line of the unknown kind %q is left out", show.Clip(kind, 40))
	return nil
}

// refer notes something that names a message, unless it is wrong.
func (n *nativeReader) refer(at place, what string, id chatctx.ID, wrong error, r record.Streamed) {
	if wrong == nil {
		n.refs = append(n.refs, nativeRef{at, what, id, r})
	}
}

// resolve passes on what names messages, once all have come. It reports what names one that did not come.
func (n *nativeReader) resolve() {
	for _, f := range n.froms {
		if _, there := n.begins[f.from]; !there {
			n.r.warn(f.at, "the origin of the branch %q is left out: the branch %q is not in the file", show.Clip(f.branch, 60), show.Clip(f.from, 60))
		}
	}
	for _, ref := range n.refs {
		if _, there := n.has[ref.id]; !there {
			n.r.warn(ref.at, "%s is left out: %s", ref.what, notThere(ref.id))
			continue
		}
		if ref.record == nil {
			continue
		}
		if err := n.target.Put(n.r.ctx, ref.record); err != nil {
			n.r.warn(ref.at, "%s is left out: %v", ref.what, err)
		}
	}
}

// notThere says in a report why something that names a message is left out.
func notThere(id chatctx.ID) string {
	if id == (chatctx.ID{}) {
		return "it names no message"
	}
	return nameOf(id) + " is not in the file"
}

// nameOf names a message in a report.
func nameOf(id chatctx.ID) string {
	if id == (chatctx.ID{}) {
		return "a message without an id"
	}
	return "the message " + id.String()
}

// known returns those of the ids whose messages are on a branch, and reports the others.
func (n *nativeReader) known(at place, ids []chatctx.ID) []chatctx.ID {
	return slices.DeleteFunc(ids, func(id chatctx.ID) bool {
		if !n.has[id] {
			n.r.warn(at, "%s is left out of the branch: the file names it before it has it", nameOf(id))
		}
		return !n.has[id]
	})
}

func (n *nativeReader) branch(at place, v value) error {
	b, wrong := decoded[record.NativeBranch](n.r, at, "branch", v)
	n.fields(at, wrong)
	if err := branchstore.CheckSessions(b.Sessions); err != nil {
		n.r.warn(at, "the sessions of the branch %q are left out: %v", show.Clip(b.Name, 60), err)
		b.Sessions = nil
	}
	for i, s := range b.Sessions {
		if s.Summary != (chatctx.ID{}) {
			n.refer(at, fmt.Sprintf("the summary of session %d of the branch %q", i+1, show.Clip(b.Name, 60)), s.Summary, nil, nil)
		}
	}
	if _, there := n.begins[b.From]; b.From != "" && !there {
		n.froms = append(n.froms, nativeFrom{at, b.Name, b.From})
	}
	n.begins[b.Name] = at.line
	n.there[b.ID] = true
	n.names(at, "the message at which the branch begins", b.At, n.id)
	n.r.warnHeld(n.title, n.held, b.Settings)
	return n.target.Put(n.r.ctx, &b)
}

func (n *nativeReader) message(at place, v value, loose bool) error {
	m, err := n.aMessage(at, v)
	if err != nil {
		return err
	}
	if n.size >= batchBytes || loose || n.loose {
		if err := n.flush(); err != nil {
			return err
		}
	}
	n.loose = loose
	n.there[m.ID] = true
	if m.CopiedFrom != nil {
		n.names(at, "the original of a copied message", *m.CopiedFrom, n.id)
	}
	n.has[m.ID] = n.has[m.ID] || !loose
	n.lines[m.ID] = at.line
	n.batch = append(n.batch, &record.NativeMessage{Message: m, Loose: loose})
	n.size += len(v.raw())
	return nil
}

func (n *nativeReader) call(at place, v value) error {
	c, err := decoded[record.NativeCall](n.r, at, "call", v)
	if err == nil {
		err = checkCall(&c)
	}
	if err != nil {
		return ofLine(err)
	}
	var of *chatctx.Message
	for _, r := range n.batch {
		if m, is := r.(*record.NativeMessage); is && m.Message.ID == c.Message && of == nil {
			of = m.Message
		}
	}
	switch {
	case of == nil:
		return ofLine(fmt.Errorf("it belongs to %s, which is not the one before it", nameOf(c.Message)))
	case c.Index < 0 || c.Index >= len(of.Calls):
		return ofLine(fmt.Errorf("the message %s has no call %d", c.Message, c.Index))
	}
	n.batch = append(n.batch, &c)
	return nil
}

// flush passes the messages that were read to the target.
func (n *nativeReader) flush() error {
	batch := n.batch
	n.batch, n.size = nil, 0
	if len(batch) == 0 {
		return nil
	}
	return n.target.Put(n.r.ctx, batch...)
}

func (n *nativeReader) artifact(at place, v value) error {
	a, err := decoded[record.NativeArtifact](n.r, at, "artifact", v)
	if err != nil {
		return ofLine(err)
	}
	if h := pool.HashOf(a.Data); h.String() != a.SHA256 {
		return fmt.Errorf("the bytes of the artifact %s do not match its name", show.Clip(a.SHA256, 64))
	}
	if n.r.artifact == nil {
		return nil
	}
	return n.r.artifact(a.Data, a.MediaType)
}

func (n *nativeReader) end(at place, v value) error {
	e, wrong := decoded[record.NativeEnd](n.r, at, "end", v)
	n.fields(at, wrong)
	if e.Messages != n.messages {
		return fmt.Errorf("the conversation should have %s and has %d", plural.Count(e.Messages, "message"), n.messages)
	}
	n.resolve()
	done, err := n.target.finish(n.r.ctx)
	if err != nil {
		return err
	}
	if done.Copied > 0 {
		n.r.warn(at, "messages of the conversation %q have ids that other conversations have; copies with new ids are stored: %d", n.title, done.Copied)
	}
	n.untaken(done.Untaken)
	n.inside, n.whole[n.id] = false, true
	if err := n.adopt(n.id, 0); err != nil {
		return err
	}
	return n.unfinished(at)
}

// untaken reports what the file says of the context otherwise than the store, at its lines.
func (n *nativeReader) untaken(left []record.Untaken) {
	for len(left) > 0 {
		u, what := left[0], []string{}
		for len(left) > 0 && left[0].Message == u.Message && left[0].Branch == u.Branch {
			what, left = append(what, show.Clip(left[0].What, mostOfPlace)), left[1:]
		}
		at, of := n.begun, fmt.Sprintf("the conversation %q", n.title)
		switch {
		case u.Message != "":
			id, _ := uuid.Parse(u.Message)
			at, of = atLine(n.lines[id]), "the message"
		case u.Branch != "":
			at, of = atLine(n.begins[u.Branch]), fmt.Sprintf("the branch %q", show.Clip(u.Branch, 60))
		}
		n.r.warn(at, "%s is here already; what the file says otherwise is not taken: %s", of, strings.Join(what, ", "))
	}
}

// dry returns a target that counts a context instead of storing it.
func (im *importer) dry(n record.Native) (target nativeTarget, alone bool, err error) {
	in := &record.Incoming{Format: nativeName, Conversation: n.ID.String(), Title: n.Title, Derived: n.Derived, Created: n.Created,
		Updated: n.Updated, Settings: n.Settings, AppData: n.AppData, Labels: n.Labels}
	return &nativeDry{tree: intake.NewTree(in), active: n.Active, sink: im.sink}, false, nil
}

// nativeDry makes an Incoming from a context.
type nativeDry struct {
	tree   *intake.Tree
	active string
	sink   func(*record.Incoming) error
}

func (d *nativeDry) Put(_ context.Context, run ...record.Streamed) error {
	for _, r := range run {
		if err := d.tree.Put(r); err != nil {
			return err
		}
	}
	return nil
}

func (d *nativeDry) drop(context.Context) error { return nil }

func (d *nativeDry) finish(context.Context) (record.Imported, error) {
	in := d.tree.In
	for i, b := range in.Branches {
		if b.Name == d.active {
			in.Branches[0], in.Branches[i] = in.Branches[i], in.Branches[0]
		}
	}
	return record.Imported{}, d.sink(in)
}
