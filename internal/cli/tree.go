package cli

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/screen"
)

// tree is a context's branches as they leave one another, with the words of their messages.
type tree struct {
	*screen.Tree
	r     *run
	c     *chatctx.ChatContext
	info  *record.ContextInfo
	tags  map[chatctx.ID][]string
	snaps map[int]*chatctx.Snapshot
	err   error
}

// readTree reads how the branches relate.
func readTree(r *run, c *chatctx.ChatContext) (*tree, error) {
	info, err := c.Info(r.ctx)
	if err != nil {
		return nil, err
	}
	branches, err := c.Tree(r.ctx)
	if err != nil {
		return nil, err
	}
	tags, err := c.Tags(r.ctx)
	if err != nil {
		return nil, err
	}
	t := &tree{Tree: screen.NewTree(branches), r: r, c: c, info: info, tags: map[chatctx.ID][]string{}, snaps: map[int]*chatctx.Snapshot{}}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		t.tags[tags[name]] = append(t.tags[tags[name]], name)
	}
	return t, nil
}

// branchJSON is a branch of the tree as JSON.
func (t *tree) branchJSON(b *chatctx.TreeBranch) treeJSON {
	j := treeJSON{Branch: b.Name, Active: b.Active, Shared: b.Shared, Messages: b.Messages, Head: idOrNull(b.Head), Tags: []string{}}
	if from := b.Leaves - 1; from >= 0 {
		j.From = stringOrNull(t.Branches[from].Name)
		if e := t.entry(screen.Place{Branch: from, Position: b.Shared}); e != nil {
			j.At = &e.ID
		}
	}
	j.Tags = append(j.Tags, t.tags[b.Head]...)
	return j
}

// entry reads the message at a place; nil if it cannot be read.
func (t *tree) entry(p screen.Place) *chatctx.Entry {
	snap := t.snaps[p.Branch]
	if snap == nil {
		var err error
		if snap, err = t.c.Snapshot(t.r.ctx, t.Branches[p.Branch].Name); err != nil {
			t.err = err
			return nil
		}
		t.snaps[p.Branch] = snap
	}
	page, err := snap.Page(t.r.ctx, p.Position, p.Position)
	if err != nil {
		t.err = err
		return nil
	}
	if len(page) == 0 { // somebody changed the branch meanwhile
		return nil
	}
	return page[0]
}

func (r *run) glyphs() screen.Glyphs {
	if r.con.plain {
		return screen.PlainGlyphs
	}
	return screen.LineGlyphs
}

// drawTree prints the tree, oldest message first.
func (r *run) drawTree(t *tree) {
	r.row(2, "%s  %s, %s", r.heading(t.info.Title, t.info.ID), count(len(t.Branches), "branch"), count(t.Messages(), "message"))
	for _, row := range t.Rows(r.glyphs(), screen.Folds{}) {
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
		x := t.Branches[i]
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
	for _, tag := range t.tags[e.ID] {
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
