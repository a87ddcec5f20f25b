package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/chatctx/chatctx/chatctx"
)

// tree is a context's branches as they leave one another. Each message that several branches share is drawn once.
type tree struct {
	r        *run
	c        *chatctx.ChatContext
	info     *chatctx.ContextInfo
	branches []*chatctx.TreeBranch
	children [][]int // of each branch those that leave it after its own beginning, by where they leave
	roots    []int   // those that share nothing with an earlier one
	weight   []int   // branches that hang on each, itself counted
	tags     map[chatctx.ID][]string
	snaps    map[int]*chatctx.Snapshot
	small    bool // few enough branches to show the end of each
	heavy    bool // nested so deep that the line goes on where most branches are
	err      error
}

// readTree reads how the branches stand to each other.
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
	t := &tree{r: r, c: c, info: info, branches: branches, tags: map[chatctx.ID][]string{}, snaps: map[int]*chatctx.Snapshot{}}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		t.tags[tags[name]] = append(t.tags[tags[name]], name)
	}
	t.connect()
	return t, nil
}

// connect hangs each branch on the one whose own messages it leaves.
func (t *tree) connect() {
	n := len(t.branches)
	t.children, t.weight = make([][]int, n), make([]int, n)
	parents, depth, deepest := make([]int, n), make([]int, n), 0
	for i, b := range t.branches {
		p := b.Leaves - 1
		for p >= 0 && b.Shared <= t.branches[p].Shared {
			p = parents[p]
		}
		parents[i] = p
		if p < 0 || b.Shared == 0 {
			parents[i] = -1
			t.roots = append(t.roots, i)
			continue
		}
		t.children[p] = append(t.children[p], i)
		depth[i] = depth[p] + 1
		deepest = max(deepest, depth[i])
	}
	for i := n - 1; i >= 0; i-- {
		t.weight[i]++
		if parents[i] >= 0 {
			t.weight[parents[i]] += t.weight[i]
		}
		slices.SortStableFunc(t.children[i], func(a, b int) int { return t.branches[a].Shared - t.branches[b].Shared })
	}
	const fewBranches, deep = 12, 4
	t.small, t.heavy = n <= fewBranches, deepest > deep
}

// branchJSON is a branch of the tree as JSON.
func (t *tree) branchJSON(b *chatctx.TreeBranch) treeJSON {
	j := treeJSON{Branch: b.Name, Active: b.Active, Shared: b.Shared, Messages: b.Messages, Head: idOrNull(b.Head), Tags: []string{}}
	if from := b.Leaves - 1; from >= 0 {
		j.From = stringOrNull(t.branches[from].Name)
		if e := t.entry(from, b.Shared); e != nil {
			j.At = &e.ID
		}
	}
	j.Tags = append(j.Tags, t.tags[b.Head]...)
	return j
}

// entry reads the message at a position of a branch; nil where it is not to be had.
func (t *tree) entry(b, position int) *chatctx.Entry {
	snap := t.snaps[b]
	if snap == nil {
		var err error
		if snap, err = t.c.Snapshot(t.r.ctx, t.branches[b].Name); err != nil {
			t.err = err
			return nil
		}
		t.snaps[b] = snap
	}
	page, err := snap.Page(t.r.ctx, position, position)
	if err != nil {
		t.err = err
		return nil
	}
	if len(page) == 0 { // somebody changed the branch meanwhile
		return nil
	}
	return page[0]
}

// glyphs are the characters that the tree is drawn with.
type glyphs struct{ dot, head, fold, bar, fork string }

var (
	lineGlyphs  = glyphs{"○", "●", "┆", "│ ", "├─"}
	plainGlyphs = glyphs{"o", "*", ":", "| ", "|-"}
)

func (r *run) glyphs() glyphs {
	if r.con.plain {
		return plainGlyphs
	}
	return lineGlyphs
}

// drawTree prints the tree, oldest message first.
func (r *run) drawTree(t *tree) {
	total := 0
	for _, b := range t.branches {
		total += b.Messages - b.Shared
	}
	r.printf("%s %s  %s, %s\n", r.paint(bold, titled(t.info.Title, t.info.ID)), r.paint(yellow, short(t.info.ID)), count(len(t.branches), "branch"), count(total, "message"))
	var roots []int
	for _, root := range t.roots {
		if t.branches[root].Messages > 0 {
			roots = append(roots, root)
		}
	}
	empty := t.namesAt(nil, t.roots, 0)
	if len(empty) > 0 || len(roots) > 1 { // else the first message is the beginning
		r.printf("%s\n", strings.Join(append([]string{r.glyphs().dot}, append(empty, r.paint(dim, "(beginning)"))...), " "))
	}
	if len(roots) > 0 {
		t.draw(t.sides(roots, 0, ""), 0, "", "")
	}
	if t.err != nil {
		r.note("not all could be read: %v", t.err)
	}
}

// draw prints branch b from after a position on, and what leaves it. The first line begins with first, the others with
// prefix.
func (t *tree) draw(b, after int, first, prefix string) {
	for !t.r.stopped() {
		here, next := t.nextFork(b, after)
		names := t.namesAt(&b, here, next)
		onward := t.onward(b, here, next)
		if len(onward) == 0 && !t.small && prefix != "" && len(here) == 0 {
			t.leaf(b, after, first, prefix, names)
			return
		}
		t.run(b, after, next, first, prefix, names)
		if len(onward) == 0 {
			return
		}
		b, after, first = t.sides(onward, next, prefix), next, prefix
	}
}

