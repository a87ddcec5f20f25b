package operation

import (
	"encoding/json"
	"maps"
	"os"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/internal/contract"
)

func init() { Register(Group{Heading: "Branches", Of: branchOperations}) }

func branchOperations() []*Operation {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("branches.list", "GET "+in+"/branches", Read, "list the branches", listBranches),
		Define("branches.get", "GET "+at, Read, "get one branch, with its prompts, the settings in force, and who answers on it", getBranch),
		Define("branches.siblings", "GET "+at+"/siblings", Read, "list the positions at which other branches leave this one, with the branches that continue there", listSiblings),
		Define("branches.fork", "POST "+at+"/fork", Write, "make a branch with the history up to a message, including it", forkBranch),
		Define("branches.edit", "POST "+at+"/edit", Write, "make a branch in which a message has a new text", editMessage),
		Define("branches.rename", "POST "+at+"/rename", Write, "give a branch another name", renameBranch),
		Define("branches.remove", "POST "+at+"/remove", Write, "remove a branch; undo brings it back", removeBranch),
		Define("branches.activate", "POST "+at+"/activate", Write, "make a branch the active one", activateBranch),
		Define("tree", "GET "+in+"/tree", Read, "show how the branches depend on each other, as rows of a tree, page by page", readTree),
	}
}

func listBranches(r *Request, in *Conversation) (List[*record.BranchInfo], error) {
	c, err := r.settled(in.Context)
	if err != nil {
		return List[*record.BranchInfo]{}, err
	}
	all, err := c.Branches(r.Ctx)
	return ListOf(all), err
}

// shownBranch is a branch with everything in force on it.
type shownBranch struct {
	*record.BranchInfo
	Context  chatctx.ID                 `json:"context"`
	System   string                     `json:"system"`
	Prompt   string                     `json:"prompt"`
	Settings map[string]json.RawMessage `json:"settings"`
	Queued   int                        `json:"queued"`
	Replying *record.Claim              `json:"replying"`
}

func getBranch(r *Request, in *Target) (shownBranch, error) {
	c, snap, err := r.snapshot(*in)
	if err != nil {
		return shownBranch{}, err
	}
	out := shownBranch{BranchInfo: snap.Info, Context: c.ID, System: snap.Info.System, Prompt: snap.Info.Prompt}
	own, err := c.Effective(r.Ctx, snap.Info.Name)
	if err != nil {
		return out, err
	}
	out.Settings = settings.WithEnv(own, os.Getenv)
	queued, err := c.Queued(r.Ctx, snap.Info.Name)
	if err != nil {
		return out, err
	}
	out.Queued = len(queued)
	out.Replying, err = r.replying(c, snap.Info.Name)
	return out, err
}

// replying returns the program that works on a reply on a branch, nil if there is none.
func (r *Request) replying(c *chatctx.ChatContext, branch string) (*record.Claim, error) {
	claim, err := c.Running(r.Ctx, branch)
	if err != nil || !chatctx.Held(claim, r.Store.Now()) {
		return nil, err
	}
	return claim, nil
}

type forkParams struct {
	Change
	Name     string `json:"name" doc:"the new branch's name"`
	At       string `json:"at,omitempty" doc:"the last message of the new branch; by default the head"`
	Activate bool   `json:"activate,omitempty" doc:"make the new branch the active one"`
}

func forkBranch(r *Request, in *forkParams) (contract.Forked, error) {
	return forked(r.commit(in.Change, func(b *chatctx.Batch) {
		b.Fork(in.Name, chatctx.ForkOptions{At: record.Ref(in.At), Stay: !in.Activate})
	}))
}

func forked(done *chatctx.Committed, err error) (contract.Forked, error) {
	if err != nil {
		return contract.Forked{}, err
	}
	return contract.ForkedOf(done), nil
}

type editParams struct {
	Change
	Message  string `json:"message" doc:"the message to edit"`
	Text     string `json:"text" doc:"the new text; the message keeps its other parts"`
	Name     string `json:"name,omitempty" doc:"the new branch's name; by default the next free one of main.2, main.3 …"`
	KeepRest bool   `json:"keep_rest,omitempty" doc:"copy the messages after it to the new branch too"`
	Activate bool   `json:"activate,omitempty" doc:"make the new branch the active one"`
}

func editMessage(r *Request, in *editParams) (contract.Forked, error) {
	return forked(r.commit(in.Change, func(b *chatctx.Batch) {
		b.Edit(record.Ref(in.Message), in.Text, record.EditOptions{Name: in.Name, KeepRest: in.KeepRest, Stay: !in.Activate})
	}))
}

type renameParams struct {
	Change
	Name string `json:"name" doc:"the new name"`
}

func renameBranch(r *Request, in *renameParams) (contract.Where, error) {
	done, err := r.commit(in.Change, func(b *chatctx.Batch) { b.RenameBranch(in.Branch, in.Name) })
	if err != nil {
		return contract.Where{}, err
	}
	return contract.Where{Operation: done.Operation, Context: done.Context, Branch: in.Name}, nil
}

