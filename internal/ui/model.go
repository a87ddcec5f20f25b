package ui

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/pool"
)

// model is the state of the whole program. Only Update changes it.
type model struct {
	ctx    context.Context
	o      Options
	st     *chatctx.Store
	pen    screen.Pen
	send   func(tea.Msg)
	method ansi.Method // the renderer's way to measure text
	w, h   int

	focus    pane
	left     pane // the pane beside the preview if there is room for two
	watching bool
	list     *list
	conv     *conversation
	open     int // counts the openings, so that results of earlier ones can be ignored
	opening  bool
	// One reading of the open conversation runs at a time. A further request makes it run once more, so that the last result is the newest.
	reading, stale bool
	missed         map[chatctx.ID]bool // conversations that changed while one was being opened
	news           news

	typed    []tea.Msg   // waiting input
	input    tea.Msg     // the input that is being handled
	waitsFor func() bool // what the input waits for; nil for nothing
	acting   bool        // a change by this program is running
	unseen   bool        // one was made and is not read yet
	leaving  bool
	preview  preview
	readsOn  bool // the preview continues with the messages after the one at the cursor
	over     overlay
	keys     []key
	question *question
	// A change that the answer to the question caused is running.
	answering bool
	drafts    map[string]string // typed texts that were not sent
	note      string
	bad       bool      // the note is a failure
	notes     int       // counts the notes, so that a reading knows whether it began after the last one
	takesBack bool      // the note says that u takes back what it reports
	noteAt    pool.Time // the conversation's last change when the note was shown; 0 if it is not read yet
	streams   []*stream
	found     *search // the last search, for n and N

	trashed *record.ContextInfo // the conversation that was last put into the trash
	undone  string              // the branch of the last undo
	goHead  string              // the branch to whose head the cursor goes when the tree is read again
	reached *record.Hit         // the search hit to go to
	follow  *asking             // the cursor follows the head of the branch with this answer; nil if it stays
	atEnd   bool                // the preview shows the end of its text while it grows
	warned  bool                // about stopping answers by leaving
	errands errands
	fatal   error
}

func newModel(ctx context.Context, o Options) *model {
	m := &model{ctx: ctx, o: o, st: o.Store, pen: screen.Pen{Styles: true, Color: o.Color}, list: newList(ctx, o.Store), send: func(tea.Msg) {}, missed: map[chatctx.ID]bool{}, drafts: map[string]string{}}
	for _, g := range keyGroups() {
		m.keys = append(m.keys, g.keys...)
	}
	return m
}

// The messages with data that were read.
type (
	factsMsg struct {
		*facts
		open   int
		err    error
		head   string // the branch to whose head the cursor goes
		unseen bool   // they include the last change by this program
		notes  int    // how many notes were shown when the reading began
	}
	entriesMsg struct {
		of   *facts
		read map[screen.Place]cached
		err  error
	}
	changesMsg struct{ changes []record.Change }
	errMsg     struct{ error }
)

// Init opens the first conversation.
func (m *model) Init() tea.Cmd {
	m.opening = true
	return func() tea.Msg {
		c, err := m.st.Context(m.ctx, m.o.Context)
		if err != nil {
			return factsMsg{err: err}
		}
		f, err := m.readFacts(c)
		return factsMsg{facts: f, err: err}
	}
}

// opens begins to open another conversation, which a command finds.
func (m *model) opens(find func() (*chatctx.ChatContext, error)) tea.Cmd {
	m.open++
	m.conv, m.opening, m.reading, m.stale, m.unseen, m.goHead, m.undone = nil, true, false, false, false, "", ""
	open := m.open
	return func() tea.Msg {
		c, err := find()
		if err != nil {
			return factsMsg{open: open, err: err}
		}
		f, err := m.readFacts(c)
		return factsMsg{facts: f, open: open, err: err}
	}
}

// reread reads the open conversation again: now, or once more after the running reading, whose result may be too old.
func (m *model) reread() tea.Cmd {
	m.stale = true
	return m.readNext()
}

func (m *model) readNext() tea.Cmd {
	if m.conv == nil || m.reading || !m.stale {
		return nil
	}
	c, msg := m.conv.c, factsMsg{open: m.open, head: m.goHead, unseen: m.unseen, notes: m.notes}
	m.reading, m.stale, m.goHead = true, false, ""
	return func() tea.Msg {
		msg.facts, msg.err = m.readFacts(c)
		return msg
	}
}

// opened handles the facts of a conversation.
func (m *model) opened(msg factsMsg) tea.Cmd {
	if msg.err == nil {
		m.list.changed(msg.info)
	}
	if msg.open != m.open {
		return nil
	}
	m.opening, m.reading = false, false
	if msg.unseen {
		m.unseen = false
	}
	if !m.watching {
		m.watching = true
		m.errands.do(func() { m.watch(msg.facts) })
	}
	if msg.err != nil {
		m.unread(msg.err)
		return nil
	}
	if m.conv == nil {
		m.conv = &conversation{facts: msg.facts, glyphs: screen.LineGlyphs, entries: map[screen.Place]cached{}, asked: map[screen.Place]bool{}}
		m.arrange()
		m.conv.lay()
		m.conv.toHead(m.conv.active())
		m.stale = m.stale || m.missed[msg.c.ID]
	} else {
		m.conv.renew(msg.facts)
	}
	clear(m.missed)
	m.outdated(msg)
	if msg.head == "" && m.follow != nil && m.follow.streams[0].context == msg.c.ID {
		msg.head = m.follow.branch
	}
	m.toNamed(msg.head)
	next := m.readNext()
	if h := m.reached; h != nil {
		m.reached = nil
		return tea.Batch(next, m.reach(h))
	}
	return next
}

