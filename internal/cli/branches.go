package cli

import (
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
)

func branchCommands() []*command {
	forked := "branch, from, at, messages; operation, context"
	return []*command{
		{name: "tree", does: "draw all branches", scope: onContext, do: doTree, paged: true,
			more: "Straight runs are folded, names and tags are at the heads, and the active branch is marked.",
			json: "branch, from, at, messages, head, tags; active, shared; a line each", example: "chatctx tree"},
		{name: "fork", does: "make a branch with everything up to and including a message, and go on in it", scope: onBranch, run: in(doFork),
			json: forked, example: "chatctx fork trains --at @-2"},
		{name: "switch", does: "go on in another branch", scope: onContext, run: in(doSwitch),
			more: "A part of the name is enough if no other branch has it. Without a name, on a terminal, you choose from a list.",
			json: "operation, context, branch", example: "chatctx switch main"},
		{name: "branch", does: "list, remove and rename branches", scope: onContext,
			subs: []*command{
				{name: "ls", does: "list the branches, the active one first", scope: onContext, do: doBranchLs,
					json: "branch, active, messages, head, revision, from, at; a line each", example: "chatctx branch ls"},
				{name: "rm", does: "remove a branch; the active and the last one are not removed", scope: onContext, run: in(doBranchRm),
					more: "undo brings it back, so it does not ask.",
					json: "operation, context, branch", example: "chatctx branch rm trains"},
				{name: "mv", does: "give a branch another name", scope: onContext, run: in(doBranchMv),
					json: "operation, context, branch", example: "chatctx branch mv main.2 trains"},
			}},
		{name: "edit", does: "make a branch in which a message has another text, and go on in it", scope: onBranch, run: in(doEdit),
			more: "The message keeps its other parts, and the old branch stays as it is. Without TEXT your editor opens (VISUAL, EDITOR).",
			json: forked, example: `chatctx edit @-1 "And by train?" --as trains`},
	}
}

// branchLine prints a branch in branch ls and show.
func (r *run) branchLine(b *record.BranchInfo) {
	mark := " "
	if b.Active {
		mark = r.paint(green, "*")
	}
	head := "empty"
	if b.Messages > 0 {
		head = fmt.Sprintf("%s, head %s", count(b.Messages, "message"), short(b.Head))
	}
	from := ""
	if b.From != "" {
		from = ", from " + cut(oneLine(b.From), 30)
		if b.At != (chatctx.ID{}) {
			from += " at " + short(b.At)
		}
	}
	r.row(4, "%s %s  %s", mark, pad(cut(oneLine(b.Name), 40), 16), r.paint(dim, head+from))
}

// forked reports a new branch.
func (r *run) forked(c *chatctx.Committed, stay bool) error {
	f := c.Last()
	at := "its beginning"
	if f.At != (chatctx.ID{}) {
		at = short(f.At)
	}
	now := "you are on it now"
	if stay {
		now = "you stay where you are"
	}
	v := contract.ForkedOf(c)
	return r.made(c, v, "made branch %s in %s from %s at %s, %s; %s", clean(f.Branch), titled(c.Title, c.Context), clean(f.From), at, count(f.Messages, "message"), now)
}

type forkIn struct {
	Name string     `arg:"NAME"`
	At   record.Ref `flag:"at" doc:"end the new branch with {REF}; else with the head"`
	Stay bool       `flag:"stay" doc:"stay on the branch where you are"`
}

func doFork(r *run, in *forkIn) error {
	c, err := r.change(func(b *chatctx.Batch) { b.Fork(in.Name, chatctx.ForkOptions{At: in.At, Stay: in.Stay}) })
	if err != nil {
		return err
	}
	return r.forked(c, in.Stay)
}

type switchIn struct {
	Branch string `arg:"[BRANCH]"`
}

