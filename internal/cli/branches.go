package cli

import (
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

func init() { lookGroups = append(lookGroups, branchLooks) }

func branchCommands() []*command {
	return []*command{{name: "tree"}, {name: "fork"}, {name: "switch"},
		{name: "branch", does: "list, remove, restore and rename branches", scope: onContext, subs: []*command{{name: "ls"}, {name: "rm"}, {name: "restore"}, {name: "mv"}}},
		{name: "edit"},
	}
}

func branchLooks() map[string]look {
	prune := as(func(r *run, _ *operation.Pruning, v operation.RemovedBranch) {
		switch {
		case v.Left != "":
			r.printf("left branch %s alone: %s\n", clean(v.Name), clean(v.Left))
		case v.DryRun:
			r.printf("would remove branch %s, %s\n", clean(v.Name), count(v.Messages, "message"))
		default:
			r.printf("removed branch %s of %s\n", clean(v.Name), titled(v.Title, v.Context))
		}
	})
	prune.none = func(r *run, in any) {
		if in.(*operation.Pruning).OlderThan == nil {
			r.note("there is no other branch")
			return
		}
		r.note("no branch is that old")
	}
	return map[string]look{
		"branches.list": as(func(r *run, _ *operation.BranchList, b operation.ListedBranch) {
			r.branchLine(b.BranchInfo)
			if b.Removed != 0 {
				r.printf("    removed %s by operation %s, kept until %s\n", moment(b.Removed), b.Operation, moment(b.Until))
			}
		}).orNone(func(r *run) { r.note("no branch was removed that can come back") }),
		"branches.fork": preparing(func(_ *run, in *operation.Forking) error {
			in.Activate = !in.Stay
			return nil
		}, as(func(r *run, in *operation.Forking, f contract.Forked) { r.forked(f, in.Stay) })),
		"branches.edit": preparing(readEdit, as(func(r *run, _ *operation.Editing, f contract.Forked) { r.forked(f, false) })),
		"branches.activate": preparing(func(r *run, in *operation.Switching) (err error) {
			if in.Branch == "" {
				in.Branch, err = r.pickBranch()
			}
			return err
		}, as(func(r *run, _ *operation.Switching, v contract.Where) {
			r.printf("now on %s of %s\n", clean(v.Branch), titled(v.Title, v.Context))
			if v.Operation == "" && r.onServer() == nil {
				r.note("nothing was changed")
			}
		})),
		"branches.rename": as(func(r *run, in *operation.Renaming, v contract.Where) {
			r.printf("branch %s of %s is now %s\n", clean(in.Branch), titled(v.Title, v.Context), clean(in.Name))
		}),
		"branches.prune": prune,
		"branches.restore": as(func(r *run, _ *operation.Restoring, v contract.Where) {
			r.printf("branch %s of %s is back\n", clean(v.Branch), titled(v.Title, v.Context))
		}),
		"tree": whole(func(r *run, _ *operation.TreeRows, t operation.ShownTree) { r.drawTree(t) }),
	}
}

// readEdit finds the new text of a message: on the line, on standard input, or in the editor.
func readEdit(r *run, in *operation.Editing) (err error) {
	in.Activate = true
	if in.Typed != nil {
		in.Text, err = r.text(*in.Typed, rawFlag(in.RawInput))
	} else {
		in.Text, err = r.editedText(in.Message)
	}
	if err == nil && in.Text == "" {
		err = errEmptyText
	}
	return err
}

// branchLine prints a branch in branch ls and show.
func (r *run) branchLine(b *record.BranchInfo) {
	mark := " "
	if b.Active {
		mark = r.paint(green, "*")
	}
	head := "empty"
	if b.Messages > 0 {
		head = fmt.Sprintf("%s, %s, head %s", count(b.Messages, "message"), count(b.Turns, "turn"), short(b.Head))
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

// forked prints a new branch.
func (r *run) forked(f contract.Forked, stay bool) {
	at, now := "its beginning", "you are on it now"
	if f.At != nil {
		at = short(*f.At)
	}
	if stay {
		now = "you stay where you are"
	}
	r.printf("made branch %s in %s from %s at %s, %s; %s\n", clean(f.Branch), titled(f.Title, f.Context), clean(f.From), at, count(f.Messages, "message"), now)
}
