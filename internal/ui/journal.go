package ui

import (
	"iter"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/screen"
)

// journal is what was done in the conversation, the newest first, read as far as the screen needs.
type journal struct {
	sheet
	ops   []*chatctx.Operation
	next  func() (*chatctx.Operation, error, bool)
	busy  bool
	whole bool
}

type opsMsg struct {
	of    *journal
	ops   []*chatctx.Operation
	whole bool
	err   error
}

func (m *model) openJournal() tea.Cmd {
	if m.conv == nil {
		return nil
	}
	j := &journal{}
	j.heading = "What was done, the newest first"
	j.next, _ = iter.Pull2(m.st.Operations(m.ctx, m.conv.c.ID.String()))
	m.over = j
	return j.wants(m.body())
}

// wants reads more where the screen needs it.
func (j *journal) wants(lines int) tea.Cmd {
	if j.busy || j.whole || len(j.ops) > j.top+2*lines {
		return nil
	}
	j.busy = true
	return func() tea.Msg {
		msg := opsMsg{of: j}
		for range 2 * lines {
			op, err, ok := j.next()
			if !ok || err != nil {
				msg.whole, msg.err = true, err
				break
			}
			msg.ops = append(msg.ops, op)
		}
		return msg
	}
}

func (j *journal) update(m *model, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case opsMsg:
		if msg.of == j {
			j.busy, j.whole = false, msg.whole
			j.ops = append(j.ops, msg.ops...)
			j.n = len(j.ops)
			m.complain(msg.err)
		}
	case changesMsg:
		again := m.openJournal()
		m.over.rolls().cursor = j.cursor
		return again
	}
	return nil
}

func (j *journal) hint() string {
	return "enter: its branch  u: take this one back  U: redo  esc: back"
}

func (j *journal) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "enter":
		return j.enter(m)
	case "u":
		if j.cursor < len(j.ops) {
			return m.undoOne(j.ops[j.cursor].ID)
		}
	case "U", "ctrl+r":
		return m.redo()
	default:
		j.closes(m, k)
	}
	return j.wants(m.body())
}

// enter goes to the head of the branch that the operation was about.
func (j *journal) enter(m *model) tea.Cmd {
	if j.cursor >= len(j.ops) {
		return nil
	}
	for _, name := range j.ops[j.cursor].Branches {
		if i := m.conv.named(name); i >= 0 {
			m.over, m.focus = nil, onTree
			m.conv.toHead(i)
			return nil
		}
	}
	m.say(true, "its branch is not there any more")
	return nil
}

func (j *journal) draw(m *model, _ int) []screen.Line {
	return j.list(m, func(i int) screen.Line {
		o := j.ops[i]
		what := o.What
		if len(o.Branches) > 0 {
			what += " on " + strings.Join(o.Branches, ", ")
		}
		if o.Undoes != "" {
			what += ", takes back " + o.Undoes
		}
		line := screen.Line{{Text: screen.Pad(o.ID, 6), Style: screen.Yellow}, {Text: "  " + screen.Moment(o.At) + "  "}, {Text: screen.OneLine(what)}}
		if o.Undone {
			line = append(line, screen.Span{Text: " (undone)", Style: screen.Dim})
		}
		return append(line, screen.Span{Text: "  by " + screen.OneLine(o.By), Style: screen.Dim})
	})
}
