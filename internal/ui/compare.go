package ui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/compare"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/screen"
)

// pin is a marked place: a branch up to a message.
type pin struct {
	id  chatctx.ID
	ref record.Ref
}

// placeRef returns a reference to a branch up to a row's message.
func (v *conversation) placeRef(r *screen.Row) record.Ref {
	return record.Ref(fmt.Sprintf("branch:%s@%d", v.nameOf(r.Branch), r.Position))
}

func (m *model) markHere() tea.Cmd {
	return m.atMessage(func(v *conversation, r *screen.Row, e *chatctx.Entry) tea.Cmd {
		if v.pinned != nil && v.pinned.id == e.ID {
			v.pinned = nil
			m.say(false, "no place is marked")
			return nil
		}
		v.pinned = &pin{e.ID, v.placeRef(r)}
		m.say(false, e.Turn+" is marked; c at another place compares the two")
		return nil
	})
}

// compareHere compares the marked place with the one at the cursor; without a mark, it compares the branches that part at the fork above.
func (m *model) compareHere() tea.Cmd {
	v := m.conv
	switch {
	case v == nil:
		return nil
	case v.pinned != nil:
		return m.atMessage(func(v *conversation, r *screen.Row, e *chatctx.Entry) tea.Cmd {
			if v.pinned.id == e.ID {
				m.say(true, "this is the marked place; c at another one compares the two, m removes the mark")
				return nil
			}
			return m.compare(v.pinned.ref, v.placeRef(r))
		})
	}
	if refs := v.parting(); len(refs) > 1 {
		return m.compare(refs...)
	}
	m.say(true, "nothing parts above this: m marks this place, then c at another one compares the two")
	return nil
}

// parting returns the branches that part at the fork at the cursor or above it, one for each way on, the one at the cursor first.
func (v *conversation) parting() []record.Ref {
	r := v.here()
	if r == nil || r.Kind == screen.BeginRow {
		return nil
	}
	for i := v.cursor; i >= 0; i-- {
		fork := v.rows[i]
		if !fork.Fork || fork.Kind == screen.BeginRow || !v.under(v.tree.Owner(r.Place), v.tree.Owner(fork.Place)) {
			continue
		}
		order := []int{r.Branch}
		for b := range v.tree.Branches {
			order = append(order, b)
		}
		var refs []record.Ref
		seen := map[screen.Place]bool{}
		for _, b := range order {
			next := screen.Place{Branch: b, Position: fork.Position + 1}
			if v.tree.Holds(b, fork.Place) && v.tree.Branches[b].Messages >= next.Position && !seen[v.tree.Owner(next)] && len(refs) < chatctx.MaxCompared {
				seen[v.tree.Owner(next)] = true
				refs = append(refs, record.Ref("branch:"+v.nameOf(b)))
			}
		}
		return refs
	}
	return nil
}

// comparison shows answers side by side.
type comparison struct {
	sheet
	table *compare.Table
	lines []screen.Line
	laid  int // the width for which the lines are laid out
	color bool
	width screen.Width
}

type comparedMsg struct {
	of    *comparison
	table *compare.Table
	err   error
}

func (m *model) compare(refs ...record.Ref) tea.Cmd {
	o := &comparison{color: m.pen.Color, width: m.width()}
	o.heading, o.reads = "reading …", true
	m.over = o
	c, ctx := m.conv.c, m.ctx
	return func() tea.Msg {
		t, err := compare.Of(ctx, c, "", refs...)
		return comparedMsg{o, t, err}
	}
}

func (o *comparison) update(m *model, msg tea.Msg) tea.Cmd {
	if msg, ok := msg.(comparedMsg); ok && msg.of == o {
		if msg.err != nil {
			m.over = nil
			m.complain(msg.err)
			return nil
		}
		o.table = msg.table
		names := make([]string, len(o.table.Columns))
		for i := range names {
			names[i] = screen.OneLine(o.table.Head(i))
		}
		o.heading, o.laid = strings.Join(names, " and "), 0
	}
	return nil
}

// arrange lays the comparison out for the screen's width.
func (o *comparison) arrange(columns, lines int) {
	if o.table != nil && o.laid != columns {
		o.lines, o.laid = screen.Compared(o.table, columns, o.width, o.color), columns
		o.n = len(o.lines)
	}
	o.sheet.arrange(columns, lines)
}

func (o *comparison) coming() bool           { return o.table == nil }
func (o *comparison) hint() string           { return "esc: back  t in the tree takes an answer" }
func (o *comparison) enter(m *model) tea.Cmd { m.over = nil; return nil }
func (o *comparison) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	o.closes(m, k)
	return nil
}

func (o *comparison) draw(m *model, _ int) []screen.Line {
	return o.list(func(i int) screen.Line { return o.lines[i] })
}

// takeHere replaces the active branch's own answer by the one at the cursor.
func (m *model) takeHere() tea.Cmd {
	return m.atMessage(func(v *conversation, r *screen.Row, e *chatctx.Entry) tea.Cmd {
		return m.change("", func(b *chatctx.Batch) { b.Take(record.RefTo(e.ID), record.TakeOptions{}) }, func(c *record.Committed) doneMsg {
			if c.Operation == "" {
				return doneMsg{note: "this answer stands on " + c.Branch + " already"}
			}
			note := fmt.Sprintf("took %s into %s", screen.Count(len(c.Last().Placed), "message"), c.Branch)
			if c.Last().Beside != "" {
				note += "; the previous answer is now on branch " + c.Last().Beside
			}
			return doneMsg{note: note, head: c.Branch}
		})
	})
}
