package ui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/rivo/uniseg"
)

// prompt draws a Prompt and handles its keys. Only Update changes it.
type prompt struct {
	o       PromptOptions
	p       *Prompt
	send    func(tea.Msg)
	sized   func()
	w, h    int
	method  ansi.Method
	label   string
	doing   string
	rest    []string
	field   field
	past    past
	search  *seeking
	offers  offers
	pastes  []string  // for which the line has marks
	pasted  bool      // a paste of several lines stands in the line
	message bool      // the line begins with it
	held    []tea.Msg // keys and pastes that came while a completion is looked up
	finding bool
	waiting []string // entered lines that are not read yet, as they will be printed
	gone    bool     // the prompt has ended
	closed  bool     // no more lines are accepted
	note    string   // shown until the next key
}

// seeking is a search in earlier lines.
type seeking struct {
	words field
	at    int // the shown line; -1 if none
}

// offers are the completions below the line.
type offers struct {
	list   []Completion
	from   int
	chosen int // -1: none yet
}

// longPaste and longPasteTall are the bytes and lines from which on a mark stands for pasted text.
const (
	longPaste     = 4000
	longPasteTall = 30
)

func (m *prompt) Init() tea.Cmd { return nil }

func (m *prompt) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
		m.p.resized(m.w, m.h, m.method)
		m.sized()
	case tea.ModeReportMsg:
		if msg.Mode == ansi.ModeUnicodeCore && (msg.Value.IsReset() || msg.Value.IsSet()) {
			m.method = ansi.GraphemeWidth
			m.p.resized(m.w, m.h, m.method)
		}
	case labelMsg:
		m.label = string(msg)
	case doingMsg:
		m.doing = string(msg)
	case restMsg:
		m.rest = msg
	case closeMsg:
		m.closed, m.gone = true, true
		return m, tea.Quit
	case takenMsg:
		m.waiting = m.waiting[1:]
	case completionMsg:
		m.offered(msg)
		return m, m.release()
	case editedMsg:
		if msg.err != nil {
			m.note = msg.err.Error()
		} else {
			m.field.set(msg.text)
		}
	case tea.PasteMsg:
		if m.finding {
			m.held = append(m.held, msg)
			return m, nil
		}
		m.note, m.offers = "", offers{}
		m.paste(msg.Content)
	case tea.KeyPressMsg:
		if m.finding && msg.Keystroke() != "ctrl+c" {
			m.held = append(m.held, msg)
			return m, nil
		}
		return m, m.key(msg)
	}
	return m, nil
}

// release handles the keys that were typed during a completion, up to one that starts another.
func (m *prompt) release() tea.Cmd {
	m.finding = false
	var cmds []tea.Cmd
	for len(m.held) > 0 && !m.finding {
		msg := m.held[0]
		m.held = m.held[1:]
		_, cmd := m.Update(msg)
		cmds = append(cmds, cmd)
	}
	return tea.Batch(cmds...)
}

// key handles a key.
func (m *prompt) key(k tea.KeyPressMsg) tea.Cmd {
	m.note = ""
	name := k.Keystroke()
	switch {
	case name == "ctrl+c":
		m.stop()
		return nil
	case name == "ctrl+z":
		return tea.Suspend
	case name == "ctrl+l":
		return tea.ClearScreen
	case m.closed:
		return nil
	case m.search != nil:
		if !m.searchKey(name, k) {
			return nil
		}
	}
	if len(m.offers.list) > 0 && m.offerKey(name) {
		return nil
	}
	m.offers = offers{}
	switch name {
	case "enter":
		m.enter()
	case "ctrl+d":
		if m.field.text == "" {
			m.closed = true
			close(m.p.lines)
			return nil
		}
		m.field.take(k)
	case "ctrl+r":
		m.search = &seeking{at: -1}
	case "ctrl+x":
		return m.edit()
	case "tab":
		return m.complete()
	case "up", "ctrl+p":
		if !m.field.take(k) {
			m.earlier(-1)
		}
	case "down", "ctrl+n":
		if !m.field.take(k) {
			m.earlier(1)
		}
	default:
		m.field.take(k)
	}
	return nil
}

// stop stops what is running, or clears the line.
func (m *prompt) stop() {
	switch {
	case m.o.Stop != nil && m.o.Stop():
	case m.search != nil:
		m.search = nil
	case m.field.text != "":
		m.clear()
	default:
		m.note = "Ctrl-D ends the chat"
	}
	m.offers = offers{}
}

func (m *prompt) clear() {
	m.field.set("")
	m.pastes, m.pasted, m.message = nil, false, false
	m.past.at = len(m.past.lines)
}

// enter enters the line, which is then printed above. The last line end of a paste is the one that this Enter stands for.
func (m *prompt) enter() {
	if m.pasted {
		m.field.set(strings.TrimSuffix(m.field.text, "\n"))
	}
	line, shown := m.unfold(m.field.text), m.echo(m.label, m.field.text)
	select {
	case m.p.lines <- Line{line, m.message, shown}:
	default:
		m.note = "so many lines wait already that this one has to wait here"
		return
	}
	if len(line) < longPaste*4 {
		m.past.add(line)
	}
	m.waiting = append(m.waiting, shown)
	m.clear()
}

