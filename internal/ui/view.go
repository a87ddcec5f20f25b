package ui

import (
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/rivo/uniseg"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/screen"
)

// span is a part of a line of the screen: its first column and its width. Width 0 means that it is not shown.
type span struct{ x, w int }

// panes are the parts of the screen from left to right.
type panes struct{ list, tree, preview span }

// The widths from which on two and three panes are shown.
const (
	twoPanes   = 72
	threePanes = 140
)

// panes divides the screen by its width: one pane, the one with the focus; that and the preview; or list, tree and preview.
func (m *model) panes() panes {
	switch {
	case m.w < twoPanes:
		all := span{0, m.w}
		return map[pane]panes{onTree: {tree: all}, onList: {list: all}, onPreview: {preview: all}}[m.focus]
	case m.w < threePanes:
		left := span{0, m.w * 11 / 20}
		p := panes{preview: span{left.w + 1, m.w - left.w - 1}}
		if m.left == onList {
			p.list = left
		} else {
			p.tree = left
		}
		return p
	}
	p := panes{list: span{0, m.w / 5}}
	p.tree = span{p.list.w + 1, m.w * 2 / 5}
	p.preview = span{p.tree.x + p.tree.w + 1, m.w - p.tree.x - p.tree.w - 1}
	return p
}

func (m *model) listShown() bool { return m.panes().list.w > 0 }

// body returns how many lines are between the title and the status.
func (m *model) body() int { return max(m.h-2-len(m.bottom()), 1) }

// arrange fits everything to the screen.
func (m *model) arrange() {
	if m.h == 0 {
		return
	}
	if m.focus != onPreview {
		m.left = m.focus
	}
	body := m.body() - m.question.height(m)
	m.list.resize(m.list.count(), body-1) // one line is for the filter
	if m.conv != nil {
		m.conv.resize(len(m.conv.rows), body)
	}
	m.preview.height, m.preview.n = body, len(m.previewText(m.panes().preview.w))
	if m.atEnd {
		m.preview.top = m.preview.n
	}
	m.preview.scroll(0)
	if m.over != nil {
		m.over.arrange(m.w, body)
	}
}

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen, v.MouseMode, v.WindowTitle = true, tea.MouseModeCellMotion, "chatctx"
	if m.w == 0 {
		return v
	}
	lines := []string{m.title()}
	asked, x, y := m.question.draw(m)
	body := max(m.body()-len(asked), 0)
	if m.over != nil {
		lines = append(lines, m.fill(m.over.draw(m, body), m.w, body)...)
	} else {
		lines = append(lines, m.drawPanes(body)...)
	}
	bottom := m.bottom()
	lines = append(lines, asked...)
	lines = append(append(lines, m.status()), bottom...)
	if len(lines) > m.h {
		lines = lines[len(lines)-m.h:]
	}
	v.SetContent(strings.Join(lines, "\n"))
	switch {
	case m.question != nil:
		v.Cursor = tea.NewCursor(x, max(m.h-1-len(bottom)-len(asked), 0)+y)
	case m.list.typing && m.over == nil && m.listShown():
		v.Cursor = tea.NewCursor(min(m.width()("/ "+m.list.filter.text[:m.list.filter.at]), m.panes().list.w-1), 1)
	}
	return v
}

// cell returns a text in one style, cut or filled to exactly columns columns.
func (m *model) cell(style screen.Style, s string, columns int) string {
	return m.pen.Paint(style, m.fit(s, columns))
}

// fit cuts or fills plain text to columns columns.
func (m *model) fit(s string, columns int) string {
	s = m.shown(s)
	n := m.width()(s)
	if n > columns {
		s, n = m.cut(s, columns)
	}
	return s + strings.Repeat(" ", max(columns-n, 0))
}