func removeBranch(r *Request, in *Change) (contract.Where, error) {
	return where(r.commit(*in, func(b *chatctx.Batch) { b.RemoveBranch(in.Branch) }))
}

func activateBranch(r *Request, in *Change) (contract.Where, error) {
	return where(r.commit(*in, func(b *chatctx.Batch) { b.Switch(in.Branch) }))
}

func where(done *chatctx.Committed, err error) (contract.Where, error) {
	if err != nil {
		return contract.Where{}, err
	}
	return contract.WhereOf(done), nil
}

type treeParams struct {
	Conversation
	From  int `json:"from,omitempty" doc:"the first row; 0 means 1"`
	Limit int `json:"limit,omitempty" doc:"the most rows, up to 1000; 0 means 100"`
}

// row is a branch of the tree.
type row struct {
	contract.Tree
	Row      int           `json:"row"`
	Leaves   int           `json:"leaves"`   // the row that it leaves after shared messages; 0 for none
	Depth    int           `json:"depth"`    // the number of rows between it and one that leaves none
	Lanes    []int         `json:"lanes"`    // the depths of rows above that a row below leaves; their lines pass this row
	Children bool          `json:"children"` // a row leaves it
	Calls    int           `json:"open_calls"`
	Replying *record.Claim `json:"replying"`
}

// shownTree is a part of a tree.
type shownTree struct {
	List[row]
	Rows int `json:"rows"` // of the whole tree
}

func readTree(r *Request, in *treeParams) (shownTree, error) {
	var out shownTree
	limit, err := limitOf(in.Limit)
	if err != nil {
		return out, err
	}
	c, err := r.settled(in.Context)
	if err != nil {
		return out, err
	}
	branches, err := c.Tree(r.Ctx)
	if err != nil {
		return out, err
	}
	tags, err := c.Tags(r.Ctx)
	if err != nil {
		return out, err
	}
	calls := map[string]int{}
	for call, err := range r.Store.Calls(r.Ctx, record.CallFilter{Context: c.ID}) {
		if err != nil {
			return out, err
		}
		if call.Context == c.ID {
			calls[call.Branch]++
		}
	}
	tree := drawnOf(branches)
	t := &treeReader{r: r, c: c, branches: tree.branches, leaves: tree.leaves, snaps: map[int]*chatctx.Snapshot{}, tags: map[chatctx.ID][]string{}}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		t.tags[tags[name]] = append(t.tags[tags[name]], name)
	}
	out.Rows = len(branches)
	first := max(in.From, 1)
	items := []row{}
	for i := first; i <= len(branches) && len(items) < limit; i++ {
		one, err := t.row(i)
		if err != nil {
			return out, err
		}
		one.Calls = calls[one.Branch]
		one.Depth, one.Children, one.Lanes = tree.depths[i], tree.last[i] > 0, tree.lanes(i)
		items = append(items, one)
	}
	out.Items = items
	return out, nil
}

// drawn is a tree in the order in which it is drawn: branches that leave a branch are right below it, the earliest first. Rows count from 1.
type drawn struct {
	branches []*chatctx.TreeBranch
	leaves   []int // the row that each row leaves, 0 for none
	depths   []int
	last     []int // the last row that leaves each row, 0 for none
}

func drawnOf(branches []*chatctx.TreeBranch) *drawn {
	below := make([][]int, len(branches)+1) // for each place, from 1, the places of the branches that leave it
	for i, b := range branches {
		below[b.Leaves] = append(below[b.Leaves], i+1)
	}
	d := &drawn{leaves: []int{0}, depths: []int{0}, last: []int{0}}
	var put func(place, parent, depth int)
	put = func(place, parent, depth int) {
		b := branches[place-1]
		d.branches = append(d.branches, b)
		d.leaves, d.depths, d.last = append(d.leaves, parent), append(d.depths, depth), append(d.last, 0)
		row := len(d.branches)
		d.last[parent] = row
		children := below[place]
		slices.SortStableFunc(children, func(x, y int) int { return branches[x-1].Shared - branches[y-1].Shared })
		for _, child := range children {
			put(child, row, depth+1)
		}
	}
	for _, root := range below[0] {
		put(root, 0, 0)
	}
	return d
}

// lanes returns the depths of the rows above that a row below leaves; their lines pass this row.
func (d *drawn) lanes(row int) []int {
	lanes := []int{}
	for at := d.leaves[row]; at > 0; at = d.leaves[at] {
		if d.last[at] > row {
			lanes = append(lanes, d.depths[at])
		}
	}
	return lanes
}

// treeReader reads rows of a tree.
type treeReader struct {
	r        *Request
	c        *chatctx.ChatContext
	branches []*chatctx.TreeBranch
	leaves   []int // the row that each row leaves, from 1; 0 for none
	snaps    map[int]*chatctx.Snapshot
	tags     map[chatctx.ID][]string
}

