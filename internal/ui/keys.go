package ui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/screen"
)

// where is a set of panes in which a key works.
type where int

const (
	inTree where = 1 << iota
	inList
	inPreview
	anywhere = inTree | inList | inPreview
)

func (m *model) where() where {
	switch {
	case m.focus == onList:
		return inList
	case m.focus == onPreview:
		return inPreview
	}
	return inTree
}

// key is a key and its effect. A key whose do is nil moves; its pane handles it.
type key struct {
	names []string
	in    where
	short string // for the last line, "" if it is not shown there
	does  string // for the list of keys
	do    func(*model) tea.Cmd
}

// keyGroups returns all keys except those of questions and overlays, in the order of `?`.
func keyGroups() []keyGroup {
	return []keyGroup{{"Moving", movingKeys()}, {"Talking", talkingKeys()}, {"Changing", changingKeys()}, {"Finding", lookingKeys()}}
}

type keyGroup struct {
	title string
	keys  []key
}

func movingKeys() []key {
	return []key{
		{[]string{"up", "k", "down", "j"}, anywhere, "", "move", nil},
		{[]string{"pgup", "pgdown", "ctrl+u", "ctrl+d"}, anywhere, "", "move by a screen, by half a screen", nil},
		{[]string{"home", "g", "end", "G"}, anywhere, "", "go to the beginning, to the end", nil},
		{[]string{"left", "h"}, inTree, "", "fold; go to the fork above", func(m *model) tea.Cmd { return m.inTree((*conversation).fold) }},
		{[]string{"right", "l"}, inTree, "", "unfold; go down", func(m *model) tea.Cmd { return m.inTree((*conversation).unfold) }},
		{[]string{"["}, inTree, "", "go to the previous fork", func(m *model) tea.Cmd { return m.inTree(func(v *conversation) { v.toFork(-1) }) }},
		{[]string{"]"}, inTree, "", "go to the next fork", func(m *model) tea.Cmd { return m.inTree(func(v *conversation) { v.toFork(1) }) }},
		{[]string{"@"}, inTree, "", "go to the head of the active branch", func(m *model) tea.Cmd { return m.inTree(func(v *conversation) { v.toHead(v.active()) }) }},
		{[]string{"enter"}, inList, "open", "open the conversation", (*model).enterList},
		{[]string{"enter"}, inTree, "", "go to the preview", func(m *model) tea.Cmd { m.focus = onPreview; return nil }},
		{[]string{"enter", "esc"}, inPreview, "back", "go back to the tree", func(m *model) tea.Cmd { m.focus = onTree; return nil }},
		{[]string{"tab"}, anywhere, "", "go to the next pane", (*model).nextPane},
		{[]string{"esc"}, inTree, "list", "go to the list of conversations", (*model).toList},
		{[]string{"esc"}, inList, "", "remove the filter; go back to the tree", (*model).leaveList},
		{[]string{"v"}, anywhere, "", "show what follows in the preview too, or not", func(m *model) tea.Cmd { m.readsOn = !m.readsOn; return nil }},
		{[]string{"q", "ctrl+c"}, anywhere, "", "leave", (*model).quit},
	}
}

func lookingKeys() []key {
	return []key{
		{[]string{"/"}, inList, "filter", "filter the titles", func(m *model) tea.Cmd { m.list.typing = true; return nil }},
		{[]string{"/"}, inTree | inPreview, "search", "search in this conversation", func(m *model) tea.Cmd { return m.askSearch(false) }},
		{[]string{"S"}, anywhere, "", "search in all conversations", func(m *model) tea.Cmd { return m.askSearch(true) }},
		{[]string{"n"}, inTree | inPreview, "", "go to the next match", func(m *model) tea.Cmd { return m.nextFound(1) }},
		{[]string{"N"}, inTree | inPreview, "", "go to the previous match", func(m *model) tea.Cmd { return m.nextFound(-1) }},
		{[]string{"J"}, inTree | inPreview, "", "open the journal and step through what was done", (*model).openJournal},
		{[]string{"a"}, anywhere, "", "show the calls that wait for a decision", (*model).openCalls},
		{[]string{"?"}, anywhere, "", "show these keys", (*model).openHelp},
	}
}

// inTree calls do with the open conversation, if there is one.
func (m *model) inTree(do func(*conversation)) tea.Cmd {
	if m.conv != nil {
		do(m.conv)
	}
	return nil
}

