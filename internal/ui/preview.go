package ui

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/screen"
)

// reading is what the preview shows: a conversation from a message on, as it is at a revision of the branch, in a width.
type reading struct {
	context  chatctx.ID
	branch   string
	position int // 0: the branch's last
	revision uint64
	columns  int
	method   bool // wide characters are measured as graphemes
	on       bool // goes on with the messages after it
}

// preview is the text beside the tree.
type preview struct {
	of     reading
	number int // of the reading that is on its way, or was the last: what comes of an earlier one is left
	lines  []screen.Line
	n      int // of the lines that are shown: the answers that come are among them
	top    int
	next   int // the position where reading goes on; 0: nothing is left
	busy   bool
	failed error
	cancel context.CancelFunc
	height int
}

// previewMsg brings lines of a reading.
type previewMsg struct {
	number int
	lines  []screen.Line
	next   int
	err    error
}

// show makes the preview show something, and gives the command that reads it; nil where it is there already.
func (m *model) show(of reading) tea.Cmd {
	p := &m.preview
	if p.of == of {
		return nil
	}
	if p.cancel != nil {
		p.cancel()
	}
	same := p.of.context == of.context && p.of.branch == of.branch && p.of.position == of.position && p.of.on == of.on
	if !same {
		p.top = 0
	}
	if !same || p.of.columns != of.columns {
		p.lines = nil
	}
	p.of, p.next, p.failed = of, 0, nil
	return m.readOn(of.position)
}

// readOn reads the preview's lines from a position on, about as many as the screen has and a screen more.
func (m *model) readOn(position int) tea.Cmd {
	p := &m.preview
	ctx, cancel := context.WithCancel(m.ctx)
	p.cancel, p.busy = cancel, true
	p.number++
	of, number, enough, width := p.of, p.number, 2*p.height, m.width()
	var marks map[chatctx.ID]string
	if m.conv != nil && m.conv.c.ID == of.context {
		marks = m.conv.marks
	}
	find := m.opener(of.context)
	return func() tea.Msg {
		defer cancel()
		msg := previewMsg{number: number}
		c, err := find()
		if err != nil {
			msg.err = err
			return msg
		}
		snap, err := c.Snapshot(ctx, of.branch)
		if err != nil {
			msg.err = err
			return msg
		}
		if position == 0 {
			position = snap.Len()
		}
		for position > 0 && position <= snap.Len() && (len(msg.lines) == 0 || of.on && len(msg.lines) < enough) {
			page, err := snap.Page(ctx, position, position)
			if err != nil {
				msg.err = err
				return msg
			}
			if len(page) == 0 {
				break
			}
			msg.lines = append(append(msg.lines, screen.Page(page[0], marks[page[0].ID], of.columns, width)...), nil)
			position++
		}
		if of.on && position <= snap.Len() {
			msg.next = position
		}
		return msg
	}
}

// readPreview takes lines; those of something that is not shown any more are left.
func (m *model) readPreview(msg previewMsg) {
	p := &m.preview
	if p.number != msg.number || m.ctx.Err() != nil {
		return
	}
	if errors.Is(msg.err, chatctx.ErrNotFound) { // it has gone: what there is now is being read, and until then the screen stays as it is
		p.busy = false
		return
	}
	if p.next == 0 { // the first lines: they stand in the place of what was there before
		p.lines = nil
	}
	p.busy, p.failed, p.next = false, msg.err, msg.next
	p.lines = append(p.lines, msg.lines...)
	p.scroll(0)
}

// scroll moves the text.
func (p *preview) scroll(lines int) {
	p.top = max(min(p.top+lines, p.n-p.height), 0)
}

// more reads on where the end of what was read comes near.
func (m *model) more() tea.Cmd {
	p := &m.preview
	if p.next == 0 || p.busy || p.top+2*p.height < len(p.lines) {
		return nil
	}
	return m.readOn(p.next)
}