// sides prints all but one of the branches that go on after a position, and gives the one that goes straight on.
func (t *tree) sides(onward []int, position int, prefix string) (trunk int) {
	trunk = t.trunk(onward, position)
	for _, side := range onward {
		if side != trunk {
			t.draw(side, position, prefix+t.r.glyphs().fork, prefix+t.r.glyphs().bar)
		}
	}
	return trunk
}

// nextFork is the next position after one at which branches leave b, and which these are; the end of b where none do.
func (t *tree) nextFork(b, after int) (here []int, position int) {
	position = t.branches[b].Messages
	for _, c := range t.children[b] {
		at := t.branches[c].Shared
		if at <= after || at > position {
			continue
		}
		if at < position {
			here, position = nil, at
		}
		here = append(here, c)
	}
	return here, position
}

// onward are the branches that have messages of their own after a fork, the one that was drawn so far first.
func (t *tree) onward(b int, here []int, position int) []int {
	var on []int
	if t.branches[b].Messages > position {
		on = append(on, b)
	}
	for _, c := range here {
		if t.branches[c].Messages > position {
			on = append(on, c)
		}
	}
	return on
}

// trunk is the one that goes straight on: the earliest branch; in a deep tree the one that most branches hang on, so that the depth
// grows with the logarithm of their number.
func (t *tree) trunk(onward []int, position int) int {
	best := onward[0]
	if t.heavy {
		for _, b := range onward[1:] {
			if t.hanging(b, position) > t.hanging(best, position) {
				best = b
			}
		}
	}
	return best
}

// hanging counts the branches that are drawn if b is drawn from after a position on.
func (t *tree) hanging(b, position int) int {
	n := 1
	for _, c := range t.children[b] {
		if t.branches[c].Shared > position {
			n += t.weight[c]
		}
	}
	return n
}

// namesAt are the labels of the branches whose head stands at a position: of b itself, if not nil, and of those in here.
func (t *tree) namesAt(b *int, here []int, position int) []string {
	var names []string
	add := func(i int) {
		if x := t.branches[i]; x.Messages == position {
			name := cut(oneLine(x.Name), 40)
			if x.Active {
				name = t.r.paint(bold+";"+green, "‹"+name+"› active")
				if t.r.con.plain {
					name = strings.NewReplacer("‹", "<", "›", ">").Replace(name)
				}
				names = append([]string{name}, names...)
				return
			}
			if t.r.con.plain {
				name = "<" + name + ">"
			} else {
				name = "‹" + name + "›"
			}
			names = append(names, t.r.paint(green, name))
		}
	}
	if b != nil {
		add(*b)
	}
	for _, c := range here {
		add(c)
	}
	return names
}

// run prints the messages after one position up to another: the first, how many come between, the last with its names.
func (t *tree) run(b, after, to int, first, prefix string, names []string) {
	g := t.r.glyphs()
	if to <= after {
		return
	}
	if to-after > 1 {
		t.message(b, after+1, first+g.dot+" ", prefix+g.bar, nil, "")
		first = prefix
	}
	switch between := to - after - 2; {
	case between == 1:
		t.message(b, after+2, first+g.dot+" ", prefix+g.bar, nil, "")
	case between > 1:
		t.r.printf("%s%s %s\n", first, g.fold, t.r.paint(dim, "… "+count(between, "message")))
	}
	dot := g.dot
	if len(names) > 0 {
		dot = g.head
	}
	t.message(b, to, first+dot+" ", prefix+"  ", names, "")
}

// leaf prints a branch that nothing leaves on one line: its name, how much it has of its own, and how that begins.
func (t *tree) leaf(b, after int, first, prefix string, names []string) {
	more := ""
	if own := t.branches[b].Messages - after; own > 1 {
		more = fmt.Sprintf("+%d", own)
	}
	t.message(b, after+1, first+t.r.glyphs().head+" ", prefix+"  ", names, more)
}

// message prints one message: its id, the names at it, its tags, who said it and how it begins, cut to the width of the
// terminal. Names that have no room go on lines of their own.
func (t *tree) message(b, position int, first, prefix string, names []string, more string) {
	e := t.entry(b, position)
	if e == nil {
		t.r.printf("%s?\n", first)
		return
	}
	for _, tag := range t.tags[e.ID] {
		names = append(names, t.r.paint(cyan, "["+cut(oneLine(tag), 40)+"]"))
	}
	width := t.r.con.width
	id := short(e.ID)
	used := uniseg.StringWidth(first) + len(id)
	lines := wrapNames(names, width-used-1, max(width-uniseg.StringWidth(prefix), 20))
	text := ""
	if len(lines) > 0 {
		text = " " + lines[0]
	}
	tail := strings.Join(strings.Fields(more+" "+e.Turn+" "+string(e.Role)+": "+preview(e.Message)), " ")
	room := width - used - visible(text) - 1
	t.r.printf("%s%s%s", first, t.r.paint(yellow, id), text)
	if room >= 10 {
		t.r.printf(" %s", cut(tail, room))
	}
	t.r.printf("\n")
	for _, l := range lines[min(1, len(lines)):] {
		t.r.printf("%s%s\n", prefix, l)
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

// visible is the width of text that may hold colours.
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
