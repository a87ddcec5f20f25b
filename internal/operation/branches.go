package operation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

func init() { Register(Group{Heading: "Branches", Of: branchOperations}) }

func branchOperations() []*Operation {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("branches.list", "GET "+in+"/branches", Read, "list the branches, the active one first", listBranches).As("branch ls", "chatctx branch ls --removed").
			With("With --removed, those that were removed and can come back, the last one first. gc leaves them for 30 days, if it is not told otherwise."),
		Define("branches.get", "GET "+at, Read, "get one branch, with its prompts, the settings in force, and who answers on it", getBranch),
		Define("branches.siblings", "GET "+at+"/siblings", Read, "list the positions at which other branches leave this one, also after its last message, with the branches that continue there and the first words of each", listSiblings),
		Define("branches.fork", "POST "+at+"/fork", Write, "make a branch with everything up to and including a message, and go on in it", forkBranch).
			As("fork", "chatctx fork trains --at @-2"),
		Define("branches.edit", "POST "+at+"/edit", Write, "make a branch in which a message has another text, and go on in it", editMessage).
			As("edit", `chatctx edit @-1 "And by train?" --as trains`).
			With("The message keeps its other parts, and the old branch stays as it is. Without TEXT your editor opens (VISUAL, EDITOR)."),
		Define("branches.rename", "POST "+at+"/rename", Write, "give a branch another name", renameBranch).As("branch mv", "chatctx branch mv main.2 trains"),
		Define("branches.remove", "POST "+at+"/remove", Write, "remove a branch; the active and the last one are not removed", removeBranch),
		Define("branches.prune", "POST "+in+"/prune", Write, "remove branches, or all but the named ones, as one operation", pruneBranches).
			As("branch rm", "chatctx branch rm trains\nchatctx branch rm --all-but main trains --dry-run").
			With("undo brings them back, and so does branch restore, so it does not ask. The active branch, one on which an answer is being written and one whose calls wait are never removed: named, they are refused (5); with --all-but and --older-than they stay, and are named."),
		Define("branches.restore", "POST "+in+"/restore-branch", Write, "bring a removed branch back", restoreBranch).As("branch restore", "chatctx branch restore trains").
			With("It works whatever was done since (branch ls --removed shows the branches). If two removed ones have the name, it names the operations that removed them (4), and undo takes one back."),
		Define("branches.activate", "POST "+at+"/activate", Write, "go on in another branch", activateBranch).As("switch", "chatctx switch main").
			With("A part of the name is enough if no other branch has it. Without a name, on a terminal, you choose from a list."),
		Define("tree", "GET "+in+"/tree", Read, "draw all branches", readTree).As("tree", "chatctx tree").
			With("Straight runs are folded, names and tags are at the heads, and the active branch is marked."),
	}
}

// BranchList says which branches to list.
type BranchList struct {
	Conversation
	Removed bool `json:"removed,omitempty" flag:"removed" doc:"those that were removed instead, with when, by which operation and until when gc leaves them"`
}

// ListedBranch is a branch of a list, with what is known of its removal.
type ListedBranch struct {
	*record.BranchInfo
	Operation string    `json:"operation,omitempty"` // that removed it
	Removed   pool.Time `json:"removed_at,omitzero"`
	Until     pool.Time `json:"kept_until,omitzero"`
}

// keptFor is how long gc leaves what was removed, if it is not told otherwise.
const keptFor = pool.Time(30 * 24 * time.Hour / time.Microsecond)

func listBranches(r *Request, in *BranchList) (List[ListedBranch], error) {
	var out []ListedBranch
	c, err := r.settled(in.Context)
	if err != nil {
		return ListOf(out), err
	}
	if !in.Removed {
		all, err := c.Branches(r.Ctx)
		for _, b := range all {
			out = append(out, ListedBranch{BranchInfo: b})
		}
		return ListOf(out), err
	}
	err = view.At(r.Ctx, base.ContextOf(c.Store(), c.ID), func(tx kv.Tx, rec *base.ContextRecord) error {
		out = nil
		all, err := view.RemovedBranches(tx, c.ID, rec)
		for _, b := range all {
			info := &record.BranchInfo{ID: b.ID, Name: b.Name, Revision: b.Revision, Messages: b.Messages, Turns: b.Turns, Head: b.Head, From: b.From, At: b.At,
				SystemID: b.System, PromptID: b.Prompt, Created: b.Created}
			out = append(out, ListedBranch{info, fmt.Sprint(b.Operation), b.Removed, b.Removed + keptFor})
		}
		return err
	})
	return ListOf(out), err
}

