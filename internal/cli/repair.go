package cli

import (
	"errors"
	"os"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
)

func repairCommand() *command {
	return &command{name: "repair", does: "mend what check finds, after a backup; or read what can be read of a broken file into a new one", scope: onStore, run: in(doRepair),
		more: `It shows what it would do, and asks. Readable messages stay; those that have lost their place go to the branch recovered; unreadable ones are only in the backup.
--from brings conversations, branches, messages, prompts, calls and artifacts; undo, tags, pins, rules and tools stay behind, and what was removed may come back.`,
		json: "dry_run, backup, mended[{invariant, where, text}], left[{invariant, where, text}]; with --from: contexts, branches, messages, artifacts, mended",
		example: `chatctx repair --dry-run
chatctx repair --from broken.db --store rescued.db`}
}

// repairedJSON is what repair did or would do.
type repairedJSON struct {
	DryRun bool             `json:"dry_run"`
	Backup *string          `json:"backup"`
	Mended []record.Problem `json:"mended"`
	Left   []record.Problem `json:"left"`
}

// problemsOf returns what was mended as the problems that it was.
func problemsOf(mended []record.Mended) []record.Problem {
	out := make([]record.Problem, len(mended))
	for i, m := range mended {
		out[i] = record.Problem(m)
	}
	return out
}

type repairIn struct {
	From string `flag:"from" doc:"read whatever can still be read of the broken {FILE} into a new store, at --store"`
	dryRunFlag
	yesFlag
}

func doRepair(r *run, in *repairIn) error {
	if in.From != "" {
		return salvage(r, in)
	}
	path, err := r.storePath()
	if err != nil {
		return err
	}
	st, err := r.writer()
	if err != nil {
		return repairHint(err, path)
	}
	plan, err := st.Maintenance().Repair(r.ctx, record.RepairOptions{DryRun: true})
	if err != nil {
		return repairHint(err, path)
	}
	if in.DryRun || len(plan.Mended) == 0 {
		return r.repaired(plan, in.DryRun)
	}
	if !r.json() {
		r.printProblems(problemsOf(plan.Mended))
	}
	question := "Do it? A backup is made first."
	if on := r.onServer(); on != nil {
		path, question = "", "Do it? No backup is made: "+on.Instead(kv.CareBackup)+"."
	}
	if err := r.confirm(in.yesFlag, question, usagef("repair changes the store")); err != nil {
		return err
	}
	done, err := st.Maintenance().Repair(r.ctx, record.RepairOptions{Path: path})
	if err != nil {
		return repairHint(err, path)
	}
	if err := r.repaired(done, false); err != nil || len(done.Left) == 0 {
		return err
	}
	return &hinted{&damageFound{len(done.Left)}, "read what can be read into a new file: chatctx repair --from " + quote(path) + " --store NEW"}
}

func repairHint(err error, path string) error {
	if errors.Is(err, chatctx.ErrDamaged) {
		return &hinted{err, "read what can be read into a new file: chatctx repair --from " + quote(path) + " --store NEW"}
	}
	return err
}

func (r *run) repaired(done *record.Repaired, dry bool) error {
	left := append([]record.Problem{}, done.Left...)
	return r.emit(repairedJSON{dry, stringOrNull(done.Backup), problemsOf(done.Mended), left}, func() {
		if len(done.Mended) == 0 {
			r.printf("no problem found\n")
			return
		}
		r.printProblems(problemsOf(done.Mended))
		if done.Backup != "" {
			r.note("the file as it was: %s", done.Backup)
		}
		for _, p := range left {
			r.printf("not mended: %s: %s\n", clean(p.Where), clean(p.Text))
		}
	})
}

// salvage reads a broken file into a new store.
func salvage(r *run, in *repairIn) error {
	from := in.From
	if in.DryRun {
		return usagef("repair --from FILE writes a new store: name it with --store")
	}
	path, err := r.storePath()
	if err != nil {
		return err
	}
	if isURL(from) || isURL(path) {
		return usagef("repair --from reads a broken file into a new file; chatctx copy brings that to a server")
	}
	if _, err := os.Stat(from); err != nil {
		return err
	}
	got, err := chatctx.Salvage(r.ctx, from, path, chatctx.Options{IdleHold: -1, Program: "chatctx"})
	if errors.Is(err, chatctx.ErrNotOurs) {
		return &hinted{err, "the files of other tools: " + r.onStore("import "+quote(from))}
	}
	if err != nil {
		return err
	}
	return r.emit(map[string]any{"contexts": got.Contexts, "branches": got.Branches, "messages": got.Messages, "artifacts": got.Artifacts, "mended": problemsOf(got.Mended)}, func() {
		r.printf("read into %s: %s, %s, %s, %s\n", clean(path), count(got.Contexts, "conversation"), count(got.Branches, "branch"), count(got.Messages, "message"), count(got.Artifacts, "artifact"))
		for _, m := range got.Mended {
			r.note("%s: %s", m.Where, m.Text)
		}
	})
}
