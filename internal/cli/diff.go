package cli

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/sergi/go-diff/diffmatchpatch"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
)

// doDiff compares two branches.
func doDiff(r *run) error {
	a, b := r.arg(0), r.arg(1)
	c, err := r.conversation()
	if err != nil {
		return err
	}
	if b == "" {
		b, a = a, ""
	}
	d, err := c.Diff(r.ctx, a, b)
	if err != nil {
		return err
	}
	return r.emit(contract.DifferenceOf(c.ID, d), func() { r.printDiff(d) })
}

// printDiff prints what two branches do not share, turn by turn.
func (r *run) printDiff(d *chatctx.Difference) {
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

// diffTurn compares a turn of each side, message by message; one of them may be missing.
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

// alike is the share of a text from which on two versions are shown in one, with the changed words marked.
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
	words := diffWords(left, right)
	if sameShare(words) < alike {
		r.signed("-", red, left)
		r.signed("+", green, right)
		return
	}
	text := r.markWords(words)
	for line := range strings.Lines(text) {
		r.printf("    %s\n", strings.TrimRight(line, "\n"))
	}
}

// diffWords compares two texts word by word.
func diffWords(a, b string) []diffmatchpatch.Diff {
	dmp := diffmatchpatch.New()
	dmp.DiffTimeout = 0 // the result must not depend on the machine's speed
	index := map[string]rune{}
	var words []string
	encode := func(text string) []rune {
		var out []rune
		for _, w := range splitWords(text) {
			c, ok := index[w]
			if !ok {
				c = wordRune(len(words))
				index[w] = c
				words = append(words, w)
			}
			out = append(out, c)
		}
		return out
	}
	ra, rb := encode(a), encode(b)
	const most = 20_000 // words: a comparison of all with all is not for more
	if len(ra)+len(rb) > most || len(words) > most {
		return []diffmatchpatch.Diff{{Type: diffmatchpatch.DiffDelete, Text: a}, {Type: diffmatchpatch.DiffInsert, Text: b}}
	}
	diffs := dmp.DiffMainRunes(ra, rb, false)
	for i := range diffs {
		var text bytes.Buffer
		for _, c := range diffs[i].Text {
			text.WriteString(words[wordIndex(c)])
		}
		diffs[i].Text = text.String()
	}
	return groupEdits(diffs)
}

// groupEdits puts what was taken away before what was added between two stretches that are the same.
func groupEdits(diffs []diffmatchpatch.Diff) []diffmatchpatch.Diff {
	var out []diffmatchpatch.Diff
	var gone, added strings.Builder
	flush := func() {
		for _, e := range []diffmatchpatch.Diff{{Type: diffmatchpatch.DiffDelete, Text: gone.String()}, {Type: diffmatchpatch.DiffInsert, Text: added.String()}} {
			if e.Text != "" {
				out = append(out, e)
			}
		}
		gone.Reset()
		added.Reset()
	}
	for _, d := range diffs {
		switch d.Type {
		case diffmatchpatch.DiffDelete:
			gone.WriteString(d.Text)
		case diffmatchpatch.DiffInsert:
			added.WriteString(d.Text)
		default:
			flush()
			out = append(out, d)
		}
	}
	flush()
	return out
}

// wordRune stands for a word; the surrogates, which no string can hold, are left out.
func wordRune(i int) rune {
	if i += 1; i >= 0xd800 {
		i += 0x800
	}
	return rune(i)
}

func wordIndex(c rune) int {
	i := int(c)
	if i >= 0xe000 {
		i -= 0x800
	}
	return i - 1
}

// splitWords cuts text into words, runs of white space, and single other characters.
func splitWords(s string) []string {
	var out []string
	class := func(c rune) int {
		switch {
		case unicode.IsLetter(c), unicode.IsDigit(c), unicode.IsMark(c), c == '_', c == '\'':
			if unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) {
				return 0 // written without spaces: each by itself
			}
			return 1
		case c == '\n':
			return 0
		case unicode.IsSpace(c):
			return 2
		}
		return 0
	}
	start, last := 0, -1
	for i, c := range s {
		k := class(c)
		if i > 0 && (k == 0 || k != last) {
			out = append(out, s[start:i])
			start = i
		}
		last = k
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

// sameShare is how much of the longer text the two have in common, from 0 to 1.
func sameShare(diffs []diffmatchpatch.Diff) float64 {
	same, gone, new := 0, 0, 0
	for _, d := range diffs {
		switch d.Type {
		case diffmatchpatch.DiffEqual:
			same += len(d.Text)
		case diffmatchpatch.DiffDelete:
			gone += len(d.Text)
		default:
			new += len(d.Text)
		}
	}
	if all := same + max(gone, new); all > 0 {
		return float64(same) / float64(all)
	}
	return 1
}

// markWords puts the marks of what was taken away and added into one text: colours, or [-words-] and {+words+}.
func (r *run) markWords(diffs []diffmatchpatch.Diff) string {
	var b strings.Builder
	for _, d := range diffs {
		switch {
		case d.Type == diffmatchpatch.DiffEqual:
			b.WriteString(d.Text)
		case d.Type == diffmatchpatch.DiffDelete && r.con.color:
			b.WriteString(r.paintLines(red+";9", d.Text))
		case d.Type == diffmatchpatch.DiffDelete:
			b.WriteString("[-" + d.Text + "-]")
		case r.con.color:
			b.WriteString(r.paintLines(green, d.Text))
		default:
			b.WriteString("{+" + d.Text + "+}")
		}
	}
	return b.String()
}

// paintLines colours each line by itself, so that a pager that cuts at lines keeps the colours.
func (r *run) paintLines(style, s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = r.paint(style, lines[i])
	}
	return strings.Join(lines, "\n")
}