// Restoring names a removed branch.
type Restoring struct {
	ContextChange
	Branch string `json:"branch" arg:"NAME" doc:"the name of the removed branch"`
	As     string `json:"as,omitempty" flag:"new-name" old:"as" doc:"bring it back as {NAME}"`
}

func restoreBranch(r *Request, in *Restoring) (contract.Where, error) {
	v, err := where(r.onContext(in.Context, func(b *chatctx.Batch) { b.RestoreBranch(in.Branch, in.As) }))
	if err == nil {
		v.Branch = cmp.Or(in.As, in.Branch)
	}
	return v, err
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
	queued, err := view.Queued(r.Ctx, base.ContextOf(c.Store(), c.ID), snap.Info.Name)
	if err != nil {
		return out, err
	}
	out.Queued = len(queued)
	out.Replying, err = r.replying(c, snap.Info.Name)
	return out, err
}

// replying returns the program that works on a reply on a branch, nil if there is none.
func (r *Request) replying(c *chatctx.ChatContext, branch string) (*record.Claim, error) {
	claim, err := view.Running(r.Ctx, base.ContextOf(c.Store(), c.ID), branch)
	if err != nil || !base.Held(claim, base.Of(r.Store).Now()) {
		return nil, err
	}
	return claim, nil
}

// Forking is what a new branch begins with. The API makes it the active one only when asked.
type Forking struct {
	Change
	Name     string     `json:"name" arg:"NAME" doc:"the new branch's name"`
	At       record.Ref `json:"at,omitempty" flag:"at" doc:"end the new branch with {REF}; else with the head"`
	Stay     bool       `json:"-" flag:"stay" doc:"stay on the branch where you are"`
	Activate bool       `json:"activate,omitempty" doc:"make the new branch the active one"`
}

func forkBranch(r *Request, in *Forking) (contract.Forked, error) {
	return forked(r.commit(in.Change, func(b *chatctx.Batch) {
		b.Fork(in.Name, chatctx.ForkOptions{At: in.At, Stay: !in.Activate})
	}))
}

func forked(done *record.Committed, err error) (contract.Forked, error) {
	if err != nil {
		return contract.Forked{}, err
	}
	return contract.ForkedOf(done), nil
}

// Editing is a message's new text, which the command line may have on standard input or in an editor.
type Editing struct {
	Change
	Message  record.Ref `json:"message" arg:"REF" doc:"the message to edit"`
	Text     string     `json:"text" doc:"the new text; the message keeps its other parts"`
	Typed    *string    `json:"-" arg:"[TEXT|-]"`
	Name     string     `json:"name,omitempty" flag:"as" doc:"the new branch's {NAME}; else main.2, main.3 …"`
	KeepRest bool       `json:"keep_rest,omitempty" flag:"keep-rest" doc:"keep the messages that came after it"`
	RawInput
	Activate bool `json:"activate,omitempty" doc:"make the new branch the active one"`
}

func editMessage(r *Request, in *Editing) (contract.Forked, error) {
	return forked(r.commit(in.Change, func(b *chatctx.Batch) {
		b.Edit(in.Message, in.Text, record.EditOptions{Name: in.Name, KeepRest: in.KeepRest, Stay: !in.Activate})
	}))
}

// Renaming is a branch's new name.
type Renaming struct {
	BranchChange
	Name string `json:"name" arg:"NAME" doc:"the new name"`
}

func renameBranch(r *Request, in *Renaming) (contract.Where, error) {
	v, err := where(r.commit(in.change(), func(b *chatctx.Batch) { b.RenameBranch(in.Branch, in.Name) }))
	if err == nil {
		v.Branch = in.Name
	}
	return v, err
}

// Removing names a branch to remove.
type Removing struct {
	BranchChange
	DryRun
	Unasked
}

// RemovedBranch is a branch that was removed, or would be.
type RemovedBranch struct {
	DryRun    bool       `json:"dry_run,omitempty"`
	Operation string     `json:"operation,omitempty"`
	Context   chatctx.ID `json:"context"`
	*record.BranchInfo
	Left  string `json:"left,omitempty"` // why it was left alone
	Title string `json:"-"`              // the conversation's
}

