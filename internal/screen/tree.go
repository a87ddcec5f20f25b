package screen

import (
	"slices"

	"github.com/chatctx/chatctx/chatctx"
)

// Tree says how a context's branches are drawn as they leave one another. Each message that several branches share is drawn once. It is made only from the
// branches; the printer of the rows reads the messages.
type Tree struct {
	Branches []*chatctx.TreeBranch
	children [][]int // for each branch, those that leave it after its own beginning, by where they leave
	parents  []int   // for each branch, the one whose own messages it leaves, -1 for none
	roots    []int   // those that share nothing with an earlier one
	weight   []int   // for each branch, the number of branches that hang on it, including itself
	small    bool    // few enough branches to show the end of each
	heavy    bool    // so deeply nested that the straight line follows the most branches
}

// Glyphs are the characters with which a tree is drawn.
type Glyphs struct{ Dot, Head, Fold, Bar, Fork string }

// The glyphs for terminals with box drawing characters, and for ASCII only.
var (
	LineGlyphs  = Glyphs{"○", "●", "┆", "│ ", "├─"}
	PlainGlyphs = Glyphs{"o", "*", ":", "| ", "|-"}
)

// NewTree hangs each branch on the one whose own messages it leaves.
func NewTree(branches []*chatctx.TreeBranch) *Tree {
	n := len(branches)
	t := &Tree{Branches: branches, children: make([][]int, n), weight: make([]int, n), parents: make([]int, n)}
	depth, deepest := make([]int, n), 0
	for i, b := range branches {
		p := b.Leaves - 1
		for p >= 0 && b.Shared <= branches[p].Shared {
			p = t.parents[p]
		}
		t.parents[i] = p
		if p < 0 || b.Shared == 0 {
			t.parents[i] = -1
			t.roots = append(t.roots, i)
			continue
		}
		t.children[p] = append(t.children[p], i)
		depth[i] = depth[p] + 1
		deepest = max(deepest, depth[i])
	}
	for i := n - 1; i >= 0; i-- {
		t.weight[i]++
		if t.parents[i] >= 0 {
			t.weight[t.parents[i]] += t.weight[i]
		}
		slices.SortStableFunc(t.children[i], func(a, b int) int { return branches[a].Shared - branches[b].Shared })
	}
	const fewBranches, deep = 12, 4
	t.small, t.heavy = n <= fewBranches, deepest > deep
	return t
}

// Messages returns the number of messages that the tree draws: shared ones count once.
func (t *Tree) Messages() int {
	total := 0
	for _, b := range t.Branches {
		total += b.Messages - b.Shared
	}
	return total
}

// Place is the place of a message on a branch of the tree: the index of the branch, from 0, and the position, from 1.
type Place struct{ Branch, Position int }

// Owner returns the place of a message on the branch that owns it: the same for all branches that share it.
func (t *Tree) Owner(p Place) Place {
	for t.parents[p.Branch] >= 0 && p.Position <= t.Branches[p.Branch].Shared {
		p.Branch = t.parents[p.Branch]
	}
	return p
}

// Holds reports whether a branch has the message at a place.
func (t *Tree) Holds(branch int, p Place) bool {
	return p.Position <= t.Branches[branch].Messages && t.Owner(Place{branch, p.Position}) == t.Owner(p)
}

// The kinds of rows.
const (
	MessageRow = iota
	GapRow     // Count messages that are not drawn, from Place on
	LeafRow    // a branch that no other leaves, on one line: Place is its first own message, Count the number of them
	FoldedRow  // a folded side: Place is its first message, Count the messages and Hidden the branches that are not drawn
	BeginRow   // the beginning, if branches are empty or share nothing; it is not a message
)

// Row is one line of the tree.
type Row struct {
	Kind int
	Place
	First string // the text before the message, with the glyph
	Rest  string // the text before its further lines
	Count int
	// Hidden is the number of branches for which a folded row stands.
	Hidden int
	Heads  []int // the branches whose head this message is, the active one first
	Fork   bool  // other branches leave after this message
	Depth  int   // the number of sides around it
	// Side is the first message of the side with the row, the zero Place for the trunk.
	Side Place
}

// Folds say which rows are drawn differently than by `tree`: open gaps and folded sides, each by its first message.
type Folds struct {
	Open   map[Place]bool
	Folded map[Place]bool
}

// Rows lays out the tree, the oldest message first.
func (t *Tree) Rows(g Glyphs, f Folds) []Row {
	l := &layout{Tree: t, g: g, folds: f}
	var roots []int
	for _, root := range t.roots {
		if t.Branches[root].Messages > 0 {
			roots = append(roots, root)
		}
	}
	heads := l.heads(nil, t.roots, 0)
	if len(heads) > 0 || len(roots) > 1 { // otherwise the first message is the beginning
		l.rows = append(l.rows, Row{Kind: BeginRow, First: g.Dot + " ", Heads: heads, Fork: len(roots) > 1})
	}
	if len(roots) > 0 {
		l.draw(l.sides(roots, 0, side{}), 0, "", side{})
	}
	return l.rows
}

// layout makes rows.
type layout struct {
	*Tree
	g     Glyphs
	folds Folds
	rows  []Row
}

// side is a line of drawing beside which a branch is drawn.
type side struct {
	prefix string
	depth  int
	begin  Place
}

