package ui

import (
	"context"
	"errors"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/screen"
)

// reading is what the preview shows: a conversation from a message on, at a revision of the branch, in a width.
type reading struct {
	context  chatctx.ID
	branch   string
	position int // 0 means the branch's last
	revision uint64
	columns  int
	method   bool // wide characters are measured as graphemes
	on       bool // it continues with the messages after that
}

// preview is the text beside the tree.
type preview struct {
	of     reading
	number int // of the running or last reading: results of earlier ones are ignored
	lines  []screen.Line
	n      int // of the shown lines, including answers that are arriving
	top    int
	next   int // the position where reading continues; 0 if nothing is left
	busy   bool
	failed error
	cancel context.CancelFunc
	height int
}

// previewMsg has lines of a reading.
type previewMsg struct {
	number int
	lines  []screen.Line
	next   int
	err    error
}

// show makes the preview show a reading, and returns the command that reads it; nil if it is there already.
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

// readOn reads the preview's lines from a position on, about two screens.
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

// readPreview adds lines; it ignores those of a reading that is no longer shown.
func (m *model) readPreview(msg previewMsg) {
	p := &m.preview
	if p.number != msg.number || m.ctx.Err() != nil {
		return
	}
	if errors.Is(msg.err, chatctx.ErrNotFound) { // it is gone: new data are being read, and until then the screen stays
		p.busy = false
		return
	}
	if p.next == 0 { // the first lines replace the earlier ones
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

// more reads on when the end of what was read is near.
func (m *model) more() tea.Cmd {
	p := &m.preview
	if p.next == 0 || p.busy || p.top+2*p.height < len(p.lines) {
		return nil
	}
	return m.readOn(p.next)
}