func removeBranch(r *Request, in *Removing) (v RemovedBranch, err error) {
	c, err := r.Store.Context(r.Ctx, in.Context)
	if err != nil {
		return v, err
	}
	v = RemovedBranch{DryRun: in.Dry(), Context: c.ID}
	if v.BranchInfo, err = c.Branch(r.Ctx, in.Branch); err != nil || in.Dry() && !v.Active {
		return v, err
	}
	if in.Dry() {
		return v, &record.ConflictError{Text: fmt.Sprintf("%q is the active branch and cannot be removed; switch to another one first", v.Name)}
	}
	done, err := r.commit(in.change(), func(b *chatctx.Batch) { b.RemoveBranch(in.Branch) })
	if err == nil {
		v.Operation, v.Title = done.Operation, done.Title
	}
	return v, err
}

// Pruning names branches to remove.
type Pruning struct {
	ContextChange
	Branches  []string   `json:"branches,omitempty" arg:"[BRANCH…]" doc:"the names of the branches"`
	AllBut    bool       `json:"all_but,omitempty" flag:"all-but" doc:"remove all branches but the named ones"`
	OlderThan *time.Time `json:"-" flag:"older-than" doc:"only those last changed before {WHEN}"`
	DryRun
	Unasked
}

func pruneBranches(r *Request, in *Pruning) (List[RemovedBranch], error) {
	var out []RemovedBranch
	if len(in.Branches) == 0 && in.OlderThan == nil {
		return ListOf(out), base.Invalid("branch rm needs the names of branches, or --older-than")
	}
	c, err := r.Store.Context(r.Ctx, in.Context)
	if err != nil {
		return ListOf(out), err
	}
	all, err := r.chosen(c, in)
	if err != nil {
		return ListOf(out), err
	}
	named := len(in.Branches) > 0 && !in.AllBut
	var gone []string
	for _, b := range all {
		v := RemovedBranch{DryRun: in.Dry(), Context: c.ID, BranchInfo: b}
		if v.Left, err = r.holds(c, b); err != nil {
			return ListOf(out), err
		}
		if named && v.Left != "" {
			return ListOf(out), &record.ConflictError{Text: fmt.Sprintf("the branch %q cannot be removed: %s", b.Name, v.Left)}
		}
		if out = append(out, v); v.Left == "" {
			gone = append(gone, b.Name)
		}
	}
	if in.Dry() || len(gone) == 0 {
		return ListOf(out), nil
	}
	done, err := r.onContext(in.Context, func(b *chatctx.Batch) {
		for _, name := range gone {
			b.RemoveBranch(name)
		}
	})
	for i := range out {
		if err == nil && out[i].Left == "" {
			out[i].Operation, out[i].Title = done.Operation, done.Title
		}
	}
	return ListOf(out), err
}

