package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/leftover"
	"github.com/chatctx/chatctx/internal/nolink"
	"github.com/chatctx/chatctx/internal/operation"
)

func fileCommands() []*command {
	return []*command{{name: "init"}, {name: "grant"}, {name: "copy"}, {name: "check"}, {name: "backup"}, {name: "restore-from"}, {name: "repair"}, {name: "stats"}}
}

func init() { lookGroups = append(lookGroups, storeLooks) }

func storeLooks() map[string]look {
	check := as(func(r *run, _ *operation.Checking, v operation.Checked) { r.printProblems(v.Problems) })
	check.then = func(r *run, in, out any) error {
		return r.afterCheck(in.(*operation.Checking).Full, out.(operation.Checked))
	}
	return map[string]look{
		"store.check": check,
		"store.stats": {text: func(r *run, _, out any) { r.printSizes(out) }},
		"store.vacuum": as(func(r *run, _ *struct{}, v operation.Rewritten) {
			r.printf("written anew: %s, it was %s\n", size(v.After), size(v.Before))
		}),
	}
}

// afterCheck names what else may hold what the store held, and returns the error of damage.
func (r *run) afterCheck(full bool, v operation.Checked) error {
	r.nameLeftovers(v.Leftovers)
	on, next := r.onServer(), "keep a copy of the file before anything else: chatctx backup FILE"
	if on != nil {
		next = on.Instead(kv.CareBackup)
	}
	if on != nil && full {
		r.note("%s", on.Instead(kv.CarePages))
	}
	if on == nil {
		r.endDoubt(v.Problems)
	}
	if v.OK {
		return nil
	}
	return &hinted{&damageFound{len(v.Problems)}, next}
}

// printSizes prints the store's figures, or those of a conversation.
func (r *run) printSizes(of any) {
	switch s := of.(type) {
	case operation.Sizes:
		r.printf("file           %s\nused           %s\nfree           %s\n", size(s.File), size(s.Used), size(s.Free))
		r.printf("conversations  %d\nbranches       %d\nmessages       %d\nartifacts      %d\noperations     %d\n", s.Contexts, s.Branches, s.Messages, s.Artifacts, s.Operations)
	case operation.ContextSize:
		trash := map[bool]string{true: " (in the trash)"}[s.Trashed]
		r.row(4, "%s  %10s  %s, artifacts %s  %s%s", short(s.ID), size(s.Bytes+s.ArtifactBytes), count(s.Messages, "message"), size(s.ArtifactBytes), titled(s.Title, s.ID), trash)
	}
}

// endDoubt ends the warning that the newest change may be lost, now that it was printed. Where the store can only be read, it stays.
func (r *run) endDoubt(problems []record.Problem) {
	if !slices.ContainsFunc(problems, func(p record.Problem) bool { return p.Where == chatctx.DoubtPlace }) {
		return
	}
	r.close()
	if st, err := r.writer(); err == nil {
		_ = care.EndDoubt(r.ctx, base.Of(st))
	}
}

func (r *run) printProblems(problems []record.Problem) {
	for _, p := range problems {
		r.printf("%s: %s\n", clean(p.Where), clean(p.Text))
	}
	if len(problems) == 0 {
		r.printf("no problem found\n")
	}
}

// mayWrite checks, before anything is read, whether a file may be written. If a file is in the way, it asks.
func (r *run) mayWrite(target string, yes yesFlag) error {
	if err := nolink.Check(target); err != nil {
		return err
	}
	st, err := os.Stat(target)
	if errors.Is(err, fs.ErrNotExist) {
		dir, err := os.Stat(filepath.Dir(target))
		if err != nil {
			return err
		}
		if !dir.IsDir() {
			return fmt.Errorf("%s is not a folder", filepath.Dir(target))
		}
		return nil
	}
	if err != nil {
		return err
	}
	if st.IsDir() {
		return fmt.Errorf("%s is a folder", target)
	}
	if !st.Mode().IsRegular() {
		return usagef("%s is %s, which a copy cannot replace: name another", target, kindOf(st.Mode()))
	}
	if path, err := r.storePath(); err == nil && !isURL(path) {
		if own, err := os.Stat(path); err == nil && os.SameFile(own, st) {
			return usagef("%s is the store itself: name another file", target)
		}
	}
	return r.confirm(yes, "Write over "+clean(target)+"?", fmt.Errorf("%s %w", target, errExists))
}

// kindOf names what is no ordinary file.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "something of the system's"
}

// writeFile writes a file completely or not at all, and returns its size. It replaces another file only if the person said so.
func (r *run) writeFile(target string, fill func(io.Writer) error) (n int64, err error) {
	dir := filepath.Dir(target)
	leftover.Sweep(dir)
	if at, err := filepath.Abs(dir); err == nil {
		defer leftover.Announce(at)()
	}
	f, err := os.CreateTemp(dir, leftover.Name("export"))
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
		os.Remove(f.Name()) // no longer there if it was renamed
	}()
	if err = fill(f); err != nil {
		return 0, err
	}
	if n, err = f.Seek(0, io.SeekEnd); err != nil {
		return 0, err
	}
	if err = errors.Join(f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	if _, statErr := os.Lstat(target); errors.Is(statErr, fs.ErrNotExist) {
		// A link, unlike a rename, does not replace a file that came meanwhile.
		if err = os.Link(f.Name(), target); err == nil {
			return n, nil
		}
		if errors.Is(err, fs.ErrExist) {
			return 0, fmt.Errorf("%s %w", target, errExists)
		}
	}
	err = os.Rename(f.Name(), target)
	return n, err
}