// row returns the branch at a place of the list, from 1.
func (t *treeReader) row(i int) (row, error) {
	b := t.branches[i-1]
	out := row{Row: i, Leaves: t.leaves[i], Tree: contract.Tree{Branch: b.Name, Active: b.Active, Shared: b.Shared, Messages: b.Messages, Head: contract.ID(b.Head), Tags: []string{}}}
	out.Tags = append(out.Tags, t.tags[b.Head]...)
	if out.Leaves > 0 {
		out.From = contract.String(t.branches[out.Leaves-1].Name)
		id, err := t.at(out.Leaves, b.Shared)
		if err != nil {
			return out, err
		}
		out.At = contract.ID(id)
	}
	var err error
	out.Replying, err = t.r.replying(t.c, b.Name)
	return out, err
}

// at returns the message at a position of the branch in a row, or the zero id if the branch was changed meanwhile.
func (t *treeReader) at(row, position int) (chatctx.ID, error) {
	snap := t.snaps[row]
	if snap == nil {
		var err error
		if snap, err = t.c.Snapshot(t.r.Ctx, t.branches[row-1].Name); err != nil {
			return chatctx.ID{}, err
		}
		t.snaps[row] = snap
	}
	page, err := snap.Page(t.r.Ctx, position, position)
	if err != nil || len(page) == 0 || position == 0 {
		return chatctx.ID{}, err
	}
	return page[0].ID, nil
}

type siblingParams struct {
	Target
	From int `json:"from,omitempty" doc:"the first position; 0 means 1"`
	To   int `json:"to,omitempty" doc:"the last position; 0 means the last one of the branch"`
}

// fork is a position at which other branches have another message.
type fork struct {
	Position int       `json:"position"`
	Index    int       `json:"index"` // of this branch's message among the siblings, from 1
	Siblings []sibling `json:"siblings"`
}

// sibling is one of the messages at a fork, and a branch that has it.
type sibling struct {
	Message chatctx.ID `json:"message"`
	Branch  string     `json:"branch"`
}

func listSiblings(r *Request, in *siblingParams) (List[fork], error) {
	var none List[fork]
	c, snap, err := r.snapshot(in.Target)
	if err != nil {
		return none, err
	}
	branches, err := c.Tree(r.Ctx)
	if err != nil {
		return none, err
	}
	here := slices.IndexFunc(branches, func(b *chatctx.TreeBranch) bool { return b.ID == snap.Info.ID })
	if here < 0 {
		return none, chatctx.NotFound("branch", in.Branch)
	}
	t := &treeReader{r: r, c: c, branches: branches, snaps: map[int]*chatctx.Snapshot{here + 1: snap}}
	to := in.To
	if to == 0 {
		to = snap.Len()
	}
	others := map[int][]int{} // by the position at which they leave
	for row, common := range shared(branches, here) {
		if p := common + 1; row != here && p >= max(in.From, 1) && p <= min(to, snap.Len()) && branches[row].Messages > common {
			others[p] = append(others[p], row)
		}
	}
	var out []fork
	for _, position := range slices.Sorted(maps.Keys(others)) {
		f, err := t.fork(here, position, others[position])
		if err != nil {
			return none, err
		}
		if len(f.Siblings) > 1 {
			out = append(out, f)
		}
	}
	return ListOf(out), nil
}

// fork reads the messages at a position, on this branch and on others, in the order of the branches.
func (t *treeReader) fork(here, position int, others []int) (fork, error) {
	f := fork{Position: position}
	rows := append([]int{here}, others...)
	slices.Sort(rows)
	own, err := t.at(here+1, position)
	if err != nil {
		return f, err
	}
	for _, row := range rows {
		id, err := t.at(row+1, position)
		if err != nil {
			return f, err
		}
		if id == (chatctx.ID{}) || id == own && row != here || slices.ContainsFunc(f.Siblings, func(s sibling) bool { return s.Message == id }) {
			continue
		}
		f.Siblings = append(f.Siblings, sibling{id, t.branches[row].Name})
		if row == here {
			f.Index = len(f.Siblings)
		}
	}
	return f, nil
}

// shared returns for each branch of a tree how many messages it has in common with branch here.
func shared(branches []*chatctx.TreeBranch, here int) []int {
	line := map[int]int{} // the branches that it goes back to, and how many messages of each it has
	for i, n := here, branches[here].Messages; i >= 0; i = branches[i].Leaves - 1 {
		line[i] = n
		n = min(n, branches[i].Shared)
	}
	out := make([]int, len(branches))
	for i := range branches {
		at, n := i, branches[i].Messages
		for at >= 0 {
			if m, ok := line[at]; ok {
				out[i] = min(n, m)
				break
			}
			n, at = min(n, branches[at].Shared), branches[at].Leaves-1
		}
	}
	return out
}
