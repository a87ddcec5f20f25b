package ui

import (
	"context"
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/screen"
)

// mostHits bounds how many hits one search shows.
const mostHits = 200

// search is a search and its hits.
type search struct {
	sheet
	asked  *question
	text   string
	all    bool // in all conversations
	hits   []*record.Hit
	busy   bool
	cancel context.CancelFunc
}

type hitsMsg struct {
	of   *search
	hits []*record.Hit
	err  error
}

func (m *model) askSearch(all bool) tea.Cmd {
	label := "search in this conversation"
	if all || m.conv == nil {
		label, all = "search in all conversations", true
	}
	var q *question
	q = m.ask(label, "", func(m *model, text string) (tea.Cmd, error) { return m.search(q, text, all), nil })
	return nil
}

func (m *model) search(q *question, text string, all bool) tea.Cmd {
	ctx, cancel := context.WithCancel(m.ctx)
	s := &search{asked: q, text: text, all: all, busy: true, cancel: cancel}
	m.found, m.over = s, s
	o := record.SearchOptions{Text: text, Limit: mostHits}
	if !all {
		o.Context = m.conv.c.ID.String()
	}
	st := m.st
	return func() tea.Msg {
		msg := hitsMsg{of: s}
		for h, err := range st.Search(ctx, o) {
			if err != nil {
				msg.err = err
				break
			}
			msg.hits = append(msg.hits, h)
		}
		return msg
	}
}

func (s *search) update(m *model, msg tea.Msg) tea.Cmd {
	if msg, ok := msg.(hitsMsg); ok && msg.of == s {
		s.hits, s.busy, s.n = msg.hits, false, len(msg.hits)
		s.cancel()
		if errors.Is(msg.err, chatctx.ErrInvalid) {
			m.over = nil
			m.refuse(s.asked, msg.err)
			return nil
		}
		m.complain(msg.err)
	}
	return nil
}

func (s *search) coming() bool { return s.busy }
func (s *search) hint() string { return "enter: go there  n N: the next, the one before  esc: back" }

func (s *search) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	switch {
	case s.closes(m, k):
		if m.over == nil {
			s.cancel()
		}
	case k.String() == "enter":
		return s.enter(m)
	}
	return nil
}

func (s *search) enter(m *model) tea.Cmd {
	if s.cursor >= len(s.hits) {
		return nil
	}
	m.over = nil
	return m.goToHit(s.hits[s.cursor])
}

func (s *search) draw(m *model, _ int) []screen.Line {
	s.heading = fmt.Sprintf("%s for %q", screen.Count(len(s.hits), "place"), screen.OneLine(s.text))
	if s.busy {
		s.heading = "looking …"
	}
	return s.list(func(i int) screen.Line {
		h := s.hits[i]
		var line screen.Line
		if s.all {
			line = append(line, screen.Span{Text: screen.Pad(screen.Cut(screen.OneLine(h.Title), 24), 24) + " ", Style: screen.Bold})
		}
		if len(h.Branches) > 0 {
			line = append(line, screen.Span{Text: fmt.Sprintf("%s #%d ", screen.OneLine(h.Branches[0].Name), h.Branches[0].Position), Style: screen.Green})
		}
		what := h.What
		if h.Message != nil {
			what = string(h.Message.Role)
		}
		return append(line, screen.Span{Text: what, Style: screen.Cyan}, screen.Span{Text: ": " + screen.OneLine(h.Snippet)})
	})
}

// nextFound goes to another hit, without the list.
func (m *model) nextFound(step int) tea.Cmd {
	s := m.found
	if s == nil || len(s.hits) == 0 {
		m.say(true, "no search yet; / searches")
		return nil
	}
	s.cursor = (s.cursor + step + len(s.hits)) % len(s.hits)
	m.say(false, fmt.Sprintf("%d of %d", s.cursor+1, len(s.hits)))
	return m.goToHit(s.hits[s.cursor])
}

// goToHit shows a hit: the message in its tree.
func (m *model) goToHit(h *record.Hit) tea.Cmd {
	m.focus = onTree
	if m.conv != nil && m.conv.c.ID == h.Context {
		return m.reach(h)
	}
	open := m.openContext(&record.ContextInfo{ContextFacts: record.ContextFacts{ID: h.Context}})
	m.reached = h
	return open
}

// reach puts the cursor on a hit in the open conversation.
func (m *model) reach(h *record.Hit) tea.Cmd {
	for _, b := range h.Branches {
		if i := m.conv.named(b.Name); i >= 0 && b.Position > 0 && b.Position <= m.conv.tree.Branches[i].Messages {
			m.conv.find(screen.Place{Branch: i, Position: b.Position})
			return nil
		}
	}
	if h.Message == nil {
		return nil
	}
	c, ctx, branch := m.conv.c, m.ctx, m.conv.info.Active
	return m.act(func() tea.Msg { // it changes nothing, but further keys are meant for the new place
		snap, err := c.Snapshot(ctx, branch)
		if err != nil {
			return errMsg{err}
		}
		e, err := snap.Place(ctx, record.RefTo(h.Message.ID))
		var elsewhere *record.RefError
		if errors.As(err, &elsewhere) && elsewhere.On != "" {
			branch = elsewhere.On
			if snap, err = c.Snapshot(ctx, branch); err == nil {
				e, err = snap.Place(ctx, record.RefTo(h.Message.ID))
			}
		}
		if err != nil {
			return errMsg{err}
		}
		return placedMsg{c.ID, branch, e.Position}
	})
}

// placedMsg is the place of a message.
type placedMsg struct {
	context  chatctx.ID
	branch   string
	position int
}

func (m *model) placed(msg placedMsg) {
	if m.conv == nil || m.conv.c.ID != msg.context {
		return
	}
	if i := m.conv.named(msg.branch); i >= 0 {
		m.conv.find(screen.Place{Branch: i, Position: msg.position})
	}
}
