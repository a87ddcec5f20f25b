package ui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/screen"
)

// journal shows the operations of the conversation, the newest first, as far as the screen needs them. It is read again with each change, and the cursor stays
// on its operation rather than its line.
type journal struct {
	sheet
	ops   []*record.Operation
	want  int  // how many to read
	busy  bool // a reading is running
	stale bool // another one must follow
	whole bool
	about []screen.Line // the words of the operation at the cursor
	width screen.Width
}

type opsMsg struct {
	of    *journal
	ops   []*record.Operation
	whole bool
	err   error
}

func (m *model) openJournal() tea.Cmd {
	if m.conv == nil {
		return nil
	}
	j := &journal{width: m.width()}
	j.heading = "What was done, the newest first"
	m.over = j
	return j.wants(m)
}

// wants reads more if the screen needs it.
func (j *journal) wants(m *model) tea.Cmd {
	screens := 2 * m.body()
	if j.whole || len(j.ops) > j.top+screens {
		return nil
	}
	j.want = max(j.want, 2*(j.top+screens))
	return j.read(m)
}

func (j *journal) read(m *model) tea.Cmd {
	if j.busy {
		j.stale = true
		return nil
	}
	if m.conv == nil {
		return nil
	}
	j.busy, j.stale = true, false
	want, ctx, st, ref := j.want, m.ctx, m.st, m.conv.c.ID.String()
	return func() tea.Msg {
		msg := opsMsg{of: j, whole: true}
		for op, err := range st.Operations(ctx, ref) {
			if err != nil {
				msg.err = err
				break
			}
			if len(msg.ops) == want {
				msg.whole = false
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
		if msg.of != j {
			return nil
		}
		j.busy = false
		if m.complain(msg.err); msg.err == nil {
			j.put(msg)
		}
		if j.stale {
			return j.read(m)
		}
		return j.wants(m)
	case changesMsg:
		return j.read(m)
	}
	return nil
}

// put sets operations that were read.
func (j *journal) put(msg opsMsg) {
	here := ""
	if j.cursor < len(j.ops) {
		here = j.ops[j.cursor].ID
	}
	j.ops, j.whole = msg.ops, msg.whole
	j.resize(len(j.ops), j.height)
	if i := slices.IndexFunc(j.ops, func(o *record.Operation) bool { return o.ID == here }); i >= 0 {
		j.to(i)
	}
}

func (j *journal) coming() bool { return j.busy && len(j.ops) == 0 }
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
	return j.wants(m)
}

// enter goes to the head of the operation's branch.
func (j *journal) enter(m *model) tea.Cmd {
	if j.cursor >= len(j.ops) || m.conv == nil {
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

// mostAbout is how many lines the words of an operation take at most.
const mostAbout = 4

// arrange leaves room below the list for the words of the operation at the cursor, which are shown there if its line has no room for them.
func (j *journal) arrange(columns, lines int) {
	most := min(lines/4, mostAbout)
	j.sheet.arrange(columns, lines-most)
	j.about = nil
	if j.cursor < len(j.ops) && j.width(line(j.ops[j.cursor]).Text()) > columns {
		about := screen.Wrap([]screen.Span{{Text: screen.OneLine(screen.About(j.ops[j.cursor]))}}, columns, j.width, nil, nil)
		j.about = about[:min(len(about), most)]
	}
}

func (j *journal) draw(m *model, lines int) []screen.Line {
	out := j.list(func(i int) screen.Line { return line(j.ops[i]) })
	return append(append(out, make([]screen.Line, max(lines-len(out)-len(j.about), 0))...), j.about...)
}

// line returns an operation as `op log` prints it, on one line.
func line(o *record.Operation) screen.Line {
	what := o.What
	if len(o.Branches) > 0 {
		what += " on " + strings.Join(o.Branches, ", ")
	}
	if o.Undoes != "" {
		what += ", takes back " + o.Undoes
	}
	by := "by " + o.By
	if o.User != "" {
		by += " for " + o.User
	}
	out := screen.Line{{Text: screen.Pad(o.ID, 6), Style: screen.Yellow}, {Text: "  " + screen.Moment(o.At) + "  "}, {Text: screen.OneLine(what)}}
	if o.Undone {
		out = append(out, screen.Span{Text: " (undone)", Style: screen.Dim})
	}
	return append(out, screen.Span{Text: "  " + screen.OneLine(by), Style: screen.Dim}, screen.Span{Text: "  " + screen.OneLine(screen.About(o))})
}
