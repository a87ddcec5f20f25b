package ui

import (
	tea "charm.land/bubbletea/v2"
)

// wheelLines is how many lines a notch of the wheel moves.
const wheelLines = 3

// paneAt returns the pane at a column.
func (m *model) paneAt(x int) (pane, bool) {
	p := m.panes()
	for _, c := range []struct {
		span
		pane
	}{{p.list, onList}, {p.tree, onTree}, {p.preview, onPreview}} {
		if x >= c.x && x < c.x+c.w {
			return c.pane, true
		}
	}
	return 0, false
}

// click moves the cursor to the clicked line; a click on the line at the cursor opens it.
func (m *model) click(at tea.Mouse) tea.Cmd {
	if at.Button != tea.MouseLeft || m.question != nil {
		return nil
	}
	m.note = ""
	y := at.Y - 1 // below the title
	if m.over != nil {
		return m.clickOver(y - 1)
	}
	in, ok := m.paneAt(at.X)
	if !ok || y < 0 || y >= m.body() {
		return nil
	}
	was := m.focus
	m.focus = in
	switch {
	case in == onList:
		m.list.typing = y == 0
		if line := m.list.top + y - 1; y > 0 && line < m.list.count() {
			again := was == onList && line == m.list.cursor
			if m.list.to(line); again {
				return m.enterList()
			}
		}
	case in == onTree && m.conv != nil:
		if line := m.conv.top + y; line < len(m.conv.rows) {
			again := was == onTree && line == m.conv.cursor
			if m.conv.to(line); again && m.conv.open(m.conv.here()) {
				m.conv.lay()
			}
		}
	}
	return nil
}

func (m *model) clickOver(y int) tea.Cmd {
	r := m.over.rolls()
	line := r.top + y
	if y < 0 || y >= r.height || line >= r.n || r.reads {
		return nil
	}
	if line == r.cursor {
		return m.over.enter(m)
	}
	r.to(line)
	return nil
}

// wheel scrolls the pane under the mouse.
func (m *model) wheel(at tea.Mouse) tea.Cmd {
	lines := wheelLines
	switch at.Button {
	case tea.MouseWheelUp:
		lines = -lines
	case tea.MouseWheelDown:
	default:
		return nil
	}
	if m.over != nil {
		m.over.rolls().by(lines)
		return nil
	}
	in, _ := m.paneAt(at.X)
	switch {
	case in == onList:
		m.list.by(lines)
	case in == onPreview:
		m.preview.scroll(lines)
	case m.conv != nil:
		m.conv.by(lines)
	}
	return nil
}