func (m *prompt) earlier(by int) {
	if text, ok := m.past.step(by, m.field.text); ok {
		m.field.set(text)
		m.pasted, m.message = false, false
	}
}

// searchKey handles a key during a search; it reports true if the key has its usual meaning.
func (m *prompt) searchKey(name string, k tea.KeyPressMsg) bool {
	s := m.search
	switch name {
	case "ctrl+r", "up", "ctrl+p":
		if i := m.past.seek(s.words.text, s.at); s.at >= 0 && i >= 0 {
			s.at = i
		}
		return false
	case "esc", "ctrl+g":
		m.search = nil
		return false
	case "backspace", "ctrl+h", "ctrl+w", "ctrl+u":
		s.words.take(k)
	default:
		if k.Text == "" {
			m.search = nil
			if s.at >= 0 {
				m.field.set(m.past.lines[s.at])
				m.pasted, m.message = false, false
			}
			return true
		}
		s.words.take(k)
	}
	s.at = -1
	if s.words.text != "" {
		s.at = m.past.seek(s.words.text, len(m.past.lines))
	}
	return false
}

// complete looks up completions.
func (m *prompt) complete() tea.Cmd {
	before := m.field.text[:m.field.at]
	if m.o.Complete == nil || !strings.HasPrefix(before, "/") {
		m.field.insert("\t")
		return nil
	}
	complete := m.o.Complete
	m.finding = true
	return func() tea.Msg {
		from, list := complete(before)
		return completionMsg{before, from, list}
	}
}

// offered handles completions: a single one is inserted, several are as far as they agree.
func (m *prompt) offered(msg completionMsg) {
	if m.field.text[:m.field.at] != msg.before {
		return // the text has changed meanwhile
	}
	switch len(msg.list) {
	case 0:
		m.note = "nothing fits here"
	case 1:
		m.replace(msg.from, msg.list[0].Word+after(msg.list[0].Word))
	default:
		m.offers = offers{msg.list, msg.from, -1}
		if same := alike(msg.list); len(same) > len(msg.before)-msg.from {
			m.replace(msg.from, same)
		}
	}
}

// after returns what follows a completed word: nothing if the word continues.
func after(word string) string {
	if strings.HasSuffix(word, "=") {
		return ""
	}
	return " "
}

func (m *prompt) replace(from int, word string) {
	m.field.cut(from, m.field.at)
	m.field.insert(word)
}

// alike returns the common beginning of words.
func alike(list []Completion) string {
	same := list[0].Word
	for _, c := range list[1:] {
		for !strings.HasPrefix(c.Word, same) {
			g := uniseg.NewGraphemes(same)
			last := 0
			for g.Next() {
				last, _ = g.Positions()
			}
			same = same[:last]
		}
	}
	return same
}

// offerKey handles a key while completions are shown, and reports whether it was for them.
func (m *prompt) offerKey(name string) bool {
	o := &m.offers
	step := map[string]int{"tab": 1, "down": 1, "shift+tab": -1, "up": -1}[name]
	switch {
	case name == "esc":
		m.offers = offers{}
		return true
	case name == "enter" && o.chosen >= 0:
		m.field.insert(after(o.list[o.chosen].Word))
		m.offers = offers{}
		return true
	case step == 0:
		return false
	}
	if o.chosen < 0 && step < 0 {
		o.chosen = 0
	}
	o.chosen = (o.chosen + step + len(o.list)) % len(o.list)
	m.replace(o.from, o.list[o.chosen].Word)
	return true
}

// paste inserts pasted text, or a mark if it is long.
func (m *prompt) paste(text string) {
	if m.closed {
		return
	}
	m.search = nil
	if m.field.text == "" {
		m.pasted, m.message = false, false
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Count(text, "\n") + 1
	if lines > 1 || len(text) >= longPaste {
		m.pasted, m.message = true, m.message || strings.TrimSpace(m.field.text[:m.field.at]) == ""
		m.note = "pasted: Enter sends it, Ctrl-C clears it"
	}
	if len(text) >= longPaste || lines > longPasteTall {
		m.pastes = append(m.pastes, text)
		text = m.mark(len(m.pastes) - 1)
	}
	m.field.insert(text)
}

// mark returns the mark for a paste.
func (m *prompt) mark(i int) string {
	lines := "1 line"
	if n := strings.Count(strings.TrimSuffix(m.pastes[i], "\n"), "\n") + 1; n > 1 {
		lines = fmt.Sprintf("%d lines", n)
	}
	return fmt.Sprintf("[paste %d: %s]", i+1, lines)
}

// unfold replaces the marks by the pasted text.
func (m *prompt) unfold(line string) string {
	var pairs []string
	for i := range m.pastes {
		pairs = append(pairs, m.mark(i), strings.ToValidUTF8(m.pastes[i], "\ufffd"))
	}
	return strings.NewReplacer(pairs...).Replace(line)
}

// edit lets the person change the line in their editor.
func (m *prompt) edit() tea.Cmd {
	cmd, err := editText(m.o.Editor, m.unfold(m.field.text), nil)
	if err != nil {
		m.note = err.Error()
	}
	return cmd
}