// chosen returns the branches that are meant: the named ones, or with AllBut the others, of these those that nobody has changed since a time, if one is given.
func (r *Request) chosen(c *chatctx.ChatContext, in *Pruning) (out []*record.BranchInfo, err error) {
	all, err := c.Branches(r.Ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range in.Branches {
		b, err := c.Branch(r.Ctx, name)
		if err != nil {
			return nil, err
		}
		if !in.AllBut && !slices.ContainsFunc(out, func(o *record.BranchInfo) bool { return o.ID == b.ID }) {
			out = append(out, b)
		}
		all = slices.DeleteFunc(all, func(o *record.BranchInfo) bool { return o.ID == b.ID })
	}
	if in.AllBut || len(in.Branches) == 0 {
		out = all
	}
	if in.OlderThan == nil {
		return out, nil
	}
	changed, err := lastChanges(r, c)
	return slices.DeleteFunc(out, func(b *record.BranchInfo) bool { return changed[b.ID] >= pool.TimeOf(*in.OlderThan) }), err
}

// lastChanges returns when each branch was made or last changed.
func lastChanges(r *Request, c *chatctx.ChatContext) (at map[chatctx.ID]pool.Time, err error) {
	err = view.At(r.Ctx, base.ContextOf(c.Store(), c.ID), func(tx kv.Tx, rec *base.ContextRecord) error {
		at = map[chatctx.ID]pool.Time{}
		all, err := view.BranchInfos(tx, c.ID, rec)
		for _, b := range all {
			at[b.ID] = b.Created
			op, err := base.GetOperation(tx, c.ID, b.Newest)
			if err != nil {
				return err
			}
			if op != nil {
				at[b.ID] = max(b.Created, op.At)
			}
		}
		return err
	})
	return at, err
}

// holds returns why a branch is never removed: people are on it, an answer is being written on it, or its calls wait; "" for no reason.
func (r *Request) holds(c *chatctx.ChatContext, b *record.BranchInfo) (string, error) {
	if b.Active {
		return "it is the active branch; switch to another one first", nil
	}
	claim, err := r.replying(c, b.Name)
	if err != nil || claim != nil {
		return fmt.Sprintf("an answer is being written on it; wait for it, or stop it with chatctx interrupt --branch %q", b.Name), err
	}
	calls, err := newTreeReader(r, c).openCalls(r)
	if n := calls[b.Name]; n > 0 {
		return fmt.Sprintf("%s on it: chatctx calls ls --branch %q", plural.CallsWait(n), b.Name), err
	}
	return "", err
}

// Switching names the branch to go on in. On the command line the person may choose it.
type Switching struct {
	Conversation
	Branch string  `json:"branch" arg:"[BRANCH]" doc:"the name of the branch"`
	Expect *uint64 `json:"expect,omitempty" doc:"the revision that the branch must have; any other is a conflict. Over HTTP also If-Match"`
	Keyed
}

// Expected returns what a change is about, and the revision that it must have.
func (in *Switching) Expected() (context, branch string, revision *uint64) {
	return in.Context, in.Branch, in.Expect
}

func activateBranch(r *Request, in *Switching) (contract.Where, error) {
	v, err := where(r.commit(Change{Target: Target{Context: in.Context}}, func(b *chatctx.Batch) { b.Switch(in.Branch) }))
	if v.Operation == "" {
		r.Done = nil // on a server, where a person is changes no conversation
	}
	return v, err
}

func where(done *record.Committed, err error) (contract.Where, error) {
	if err != nil {
		return contract.Where{}, err
	}
	return contract.WhereOf(done), nil
}

// TreeRows says which rows of a tree to return.
type TreeRows struct {
	Conversation
	From  int `json:"from,omitempty" doc:"the first row; 0 means 1"`
	Limit int `json:"limit,omitempty" doc:"the most rows, up to 1000; 0 means 100"`
}

// TreeRow is a branch of the tree.
type TreeRow struct {
	contract.Tree
	Row      int           `json:"row"`
	Leaves   int           `json:"leaves"`   // the row that it leaves after shared messages; 0 for none
	Depth    int           `json:"depth"`    // the number of rows between it and one that leaves none
	Lanes    []int         `json:"lanes"`    // the depths of rows above that a row below leaves; their lines pass this row
	Children bool          `json:"children"` // a row leaves it
	Calls    int           `json:"open_calls"`
	Replying *record.Claim `json:"replying"`
}

// ShownTree is a part of a tree.
type ShownTree struct {
	List[TreeRow]
	Rows int `json:"rows"` // of the whole tree

	Info     *record.ContextInfo     `json:"-"`
	Branches []*chatctx.TreeBranch   `json:"-"` // all of them
	Tags     map[chatctx.ID][]string `json:"-"` // of each message
	Read     *TreeReader             `json:"-"`
}

func readTree(r *Request, in *TreeRows) (v ShownTree, err error) {
	limit, err := limitOf(in.Limit)
	if err != nil {
		return v, err
	}
	if r.Page == 0 {
		limit = 0
	}
	c, err := r.settled(in.Context)
	if err != nil {
		return v, err
	}
	if v.Info, err = c.Info(r.Ctx); err != nil {
		return v, err
	}
	if v.Branches, err = c.Tree(r.Ctx); err != nil {
		return v, err
	}
	tags, err := c.Tags(r.Ctx)
	if err != nil {
		return v, err
	}
	v.Rows, v.Read, v.Tags = len(v.Branches), newTreeReader(r, c), map[chatctx.ID][]string{}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		v.Tags[tags[name]] = append(v.Tags[tags[name]], name)
	}
	v.List, err = FirstOf(r, v.rows(r, max(in.From, 1)), limit)
	return v, err
}

