package ui

import (
	"errors"
	"os"
	"os/exec"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/internal/screen"
)

// question is what the person is asked at the bottom of the screen. nil is none.
type question struct {
	label string
	field field
	empty bool // an empty text is an answer too
	then  func(m *model, text string) tea.Cmd
}

// ask puts a question; keys go to it until it is answered or given up.
func (m *model) ask(label, text string, then func(m *model, text string) tea.Cmd) *question {
	q := &question{label: label, then: then}
	q.field.set(text)
	m.question = q
	return q
}

// askText asks for a text of several lines.
func (m *model) askText(label, text string, then func(m *model, text string) tea.Cmd) tea.Cmd {
	q := m.ask(label+" (enter: done, alt+enter: new line, ctrl+x: editor, esc: not)", text, then)
	q.field.lines = true
	return nil
}

// height is how many lines the question takes above the status, as it is now.
func (q *question) height(m *model) int {
	if q == nil {
		return 0
	}
	lines, _ := q.field.lay(max(m.w-1, 1), m.width())
	return 1 + min(len(lines), q.most(m))
}

// most is how many lines of the text are shown.
func (q *question) most(m *model) int {
	if !q.field.lines {
		return 1
	}
	return max(m.body()/2, 1)
}

// draw gives the lines of the question, and where the cursor stands in them.
func (q *question) draw(m *model) (out []string, x, y int) {
	if q == nil {
		return nil, 0, 0
	}
	out = append(out, m.cell(screen.Bold|screen.Cyan, screen.OneLine(q.label), m.w))
	lines, places := q.field.lay(max(m.w-1, 1), m.width())
	at := q.field.cursor(places)
	most := q.most(m)
	top := min(max(at.y-most+1, 0), max(len(lines)-most, 0))
	for _, l := range lines[top:min(top+most, len(lines))] {
		out = append(out, m.fit(l, m.w))
	}
	return out, at.x, at.y - top + 1
}

// key does what a key means while the question stands.
func (q *question) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	switch k.Keystroke() {
	case "esc", "ctrl+c":
		m.question = nil
		return nil
	case "enter":
		if strings.TrimSpace(q.field.text) == "" && !q.empty {
			m.say(true, "it is empty; esc gives it up")
			return nil
		}
		m.question = nil
		return q.then(m, q.field.text)
	case "ctrl+x":
		return m.edit(q.field.text, func(m *model, text string) tea.Cmd {
			if m.question == q {
				q.field.set(text)
			}
			return nil
		})
	}
	q.field.take(k)
	return nil
}

// edited is a text that comes back from the editor.
type editedMsg struct {
	text string
	then func(m *model, text string) tea.Cmd
	err  error
}

// edit lets the person change a text in their editor.
func (m *model) edit(text string, then func(m *model, text string) tea.Cmd) tea.Cmd {
	cmd, err := editText(m.o.Editor, text, then)
	m.complain(err)
	return cmd
}

// editText lets the person change a text in their editor, in a file that only they can read.
func editText(editor func(string) (*exec.Cmd, error), text string, then func(m *model, text string) tea.Cmd) (tea.Cmd, error) {
	if editor == nil {
		return nil, errors.New("no editor is set: VISUAL, EDITOR")
	}
	f, err := os.CreateTemp("", "chatctx-*.md")
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil {
		return nil, err
	}
	name := f.Name()
	cmd, err := editor(name)
	if err != nil {
		os.Remove(name)
		return nil, err
	}
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		defer os.Remove(name)
		if err != nil {
			return editedMsg{err: err}
		}
		b, err := os.ReadFile(name)
		after := string(b)
		if !strings.HasSuffix(text, "\n") { // editors end a file with a line end
			after = strings.TrimSuffix(strings.TrimSuffix(after, "\n"), "\r")
		}
		return editedMsg{strings.ToValidUTF8(after, "\ufffd"), then, err}
	}), nil
}
