package cli

import (
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/compare"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/screen"
)

// printDiff prints what two branches do not share, turn by turn.
func (r *run) printDiff(d contract.Difference) {
	r.printf("%s\n%s\n", r.paint(red, fmt.Sprintf("--- %s, %s of its own", clean(d.A), count(len(d.OnlyA), "message"))),
		r.paint(green, fmt.Sprintf("+++ %s, %s of its own", clean(d.B), count(len(d.OnlyB), "message"))))
	switch {
	case len(d.OnlyA)+len(d.OnlyB) == 0:
		r.printf("the same history\n")
	case d.Ancestor == nil:
		r.printf("%s\n", r.paint(dim, "no common beginning"))
	default:
		r.printf("%s\n", r.paint(dim, fmt.Sprintf("common up to #%d %s %s: %s", d.Ancestor.Position, d.Ancestor.Turn, short(d.Ancestor.ID), cut(preview(d.Ancestor.Message), 60))))
	}
	as, bs := byTurn(d.OnlyA), byTurn(d.OnlyB)
	for i := 0; i < max(len(as), len(bs)) && !r.stopped(); i++ {
		var ta, tb []*chatctx.Entry
		if i < len(as) {
			ta = as[i]
		}
		if i < len(bs) {
			tb = bs[i]
		}
		r.diffTurn(ta, tb)
	}
}

// byTurn groups messages by the number of their turn.
func byTurn(list []*chatctx.Entry) [][]*chatctx.Entry {
	var turns [][]*chatctx.Entry
	last := ""
	for _, e := range list {
		n := strings.TrimLeft(e.Turn, "ua")
		if len(turns) == 0 || n != last {
			turns = append(turns, nil)
		}
		last = n
		turns[len(turns)-1] = append(turns[len(turns)-1], e)
	}
	return turns
}

// diffTurn compares a turn of each side, message by message; either may be missing.
func (r *run) diffTurn(a, b []*chatctx.Entry) {
	name := ""
	for _, side := range [][]*chatctx.Entry{a, b} {
		if len(side) > 0 && name == "" {
			name = "turn " + strings.TrimLeft(side[0].Turn, "ua")
		}
	}
	r.printf("\n%s\n", r.paint(cyan, "@@ "+name+" @@"))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) > 0 && len(b) > 0 && a[0].Role == b[0].Role:
			r.diffMessage(a[0], b[0])
			a, b = a[1:], b[1:]
		case len(a) > 0 && (len(b) == 0 || len(a) >= len(b)):
			r.oneSide("-", red, a[0])
			a = a[1:]
		default:
			r.oneSide("+", green, b[0])
			b = b[1:]
		}
	}
}

// oneSide prints a message that only one branch has in this place.
func (r *run) oneSide(sign, style string, e *chatctx.Entry) {
	r.printf("%s\n", r.paint(style, fmt.Sprintf("%s %s %s", sign, e.Role, short(e.ID))))
	r.signed(sign, style, body(e.Message, false))
}

func (r *run) signed(sign, style, text string) {
	for line := range strings.Lines(text) {
		r.printf("%s\n", r.paint(style, sign+"   "+strings.TrimRight(line, "\n")))
	}
}

// alike is the share of common text from which on two versions are shown as one, with the changed words marked.
const alike = 0.4

// diffMessage compares two messages of one role.
func (r *run) diffMessage(a, b *chatctx.Entry) {
	left, right := body(a.Message, false), body(b.Message, false)
	if model := a.Meta.Model; model != b.Meta.Model {
		r.printf("  %s %s (%s) | %s (%s)\n", a.Role, short(a.ID), clean(model), short(b.ID), clean(b.Meta.Model))
	} else {
		r.printf("  %s %s | %s\n", a.Role, short(a.ID), short(b.ID))
	}
	if left == right {
		r.printf("%s\n", r.paint(dim, "    the same text: "+cut(oneLine(left), 60)))
		return
	}
	words := compare.Words(left, right)
	if compare.Alike(words) < alike {
		r.signed("-", red, left)
		r.signed("+", green, right)
		return
	}
	text := r.markWords(words)
	for line := range strings.Lines(text) {
		r.printf("    %s\n", strings.TrimRight(line, "\n"))
	}
}

// markWords marks removed and added words in one text: by colours, or as [-words-] and {+words+}.
func (r *run) markWords(edits []compare.Edit) string {
	var b strings.Builder
	for _, e := range edits {
		if !r.con.color {
			b.WriteString(screen.WithSigns(e))
			continue
		}
		for i, text := range strings.Split(e.Text, "\n") {
			if i > 0 {
				b.WriteByte('\n') // each line by itself, so that a pager that splits lines keeps the colours
			}
			b.WriteString(r.pen().Paint(screen.EditStyle[e.Kind], text))
		}
	}
	return b.String()
}
