package exchange

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/pool"
)

// record is a node of a conversation in a file.
type sourceNode struct {
	id       string
	parent   string           // "" for a root
	children []string         // in the file's own order; nil if it has none
	orphan   bool             // parent is unknown, but the children of others tell it
	message  *chatctx.Message // nil for a structural record, whose children move to its parent
	skipped  bool             // has no message because that was left out, and is counted as such
	further  bool             // a further message of one in the file; not counted
	copyOf   record.NodeLink  // the original in another conversation
}

// tree sets in's Nodes and Branches from records in file order. It follows the links to parents; for an orphan the child lists. Siblings are in the order of
// their parent's child list, then by time and then in file order. active is the id of the current record; if it is missing, the newest leaf is current. Ids
// must be unique. It cuts cycles, and makes roots of records whose parent is missing, with a warning for each kind.
func (r *reading) tree(in *record.Incoming, records []sourceNode, active string, at place) {
	t := &tree{r: r, at: at, records: records, index: make(map[string]int, len(records))}
	for i := range records {
		t.index[records[i].id] = i
	}
	t.link()
	t.cutCycles()
	t.order()
	t.splice(in)
	t.branches(in, active)
}

// tree is the work on one conversation. All links are indexes of records, -1 for none.
type tree struct {
	r        *reading
	at       place
	records  []sourceNode
	index    map[string]int
	parent   []int
	children [][]int
	roots    []int
	node     []int   // the node of each record, -1 if it is structural
	kids     [][]int // children of nodes
	tops     []int   // roots among nodes
}

// link sets each record's parent.
func (t *tree) link() {
	t.parent = make([]int, len(t.records))
	told := t.told()
	missing := 0
	for i := range t.records {
		rec := &t.records[i]
		t.parent[i] = -1
		switch p, ok := t.index[rec.parent]; {
		case rec.orphan:
			if p, ok := told[rec.id]; ok {
				t.parent[i] = p
			}
		case rec.parent == "":
		case ok:
			t.parent[i] = p
		default:
			missing++
		}
	}
	if missing > 0 {
		t.r.warn(t.at, "the file does not have the parent of %s; each begins a path of its own", plural.Count(missing, "message"))
	}
}

// told returns the parents according to the child lists, if a record does not know its own.
func (t *tree) told() map[string]int {
	if !slices.ContainsFunc(t.records, func(rec sourceNode) bool { return rec.orphan }) {
		return nil
	}
	told := map[string]int{}
	for i := range t.records {
		for _, c := range t.records[i].children {
			if _, twice := told[c]; !twice {
				told[c] = i
			}
		}
	}
	return told
}

// cutCycles makes the first record, in file order, of each cycle a root.
func (t *tree) cutCycles() {
	state := make([]int, len(t.records)) // 0 for new, -1 for done, else the number of the walk that reached it
	cut := 0
	for i := range t.records {
		var path []int
		j := i
		for j >= 0 && state[j] == 0 {
			state[j] = i + 1
			path = append(path, j)
			j = t.parent[j]
		}
		if j >= 0 && state[j] == i+1 { // the walk met itself: cut at the earliest record of the cycle
			first := j
			for k := t.parent[j]; k != j; k = t.parent[k] {
				first = min(first, k)
			}
			t.parent[first] = -1
			cut++
		}
		for _, p := range path {
			state[p] = -1
		}
	}
	if cut > 0 {
		t.r.warn(t.at, "the parents form %s; each is cut at its first message", plural.Count(cut, "cycle"))
	}
}

// order orders children as in the parent's list, and those that it lacks after them, by time and file order.
func (t *tree) order() {
	t.children = make([][]int, len(t.records))
	for i, p := range t.parent {
		if p < 0 {
			t.roots = append(t.roots, i)
		} else {
			t.children[p] = append(t.children[p], i)
		}
	}
	for p, kids := range t.children {
		if len(kids) < 2 {
			continue
		}
		rank := map[int]int{}
		for n, id := range t.records[p].children {
			if k, ok := t.index[id]; ok && rank[k] == 0 {
				rank[k] = n + 1
			}
		}
		slices.SortStableFunc(kids, func(a, b int) int {
			ra, rb := rank[a], rank[b]
			if ra > 0 && rb > 0 {
				return ra - rb
			}
			if ra != rb { // one is not in the list, so it is last
				return rb - ra
			}
			return cmp.Compare(t.created(a), t.created(b))
		})
	}
}

func (t *tree) created(i int) pool.Time {
	if m := t.records[i].message; m != nil {
		return m.Created
	}
	return 0
}

