package cli

import (
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/pool"
)

// header is the line above a message: where it is, who said it, when, with which model.
func (r *run) header(e *chatctx.Entry, mark string) string {
	var b strings.Builder
	switch {
	case e.Queued:
		b.WriteString("queued ")
	case e.Position > 0:
		fmt.Fprintf(&b, "#%d %s ", e.Position, e.Turn)
	}
	b.WriteString(r.paint(roleStyle(e.Role), string(e.Role)))
	b.WriteString(" " + r.paint(yellow, short(e.ID)))
	for _, word := range []string{moment(e.Created), e.Meta.Model} {
		if word != "" {
			b.WriteString("  " + r.paint(dim, clean(word)))
		}
	}
	if words := screen.StateWords(e, mark); len(words) > 0 {
		b.WriteString("  " + r.paint(cyan, "("+strings.Join(words, ", ")+")"))
	}
	for _, t := range e.Tags {
		b.WriteString("  " + r.paint(green, "["+clean(t)+"]"))
	}
	return b.String()
}

func roleStyle(role pool.Role) string {
	switch role {
	case pool.User:
		return blue
	case pool.Assistant:
		return green
	}
	return cyan
}

// renders reports whether messages are rendered: on a terminal that supports it.
func (r *run) renders() bool { return (r.con.tty && !r.con.plain || r.con.live != nil) && !r.asIs }

// printMessage prints a message as log shows it.
func (r *run) printMessage(e *chatctx.Entry, mark string, full bool) {
	if r.renders() {
		pen := screen.Pen{Styles: true, Color: r.con.color}
		for _, l := range screen.Brief(e, mark, full, r.con.width, screen.Widest) {
			r.printf("%s\n", l.Paint(pen))
		}
		r.printf("\n")
		return
	}
	r.printf("%s\n", r.header(e, mark))
	if text := body(e.Message, full); text != "" {
		r.printf("%s\n", text)
	}
	r.printf("\n")
}
