package ui

import (
	"context"
	"errors"
	"sync"

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
	asked    int // counts the readings of what is open
	read     int // the newest of them that has come
	opening  bool
	preview  preview
	readsOn  bool // the preview goes on with the messages after the one at the cursor
	over     overlay
	keys     []key
	question *question
	note     string
	bad      bool // the note is a failure
	streams  []*stream
	found    *search // the last search, for n and N

	undone  string       // the branch on which something was taken back last
	goHead  string       // the branch whose head the cursor goes to when the tree is read anew
	reached *chatctx.Hit // what it goes to
	follow  bool         // the preview follows an answer that comes to its end
	working sync.WaitGroup
	fatal   error
}

func newModel(ctx context.Context, o Options) *model {
	m := &model{ctx: ctx, o: o, st: o.Store, pen: screen.Pen{Styles: true, Color: o.Color}, list: newList(ctx, o.Store), send: func(tea.Msg) {}}
	for _, g := range keyGroups() {
		m.keys = append(m.keys, g.keys...)
	}
	return m
}

// The messages that bring what was read.
type (
	factsMsg struct {
		*facts
		open  int
		asked int
		err   error
		head  string // the branch whose head the cursor goes to
	}
	entriesMsg struct {
		of   *facts
		read map[screen.Place]cached
		err  error
	}
	infoMsg    struct{ info *chatctx.ContextInfo }
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

// opens counts that another conversation is opened, whose readings are counted anew.
func (m *model) opens() int {
	m.open, m.asked, m.read = m.open+1, 0, 0
	return m.open
}

// reread reads the conversation that is open anew.
func (m *model) reread(c *chatctx.ChatContext) tea.Cmd {
	m.asked++
	open, asked, head := m.open, m.asked, m.goHead
	m.opening, m.goHead = true, "" // what is on its way already may be older than the head
	return func() tea.Msg {
		f, err := m.readFacts(c)
		return factsMsg{facts: f, open: open, asked: asked, head: head, err: err}
	}
}

// opened takes what was read of a conversation.
func (m *model) opened(msg factsMsg) tea.Cmd {
	if msg.open != m.open {
		return nil
	}
	if msg.asked < m.read && msg.err == nil { // newer facts came before
		m.toNamed(msg.head)
		return nil
	}
	m.opening, m.read = false, msg.asked
	var watch tea.Cmd
	if !m.watching {
		m.watching, watch = true, m.watch(msg.facts)
	}
	if msg.err != nil {
		m.focus = onList
		if !errors.Is(msg.err, chatctx.ErrNotFound) || m.o.Context != "" {
			m.complain(msg.err)
		}
		return watch
	}
	if m.conv == nil || m.conv.c.ID != msg.c.ID {
		m.conv = &conversation{facts: msg.facts, glyphs: screen.LineGlyphs, entries: map[screen.Place]cached{}, asked: map[screen.Place]bool{}}
		m.arrange()
		m.conv.lay()
		m.conv.toHead(m.conv.active())
	} else {
		m.conv.renew(msg.facts)
	}
	m.list.changed(msg.info)
	m.toNamed(msg.head)
	if h := m.reached; h != nil {
		m.reached = nil
		return tea.Batch(watch, m.reach(h))
	}
	return watch
}

// toNamed puts the cursor on the head of a branch, where it is there.
func (m *model) toNamed(name string) {
	if i := m.conv.named(name); name != "" && i >= 0 {
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

// watch tells of what others do, and of what they did to a conversation since it was read: the first look at a large store takes a while, so it waits for the first
// screen.
func (m *model) watch(read *facts) tea.Cmd {
	return func() tea.Msg {
		changes, err := m.st.Watch(m.ctx)
		if err != nil {
			return errMsg{err}
		}
		m.working.Go(func() {
			for c := range changes {
				all := []chatctx.Change{c}
				for waiting := len(changes); waiting > 0; waiting-- {
					all = append(all, <-changes)
				}
				m.send(changesMsg{all})
			}
		})
		if read == nil {
			return nil
		}
		if info, err := read.c.Info(m.ctx); err == nil && info.Updated != read.info.Updated {
			return changesMsg{[]chatctx.Change{{Context: info.ID}}}
		}
		return nil
	}
}

// noticed reads anew what changed.
func (m *model) noticed(msg changesMsg) tea.Cmd {
	var cmds []tea.Cmd
	seen := map[chatctx.ID]bool{}
	for _, c := range msg.changes {
		if c.Err != nil {
			m.complain(c.Err)
		}
		if c.Context == (chatctx.ID{}) || seen[c.Context] {
			continue
		}
		seen[c.Context] = true
		if m.conv != nil && m.conv.c.ID == c.Context {
			cmds = append(cmds, m.reread(m.conv.c))
			continue
		}
		find := m.opener(c.Context)
		cmds = append(cmds, func() tea.Msg {
			ctx, err := find()
			if err != nil {
				return nil // it was purged
			}
			info, err := ctx.Info(m.ctx)
			if err != nil {
				return nil
			}
			return infoMsg{info}
		})
	}
	if m.over != nil && len(msg.changes) > 0 {
		cmds = append(cmds, m.over.update(m, msg))
	}
	return tea.Batch(cmds...)
}

// complain shows a failure; nil shows nothing.
func (m *model) complain(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		m.say(true, err.Error())
	}
}

// say shows a line at the bottom until the next key.
func (m *model) say(bad bool, text string) { m.note, m.bad = screen.OneLine(text), bad }

// width measures as the renderer does.
func (m *model) width() screen.Width { return m.method.StringWidth }

// answering reports whether a program that lives answers on the active branch.
func (f *facts) answering() bool { return f.claim != nil && !f.claim.Dead(pool.Now()) }
