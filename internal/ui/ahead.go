package ui

import (
	"sync"

	tea "charm.land/bubbletea/v2"
)

// A key is meant for the screen that follows all earlier keys. So input waits while a change by this program runs or its result is not read yet, and while the
// target of the keys is being opened: a person who types fast acts on the same screens as one who types slowly.

// isInput reports whether a message is a key, a click or pasted text, and not the program's own.
func isInput(msg tea.Msg) bool {
	switch msg.(type) {
	case tea.KeyPressMsg, tea.PasteMsg, tea.MouseClickMsg, tea.MouseWheelMsg:
		return true
	}
	return false
}

// held reports whether input must wait.
func (m *model) held() bool {
	return m.h == 0 || m.acting || m.unseen || m.opening || m.waitsFor != nil && !m.waitsFor() || m.coming()
}

// coming reports whether nothing of the keys' target is read yet.
func (m *model) coming() bool {
	switch {
	case m.question != nil:
		return false
	case m.over != nil:
		return m.over.coming()
	case m.focus == onList:
		return m.list.busy && len(m.list.infos) == 0
	case m.focus == onPreview:
		return m.preview.busy && len(m.preview.lines) == 0
	}
	return false
}

// hold keeps input for later if it must wait, and reports whether it does. ctrl+c drops waiting input; if there is none, it leaves. esc at once closes an
// overlay that is still being read.
func (m *model) hold(msg tea.Msg) (bool, tea.Cmd) {
	if !m.held() && len(m.typed) == 0 {
		return false, nil
	}
	k, _ := msg.(tea.KeyPressMsg)
	switch name := k.Keystroke(); {
	case name == "ctrl+c" && len(m.typed) == 0:
		return true, m.quit()
	case name == "ctrl+c":
		m.typed, m.waitsFor = nil, nil
		return true, nil
	case name == "esc" && len(m.typed) == 0 && m.over != nil && m.over.coming() && !m.acting && !m.unseen:
		return false, nil
	}
	m.typed = append(m.typed, msg)
	return true, nil
}

// await makes the current input wait until there is true, and then be handled again.
func (m *model) await(there func() bool) tea.Cmd {
	m.typed, m.waitsFor = append([]tea.Msg{m.input}, m.typed...), there
	return nil
}

// act begins a change by this program: input waits until it is made and read.
func (m *model) act(do func() tea.Msg) tea.Cmd {
	m.acting = true
	return func() tea.Msg { return actedMsg{do()} }
}

// actedMsg is the end of a change.
type actedMsg struct{ tea.Msg }

// failure returns why a change was not made, nil if it was.
func failure(msg tea.Msg) error {
	switch msg := msg.(type) {
	case doneMsg:
		return msg.err
	case errMsg:
		return msg.error
	}
	return nil
}

func (m *model) acted(msg actedMsg) tea.Cmd {
	m.acting, m.unseen = false, true
	cmd := m.update(msg.Msg)
	m.answered(failure(msg.Msg))
	m.unseen = m.reading || m.stale
	return cmd
}

// errands are the goroutines beside the loop, which does not wait for them itself when it ends.
type errands struct {
	mu      sync.Mutex
	over    bool
	running sync.WaitGroup
}

// begin reports whether an errand may begin; then done must be called at its end.
func (e *errands) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over {
		e.running.Add(1)
	}
	return !e.over
}

func (e *errands) done() { e.running.Done() }

// do runs f beside the loop.
func (e *errands) do(f func()) {
	if e.begin() {
		go func() {
			defer e.done()
			f()
		}()
	}
}

// counted returns a command that counts, with all commands that follow from it, as errands.
func (e *errands) counted(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() tea.Msg {
		if !e.begin() {
			return nil
		}
		defer e.done()
		msg := cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for i := range batch {
				batch[i] = e.counted(batch[i])
			}
		}
		return msg
	}
}

// wait prevents further errands, and waits for the running ones.
func (e *errands) wait() {
	e.mu.Lock()
	e.over = true
	e.mu.Unlock()
	e.running.Wait()
}
