package cli

import (
	"strconv"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/screen"
)

// tree is a conversation's branches as they leave one another, with the words of their messages.
type tree struct {
	*screen.Tree
	operation.ShownTree
	r   *run
	err error
}

// entry reads the message at a place; nil if it cannot be read.
func (t *tree) entry(p screen.Place) *chatctx.Entry {
	e, err := t.Read.Entry(t.ShownTree.Branches[p.Branch].Name, p.Position)
	if err != nil {
		t.err = err
	}
	return e
}

func (r *run) glyphs() screen.Glyphs {
	if r.con.plain {
		return screen.PlainGlyphs
	}
	return screen.LineGlyphs
}

// drawTree prints the tree, oldest message first.
func (r *run) drawTree(of operation.ShownTree) {
	t := &tree{Tree: screen.NewTree(of.Branches), ShownTree: of, r: r}
	r.row(2, "%s  %s, %s", r.heading(t.Info.Title, t.Info.ID), count(of.Rows, "branch"), count(t.Messages(), "message"))
	for _, row := range t.Tree.Rows(r.glyphs(), screen.Folds{}) {
		if r.stopped() {
			return
		}
		switch row.Kind {
		case screen.BeginRow:
			r.printf("%s\n", strings.Join(append([]string{strings.TrimRight(row.First, " ")}, append(t.names(row), r.paint(dim, "(beginning)"))...), " "))
		case screen.GapRow:
			r.printf("%s%s\n", row.First, r.paint(dim, "… "+count(row.Count, "message")))
		default:
			t.message(row)
		}
	}
	if t.err != nil {
		r.note("not all could be read: %v", t.err)
	}
}

// names returns the labels of the branches whose head a row is.
func (t *tree) names(row screen.Row) []string {
	var names []string
	room := t.nameRoom(row, len("‹› active"))
	for _, i := range row.Heads {
		x := t.ShownTree.Branches[i]
		name, style := "‹"+cut(oneLine(x.Name), room)+"›", green
		if x.Active {
			name, style = name+" active", bold+";"+green
		}
		if t.r.con.plain {
			name = strings.NewReplacer("‹", "<", "›", ">").Replace(name)
		}
		names = append(names, t.r.paint(style, name))
	}
	return names
}

// nameRoom is how wide a name may be on a line of its own below a row, with what stands around it.
func (t *tree) nameRoom(row screen.Row, around int) int {
	return max(min(t.r.con.width-uniseg.StringWidth(row.Rest)-around, 40), 8)
}

// message prints one message: its id, the names at it, its tags, who said it and how it begins, cut to the width of the
// terminal. Names that have no room go on lines of their own.
func (t *tree) message(row screen.Row) {
	e := t.entry(row.Place)
	if e == nil {
		t.r.printf("%s?\n", row.First)
		return
	}
	names, more := t.names(row), ""
	if row.Kind == screen.LeafRow && row.Count > 1 {
		more = "+" + strconv.Itoa(row.Count)
	}
	for _, tag := range t.Tags[e.ID] {
		names = append(names, t.r.paint(cyan, "["+cut(oneLine(tag), t.nameRoom(row, len("[]")))+"]"))
	}
	width := t.r.con.width
	id := short(e.ID)
	used := uniseg.StringWidth(row.First) + len(id)
	lines := wrapNames(names, width-used-1, max(width-uniseg.StringWidth(row.Rest), 20))
	text := ""
	if len(lines) > 0 {
		text = " " + lines[0]
	}
	tail := strings.Join(strings.Fields(more+" "+e.Turn+" "+screen.Line(screen.Saying(e.Message)).Text()), " ")
	room := width - used - visible(text) - 1
	t.r.printf("%s%s%s", row.First, t.r.paint(yellow, id), text)
	if room >= 10 {
		t.r.printf(" %s", cut(tail, room))
	}
	t.r.printf("\n")
	for _, l := range lines[min(1, len(lines)):] {
		t.r.printf("%s%s\n", row.Rest, l)
	}
}

// wrapNames puts labels on lines: first is the room of the first line, rest that of the others.
func wrapNames(names []string, first, rest int) []string {
	var lines []string
	room, line := first, ""
	for _, n := range names {
		switch {
		case line == "" && len(lines) == 0 && visible(n) > room, line != "" && visible(line)+1+visible(n) > room:
			lines, line, room = append(lines, line), n, rest
		case line == "":
			line = n
		default:
			line += " " + n
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// visible returns the width of text that may contain colours.
func visible(s string) int {
	w := 0
	for s != "" {
		before, after, found := strings.Cut(s, "\x1b[")
		w += uniseg.StringWidth(before)
		if !found {
			break
		}
		_, s, _ = strings.Cut(after, "m")
	}
	return w
}
