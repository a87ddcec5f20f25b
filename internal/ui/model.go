package ui

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/pool"
)

// model is the whole program between two messages. Only Update changes it.
type model struct {
	ctx    context.Context
	o      Options
	st     *chatctx.Store
	pen    screen.Pen
	send   func(tea.Msg)
	method ansi.Method // how the renderer measures
	w, h   int

	focus    pane
	left     pane // what stands beside the preview where there is room for two
	watching bool
	list     *list
	conv     *conversation
	open     int // counts what was opened: what comes of an earlier one is left
	opening  bool
	// One reading of what is open is on its way at a time. What asks for another meanwhile has it read once more, so that what comes last is the newest.
	reading, stale bool
	missed         map[chatctx.ID]bool // conversations that changed while one was being opened
	news           news

	typed    []tea.Msg   // input that waits
	input    tea.Msg     // the one that is being taken
	waitsFor func() bool // it waits for this, nil: for nothing
	acting   bool        // a change of this program is under way
	unseen   bool        // one was made and is not read yet
	leaving  bool
	preview  preview
	readsOn  bool // the preview goes on with the messages after the one at the cursor
	over     overlay
	keys     []key
	question *question
	// A change is under way that the answer to the question led to.
	answering bool
	drafts    map[string]string // texts that were typed and not given away
	note      string
	bad       bool // the note is a failure
	streams   []*stream
	found     *search // the last search, for n and N

	trashed *chatctx.ContextInfo // the conversation that was put into the trash last
	undone  string               // the branch on which something was taken back last
	goHead  string               // the branch whose head the cursor goes to when the tree is read anew
	reached *chatctx.Hit         // what it goes to
	follow  *asking              // the cursor goes to the head of the branch where this is answered; nil: it stays where it is
	atEnd   bool                 // the preview shows the end of its text, as it grows
	warned  bool                 // that leaving stops answers
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

// The messages that bring what was read.
type (
	factsMsg struct {
		*facts
		open   int
		err    error
		head   string // the branch whose head the cursor goes to
		unseen bool   // they have what a change of this program made
	}
	entriesMsg struct {
		of   *facts
		read map[screen.Place]cached
		err  error
	}
	changesMsg struct{ changes []chatctx.Change }
	errMsg     struct{ error }
)

// Init opens the conversation to begin in.
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

// opens begins to open another conversation, in a command that finds it.
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

// reread reads the conversation that is open anew: now, or once more when the reading that is on its way has come, which may be older than what it is read for.
func (m *model) reread() tea.Cmd {
	m.stale = true
	return m.readNext()
}

func (m *model) readNext() tea.Cmd {
	if m.conv == nil || m.reading || !m.stale {
		return nil
	}
	c, msg := m.conv.c, factsMsg{open: m.open, head: m.goHead, unseen: m.unseen}
	m.reading, m.stale, m.goHead = true, false, ""
	return func() tea.Msg {
		msg.facts, msg.err = m.readFacts(c)
		return msg
	}
}

// opened takes what was read of a conversation.
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

// unread says why a conversation could not be read. What is open stays as it was read before, unless it is gone.
func (m *model) unread(err error) {
	clear(m.missed)
	first := m.open == 0 && m.conv == nil
	if errors.Is(err, errGone) && m.conv != nil {
		m.list.gone(m.conv.c.ID)
		m.conv, m.over, m.question, m.answering = nil, nil, nil, false
	}
	m.stale = true // it is tried again with the next key
	if m.conv == nil {
		m.focus, m.reached, m.unseen = onList, nil, false
	}
	if !first || !errors.Is(err, chatctx.ErrNotFound) || m.o.Context != "" { // else there is no conversation yet
		m.complain(err)
	}
}

// toNamed puts the cursor on the head of a branch, where it is there.
func (m *model) toNamed(name string) {
	if m.conv == nil || name == "" {
		return
	}
	if i := m.conv.named(name); i >= 0 {
		m.conv.toHead(i)
	}
}

// opener finds a conversation by its id, in a command.
func (m *model) opener(id chatctx.ID) func() (*chatctx.ChatContext, error) {
	if m.conv != nil && m.conv.c.ID == id {
		c := m.conv.c
		return func() (*chatctx.ChatContext, error) { return c, nil }
	}
	return func() (*chatctx.ChatContext, error) { return m.st.Context(m.ctx, id.String()) }
}

// watch tells of what others do, also of what they did between the reading of the first screen and now: the first look at a large store takes a while, so it waits for that.
func (m *model) watch(read *facts) {
	changes, err := m.st.Watch(m.ctx)
	if err != nil {
		m.send(errMsg{err})
		return
	}
	m.send(m.meanwhile(read))
	for c := range changes {
		all := []chatctx.Change{c}
		for waiting := len(changes); waiting > 0; waiting-- {
			all = append(all, <-changes)
		}
		m.send(changesMsg{all})
	}
}

// meanwhile are the conversations that may have changed since the first screen was read: those that changed last, as many as the list had by then.
func (m *model) meanwhile(read *facts) changesMsg {
	var msg changesMsg
	for info, err := range m.st.Contexts(m.ctx, chatctx.ListOptions{}) {
		if err != nil || len(msg.changes) == listPage {
			break
		}
		if read == nil || info.ID != read.info.ID || info.Updated != read.info.Updated {
			msg.changes = append(msg.changes, chatctx.Change{Context: info.ID})
		}
	}
	return msg
}

// noticed reads anew what changed.
func (m *model) noticed(msg changesMsg) tea.Cmd {
	var cmds []tea.Cmd
	for _, c := range msg.changes {
		switch {
		case c.Err != nil:
			m.complain(c.Err)
			continue
		case c.Context == (chatctx.ID{}): // the store's settings are everybody's
			m.stale = true
		case m.conv != nil && m.conv.c.ID == c.Context:
			m.stale = true
		default:
			m.missed[c.Context] = m.opening
			m.news.add(c.Context)
		}
		if c.Kind == chatctx.Replaced { // what was read may be newer than what there is
			m.replaced(c.Context)
		}
	}
	cmds = append(cmds, m.readNext(), m.readNews())
	if m.over != nil && len(msg.changes) > 0 {
		cmds = append(cmds, m.over.update(m, msg))
	}
	return tea.Batch(cmds...)
}

// replaced forgets what was read of a conversation.
func (m *model) replaced(id chatctx.ID) {
	m.list.forget(id)
	if m.conv != nil && m.conv.c.ID == id {
		f := *m.conv.facts // so what is read for the old ones is not taken either
		m.conv.facts, m.conv.entries = &f, map[screen.Place]cached{}
	}
}

// complain shows a failure; nil shows nothing.
func (m *model) complain(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		m.say(true, m.inKeys(err))
	}
}

// say shows a line at the bottom until the next key.
func (m *model) say(bad bool, text string) { m.note, m.bad = screen.OneLine(text), bad }

// width measures as the renderer does what shown gives it.
func (m *model) width() screen.Width {
	return func(s string) int { return m.method.StringWidth(m.shown(s)) }
}

// shown is text as it goes to the terminal. One that does not say that it joins characters gets none that some join and others do not: lines would end where nobody knows.
func (m *model) shown(s string) string {
	if m.method == ansi.GraphemeWidth {
		return s
	}
	return screen.Unjoined(s)
}

// answering reports whether a program that lives answers on the active branch.
func (f *facts) answering() bool { return f.claim != nil && !f.claim.Dead(pool.Now()) }
