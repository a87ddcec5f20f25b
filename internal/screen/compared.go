package screen

import (
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx/compare"
	"github.com/chatctx/chatctx/chatctx/record"
)

// minColumn is the smallest width of a readable column; gap separates two columns.
const (
	minColumn = 24
	gap       = " │ "
)

// EditStyle is the style of text that only one side has.
var EditStyle = map[compare.Kind]Style{compare.Gone: Red | Strike, compare.New: Green}

// WithSigns marks an edit without colours.
func WithSigns(e compare.Edit) string {
	switch e.Kind {
	case compare.Gone:
		return "[-" + e.Text + "-]"
	case compare.New:
		return "{+" + e.Text + "+}"
	}
	return e.Text
}

// Compared returns a comparison as lines of a width: in columns, or one below the other if these do not fit. Words that the first one lacks are marked, with
// signs if there is no colour.
func Compared(t *compare.Table, columns int, width Width, color bool) []Line {
	c := &compared{Table: t, color: color, width: width}
	if t.Ancestor != nil {
		c.add(Dim, "common up to #%d %s %s: %s", t.Ancestor.Position, t.Ancestor.Turn, record.Short(t.Ancestor.ID), Cut(Preview(t.Ancestor.Message), 60))
	} else {
		c.add(Dim, "no common beginning")
	}
	if len(t.Turns) == 0 {
		c.add(0, "the same history")
	}
	n := len(t.Columns)
	each := (columns - width(gap)*(n-1)) / n
	for _, turn := range t.Turns {
		c.lines = append(c.lines, nil)
		c.add(Cyan, "@@ turn %d @@", turn.Turn)
		if each >= minColumn {
			c.beside(turn, each)
			continue
		}
		for i := range t.Columns {
			c.lines = append(append(c.lines, c.cell(turn, i, columns)...), nil)
		}
	}
	return c.lines
}

// compared lays out a comparison.
type compared struct {
	*compare.Table
	color bool
	width Width
	lines []Line
}

func (c *compared) add(style Style, format string, args ...any) {
	c.lines = append(c.lines, Line{{fmt.Sprintf(format, args...), style}})
}

// beside puts the cells of a turn side by side.
func (c *compared) beside(turn *compare.ComparedTurn, each int) {
	cells, most := make([][]Line, len(c.Columns)), 0
	for i := range cells {
		cells[i] = c.cell(turn, i, each)
		most = max(most, len(cells[i]))
	}
	for row := range most {
		var line Line
		for i, cell := range cells {
			if i > 0 {
				line = append(line, Span{gap, Dim})
			}
			used := 0
			if row < len(cell) {
				line = append(line, cell[row]...)
				used = c.width(cell[row].Text())
			}
			line = append(line, Span{strings.Repeat(" ", max(each-used, 0)), 0})
		}
		c.lines = append(c.lines, (&wrapper{line: line}).trimmed())
	}
}

// cell returns the lines of a cell: the column's name, its figures, its text.
func (c *compared) cell(turn *compare.ComparedTurn, column, columns int) []Line {
	var lines []Line
	add := func(spans ...Span) { lines = append(lines, Wrap(spans, columns, c.width, nil, nil)...) }
	add(Span{OneLine(c.Head(column)), Bold})
	cell := &turn.Cells[column]
	if words := cell.Figures.Words(); len(words) > 0 {
		add(Span{OneLine(strings.Join(words, ", ")), Dim})
	}
	if len(cell.Messages) == 0 {
		add(Span{"no such turn", Dim})
		return lines
	}
	var spans []Span
	for _, e := range turn.Marked(column) {
		if c.color {
			spans = append(spans, Span{Clean(e.Text), EditStyle[e.Kind]})
		} else {
			spans = append(spans, Span{Clean(WithSigns(e)), 0})
		}
	}
	add(spans...)
	return lines
}