// unread reports why a conversation could not be read. The open one stays as it was read before, unless it is gone.
func (m *model) unread(err error) {
	clear(m.missed)
	first := m.open == 0 && m.conv == nil
	if errors.Is(err, errGone) && m.conv != nil {
		m.list.gone(m.conv.c.ID)
		m.conv, m.over, m.question, m.answering = nil, nil, nil, false
	}
	m.stale = true // the next key tries again
	if m.conv == nil {
		m.focus, m.reached, m.unseen = onList, nil, false
	}
	if !first || !errors.Is(err, chatctx.ErrNotFound) || m.o.Context != "" { // otherwise there is no conversation yet
		m.complain(err)
	}
}

// toNamed puts the cursor on the head of a branch, if it exists.
func (m *model) toNamed(name string) {
	if m.conv == nil || name == "" {
		return
	}
	if i := m.conv.named(name); i >= 0 {
		m.conv.toHead(i)
	}
}

// opener returns a function that finds a conversation by its id, for a command.
func (m *model) opener(id chatctx.ID) func() (*chatctx.ChatContext, error) {
	if m.conv != nil && m.conv.c.ID == id {
		c := m.conv.c
		return func() (*chatctx.ChatContext, error) { return c, nil }
	}
	return func() (*chatctx.ChatContext, error) { return m.st.Context(m.ctx, id.String()) }
}

// watch sends changes by others, also those between the first reading and now: the first look at a large store takes a while, so watch waits for that.
func (m *model) watch(read *facts) {
	changes, err := m.st.Watch(m.ctx)
	if err != nil {
		m.send(errMsg{err})
		return
	}
	m.send(m.meanwhile(read))
	for c := range changes {
		all := []record.Change{c}
		for waiting := len(changes); waiting > 0; waiting-- {
			all = append(all, <-changes)
		}
		m.send(changesMsg{all})
	}
}

// meanwhile returns the conversations that may have changed since the first reading: those that changed last, as many as the list had then.
func (m *model) meanwhile(read *facts) changesMsg {
	var msg changesMsg
	for info, err := range m.st.Contexts(m.ctx, record.ListOptions{}) {
		if err != nil || len(msg.changes) == listPage {
			break
		}
		if read == nil || info.ID != read.info.ID || info.Updated != read.info.Updated {
			msg.changes = append(msg.changes, record.Change{Context: info.ID})
		}
	}
	return msg
}

// noticed reads what changed.
func (m *model) noticed(msg changesMsg) tea.Cmd {
	var cmds []tea.Cmd
	for _, c := range msg.changes {
		switch {
		case c.Err != nil:
			m.complain(c.Err)
			continue
		case c.Context == (chatctx.ID{}): // the store's settings concern all conversations
			m.stale = true
		case m.conv != nil && m.conv.c.ID == c.Context:
			m.stale = true
		default:
			m.missed[c.Context] = m.opening
			m.news.add(c.Context)
		}
		if c.Kind == chatctx.Replaced { // the data that were read may be newer than the store
			m.replaced(c.Context)
		}
	}
	cmds = append(cmds, m.readNext(), m.readNews())
	if m.over != nil && len(msg.changes) > 0 {
		cmds = append(cmds, m.over.update(m, msg))
	}
	return tea.Batch(cmds...)
}

// replaced drops the data that were read of a conversation.
func (m *model) replaced(id chatctx.ID) {
	m.list.forget(id)
	if m.conv != nil && m.conv.c.ID == id {
		f := *m.conv.facts // a copy, so that results for the old facts are ignored too
		m.conv.facts, m.conv.entries = &f, map[screen.Place]cached{}
	}
}

// complain shows an error; it ignores nil.
func (m *model) complain(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		m.say(true, m.inKeys(err))
	}
}

// say shows a line at the bottom until the next key.
func (m *model) say(bad bool, text string) {
	m.note, m.bad, m.takesBack, m.noteAt = screen.OneLine(text), bad, false, 0
	m.notes++
}

// outdated takes the note away if u would take back something else by now.
func (m *model) outdated(msg factsMsg) {
	switch {
	case !m.takesBack || msg.notes != m.notes:
	case m.noteAt == 0:
		m.noteAt = msg.info.Updated
	case m.noteAt != msg.info.Updated:
		m.note, m.takesBack = "", false
	}
}

// width returns the renderer's width of a text after shown.
func (m *model) width() screen.Width {
	return func(s string) int { return m.method.StringWidth(m.shown(s)) }
}

// shown returns a text as it is sent to the terminal. For a terminal that does not say that it joins characters, it removes joiners, which would make the width
// of lines unpredictable.
func (m *model) shown(s string) string {
	if m.method == ansi.GraphemeWidth {
		return s
	}
	return screen.Unjoined(s)
}

// answering reports whether a living program is writing an answer on the active branch.
func (f *facts) answering() bool { return base.Held(f.claim, pool.Now()) }
