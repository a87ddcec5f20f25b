package ui

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/internal/leftover"
	"github.com/chatctx/chatctx/internal/screen"
)

// question is a question at the bottom of the screen; nil is none.
type question struct {
	label   string
	field   field
	empty   bool   // an empty text is an answer too
	draft   string // the name under which an unsent text is kept; "" means that it is not kept
	offered string // the text before anything was typed
	refused string // why the last answer was refused
	then    func(m *model, text string) (tea.Cmd, error)
}

// ask asks a question; keys go to it until it is answered or given up. If an answer is refused, by the error or by the change that it causes, the question
// stays open with the typed text and the reason below it.
func (m *model) ask(label, text string, then func(m *model, text string) (tea.Cmd, error)) *question {
	q := &question{label: label, offered: text, then: then}
	q.field.set(text)
	m.question = q
	return q
}

// askText asks for a text of several lines. An unsent text is kept as a draft of the conversation under a name, and offered again.
func (m *model) askText(label, draft, text string, then func(m *model, text string) (tea.Cmd, error)) *question {
	q := m.ask(label, text, then)
	q.field.lines = true
	q.keeps(m, draft)
	return q
}

// keeps keeps unsent text as a draft, and offers the kept one.
func (q *question) keeps(m *model, draft string) {
	q.draft = m.draftName(draft)
	if kept := m.drafts[q.draft]; kept != "" {
		q.field.set(kept)
		m.say(false, "what you typed before; esc keeps it, emptied it is dropped")
	}
}

// draftName returns the name of a draft of the open conversation.
func (m *model) draftName(draft string) string {
	if m.conv == nil {
		return draft
	}
	return m.conv.c.ID.String() + " " + draft
}

// keep keeps a text as a draft, and reports whether it is not blank.
func (m *model) keep(draft, text string) bool {
	if strings.TrimSpace(text) == "" {
		delete(m.drafts, draft)
		return false
	}
	m.drafts[draft] = text
	return true
}

// height returns how many lines the question takes above the status now.
func (q *question) height(m *model) int {
	if q == nil {
		return 0
	}
	lines, _ := q.field.lay(max(m.w-1, 1), m.width())
	return len(q.asks(m)) + min(len(lines), q.most(m)) + len(q.reason(m))
}

// most returns how many lines of the text are shown at most.
func (q *question) most(m *model) int {
	if !q.field.lines {
		return 1
	}
	return max(m.body()/2, 1)
}

// asks returns the label as lines.
func (q *question) asks(m *model) []string {
	return m.wrapped(screen.Bold|screen.Cyan, screen.OneLine(q.label))
}

// reason returns why the last answer was refused.
func (q *question) reason(m *model) []string { return m.wrapped(screen.Red, q.refused) }

// draw returns the lines of the question, and the cursor's place in them.
func (q *question) draw(m *model) (out []string, x, y int) {
	if q == nil {
		return nil, 0, 0
	}
	out = q.asks(m)
	above := len(out)
	lines, places := q.field.lay(max(m.w-1, 1), m.width())
	at := q.field.cursor(places)
	most := q.most(m)
	top := min(max(at.y-most+1, 0), max(len(lines)-most, 0))
	for _, l := range lines[top:min(top+most, len(lines))] {
		out = append(out, m.fit(l, m.w))
	}
	return append(out, q.reason(m)...), at.x, at.y - top + above
}

// hint names the keys that end the question.
func (q *question) hint() string {
	end := "esc: cancel"
	if q.draft != "" {
		end = "esc: later"
	}
	if q.field.lines {
		return "enter: done  alt+enter: new line  ctrl+x: editor  " + end
	}
	return "enter: done  " + end
}

