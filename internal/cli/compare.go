package cli

import (
	"fmt"
	"strings"

	"github.com/rivo/uniseg"
	urfave "github.com/urfave/cli/v3"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/compare"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/screen"
)

func compareCommands() []*command {
	return []*command{
		{name: "compare", args: "[REF…]", does: "show answers side by side", scope: onBranch, do: doCompare, paged: true,
			more: "Each REF is a branch, or a place on one up to which it counts; one REF alone is compared with this branch. Without any: the answers to this branch's last user message. " +
				"Turn by turn from what all share, in as many columns as the terminal holds, else below each other; words that the first has not are marked.",
			flags: []urfave.Flag{
				&urfave.BoolFlag{Name: "markdown", Usage: "write Markdown"},
				&urfave.BoolFlag{Name: "html", Usage: "write one page that needs nothing else"},
			},
			json: "context, ancestor, columns[{ref, branch, messages}], turns[{turn, cells[{messages, text, edits[{kind, text}], figures}]}]",
			example: `chatctx compare
chatctx compare main trains@a1 --html > compare.html`},
		{name: "take", args: "REF", does: "put an answer from another branch in place of this branch's own", scope: onBranch, do: doTake,
			more: "REF's whole answer, with its calls, stands where this branch answered the same user message, or at its end. What stood here from there on goes to a new branch, " +
				"main.2, main.3 …; undo takes back both. Calls without a result wait again here.",
			flags: []urfave.Flag{&urfave.BoolFlag{Name: "keep-rest", Usage: "keep the later turns after the new answer"}},
			json:  "operation, context, branch, messages[{message, position}], moved_to", example: "chatctx take trains"},
	}
}

func doCompare(r *run) error {
	if r.is("markdown") && r.is("html") || (r.is("markdown") || r.is("html")) && r.json() {
		return usagef("compare writes --markdown, --html or --json, one of them")
	}
	c, err := r.conversation()
	if err != nil {
		return err
	}
	refs := make([]chatctx.Ref, len(r.args))
	for i, arg := range r.args {
		refs[i] = chatctx.Ref(arg)
	}
	t, err := compare.Of(r.ctx, c, r.branchName(), refs...)
	switch {
	case err != nil && len(refs) == 0:
		return &hinted{err, "ask several models: " + r.again("ask --models A,B") + "   or name what to compare: " + r.again("compare BRANCH BRANCH")}
	case err != nil:
		return err
	case r.is("markdown"):
		return t.WriteMarkdown(r.out(screen.TextWriter))
	case r.is("html"):
		return t.WriteHTML(r.out(screen.TextWriter))
	}
	return r.emit(t, func() { r.printTable(t) })
}

// minColumn is the least width of a column that can be read; gap stands between two.
const (
	minColumn = 24
	gap       = " │ "
)

// printTable prints a comparison in columns, or below each other where they do not fit.
func (r *run) printTable(t *compare.Table) {
	n := len(t.Columns)
	width := (r.con.width - len([]rune(gap))*(n-1)) / n
	if t.Ancestor != nil {
		r.printf("%s\n", r.paint(dim, fmt.Sprintf("common up to #%d %s %s: %s", t.Ancestor.Position, t.Ancestor.Turn, chatctx.Short(t.Ancestor.ID), screen.Cut(screen.Preview(t.Ancestor.Message), 60))))
	} else {
		r.printf("%s\n", r.paint(dim, "no common beginning"))
	}
	if len(t.Turns) == 0 {
		r.printf("the same history\n")
	}
	for _, turn := range t.Turns {
		if r.stopped() {
			return
		}
		r.printf("\n%s\n", r.paint(cyan, fmt.Sprintf("@@ turn %d @@", turn.Turn)))
		if width >= minColumn {
			r.printBeside(t, turn, width)
			continue
		}
		for i := range t.Columns {
			for _, l := range r.cellLines(t, turn, i, r.con.width) {
				r.printf("%s\n", l.Paint(r.pen()))
			}
			r.printf("\n")
		}
	}
}

// pen writes styles as the terminal has them.
func (r *run) pen() screen.Pen { return screen.Pen{Styles: r.con.color, Color: r.con.color} }

// printBeside prints the cells of a turn beside each other.
func (r *run) printBeside(t *compare.Table, turn *compare.ComparedTurn, width int) {
	cells, most := make([][]screen.Line, len(t.Columns)), 0
	for i := range cells {
		cells[i] = r.cellLines(t, turn, i, width)
		most = max(most, len(cells[i]))
	}
	for row := range most {
		var b strings.Builder
		for i, cell := range cells {
			if i > 0 {
				b.WriteString(r.paint(dim, gap))
			}
			used := 0
			if row < len(cell) {
				b.WriteString(cell[row].Paint(r.pen()))
				used = uniseg.StringWidth(cell[row].Text())
			}
			b.WriteString(strings.Repeat(" ", max(width-used, 0)))
		}
		r.printf("%s\n", strings.TrimRight(b.String(), " "))
	}
}

// cellLines are a cell's lines: the column's name, its figures, its text.
func (r *run) cellLines(t *compare.Table, turn *compare.ComparedTurn, column, width int) []screen.Line {
	var lines []screen.Line
	add := func(spans ...screen.Span) {
		lines = append(lines, screen.Wrap(spans, width, uniseg.StringWidth, nil, nil)...)
	}
	add(screen.Span{Text: screen.OneLine(t.Head(column)), Style: screen.Bold})
	cell := &turn.Cells[column]
	if words := cell.Figures.Words(); len(words) > 0 {
		add(screen.Span{Text: screen.OneLine(strings.Join(words, ", ")), Style: screen.Dim})
	}
	if len(cell.Messages) == 0 {
		add(screen.Span{Text: "no such turn", Style: screen.Dim})
		return lines
	}
	var spans []screen.Span
	for _, e := range turn.Marked(column) {
		if r.con.color {
			spans = append(spans, screen.Span{Text: screen.Clean(e.Text), Style: markedStyle[e.Kind]})
		} else {
			spans = append(spans, screen.Span{Text: screen.Clean(withSigns(e))})
		}
	}
	add(spans...)
	return lines
}

// markedStyle is how a stretch looks that only one side has.
var markedStyle = map[compare.Kind]screen.Style{compare.Gone: screen.Red | screen.Strike, compare.New: screen.Green}

func doTake(r *run) error {
	c, err := r.change(func(b *chatctx.Batch) {
		b.Take(chatctx.Ref(r.arg(0)), chatctx.TakeOptions{KeepRest: r.is("keep-rest")})
	})
	if err != nil {
		return err
	}
	step := c.Last()
	v := contract.TakenOf(c)
	if c.Operation == "" {
		return r.made(c, v, "%s has this answer already", screen.Clean(c.Branch))
	}
	moved := ""
	if step.Beside != "" {
		moved = "; what stood there is on " + screen.Clean(step.Beside)
	}
	return r.made(c, v, "took %s into %s of %s%s", screen.Count(len(step.Placed), "message"), screen.Clean(c.Branch), screen.Titled(c.Title, c.Context), moved)
}