// splice makes the nodes, parents first, siblings in order, without structural records.
func (t *tree) splice(in *record.Incoming) {
	t.node = make([]int, len(t.records))
	above := make([]int, len(t.records)) // the nearest node above a record
	stack := slices.Clone(t.roots)
	slices.Reverse(stack)
	for _, i := range t.roots {
		above[i] = -1
	}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		here := above[i]
		t.node[i] = -1
		if rec := &t.records[i]; rec.message != nil {
			here = len(in.Nodes)
			t.node[i] = here
			in.Nodes = append(in.Nodes, record.Node{
				ID: rec.id, Parent: above[i] + 1, Message: rec.message, Further: rec.further, CopyOf: rec.copyOf,
			})
			t.kids = append(t.kids, nil)
			if above[i] < 0 {
				t.tops = append(t.tops, here)
			} else {
				t.kids[above[i]] = append(t.kids[above[i]], here)
			}
		} else if !rec.skipped {
			t.r.structural(1)
		}
		for _, c := range slices.Backward(t.children[i]) {
			above[c] = here
			stack = append(stack, c)
		}
	}
}

// branches finds the leaves, the active one first, and names their branches.
func (t *tree) branches(in *record.Incoming, active string) {
	if len(in.Nodes) == 0 {
		in.Branches = []record.IncomingBranch{{Name: "main"}}
		return
	}
	leaf := t.activeNode(in, active)
	names := newNamer(in, t.kids, t.tops)
	in.Branches = append(in.Branches, record.IncomingBranch{Name: names.add(leaf), Leaf: leaf + 1})
	for i := range in.Nodes {
		if len(t.kids[i]) == 0 && i != leaf {
			in.Branches = append(in.Branches, record.IncomingBranch{Name: names.add(i), Leaf: i + 1})
		}
	}
}

// activeNode returns the node of the current message.
func (t *tree) activeNode(in *record.Incoming, active string) int {
	if i, ok := t.index[active]; ok && active != "" {
		for j := i; j >= 0; j = t.parent[j] { // a structural record stands for the message before it
			if t.node[j] >= 0 {
				return t.node[j]
			}
		}
	}
	why := "does not say where it stands"
	if active != "" {
		why = "stands at a message that is not in the file"
	}
	best := -1
	for i := range t.records { // file order decides between equals
		n := t.node[i]
		if n < 0 || len(t.kids[n]) > 0 {
			continue
		}
		if best < 0 || in.Nodes[n].Message.Created > in.Nodes[best].Message.Created {
			best = n
		}
	}
	t.r.warn(t.at, "the conversation %s; its newest end is taken", why)
	return best
}

// namer names branches after their difference from earlier ones.
type namer struct {
	in      *record.Incoming
	taken   map[string]bool
	through []string // the first branch through each node, "" if there is none
	ordinal []int    // the number of a node among its siblings, from 1
	prompt  []int    // the number of visible prompts up to and including a node
}

func newNamer(in *record.Incoming, kids [][]int, tops []int) *namer {
	n := &namer{in: in, taken: map[string]bool{}, through: make([]string, len(in.Nodes)),
		ordinal: make([]int, len(in.Nodes)), prompt: make([]int, len(in.Nodes))}
	number := func(siblings []int) {
		for i, k := range siblings {
			n.ordinal[k] = i + 1
		}
	}
	number(tops)
	for i, node := range in.Nodes {
		number(kids[i])
		if node.Parent > 0 {
			n.prompt[i] = n.prompt[node.Parent-1]
		}
		if typed(node.Message) {
			n.prompt[i]++
		}
	}
	return n
}

// typed reports whether a message is a prompt that a person typed.
func typed(m *chatctx.Message) bool {
	return m.Role == pool.User && !m.Hidden && m.Kind == ""
}

// add names the branch that ends at leaf: the first one main, another one by the place where it leaves the earlier ones.
func (n *namer) add(leaf int) string {
	name := "main"
	if len(n.taken) > 0 {
		name = n.difference(leaf)
	}
	base := name
	for i := 2; n.taken[name]; i++ {
		name = fmt.Sprintf("%s (%d)", base, i)
	}
	n.taken[name] = true
	for i := leaf; i >= 0 && n.through[i] == ""; i = n.in.Nodes[i].Parent - 1 {
		n.through[i] = name
	}
	return name
}

// difference says how the path to leaf differs: by an edited prompt or another answer, and in which branch if not in main.
func (n *namer) difference(leaf int) string {
	first := leaf
	for p := n.in.Nodes[first].Parent - 1; p >= 0 && n.through[p] == ""; p = n.in.Nodes[p].Parent - 1 {
		first = p
	}
	// A prompt may come after hidden context that belongs to it.
	what, turn := "answer", n.prompt[first]
	for i, visible := leaf, false; ; i = n.in.Nodes[i].Parent - 1 {
		if m := n.in.Nodes[i].Message; !m.Hidden && (m.Kind == "" || !visible) {
			what, turn, visible = "answer", n.prompt[i], true
			if typed(m) {
				what = "edit"
			}
		}
		if i == first {
			break
		}
	}
	name := fmt.Sprintf("%s %d of u%d", what, n.ordinal[first], max(turn, 1))
	if p := n.in.Nodes[first].Parent - 1; p >= 0 && n.through[p] != "main" {
		within, _, _ := strings.Cut(n.through[p], " in ")
		name += " in " + within
	}
	return name
}
