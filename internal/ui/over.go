package ui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/internal/screen"
)

// overlay covers the panes for a while: the keys, search results, the journal, the waiting calls.
type overlay interface {
	arrange(columns, lines int)
	key(m *model, k tea.KeyPressMsg) tea.Cmd
	update(m *model, msg tea.Msg) tea.Cmd
	draw(m *model, lines int) []screen.Line
	hint() string
	coming() bool // nothing of it is read yet
	rolls() *roll // the part that the mouse scrolls
	enter(m *model) tea.Cmd
}

// sheet is the common part of overlays: a heading and a list.
type sheet struct {
	roll
	heading string
	columns int
}

func (s *sheet) arrange(columns, lines int) {
	s.columns = columns
	s.resize(s.n, lines-1)
}

func (s *sheet) rolls() *roll { return &s.roll }
func (s *sheet) coming() bool { return false }

// closes handles the keys that move in an overlay or close it, and reports whether it was one.
func (s *sheet) closes(m *model, k tea.KeyPressMsg) bool {
	switch name := k.String(); name {
	case "esc", "q", "ctrl+c":
		m.over = nil
		return true
	default:
		return s.moved(name)
	}
}

// list draws the heading and the lines on the screen.
func (s *sheet) list(line func(i int) screen.Line) []screen.Line {
	out := []screen.Line{{{Text: s.heading, Style: screen.Bold}}}
	from, to := s.shown()
	for i := from; i < to; i++ {
		l := line(i)
		if i == s.cursor && !s.reads {
			marked := make(screen.Line, len(l))
			for j, span := range l {
				marked[j] = screen.Span{Text: span.Text, Style: span.Style | screen.Reverse}
			}
			l = marked
		}
		out = append(out, l)
	}
	return out
}

// help is the list of keys.
type help struct {
	sheet
	width screen.Width
	lines []screen.Line
}

func (m *model) openHelp() tea.Cmd {
	h := &help{width: m.width()}
	h.heading, h.reads = "Keys", true
	m.over = h
	return nil
}

func (h *help) arrange(columns, lines int) {
	if columns != h.columns {
		h.lines = helpKeys(columns, h.width)
		h.n = len(h.lines)
	}
	h.sheet.arrange(columns, lines)
}

func (h *help) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	if !h.closes(m, k) && k.String() == "?" {
		m.over = nil
	}
	return nil
}

func (h *help) update(*model, tea.Msg) tea.Cmd { return nil }
func (h *help) enter(m *model) tea.Cmd         { m.over = nil; return nil }
func (h *help) hint() string                   { return "esc: back" }

func (h *help) draw(m *model, _ int) []screen.Line {
	return h.list(func(i int) screen.Line { return h.lines[i] })
}