// key handles a key for the question.
func (q *question) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	switch k.Keystroke() {
	case "esc", "ctrl+c":
		m.giveUp()
		return nil
	case "enter":
		if strings.TrimSpace(q.field.text) == "" && !q.empty {
			m.say(true, "it is empty; esc gives it up")
			return nil
		}
		return m.answer(q)
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

// giveUp removes the question. Typed text is kept if it is a text and not a name.
func (m *model) giveUp() {
	q := m.question
	m.question = nil
	if q == nil || q.draft == "" {
		return
	}
	text := q.field.text
	if text == q.offered {
		text = ""
	}
	if m.keep(q.draft, text) {
		m.say(false, "what you typed is kept; the same key offers it again")
	}
}

// answer handles an answer. If that begins a change, the question stays until the change is made.
func (m *model) answer(q *question) tea.Cmd {
	m.question, q.refused = nil, ""
	delete(m.drafts, q.draft)
	cmd, err := q.then(m, q.field.text)
	switch {
	case err != nil:
		m.refuse(q, err)
	case m.acting && m.question == nil:
		m.question, m.answering = q, true
	}
	return cmd
}

// answered handles the result of the change that an answer caused.
func (m *model) answered(err error) {
	q := m.question
	if !m.answering || q == nil {
		return
	}
	m.question, m.answering = nil, false
	if err != nil {
		m.note = ""
		m.refuse(q, err)
	}
}

// refuse asks a question again with the reason below the typed text.
func (m *model) refuse(q *question, err error) {
	m.question, q.refused = q, screen.OneLine(m.inKeys(err))
}

// editedMsg is a text that comes back from the editor.
type editedMsg struct {
	text string
	then func(m *model, text string) tea.Cmd
	err  error
}

// editAnswer lets the person type the answer to a question in their editor; the saved text is the answer.
func (m *model) editAnswer(q *question) tea.Cmd {
	m.question = nil
	return m.edit(q.field.text, q.edited)
}

// edited takes a text from the editor as the answer.
func (q *question) edited(m *model, text string) tea.Cmd {
	if strings.TrimSpace(text) == "" && !q.empty {
		m.say(true, "the text is empty, so nothing was done")
		return nil
	}
	q.field.set(text)
	return m.answer(q)
}

// edit lets the person change a text in their editor.
func (m *model) edit(text string, then func(m *model, text string) tea.Cmd) tea.Cmd {
	cmd, err := editText(m.o.Editor, text, then)
	m.complain(err)
	return cmd
}

// editText lets the person change a text in their editor, in a file that only they can read.
func editText(editor func(string) (*exec.Cmd, error), text string, then func(m *model, text string) tea.Cmd) (tea.Cmd, error) {
	e, err := newEditing(editor, text)
	if err != nil {
		return nil, err
	}
	return aside(&program{e.Cmd}, func(err error) tea.Msg {
		text, err := e.end(err)
		return editedMsg{text, then, err}
	}), nil
}

// editing is a text in an editor.
type editing struct {
	*exec.Cmd
	file, text string
}

func newEditing(editor func(string) (*exec.Cmd, error), text string) (*editing, error) {
	if editor == nil {
		return nil, errors.New("no editor is set: set VISUAL or EDITOR")
	}
	f, err := os.CreateTemp("", leftover.Name("edit-*.md"))
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Close())
	e := &editing{file: f.Name(), text: text}
	if err == nil {
		e.Cmd, err = editor(e.file)
	}
	if err != nil {
		os.Remove(e.file)
		return nil, err
	}
	return e, nil
}

// end returns the text that an editor left, given the error with which it ended.
func (e *editing) end(err error) (string, error) {
	defer os.Remove(e.file)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("there is no editor %q, so nothing was done: set VISUAL or EDITOR", e.Args[0])
	}
	var b []byte
	if err == nil {
		b, err = os.ReadFile(e.file)
	}
	if err != nil {
		return "", fmt.Errorf("the editor %q: %w; nothing was done", e.Args[0], err)
	}
	after := string(b)
	if !strings.HasSuffix(e.text, "\n") { // editors end a file with a line end
		after = strings.TrimSuffix(strings.TrimSuffix(after, "\n"), "\r")
	}
	return strings.ToValidUTF8(after, "\ufffd"), nil
}