func doSwitch(r *run, in *switchIn) error {
	name := in.Branch
	if name == "" {
		var err error
		if name, err = r.pickBranch(); err != nil {
			return err
		}
	}
	c, err := r.change(func(b *chatctx.Batch) { b.Switch(name) })
	if err != nil {
		return err
	}
	if c.Operation == "" && r.onServer() != nil {
		return r.emit(whereOf(c), func() { r.printf("now on %s of %s\n", clean(c.Branch), titled(c.Title, c.Context)) })
	}
	return r.made(c, whereOf(c), "now on %s of %s", clean(c.Branch), titled(c.Title, c.Context))
}

func doBranchLs(r *run) error {
	c, err := r.settled()
	if err != nil {
		return err
	}
	branches, err := c.Branches(r.ctx)
	if err != nil {
		return err
	}
	for _, b := range branches {
		if err := r.emit(b, func() { r.branchLine(b) }); err != nil || r.stopped() {
			return err
		}
	}
	return nil
}

type branchRmIn struct {
	Branch string `arg:"BRANCH"`
	dryRunFlag
	yesFlag
}

func doBranchRm(r *run, in *branchRmIn) error {
	if in.DryRun {
		return dryRunBranch(r, in.Branch)
	}
	c, err := r.change(func(b *chatctx.Batch) { b.RemoveBranch(in.Branch) })
	if err != nil {
		return err
	}
	return r.made(c, where{Operation: c.Operation, Context: c.Context, Branch: in.Branch}, "removed branch %s of %s", clean(in.Branch), titled(c.Title, c.Context))
}

func dryRunBranch(r *run, name string) error {
	c, err := r.conversation()
	if err != nil {
		return err
	}
	b, err := c.Branch(r.ctx, name)
	if err != nil {
		return err
	}
	if b.Active {
		return &chatctx.ConflictError{Text: fmt.Sprintf("%q is the active branch and cannot be removed; switch to another one first", b.Name)}
	}
	return r.emit(struct {
		DryRun  bool       `json:"dry_run"`
		Context chatctx.ID `json:"context"`
		*record.BranchInfo
	}{true, c.ID, b}, func() {
		r.printf("would remove branch %s, %s\n", clean(b.Name), count(b.Messages, "message"))
	})
}

type branchMvIn struct {
	Branch string `arg:"BRANCH"`
	Name   string `arg:"NAME"`
}

func doBranchMv(r *run, in *branchMvIn) error {
	c, err := r.change(func(b *chatctx.Batch) { b.RenameBranch(in.Branch, in.Name) })
	if err != nil {
		return err
	}
	return r.made(c, where{Operation: c.Operation, Context: c.Context, Branch: in.Name}, "branch %s of %s is now %s", clean(in.Branch), titled(c.Title, c.Context), clean(in.Name))
}

type editIn struct {
	Message  record.Ref `arg:"REF"`
	Text     *string    `arg:"[TEXT|-]"`
	As       string     `flag:"as" doc:"the new branch's {NAME}; else main.2, main.3 …"`
	KeepRest bool       `flag:"keep-rest" doc:"keep the messages after it on the new branch"`
	rawFlag
}

func doEdit(r *run, in *editIn) error {
	var text string
	var err error
	if in.Text != nil {
		text, err = r.text(*in.Text, in.rawFlag)
	} else {
		text, err = r.editedText(in.Message)
	}
	if err == nil && text == "" {
		err = errEmptyText
	}
	if err != nil {
		return err
	}
	c, err := r.change(func(b *chatctx.Batch) {
		b.Edit(in.Message, text, record.EditOptions{Name: in.As, KeepRest: in.KeepRest})
	})
	if err != nil {
		return err
	}
	return r.forked(c, false)
}

// doTree draws the branches, or prints them as JSON.
func doTree(r *run) error {
	c, err := r.settled()
	if err != nil {
		return err
	}
	t, err := readTree(r, c)
	if err != nil {
		return err
	}
	if !r.json() {
		r.drawTree(t)
		return nil
	}
	for _, b := range t.Branches {
		if err := r.printJSON(t.branchJSON(b)); err != nil {
			return err
		}
	}
	return nil
}
