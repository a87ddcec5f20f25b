package ui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/internal/screen"
)

// mostTall returns how many lines of a terminal the prompt may take, with what is above and below it.
func mostTall(lines int) int { return max(lines/2, 2) }

// mostOffered is how many completions are shown at once.
const mostOffered = 6

func (m *prompt) pen() screen.Pen { return m.p.pen }

// View draws the arriving text, the current activity, the line, and the completions.
func (m *prompt) View() tea.View {
	v := tea.NewView(m.label) // never empty: printed text is put above a line
	if m.gone {
		v.SetContent("")
	}
	if m.w == 0 || m.gone {
		return v
	}
	tall := mostTall(m.h)
	typed, x, y := m.typed(max(tall-2, 1))
	below := m.below(min(mostOffered, tall-len(typed)))
	above := m.above(tall - len(typed) - len(below))
	v.SetContent(strings.Join(append(append(above, typed...), below...), "\n"))
	if !m.closed {
		v.Cursor = tea.NewCursor(x, len(above)+y)
	}
	return v
}

// above returns the last lines of the arriving text, or the current activity.
func (m *prompt) above(most int) []string {
	var out []string
	if m.doing != "" && len(m.rest) == 0 {
		out = []string{m.fitted(screen.Line{{Text: screen.OneLine(m.doing), Style: screen.Dim}})}
	}
	out = append(out, m.rest...)
	for _, w := range m.waiting {
		out = append(out, strings.Split(w, "\n")...)
	}
	return out[max(len(out)-max(most, 0), 0):]
}

// typed returns the lines of the text with the label before the first, and the cursor's place in them.
func (m *prompt) typed(most int) (out []string, x, y int) {
	if m.closed {
		return []string{" "}, 0, 0
	}
	label, f := m.label, &m.field
	if s := m.search; s != nil {
		shown := field{lines: true}
		if s.at >= 0 {
			shown.set(m.past.lines[s.at])
		}
		label, f = "search “"+screen.OneLine(s.words.text)+"”: ", &shown
	}
	head, indent := m.head(label)
	lines, places := f.lay(max(m.w-indent-1, 1), m.method.StringWidth)
	at := f.cursor(places)
	most = max(most-len(head)+1, 1)
	top := min(max(at.y-most+1, 0), max(len(lines)-most, 0))
	first := len(head) - 1
	out = head
	for i, l := range lines[top:min(top+most, len(lines))] {
		if i > 0 {
			out = append(out, strings.Repeat(" ", indent))
		}
		out[first+i] += l
	}
	return out, indent + at.x, first + at.y - top
}

// head returns the label with the line that begins after it, and that line's indentation. A label that would leave little room is on its own line.
func (m *prompt) head(label string) (lines []string, indent int) {
	if indent = m.method.StringWidth(label); indent <= m.w/2 {
		return []string{m.pen().Paint(screen.Bold, label)}, indent
	}
	return []string{m.fitted(screen.Line{{Text: label, Style: screen.Bold}}), ""}, 0
}

// below returns a note, or some of the completions around the chosen one.
func (m *prompt) below(most int) (out []string) {
	if m.note != "" && most > 0 {
		return []string{m.fitted(screen.Line{{Text: screen.OneLine(m.note), Style: screen.Dim}})}
	}
	o := &m.offers
	r := roll{}
	r.resize(len(o.list), most)
	r.to(max(o.chosen, 0))
	wide := 0
	from, to := r.shown()
	if most <= 0 {
		return nil
	}
	for _, c := range o.list[from:to] {
		wide = max(wide, min(m.method.StringWidth(screen.OneLine(c.Word)), m.w/2))
	}
	for i := from; i < to; i++ {
		c, style := o.list[i], screen.Style(0)
		if i == o.chosen {
			style = screen.Reverse
		}
		word := screen.OneLine(c.Word)
		gap := strings.Repeat(" ", max(wide-m.method.StringWidth(word), 0))
		out = append(out, m.fitted(screen.Line{{Text: "  ", Style: 0}, {Text: word, Style: style}, {Text: gap + "  " + screen.OneLine(c.Hint), Style: screen.Dim}}))
	}
	return out
}

// fitted returns a line that is not wider than the terminal.
func (m *prompt) fitted(l screen.Line) string {
	return strings.TrimRight((&model{pen: m.p.pen, method: m.method}).draw(l, m.w-1, 0), " ")
}

// echo returns an entered line as it is printed.
func (m *prompt) echo(label, text string) string {
	indent := strings.Repeat(" ", m.method.StringWidth(label))
	lines := strings.Split(screen.Clean(text), "\n")
	for i := range lines[1:] {
		lines[i+1] = indent + lines[i+1]
	}
	return m.pen().Paint(screen.Bold, label) + strings.Join(lines, "\n")
}
