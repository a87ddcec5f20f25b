package screen

import (
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown is made at its first use, since most commands show none.
var markdown = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList, extension.Linkify)).Parser()
})

// Markdown renders a text as lines of a width. Everything in it is made safe for a terminal; no line is left out, and links show their target.
func Markdown(source string, columns int, width Width) []Line {
	return rendered(source, false, columns, width)
}

// Typed is Markdown for a text that a person typed, which keeps the line breaks.
func Typed(source string, columns int, width Width) []Line {
	return rendered(source, true, columns, width)
}

func rendered(source string, breaks bool, columns int, width Width) []Line {
	m := &marker{source: []byte(readable(source)), breaks: breaks, columns: max(columns, 4), width: width}
	m.blocks(markdown().Parse(text.NewReader(m.source)), nil, nil)
	return m.lines
}

// readable returns clean text with uniform line ends.
func readable(s string) string { return Clean(strings.ReplaceAll(s, "\r\n", "\n")) }

// marker renders a document.
type marker struct {
	source  []byte
	breaks  bool // line breaks are kept
	columns int
	width   Width
	lines   []Line
}

// blocks renders the children of a block with blank lines between them. The first line begins with first, the others with rest.
func (m *marker) blocks(of ast.Node, first, rest Line) {
	for n := of.FirstChild(); n != nil; n = n.NextSibling() {
		if n != of.FirstChild() && !isTight(n) {
			m.lines = append(m.lines, m.bare(rest))
		}
		m.block(n, first, rest)
		first = rest
	}
}

// isTight reports whether no blank line comes before a block.
func isTight(n ast.Node) bool {
	if list, ok := n.Parent().(*ast.List); ok {
		return list.IsTight
	}
	item, ok := n.Parent().(*ast.ListItem)
	if !ok {
		return false
	}
	list, ok := item.Parent().(*ast.List)
	return ok && list.IsTight
}

// bare returns the beginning of a line with nothing after it.
func (m *marker) bare(l Line) Line {
	w := &wrapper{line: append(Line{}, l...)}
	return w.trimmed()
}

func (m *marker) block(n ast.Node, first, rest Line) {
	switch n := n.(type) {
	case *ast.Heading:
		mark := Span{strings.Repeat("#", n.Level) + " ", Bold | Dim}
		m.wrap(m.inline(n, Bold), append(cloned(first), mark), append(cloned(rest), Span{strings.Repeat(" ", n.Level+1), 0}))
	case *ast.List:
		m.list(n, first, rest)
	case *ast.Blockquote:
		bar := Span{"│ ", Dim}
		m.blocks(n, append(cloned(first), bar), append(cloned(rest), bar))
	case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
		m.code(n, first, rest)
	case *ast.ThematicBreak:
		m.lines = append(m.lines, append(cloned(first), Span{strings.Repeat("─", min(20, m.columns)), Dim}))
	case *tables.Table:
		m.table(n, first, rest)
	default:
		if n.FirstChild() != nil && n.FirstChild().Type() == ast.TypeBlock {
			m.blocks(n, first, rest)
			return
		}
		m.wrap(m.inline(n, 0), first, rest)
	}
}

func cloned(l Line) Line { return append(Line{}, l...) }

func (m *marker) wrap(spans []Span, first, rest Line) {
	m.lines = append(m.lines, Wrap(spans, m.columns, m.width, first, rest)...)
}

func (m *marker) list(n *ast.List, first, rest Line) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		bullet := "• "
		if n.IsOrdered() {
			bullet = strconv.Itoa(number) + string(n.Marker) + " "
			number++
		}
		if item != n.FirstChild() && !n.IsTight {
			m.lines = append(m.lines, m.bare(rest))
		}
		begin := append(cloned(first), Span{bullet, Dim})
		if item.FirstChild() == nil {
			m.lines = append(m.lines, begin)
		}
		m.blocks(item, begin, append(cloned(rest), Span{strings.Repeat(" ", m.width(bullet)), 0}))
		first = rest
	}
}

