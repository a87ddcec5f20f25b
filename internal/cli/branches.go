package cli

import (
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
)

func branchCommands() []*command {
	forked := "branch, from, at, messages; operation, context"
	return []*command{
		{name: "tree", does: "draw all branches", scope: onContext, do: doTree, paged: true,
			more: "Straight runs are folded, names and tags are at the heads, and the active branch is marked.",
			json: "branch, from, at, messages, head, tags; active, shared; a line each", example: "chatctx tree"},
		{name: "fork", args: "NAME", does: "make a branch with everything up to and including a message, and go on in it", scope: onBranch, do: doFork,
			flags: []*flag{
				{name: "at", usage: "end the new branch with `REF`; else with the head"},
				{name: "stay", kind: onOff, usage: "stay on the branch where you are"},
			},
			json: forked, example: "chatctx fork trains --at @-2"},
		{name: "switch", args: "[BRANCH]", does: "go on in another branch", scope: onContext, do: doSwitch,
			more: "A part of the name is enough if no other branch has it. Without a name, on a terminal, you choose from a list.",
			json: "operation, context, branch", example: "chatctx switch main"},
		{name: "branch", does: "list, remove and rename branches", scope: onContext,
			subs: []*command{
				{name: "ls", does: "list the branches, the active one first", scope: onContext, do: doBranchLs,
					json: "branch, active, messages, head, revision, from, at; a line each", example: "chatctx branch ls"},
				{name: "rm", args: "BRANCH", does: "remove a branch; the active and the last one are not removed", scope: onContext, do: doBranchRm, flags: []*flag{dryRun(), yes()},
					more: "undo brings it back, so it does not ask.",
					json: "operation, context, branch", example: "chatctx branch rm trains"},
				{name: "mv", args: "BRANCH NAME", does: "give a branch another name", scope: onContext, do: doBranchMv,
					json: "operation, context, branch", example: "chatctx branch mv main.2 trains"},
			}},
		{name: "edit", args: "REF [TEXT|-]", does: "make a branch in which a message has another text, and go on in it", scope: onBranch, do: doEdit,
			more: "The message keeps its other parts, and the old branch stays as it is. Without TEXT your editor opens (VISUAL, EDITOR).",
			flags: []*flag{
				{name: "as", usage: "the new branch's `NAME`; else main.2, main.3 …"},
				{name: "keep-rest", kind: onOff, usage: "keep the messages after it on the new branch"},
				rawText(),
			},
			json: forked, example: `chatctx edit @-1 "And by train?" --as trains`},
	}
}

// branchLine prints a branch in branch ls and show.
func (r *run) branchLine(b *chatctx.BranchInfo) {
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

func doFork(r *run) error {
	c, err := r.change(func(b *chatctx.Batch) {
		b.Fork(r.arg(0), chatctx.ForkOptions{At: chatctx.Ref(r.flag("at")), Stay: r.is("stay")})
	})
	if err != nil {
		return err
	}
	return r.forked(c, r.is("stay"))
}

func doSwitch(r *run) error {
	name := r.arg(0)
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
		if err := r.emit(branchToJSON(b), func() { r.branchLine(b) }); err != nil || r.stopped() {
			return err
		}
	}
	return nil
}

func doBranchRm(r *run) error {
	if r.is("dry-run") {
		return dryRunBranch(r)
	}
	c, err := r.change(func(b *chatctx.Batch) { b.RemoveBranch(r.arg(0)) })
	if err != nil {
		return err
	}
	return r.made(c, where{Operation: c.Operation, Context: c.Context, Branch: r.arg(0)}, "removed branch %s of %s", clean(r.arg(0)), titled(c.Title, c.Context))
}

func dryRunBranch(r *run) error {
	c, err := r.conversation()
	if err != nil {
		return err
	}
	b, err := c.Branch(r.ctx, r.arg(0))
	if err != nil {
		return err
	}
	if b.Active {
		return &chatctx.ConflictError{Text: fmt.Sprintf("%q is the active branch and cannot be removed; switch to another one first", b.Name)}
	}
	return r.emit(struct {
		DryRun  bool       `json:"dry_run"`
		Context chatctx.ID `json:"context"`
		branchJSON
	}{true, c.ID, branchToJSON(b)}, func() {
		r.printf("would remove branch %s, %s\n", clean(b.Name), count(b.Messages, "message"))
	})
}

func doBranchMv(r *run) error {
	c, err := r.change(func(b *chatctx.Batch) { b.RenameBranch(r.arg(0), r.arg(1)) })
	if err != nil {
		return err
	}
	return r.made(c, where{Operation: c.Operation, Context: c.Context, Branch: r.arg(1)}, "branch %s of %s is now %s", clean(r.arg(0)), titled(c.Title, c.Context), clean(r.arg(1)))
}

func doEdit(r *run) error {
	var text string
	var err error
	if len(r.args) > 1 {
		text, err = r.text(r.arg(1))
	} else {
		text, err = r.editedText()
	}
	if err == nil && text == "" {
		err = errEmptyText
	}
	if err != nil {
		return err
	}
	c, err := r.change(func(b *chatctx.Batch) {
		b.Edit(chatctx.Ref(r.arg(0)), text, chatctx.EditOptions{Name: r.flag("as"), KeepRest: r.is("keep-rest")})
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