// cut shortens text to columns columns, with an ellipsis, and returns its width. It adds up whole characters as the renderer measures them: where that differs
// from the terminal, as with joined emoji, the line is too short rather than too long.
func (m *model) cut(s string, columns int) (string, int) {
	if columns <= 0 {
		return "", 0
	}
	used, end, width := 0, 0, m.width()
	for g := uniseg.NewGraphemes(s); g.Next(); {
		w := width(g.Str())
		if used+w > columns-1 {
			break
		}
		used += w
		_, end = g.Positions()
	}
	return s[:end] + "…", used + 1
}

// draw returns a line of styled text with exactly columns columns.
func (m *model) draw(l screen.Line, columns int, over screen.Style) string {
	var b strings.Builder
	left := columns
	for _, s := range l {
		s.Text = m.shown(s.Text)
		n := m.width()(s.Text)
		if n > left {
			s.Text, n = m.cut(s.Text, left)
		}
		b.WriteString(m.pen.Paint(s.Style|over, s.Text))
		if left -= n; left <= 0 {
			break
		}
	}
	b.WriteString(m.pen.Paint(over, strings.Repeat(" ", max(left, 0))))
	return b.String()
}

// fill returns exactly n lines of a width.
func (m *model) fill(lines []screen.Line, columns, n int) []string {
	out := make([]string, 0, n)
	for _, l := range lines[:min(n, len(lines))] {
		out = append(out, m.draw(l, columns, 0))
	}
	for len(out) < n {
		out = append(out, strings.Repeat(" ", columns))
	}
	return out
}

// drawPanes draws the panes side by side.
func (m *model) drawPanes(body int) []string {
	p := m.panes()
	var columns [][]string
	if p.list.w > 0 {
		columns = append(columns, m.drawList(p.list.w, body))
	}
	if p.tree.w > 0 {
		columns = append(columns, m.drawTree(p.tree.w, body))
	}
	if p.preview.w > 0 {
		columns = append(columns, m.drawPreview(p.preview.w, body))
	}
	bar := m.pen.Paint(screen.Dim, "│")
	out := make([]string, body)
	for y := range out {
		parts := make([]string, len(columns))
		for i, c := range columns {
			parts[i] = c[y]
		}
		out[y] = strings.Join(parts, bar)
	}
	return out
}

// drawList draws the filter and the conversations.
func (m *model) drawList(columns, body int) []string {
	l := m.list
	head := screen.Line{{Text: "/ " + screen.OneLine(l.filter.text), Style: screen.Cyan}}
	if l.filter.text == "" && !l.typing {
		head = screen.Line{{Text: "conversations", Style: screen.Bold}, {Text: "  / filters", Style: screen.Dim}}
	}
	lines := []string{m.draw(head, columns, 0)}
	from, to := l.shown()
	for i := from; i < to; i++ {
		info := l.at(i)
		mark := screen.Span{Text: "  "}
		if info.Current {
			mark = screen.Span{Text: "* ", Style: screen.Green}
		}
		line := screen.Line{mark, {Text: screen.OneLine(titleOf(info))}}
		if columns >= 60 {
			when := screen.Moment(info.Updated)
			line = screen.Line{mark, {Text: screen.Pad(when, 16) + "  ", Style: screen.Dim}, {Text: screen.OneLine(titleOf(info))}}
		}
		lines = append(lines, m.draw(line, columns, m.selected(i == l.cursor, onList)))
	}
	if l.count() == 0 {
		lines = append(lines, m.cell(screen.Dim, emptyList(l), columns))
	}
	return m.filled(lines, columns, body)
}

// emptyList says why there are no conversations.
func emptyList(l *list) string {
	switch {
	case l.busy || !l.whole:
		return "reading …"
	case l.filter.text != "":
		return "no title fits"
	}
	return "no conversations yet; c makes one"
}

// selected returns the style of a pane's line, if it is at the cursor.
func (m *model) selected(is bool, in pane) screen.Style {
	switch {
	case is && m.focus == in:
		return screen.Reverse
	case is:
		return screen.Underline
	}
	return 0
}

// filled fills a pane with empty lines.
func (m *model) filled(lines []string, columns, body int) []string {
	for len(lines) < body {
		lines = append(lines, strings.Repeat(" ", columns))
	}
	return lines[:body]
}