// key handles a key.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	m.note = ""
	m.warned = m.warned && (k.String() == "q" || k.String() == "ctrl+c")
	switch {
	case m.question != nil:
		return m.question.key(m, k)
	case m.over != nil:
		return m.over.key(m, k)
	case m.focus == onList && m.list.typing:
		return m.typeFilter(k)
	}
	name := k.String()
	if m.moves(name) {
		return nil
	}
	for _, x := range m.keys {
		if x.do != nil && x.in&m.where() != 0 && slices.Contains(x.names, name) {
			return x.do(m)
		}
	}
	return nil
}

// moves handles the keys that move in the pane, and reports whether it was one.
func (m *model) moves(name string) bool {
	switch {
	case m.focus == onList:
		m.list.sought = chatctx.ID{}
		return m.list.moved(name)
	case m.focus == onPreview:
		r := roll{n: m.preview.n, height: m.preview.height, top: m.preview.top, cursor: m.preview.top, reads: true}
		moved := r.moved(name)
		m.preview.top = r.top
		return moved
	case m.conv != nil:
		return m.conv.moved(name)
	}
	return false
}

// typeFilter handles keys for the filter of the list.
func (m *model) typeFilter(k tea.KeyPressMsg) tea.Cmd {
	l := m.list
	switch k.Keystroke() {
	case "enter":
		if there := func() bool { return l.whole || l.filter.text == "" }; !there() { // a better match may come
			return m.await(there)
		}
		l.typing = false
		return m.enterList()
	case "esc", "ctrl+c":
		l.typing = false
		l.filter.set("")
	case "tab":
		l.typing = false
		return nil
	case "up", "down", "pgup", "pgdown", "ctrl+n", "ctrl+p":
		l.moved(k.Keystroke())
		return nil
	default:
		if !l.filter.take(k) {
			return nil
		}
		l.cursor = 0
	}
	l.refilter()
	return nil
}

// paste inserts pasted text into the text that is being typed.
func (m *model) paste(text string) tea.Cmd {
	switch {
	case m.question != nil:
		m.question.field.insert(text)
	case m.list.typing && m.over == nil:
		m.list.filter.insert(text)
		m.list.refilter()
	}
	return nil
}

func (m *model) nextPane() tea.Cmd {
	if m.focus == onPreview {
		return m.toList()
	}
	m.focus = map[pane]pane{onTree: onPreview, onList: onTree}[m.focus]
	if m.focus == onTree && m.conv == nil {
		m.focus = onList
	}
	return nil
}

// toList goes to the list, at the open conversation.
func (m *model) toList() tea.Cmd {
	m.focus = onList
	if m.conv != nil {
		m.list.seek(m.conv.c.ID)
	}
	return nil
}

func (m *model) leaveList() tea.Cmd {
	l := m.list
	switch {
	case l.filter.text != "":
		l.filter.set("")
		l.refilter()
	case m.conv != nil:
		m.focus = onTree
	}
	return nil
}

// quit leaves. If an answer is arriving, it first warns.
func (m *model) quit() tea.Cmd {
	if !m.warned && slices.ContainsFunc(m.streams, (*stream).running) {
		m.warned = true
		m.say(true, "an answer still comes: q again stops it, keeps what came, and leaves")
		return nil
	}
	m.stopAll()
	m.leaving = true
	return tea.Quit
}

// enterList opens the conversation at the cursor of the list.
func (m *model) enterList() tea.Cmd {
	info := m.list.at(m.list.cursor)
	if info == nil {
		return nil
	}
	m.list.filter.set("")
	m.list.refilter()
	m.list.find(info.ID)
	return m.openContext(info)
}

// helpKeys returns the keys as lines for `?`.
func helpKeys(columns int, width screen.Width) []screen.Line {
	pad := 28
	if columns < twoPanes {
		pad = 14
	}
	rest := screen.Line{{Text: strings.Repeat(" ", min(pad, columns/2))}}
	var lines []screen.Line
	for _, g := range keyGroups() {
		if len(lines) > 0 {
			lines = append(lines, nil)
		}
		lines = append(lines, screen.Line{{Text: g.title, Style: screen.Bold}})
		for _, k := range g.keys {
			name := screen.Line{{Text: screen.Pad("  "+strings.Join(k.names, " "), pad) + " ", Style: screen.Cyan}}
			lines = append(lines, screen.Wrap([]screen.Span{{Text: k.does}, {Text: inWords(k.in), Style: screen.Dim}}, max(columns, 1), width, name, rest)...)
		}
	}
	return lines
}

func inWords(in where) string {
	switch in {
	case inList:
		return " (in the list)"
	case inPreview:
		return " (in the preview)"
	}
	return ""
}
