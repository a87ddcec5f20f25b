package ui

import (
	"context"
	"io"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/chatctx/chatctx/internal/screen"
)

// Choice is something to pick: Name is shown and filtered, Before is shown before it.
type Choice struct {
	Name   string
	Before string
	Marked bool // it is the current one
}

// Pick lets the person choose one of several lines by typing a part of it. It returns the line's index, -1 if none was chosen. more returns lines until there
// are no more (the bool is true); it runs beside the loop that handles keys.
func Pick(ctx context.Context, in io.Reader, out io.Writer, color bool, title string, more func() ([]Choice, bool, error)) (int, error) {
	var reading sync.Mutex
	p := &picker{title: title, chosen: -1, pen: screen.Pen{Styles: true, Color: color}}
	p.more = func() ([]Choice, bool, error) {
		reading.Lock()
		defer reading.Unlock()
		return more()
	}
	_, err := tea.NewProgram(p, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	reading.Lock() // so that the last reading has ended when the caller goes on
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if p.failed != nil {
		err = p.failed
	}
	return p.chosen, err
}

type picker struct {
	roll
	title   string
	more    func() ([]Choice, bool, error)
	choices []Choice
	folds   [][]rune
	found   []int
	filter  field
	whole   bool
	enters  bool // the best match is chosen when all lines are read
	chosen  int
	failed  error
	pen     screen.Pen
	method  ansi.Method
	w, h    int
}

type choicesMsg struct {
	choices []Choice
	whole   bool
	err     error
}

func (p *picker) Init() tea.Cmd { return p.read }

func (p *picker) read() tea.Msg {
	choices, whole, err := p.more()
	return choicesMsg{choices, whole, err}
}

func (p *picker) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		p.w, p.h = msg.Width, msg.Height
	case tea.ModeReportMsg:
		if msg.Mode == ansi.ModeUnicodeCore && (msg.Value.IsReset() || msg.Value.IsSet()) {
			p.method = ansi.GraphemeWidth
		}
	case choicesMsg:
		if p.whole, p.failed = msg.whole, msg.err; msg.err != nil {
			return p, tea.Quit
		}
		for _, c := range msg.choices {
			p.choices, p.folds = append(p.choices, c), append(p.folds, folded(c.Name))
		}
		p.refilter()
		if !p.whole {
			return p, p.read
		}
		if p.enters {
			return p.choose()
		}
	case tea.PasteMsg:
		p.filter.insert(msg.Content)
		p.refilter()
	case tea.MouseWheelMsg:
		p.by(map[tea.MouseButton]int{tea.MouseWheelUp: -wheelLines, tea.MouseWheelDown: wheelLines}[msg.Button])
	case tea.MouseClickMsg:
		if line := p.top + msg.Y - 1; msg.Y > 0 && line < p.n {
			p.to(line)
			return p.choose()
		}
	case tea.KeyPressMsg:
		return p.key(msg)
	}
	p.resize(p.n, p.h-1)
	return p, nil
}

func (p *picker) key(k tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	p.enters = false
	switch name := k.Keystroke(); name {
	case "enter":
		return p.choose()
	case "esc", "ctrl+c":
		return p, tea.Quit
	case "up", "down", "pgup", "pgdown", "ctrl+n", "ctrl+p":
		p.moved(name)
	default:
		if p.filter.take(k) {
			p.cursor = 0
			p.refilter()
		}
	}
	return p, nil
}

func (p *picker) choose() (tea.Model, tea.Cmd) {
	if p.cursor < len(p.found) {
		p.chosen = p.found[p.cursor]
		return p, tea.Quit
	}
	p.enters = !p.whole // it was typed before its target was read
	return p, nil
}

func (p *picker) refilter() {
	p.found = filter(p.filter.text, p.folds)
	p.resize(len(p.found), p.h-1)
}

func (p *picker) View() tea.View {
	v := tea.NewView("")
	v.AltScreen, v.MouseMode = true, tea.MouseModeCellMotion
	if p.w == 0 {
		return v
	}
	m := &model{pen: p.pen, method: p.method}
	head := p.title + ": "
	lines := []string{m.draw(screen.Line{{Text: head, Style: screen.Bold}, {Text: screen.OneLine(p.filter.text), Style: screen.Cyan}}, p.w, 0)}
	from, to := p.shown()
	for i := from; i < to; i++ {
		c := p.choices[p.found[i]]
		mark := screen.Span{Text: "  "}
		if c.Marked {
			mark = screen.Span{Text: "* ", Style: screen.Green}
		}
		style := screen.Style(0)
		if i == p.cursor {
			style = screen.Reverse
		}
		lines = append(lines, m.draw(screen.Line{mark, {Text: screen.OneLine(c.Before) + "  ", Style: screen.Dim}, {Text: screen.OneLine(c.Name)}}, p.w, style))
	}
	if len(p.found) == 0 && p.whole {
		lines = append(lines, m.cell(screen.Dim, "nothing fits; esc gives it up", p.w))
	}
	v.SetContent(strings.Join(lines, "\n"))
	v.Cursor = tea.NewCursor(min(m.width()(head+p.filter.text[:p.filter.at]), p.w-1), 0)
	return v
}
