package screen

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Style is the style of a piece of a line: any combination of the flags.
type Style uint16

// The flags.
const (
	Bold Style = 1 << iota
	Dim
	Italic
	Underline
	Strike
	Reverse
	Red
	Green
	Yellow
	Blue
	Cyan
)

// codes are the flags' numbers in a terminal's escape sequence.
var codes = [...]string{"1", "2", "3", "4", "9", "7", "31", "32", "33", "34", "36"}

// colours are the flags that NO_COLOR turns off.
const colours = Red | Green | Yellow | Blue | Cyan

// Pen writes styles for a terminal.
type Pen struct {
	Styles bool // bold, reverse and the like
	Color  bool
}

// Paint returns a text in a style, as far as the pen has it. The text must have no line end.
func (p Pen) Paint(style Style, s string) string {
	if !p.Color {
		style &^= colours
	}
	if !p.Styles {
		style &= colours
	}
	if style == 0 || s == "" {
		return s
	}
	var b strings.Builder
	b.WriteString("\x1b[")
	first := true
	for i, code := range codes {
		if style&(1<<i) == 0 {
			continue
		}
		if !first {
			b.WriteByte(';')
		}
		b.WriteString(code)
		first = false
	}
	b.WriteByte('m')
	b.WriteString(s)
	b.WriteString("\x1b[0m")
	return b.String()
}

// Span is text in one style.
type Span struct {
	Text  string
	Style Style
}

// Line is a line of styled text.
type Line []Span

// Paint returns the line for a terminal.
func (l Line) Paint(p Pen) string {
	if len(l) == 1 {
		return p.Paint(l[0].Style, l[0].Text)
	}
	var b strings.Builder
	for _, s := range l {
		b.WriteString(p.Paint(s.Style, s.Text))
	}
	return b.String()
}

// Text returns the line without its styles.
func (l Line) Text() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.Text)
	}
	return b.String()
}

// Width returns how many columns a text takes.
type Width func(string) int

// Widest returns how many columns a text takes on a terminal that joins characters or on one that does not, whichever is more. Lines that are cut by it fit on
// both.
func Widest(s string) int {
	n := 0
	for g := uniseg.NewGraphemes(s); g.Next(); {
		apart := 0
		for _, c := range g.Runes() {
			apart += uniseg.StringWidth(string(c))
		}
		n += max(apart, g.Width())
	}
	return n
}

// Wrap cuts styled text into lines of a width, at words. The first line begins with first and the others with rest. A word that is longer than a line is cut
// between characters.
func Wrap(spans []Span, columns int, width Width, first, rest Line) []Line {
	w := &wrapper{columns: columns, width: width, rest: rest}
	w.begin(first)
	for _, s := range spans {
		for text := s.Text; text != ""; {
			n := wordEnd(text)
			w.word(text[:n], s.Style)
			text = text[n:]
		}
	}
	w.flush()
	return append(w.lines, w.trimmed())
}

// wordEnd returns where the first word or the first run of spaces ends; a line end is a word of its own.
func wordEnd(s string) int {
	if s[0] == '\n' {
		return 1
	}
	space := s[0] == ' ' || s[0] == '\t'
	for i := 1; i < len(s); i++ {
		if s[i] == '\n' || (s[i] == ' ' || s[i] == '\t') != space {
			return i
		}
	}
	return len(s)
}

type wrapper struct {
	columns int
	width   Width
	rest    Line
	lines   []Line
	line    Line
	used    int
	indent  int // the width of the line's beginning
	pending Line
	waits   int // the width of what is pending: a word that may continue in another style
	spaces  Line
	gap     int
}

func (w *wrapper) begin(with Line) {
	w.line, w.used = append(Line{}, with...), 0
	for _, s := range with {
		w.used += w.width(s.Text)
	}
	w.indent = w.used
}

// word adds a word, a run of spaces or a line end.
func (w *wrapper) word(s string, style Style) {
	switch s[0] {
	case '\n':
		w.flush()
		w.breakLine()
	case ' ', '\t':
		w.flush()
		s = strings.ReplaceAll(s, "\t", "    ")
		w.spaces, w.gap = append(w.spaces, Span{s, style}), w.gap+len(s)
	default:
		w.pending, w.waits = append(w.pending, Span{s, style}), w.waits+w.width(s)
	}
}

// flush puts the pending word on this line or the next.
func (w *wrapper) flush() {
	if len(w.pending) == 0 {
		return
	}
	if w.used+w.gap+w.waits > w.columns && w.used > w.indent {
		w.breakLine()
	}
	w.line, w.used = append(w.line, w.spaces...), w.used+w.gap
	w.spaces, w.gap = nil, 0
	if w.used+w.waits <= w.columns {
		w.line, w.used = append(w.line, w.pending...), w.used+w.waits
	} else {
		for _, s := range w.pending {
			w.hard(s)
		}
	}
	w.pending, w.waits = nil, 0
}

// hard adds a word that is longer than a line, character by character.
func (w *wrapper) hard(s Span) {
	begin, end := 0, 0
	cut := func() {
		if end > begin {
			w.line = append(w.line, Span{s.Text[begin:end], s.Style})
		}
		begin = end
	}
	for g := uniseg.NewGraphemes(s.Text); g.Next(); {
		n := w.width(g.Str())
		if w.used+n > w.columns && w.used > w.indent {
			cut()
			w.breakLine()
		}
		w.used += n
		_, end = g.Positions()
	}
	cut()
}

func (w *wrapper) breakLine() {
	w.lines = append(w.lines, w.trimmed())
	w.spaces, w.gap = nil, 0
	w.begin(w.rest)
}

// trimmed returns the line without spaces at its end.
func (w *wrapper) trimmed() Line {
	l := w.line
	for len(l) > 0 {
		last := &l[len(l)-1]
		last.Text = strings.TrimRight(last.Text, " ")
		if last.Text != "" {
			break
		}
		l = l[:len(l)-1]
	}
	return l
}

// Hard cuts text into lines wherever they are full, for text that must stay unchanged, such as code.
func Hard(s string, style Style, columns int, width Width, begin Line) []Line {
	var lines []Line
	for _, text := range strings.Split(s, "\n") {
		w := &wrapper{columns: columns, width: width, rest: begin}
		w.begin(begin)
		w.hard(Span{strings.ReplaceAll(text, "\t", "    "), style})
		lines = append(append(lines, w.lines...), w.line)
	}
	return lines
}