// draw adds branch b from after a position on, and the branches that leave it. The first line begins with first, the others with the side's prefix.
func (l *layout) draw(b, after int, first string, in side) {
	for {
		here, next := l.nextFork(b, after)
		heads := l.heads(&b, here, next)
		onward := l.onward(b, here, next)
		if len(onward) == 0 && !l.small && in.depth > 0 && len(here) == 0 && !l.folds.Open[Place{b, after + 1}] {
			l.add(Row{Kind: LeafRow, Place: Place{b, after + 1}, First: first + l.g.Head + " ", Rest: in.prefix + "  ", Count: l.Branches[b].Messages - after, Heads: heads}, in)
			return
		}
		l.run(b, after, next, first, in, heads, len(onward) > 1 || len(here) > 0)
		if len(onward) == 0 {
			return
		}
		b, after, first = l.sides(onward, next, in), next, in.prefix
	}
}

func (l *layout) add(r Row, in side) {
	r.Depth, r.Side = in.depth, in.begin
	l.rows = append(l.rows, r)
}

// sides adds all but one of the branches that continue after a position, and returns the one that goes straight on.
func (l *layout) sides(onward []int, position int, in side) (trunk int) {
	trunk = l.trunk(onward, position)
	for _, b := range onward {
		if b == trunk {
			continue
		}
		begin := Place{b, position + 1}
		first, beside := in.prefix+l.g.Fork, side{in.prefix + l.g.Bar, in.depth + 1, begin}
		if l.folds.Folded[begin] {
			l.folded(begin, first, beside)
			continue
		}
		l.draw(b, position, first, beside)
	}
	return trunk
}

// folded adds one row for a side.
func (l *layout) folded(begin Place, first string, in side) {
	r := Row{Kind: FoldedRow, Place: begin, First: first + l.g.Fold + " ", Rest: in.prefix + "  "}
	r.Count, r.Hidden = l.under(begin)
	if l.Branches[begin.Branch].Messages == begin.Position {
		r.Heads = []int{begin.Branch}
	}
	l.add(r, in)
}

// under returns the numbers of messages and branches from a place on, with all branches that leave there.
func (l *layout) under(p Place) (messages, branches int) {
	messages, branches = l.Branches[p.Branch].Messages-p.Position+1, 1
	for _, c := range l.children[p.Branch] {
		if shared := l.Branches[c].Shared; shared >= p.Position {
			m, b := l.under(Place{c, shared + 1})
			messages, branches = messages+m, branches+b
		}
	}
	return messages, branches
}

// nextFork returns the next position after one at which branches leave b, and these branches; the end of b if there are none.
func (l *layout) nextFork(b, after int) (here []int, position int) {
	position = l.Branches[b].Messages
	for _, c := range l.children[b] {
		at := l.Branches[c].Shared
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

// onward returns the branches with own messages after a fork, the one drawn so far first.
func (l *layout) onward(b int, here []int, position int) []int {
	var on []int
	if l.Branches[b].Messages > position {
		on = append(on, b)
	}
	for _, c := range here {
		if l.Branches[c].Messages > position {
			on = append(on, c)
		}
	}
	return on
}

// trunk returns the branch that goes straight on: the earliest one, or, in a deep tree, the one on which the most branches hang, so that the depth grows only
// with the logarithm of their number.
func (l *layout) trunk(onward []int, position int) int {
	best := onward[0]
	if l.heavy {
		for _, b := range onward[1:] {
			if l.hanging(b, position) > l.hanging(best, position) {
				best = b
			}
		}
	}
	return best
}

// hanging returns how many branches are drawn if b is drawn from after a position on.
func (l *layout) hanging(b, position int) int {
	n := 1
	for _, c := range l.children[b] {
		if l.Branches[c].Shared > position {
			n += l.weight[c]
		}
	}
	return n
}

// heads returns the branches whose head is at a position: b itself, if not nil, and those in here.
func (l *layout) heads(b *int, here []int, position int) []int {
	var heads []int
	add := func(i int) {
		switch x := l.Branches[i]; {
		case x.Messages != position:
		case x.Active:
			heads = append([]int{i}, heads...)
		default:
			heads = append(heads, i)
		}
	}
	if b != nil {
		add(*b)
	}
	for _, c := range here {
		add(c)
	}
	return heads
}

// run adds the messages after one position up to another: the first, the number of those between, and the last with its names.
func (l *layout) run(b, after, to int, first string, in side, heads []int, fork bool) {
	if to <= after {
		return
	}
	message := func(position int) {
		l.add(Row{Place: Place{b, position}, First: first + l.g.Dot + " ", Rest: in.prefix + l.g.Bar}, in)
		first = in.prefix
	}
	if to-after > 1 {
		message(after + 1)
	}
	gap := Place{b, after + 2}
	switch between := to - after - 2; {
	case between == 1, between > 1 && l.folds.Open[gap]:
		for p := after + 2; p < to; p++ {
			message(p)
		}
	case between > 1:
		l.add(Row{Kind: GapRow, Place: gap, First: first + l.g.Fold + " ", Rest: in.prefix + l.g.Bar, Count: between}, in)
	}
	dot := l.g.Dot
	if len(heads) > 0 {
		dot = l.g.Head
	}
	l.add(Row{Place: Place{b, to}, First: first + dot + " ", Rest: in.prefix + "  ", Heads: heads, Fork: fork}, in)
}
