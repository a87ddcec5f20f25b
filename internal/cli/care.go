package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

func init() { lookGroups = append(lookGroups, careLooks) }

func careLooks() map[string]look {
	return map[string]look{
		"store.gc": warned(preparing(func(_ *run, in *operation.Collecting) error {
			if in.KeepOperations < 0 {
				return usagef("gc --keep-operations takes a number of 0 or more")
			}
			return nil
		}, as((*run).collected)), "Remove it for good?", "gc removes for good: undo and restore cannot bring it back"),
		"store.redact": warned(redactLook(), "Redact it? Nothing brings it back.", "redact changes messages for good: nothing brings them back"),
		"store.copy":   copyLook(),
		"store.backup": backupLook(),
		"store.restore": preparing((*run).readRestoring, as(func(r *run, in *operation.StoreRestoring, v operation.Restored) {
			r.printf("%s is as it was in %s: %s, %s\n", clean(v.Store), clean(in.File), count(v.Contexts, "conversation"), count(v.Messages, "message"))
			if v.Kept != nil {
				r.note("the store that was there is kept: %s", *v.Kept)
				r.note("undo with: %s", r.again("restore-from --yes "+quote(*v.Kept)))
			}
		})),
		"store.repair": repairLook(),
	}
}

// warned adds the question about what nothing takes back, and why it is refused without an answer.
func warned(l look, question, why string) look {
	l.question, l.why = question, why
	return l
}

func (r *run) collected(in *operation.Collecting, v operation.Collected) {
	if v.Nothing() {
		r.note("nothing is removed: nothing in the trash, and no operation beyond the newest %d of its conversation, is older than %s", in.KeepOperations, in.OlderThan.Typed)
	}
	if !v.DryRun || in.Dry() { // else a person is asked about it
		r.nameLeftovers(v.Leftovers)
	}
	r.printf("%s: %s, %s, %s, %s; %s\n", map[bool]string{true: "would go", false: "gone"}[v.DryRun], count(v.Contexts, "conversation"), count(v.Messages, "message"),
		count(v.Operations, "operation"), count(v.Artifacts, "artifact"), size(v.Bytes))
	var kept []string
	for why, n := range v.Kept {
		kept = append(kept, fmt.Sprintf("on no branch, kept for %s: %s", why, count(n, "message")))
	}
	sort.Strings(kept)
	for _, line := range kept {
		r.printf("%s\n", line)
	}
	if v.Rewritten {
		r.printf("the file was written anew\n")
	}
}

func redactLook() look {
	l := preparing(func(r *run, in *operation.Redacting) error {
		if in.Context != "" { // for the lines that it proposes
			r.common.Context = in.Context
		}
		if (in.Pattern != "") == in.Secrets {
			return &usageError{"redact needs --pattern RE or --secrets", "chatctx redact --secrets --dry-run"}
		}
		_, err := in.Finder()
		return err
	}, as(func(r *run, in *operation.Redacting, v operation.Redacted) {
		asked := v.DryRun && !in.Dry()
		if !asked {
			r.nameLeftovers(v.Leftovers)
		}
		for i := range v.Found {
			if v.DryRun || v.Found[i].Left != nil { // what is done was shown before
				r.printRedaction(&v.Found[i])
			}
		}
		if asked {
			return
		}
		r.printf("%s: %d; left as they are: %d\n", map[bool]string{true: "would be redacted", false: "redacted"}[v.DryRun], v.Redacted, v.Left)
		if blind := v.Blind(); blind != "" {
			r.printf("not searchable: %s\n", blind)
		}
	}))
	l.then = func(_ *run, _, out any) error {
		v := out.(operation.Redacted)
		switch {
		case v.DryRun || v.Complete:
			return nil
		case v.Left == 0 && v.Blind() == "":
			return errBeside()
		}
		return contract.Partly(errors.New("not everything could be redacted or searched"), "the rest is done")
	}
	return l
}

func (r *run) printRedaction(f *operation.Redaction) {
	where := titled(f.Title, f.Context)
	if f.Message != nil {
		where = short(*f.Message) + " of " + where
	}
	line := fmt.Sprintf("%s, %s: %s %s", where, f.Field, clean(f.What), oneLine(f.Shown))
	if f.Left != nil {
		line += "  (stays: " + *f.Left + ")"
	}
	r.printf("%s\n", line)
}

func copyLook() look {
	return preparing((*run).readCopying, look{text: func(r *run, in, out any) {
		switch v := out.(type) {
		case operation.Copied:
			r.printf("%s is what %s was: %s, %s, %s\n", clean(v.To), clean(v.From), count(v.Contexts, "conversation"), count(v.Messages, "message"), count(v.Records, "record"))
			r.printf("digest %s\n", v.Digest)
		case operation.Reopened:
			r.printf("%s opens again; the copy in %s goes on by itself, and what was changed there is not here\n", clean(v.Store), clean(v.To))
		}
	}})
}