// rows reads the rows from one on.
func (v ShownTree) rows(r *Request, from int) iter.Seq2[TreeRow, error] {
	return func(yield func(TreeRow, error) bool) {
		calls, err := v.Read.openCalls(r)
		if err != nil {
			yield(TreeRow{}, err)
			return
		}
		tree := drawnOf(v.Branches)
		for i := from; i <= v.Rows; i++ {
			row, err := v.row(r, tree, i)
			row.Calls = calls[row.Branch]
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
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

// row returns a row of a tree, from 1.
func (v ShownTree) row(r *Request, tree *drawn, i int) (row TreeRow, err error) {
	b := tree.branches[i-1]
	row = TreeRow{Row: i, Leaves: tree.leaves[i], Depth: tree.depths[i], Lanes: tree.lanes(i), Children: tree.last[i] > 0,
		Tree: contract.Tree{Branch: b.Name, Active: b.Active, Shared: b.Shared, Messages: b.Messages, Head: contract.ID(b.Head), Tags: append([]string{}, v.Tags[b.Head]...)}}
	if row.Leaves > 0 {
		from := tree.branches[row.Leaves-1].Name
		row.From = &from
		id, err := v.Read.id(from, b.Shared)
		if err != nil {
			return row, err
		}
		row.At = contract.ID(id)
	}
	row.Replying, err = r.replying(v.Read.c, b.Name)
	return row, err
}

// TreeReader reads the messages of a tree.
type TreeReader struct {
	ctx   context.Context
	c     *chatctx.ChatContext
	snaps map[string]*chatctx.Snapshot
}

func newTreeReader(r *Request, c *chatctx.ChatContext) *TreeReader {
	return &TreeReader{r.Ctx, c, map[string]*chatctx.Snapshot{}}
}

// Entry returns the message at a position of a branch, nil if the branch was changed meanwhile.
func (t *TreeReader) Entry(branch string, position int) (*chatctx.Entry, error) {
	snap := t.snaps[branch]
	if snap == nil {
		var err error
		if snap, err = t.c.Snapshot(t.ctx, branch); err != nil {
			return nil, err
		}
		t.snaps[branch] = snap
	}
	if position == 0 || position > snap.Len() {
		return nil, nil
	}
	page, err := snap.Page(t.ctx, position, position)
	if err != nil || len(page) == 0 {
		return nil, err
	}
	return page[0], nil
}

// id returns the id of the message at a position, zero if there is none.
func (t *TreeReader) id(branch string, position int) (chatctx.ID, error) {
	e, err := t.Entry(branch, position)
	if e == nil {
		return chatctx.ID{}, err
	}
	return e.ID, nil
}

// openCalls returns the number of open calls on each branch.
func (t *TreeReader) openCalls(r *Request) (map[string]int, error) {
	calls := map[string]int{}
	for call, err := range r.Store.Calls(r.Ctx, record.CallFilter{Context: t.c.ID}) {
		if err != nil {
			return nil, err
		}
		if call.Context == t.c.ID {
			calls[call.Branch]++
		}
	}
	return calls, nil
}

type siblingParams struct {
	Target
	From int `json:"from,omitempty" doc:"the first position; 0 means 1"`
	To   int `json:"to,omitempty" doc:"the last position; 0 means the place after the last message of the branch, where only other branches may go on"`
}

// fork is a position at which other branches have another message, or go on where this one ends.
type fork struct {
	Position int       `json:"position"`
	Index    int       `json:"index"` // of this branch's message among the siblings, from 1; 0 after its last message
	Siblings []sibling `json:"siblings"`
}

// sibling is one of the messages at a fork, and a branch that has it.
type sibling struct {
	Message chatctx.ID `json:"message"`
	Branch  string     `json:"branch"`
	Role    pool.Role  `json:"role"`
	Model   string     `json:"model,omitempty"` // that wrote it
	Words   string     `json:"words"`           // its first ones
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
		return none, base.NotFound("branch", in.Branch)
	}
	t := newTreeReader(r, c)
	t.snaps[snap.Info.Name] = snap
	end := snap.Len() + 1 // where other branches go on after the last message
	to := min(cmp.Or(in.To, end), end)
	others := map[int][]int{} // by the position at which they leave
	for row, common := range shared(branches, here) {
		if p := common + 1; row != here && p >= max(in.From, 1) && p <= to && branches[row].Messages > common {
			others[p] = append(others[p], row)
		}
	}
	var out []fork
	for _, position := range slices.Sorted(maps.Keys(others)) {
		f, err := t.fork(branches, here, position, others[position])
		if err != nil {
			return none, err
		}
		if len(f.Siblings) > 1 || f.Index == 0 && len(f.Siblings) > 0 {
			out = append(out, f)
		}
	}
	return ListOf(out), nil
}

// fork reads the messages at a position, on this branch and on others, in the order of the branches.
func (t *TreeReader) fork(branches []*chatctx.TreeBranch, here, position int, others []int) (fork, error) {
	f := fork{Position: position}
	rows := append([]int{here}, others...)
	slices.Sort(rows)
	own, err := t.id(branches[here].Name, position)
	if err != nil {
		return f, err
	}
	for _, row := range rows {
		e, err := t.Entry(branches[row].Name, position)
		if err != nil {
			return f, err
		}
		if e == nil || e.ID == own && row != here || slices.ContainsFunc(f.Siblings, func(s sibling) bool { return s.Message == e.ID }) {
			continue
		}
		f.Siblings = append(f.Siblings, sibling{e.ID, branches[row].Name, e.Role, e.Meta.Model, journal.FirstWords(e.Text())})
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