// drawTree draws the rows on the screen.
func (m *model) drawTree(columns, body int) []string {
	v := m.conv
	if v == nil {
		text := "no conversation is open"
		if m.opening {
			text = "reading …"
		}
		return m.filled([]string{m.cell(screen.Dim, text, columns)}, columns, body)
	}
	var lines []string
	from, to := v.shown()
	for i := from; i < to; i++ {
		lines = append(lines, m.draw(m.rowLine(&v.rows[i], columns), columns, m.selected(i == v.cursor, onTree)))
	}
	if len(v.rows) == 0 {
		lines = append(lines, m.cell(screen.Dim, "nothing is said yet; i writes the first message", columns))
	}
	return m.filled(lines, columns, body)
}

// rowLine returns a row as `tree` draws it: id, branch names, tags, role and beginning.
func (m *model) rowLine(r *screen.Row, columns int) screen.Line {
	v := m.conv
	line := screen.Line{{Text: r.First}}
	switch r.Kind {
	case screen.GapRow:
		return append(line, screen.Span{Text: "… " + screen.Count(r.Count, "message"), Style: screen.Dim})
	case screen.FoldedRow:
		text := "… " + screen.Count(r.Count, "message")
		if r.Hidden > 1 {
			text += " on " + screen.Count(r.Hidden, "branch")
		}
		return append(append(line, m.names(r)...), screen.Span{Text: text, Style: screen.Dim})
	case screen.BeginRow:
		return append(append(line, m.names(r)...), screen.Span{Text: "(beginning)", Style: screen.Dim})
	}
	e := v.entry(r.Place)
	if e == nil {
		return append(append(line, m.names(r)...), screen.Span{Text: "…", Style: screen.Dim})
	}
	if columns >= 40 {
		line = append(line, screen.Span{Text: record.Short(e.ID) + " ", Style: screen.Yellow})
	}
	if v.pinned != nil && v.pinned.id == e.ID {
		line = append(line, screen.Span{Text: "(marked) ", Style: screen.Bold | screen.Cyan})
	}
	line = append(line, m.names(r)...)
	for _, tag := range v.tags[e.ID] {
		line = append(line, screen.Span{Text: "[" + screen.Cut(screen.OneLine(tag), 40) + "] ", Style: screen.Cyan})
	}
	if r.Kind == screen.LeafRow && r.Count > 1 {
		line = append(line, screen.Span{Text: "+" + strconv.Itoa(r.Count) + " "})
	}
	return append(append(line, screen.Span{Text: e.Turn + " "}), screen.Saying(e.Message)...)
}

// names returns the labels of the branches whose head is a row.
func (m *model) names(r *screen.Row) screen.Line {
	var out screen.Line
	for _, i := range r.Heads {
		b := m.conv.tree.Branches[i]
		name, style := "‹"+screen.Cut(screen.OneLine(b.Name), 40)+"› ", screen.Green
		if b.Active {
			name, style = strings.TrimRight(name, " ")+" active ", screen.Green|screen.Bold
		}
		if m.streaming(b.Name) != nil {
			name += "answering … "
		}
		out = append(out, screen.Span{Text: name, Style: style})
	}
	return out
}

// drawPreview draws the preview.
func (m *model) drawPreview(columns, body int) []string {
	lines := m.previewText(columns)
	return m.fill(lines[min(m.preview.top, max(len(lines)-1, 0)):], columns, body)
}

// previewText returns the lines of the preview: the message, and the answers after it.
func (m *model) previewText(columns int) []screen.Line {
	p := &m.preview
	lines := p.lines
	for _, s := range m.streamsShown() {
		if columns > 0 {
			lines = append(append(lines[:len(lines):len(lines)], s.lines(columns, m.width())...), nil)
		}
	}
	switch {
	case p.failed != nil:
		return []screen.Line{{{Text: screen.OneLine(p.failed.Error()), Style: screen.Red}}}
	case len(lines) == 0 && p.busy:
		return []screen.Line{{{Text: "…", Style: screen.Dim}}}
	}
	return lines
}