// readCopying refuses what does not go together, and a place that is not there.
func (r *run) readCopying(in *operation.Copying) error {
	switch {
	case in.Reopen && (in.To != "" || in.Keep || in.Move):
		return usagef("copy --reopen takes one store, and no other flag")
	case in.Reopen:
		store := in.From
		if store == "" {
			store, _ = r.storePath()
		}
		r.notePassword(store)
		return nil
	case in.To == "":
		return usagef("copy needs two stores: chatctx copy FROM TO")
	case in.Keep && in.Move:
		return usagef("copy takes --keep-source or --move, not both")
	}
	r.notePassword(in.From, in.To)
	if !isURL(in.To) {
		if _, err := os.Stat(filepath.Dir(in.To)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the folder of %s is not there: make it first, or correct the path: %w", in.To, fs.ErrNotExist)
		}
	}
	return nil
}

func backupLook() look {
	l := preparing(func(r *run, in *operation.BackingUp) error {
		if in.Check {
			return nil
		}
		return r.mayWrite(in.File, yesFlag{in.Yes})
	}, look{text: func(r *run, in, out any) {
		switch v := out.(type) {
		case operation.BackedUp:
			r.printf("wrote %s, %s\n", clean(v.File), size(v.Bytes))
		case operation.CheckedBackup:
			r.printProblems(v.Problems)
			r.printf("%s, %s\n", count(v.Contexts, "conversation"), count(v.Messages, "message"))
		}
	}})
	l.then = func(_ *run, _, out any) error {
		for _, found := range out.(operation.BackedUp).Backup {
			if !found.OK {
				return &damageFound{len(found.Problems)}
			}
		}
		return nil
	}
	return l
}

// readRestoring asks whether a backup may take the place of a store that is there.
func (r *run) readRestoring(in *operation.StoreRestoring) error {
	path, err := r.storePath()
	if err != nil {
		return err
	}
	if isURL(path) {
		_, err := r.reader()
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return r.confirm(yesFlag{in.Yes}, "Put "+clean(in.File)+" in the place of "+clean(path)+"? That is kept beside it.", fmt.Errorf("%s %w", path, errExists))
	}
	return nil
}

func repairLook() look {
	l := warned(preparing((*run).readRepairing, look{text: func(r *run, in, out any) {
		switch v := out.(type) {
		case operation.Repaired:
			r.printRepaired(&v)
		case operation.Salvaged:
			path, _ := r.storePath()
			r.printf("read into %s: %s, %s, %s, %s\n", clean(path), count(v.Contexts, "conversation"), count(v.Branches, "branch"), count(v.Messages, "message"), count(v.Artifacts, "artifact"))
			for _, m := range v.Mended {
				r.note("%s: %s", m.Where, m.Text)
			}
		}
	}}), "Do it? A backup is made first.", "repair changes the store")
	l.ask = func(r *run, _ any) string {
		if on := r.onServer(); on != nil {
			return "Do it? No backup is made: " + on.Instead(kv.CareBackup) + "."
		}
		return l.question
	}
	l.then = func(r *run, _, out any) error {
		v := out.(operation.Repaired)
		if v.DryRun || len(v.Left) == 0 || v.Nothing() {
			return nil
		}
		return r.salvageHint(&damageFound{len(v.Left)})
	}
	return orFails(l, func(r *run, in *operation.Repairing, err error) error {
		switch {
		case in.From != "" && errors.Is(err, chatctx.ErrNotOurs):
			return &hinted{err, "the files of other tools: " + r.onStore("import "+quote(in.From))}
		case in.From == "" && errors.Is(err, chatctx.ErrDamaged):
			return r.salvageHint(err)
		}
		return err
	})
}

// salvageHint says how to read what can be read of the store.
func (r *run) salvageHint(err error) error {
	path, _ := r.storePath()
	return &hinted{err, "read what can be read into a new file: chatctx repair --broken " + quote(path) + " --store NEW"}
}

// readRepairing refuses what cannot be read into a new store.
func (r *run) readRepairing(in *operation.Repairing) error {
	if in.From == "" {
		return nil
	}
	if in.Dry() {
		return usagef("repair --broken FILE writes a new store: name it with --store")
	}
	path, err := r.storePath()
	if err != nil {
		return err
	}
	if isURL(in.From) || isURL(path) {
		return usagef("repair --broken reads a broken file into a new file; chatctx copy brings that to a server")
	}
	_, err = os.Stat(in.From)
	return err
}

func (r *run) printRepaired(v *operation.Repaired) {
	if v.Nothing() {
		r.printf("no problem found\n")
		return
	}
	r.printProblems(v.Mended)
	if v.Backup != nil {
		r.note("the file as it was: %s", *v.Backup)
	}
	for _, p := range v.Left {
		r.printf("not mended: %s: %s\n", clean(p.Where), clean(p.Text))
	}
}