// code renders a block unchanged, behind a bar.
func (m *marker) code(n ast.Node, first, rest Line) {
	var b strings.Builder
	lines := n.Lines()
	for i := range lines.Len() {
		seg := lines.At(i)
		b.Write(seg.Value(m.source))
	}
	if html, ok := n.(*ast.HTMLBlock); ok && html.HasClosure() {
		b.Write(html.ClosureLine.Value(m.source))
	}
	bar := Span{"▏ ", Dim}
	if fence, ok := n.(*ast.FencedCodeBlock); ok && len(fence.Language(m.source)) > 0 {
		m.lines = append(m.lines, append(cloned(first), bar, Span{OneLine(string(fence.Language(m.source))), Dim}))
		first = rest
	}
	all := Hard(strings.TrimSuffix(b.String(), "\n"), Cyan, m.columns, m.width, append(cloned(rest), bar))
	if len(all) > 0 {
		all[0] = append(append(cloned(first), bar), all[0][len(rest)+1:]...)
	}
	m.lines = append(m.lines, all...)
}

// table draws columns if they have room, else one row after the other.
func (m *marker) table(n *tables.Table, first, rest Line) {
	var rows [][]Line
	var wide []int
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		style := Style(0)
		if row.Kind() == tables.KindTableHeader {
			style = Bold
		}
		var cells []Line
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			spans := Line(m.inline(cell, style))
			if len(cells) == len(wide) {
				wide = append(wide, 0)
			}
			wide[len(cells)] = max(wide[len(cells)], m.width(spans.Text()))
			cells = append(cells, spans)
		}
		rows = append(rows, cells)
	}
	total := m.width(rest.Text())
	for _, w := range wide {
		total += w + 3
	}
	for _, cells := range rows {
		var spans []Span
		for i, cell := range cells {
			if i > 0 {
				spans = append(spans, Span{" │ ", Dim})
			}
			spans = append(spans, cell...)
			if n := wide[i] - m.width(cell.Text()); total <= m.columns+3 && n > 0 && i < len(cells)-1 {
				spans = append(spans, Span{strings.Repeat(" ", n), 0})
			}
		}
		m.wrap(spans, first, rest)
		first = rest
	}
}

// inline renders the content of a paragraph.
func (m *marker) inline(of ast.Node, style Style) []Span {
	var out []Span
	for n := of.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			out = append(out, Span{m.words(n.Value(m.source), n.IsRaw()), style})
			switch {
			case n.HardLineBreak(), n.SoftLineBreak() && m.breaks:
				out = append(out, Span{"\n", style})
			case n.SoftLineBreak():
				out = append(out, Span{" ", style})
			}
		case *ast.String:
			out = append(out, Span{m.words(n.Value, n.IsRaw() || n.IsCode()), style})
		case *ast.CodeSpan:
			out = append(out, Span{"`" + strings.ReplaceAll(plain(n, m.source), "\n", " ") + "`", style | Cyan})
		case *ast.Emphasis:
			more := Italic
			if n.Level > 1 {
				more = Bold
			}
			out = append(out, m.inline(n, style|more)...)
		case *tables.Strikethrough:
			out = append(out, m.inline(n, style|Strike)...)
		case *tables.TaskCheckBox:
			out = append(out, Span{map[bool]string{true: "[x] ", false: "[ ] "}[n.IsChecked], style})
		case *ast.Link:
			out = append(out, m.link(n, string(n.Destination), style)...)
		case *ast.Image:
			out = append(out, Span{"[image ", style | Dim})
			out = append(append(out, m.link(n, string(n.Destination), style)...), Span{"]", style | Dim})
		case *ast.AutoLink:
			out = append(out, Span{Clean(string(n.Label(m.source))), style | Underline})
		case *ast.RawHTML:
			for i := range n.Segments.Len() {
				seg := n.Segments.At(i)
				out = append(out, Span{Clean(string(seg.Value(m.source))), style | Dim})
			}
		default:
			out = append(out, m.inline(n, style)...)
		}
	}
	return out
}

// words returns text with escapes and entities resolved, made safe.
func (m *marker) words(b []byte, raw bool) string {
	if !raw {
		b = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(b)))
	}
	return strings.ReplaceAll(Clean(string(b)), "\n", " ")
}

// link renders the words and the target of a link, only once if they are the same.
func (m *marker) link(n ast.Node, to string, style Style) []Span {
	words := m.inline(n, style|Underline)
	if to = OneLine(to); to == "" || Line(words).Text() == to {
		return words
	}
	return append(words, Span{" (" + to + ")", style | Dim})
}

// plain returns the text of a code span.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Value(source))
		}
	}
	return b.String()
}
