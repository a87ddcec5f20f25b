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
)

func fileCommands() []*command {
	return []*command{
		initCommand(),
		grantCommand(),
		copyCommand(),
		{name: "check", does: "look for damage", scope: onStore, run: in(doCheck),
			more: "Exit code 12: it found damage.",
			json: "ok, problems[{invariant, where, text}], leftovers[]", example: "chatctx check --full"},
		{name: "backup", does: "write a copy of the store while it is in use", scope: onStore, run: in(doBackup),
			more: "A backup is a store. FILE is complete or not there at all.",
			json: "file, bytes; with --check: ok, problems[{invariant, where, text}], contexts, messages",
			example: `chatctx backup ~/chats-copy.db
chatctx backup --check ~/chats-copy.db`},
		{name: "restore-from", does: "put a backup in the place of the store", scope: onStore, run: in(doRestoreFrom),
			more: "The whole backup is read first; a damaged one is refused. The old store is kept next to it.",
			json: "store, kept, contexts, messages", example: "chatctx restore-from ~/chats-copy.db"},
		repairCommand(),
		{name: "stats", does: "show what the store holds, and its size", scope: onStore, run: in(doStats),
			json:    "file_bytes, used_bytes, free_bytes, contexts, branches, messages, artifacts, operations; with --by-context, a line each: context, title, messages, bytes, message_bytes, operation_bytes, artifact_bytes, trashed",
			example: "chatctx stats --json"},
	}
}

// problemJSON is a fault that check found.
type problemJSON struct {
	Invariant int    `json:"invariant"`
	Where     string `json:"where"`
	Text      string `json:"text"`
}

type checkIn struct {
	Full bool `flag:"full" doc:"read every page, every record, every artifact"`
}

func doCheck(r *run, in *checkIn) error {
	st, err := r.reader()
	if err != nil {
		return err
	}
	problems, err := r.problems(st, in.Full)
	if err != nil {
		return err
	}
	left := care.Leftovers(base.Of(st))
	err = r.emit(checkJSON{len(problems) == 0, problems, left}, func() { r.printProblems(problems) })
	r.nameLeftovers(left)
	if on := r.onServer(); on != nil {
		if in.Full {
			r.note("%s", on.Instead(kv.CarePages))
		}
		if err == nil && len(problems) > 0 {
			err = &hinted{&damageFound{len(problems)}, on.Instead(kv.CareBackup)}
		}
		return err
	}
	r.endDoubt(problems)
	if err == nil && len(problems) > 0 {
		err = &hinted{&damageFound{len(problems)}, "keep a copy of the file before anything else: chatctx backup FILE"}
	}
	return err
}

// endDoubt ends the warning that the newest change may be lost, now that it was printed. Where the store can only be read, it stays.
func (r *run) endDoubt(problems []problemJSON) {
	if !slices.ContainsFunc(problems, func(p problemJSON) bool { return p.Where == chatctx.DoubtPlace }) {
		return
	}
	r.close()
	if st, err := r.writer(); err == nil {
		_ = care.EndDoubt(r.ctx, base.Of(st))
	}
}

// checkJSON is the result of check.
type checkJSON struct {
	OK        bool          `json:"ok"`
	Problems  []problemJSON `json:"problems"`
	Leftovers []string      `json:"leftovers,omitempty"`
}

func (r *run) problems(st *chatctx.Store, full bool) ([]problemJSON, error) {
	problems := []problemJSON{}
	err := st.Maintenance().Check(r.ctx, chatctx.CheckOptions{Full: full}, func(p record.Problem) {
		problems = append(problems, problemJSON{p.Invariant, p.Where, p.Text})
	})
	return problems, err
}

func (r *run) printProblems(problems []problemJSON) {
	for _, p := range problems {
		r.printf("%s: %s\n", clean(p.Where), clean(p.Text))
	}
	if len(problems) == 0 {
		r.printf("no problem found\n")
	}
}

// checkBackup reads a whole backup.
func checkBackup(r *run, file string) error {
	st, err := chatctx.Open(file, chatctx.Options{ReadOnly: true, IdleHold: -1, Program: "chatctx"})
	if err != nil {
		return err
	}
	defer st.Close()
	problems, err := r.problems(st, true)
	if err != nil {
		return err
	}
	stats, err := st.Maintenance().Stats(r.ctx)
	if err != nil {
		stats = &record.Stats{} // the problems say why
	}
	err = r.emit(struct {
		checkJSON
		Contexts int `json:"contexts"`
		Messages int `json:"messages"`
	}{checkJSON{len(problems) == 0, problems, nil}, stats.Contexts, stats.Messages}, func() {
		r.printProblems(problems)
		r.printf("%s, %s\n", count(stats.Contexts, "conversation"), count(stats.Messages, "message"))
	})
	if err == nil && len(problems) > 0 {
		err = &damageFound{len(problems)}
	}
	return err
}

type backupIn struct {
	File  string `arg:"FILE"`
	Check bool   `flag:"check" doc:"write nothing: read the backup FILE whole and look for damage"`
	Yes   bool   `flag:"yes" doc:"write over FILE without asking"`
}

func doBackup(r *run, in *backupIn) error {
	if in.Check {
		return checkBackup(r, in.File)
	}
	target := in.File
	if err := r.mayWrite(target, yesFlag{in.Yes}); err != nil {
		return err
	}
	st, err := r.reader()
	if err == nil {
		err = r.keptInFile(kv.CareBackup)
	}
	if err != nil {
		return err
	}
	n, err := r.writeFile(target, func(w io.Writer) error { return st.Maintenance().Backup(r.ctx, w) })
	if err != nil {
		return err
	}
	return r.emit(map[string]any{"file": target, "bytes": n}, func() {
		r.printf("wrote %s, %s\n", clean(target), size(n))
	})
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

// spaceJSON is the space that a context takes.
type spaceJSON struct {
	Context    chatctx.ID `json:"context"`
	Title      string     `json:"title"`
	Messages   int        `json:"messages"`
	Bytes      int64      `json:"bytes"`
	MessageB   int64      `json:"message_bytes"`
	OperationB int64      `json:"operation_bytes"`
	ArtifactB  int64      `json:"artifact_bytes"`
	Trashed    bool       `json:"trashed"`
}

func statsByContext(r *run, st *chatctx.Store) error {
	all, err := care.SpaceByContext(r.ctx, base.Of(st))
	if err != nil {
		return err
	}
	for _, c := range all {
		v := spaceJSON{c.ID, c.Title, c.Messages, c.Bytes, c.MessageBytes, c.OperationBytes, c.ArtifactBytes, c.Trashed != 0}
		err := r.emit(v, func() {
			trash := map[bool]string{true: " (in the trash)"}[v.Trashed]
			r.row(4, "%s  %10s  %s, artifacts %s  %s%s", short(c.ID), size(c.Bytes+c.ArtifactBytes), count(c.Messages, "message"), size(c.ArtifactBytes), titled(c.Title, c.ID), trash)
		})
		if err != nil || r.stopped() {
			return err
		}
	}
	return nil
}

type statsIn struct {
	ByContext bool `flag:"by-context" doc:"what each conversation takes, the largest first"`
}

func doStats(r *run, in *statsIn) error {
	st, err := r.reader()
	if err != nil {
		return err
	}
	if in.ByContext {
		return statsByContext(r, st)
	}
	s, err := st.Maintenance().Stats(r.ctx)
	if err != nil {
		return err
	}
	return r.emit(struct {
		File       int64 `json:"file_bytes"`
		Used       int64 `json:"used_bytes"`
		Free       int64 `json:"free_bytes"`
		Contexts   int   `json:"contexts"`
		Branches   int   `json:"branches"`
		Messages   int   `json:"messages"`
		Artifacts  int   `json:"artifacts"`
		Operations int   `json:"operations"`
	}{s.File, s.Used, s.Free, s.Contexts, s.Branches, s.Messages, s.Artifacts, s.Operations}, func() {
		r.printf("file           %s\nused           %s\nfree           %s\n", size(s.File), size(s.Used), size(s.Free))
		r.printf("conversations  %d\nbranches       %d\nmessages       %d\nartifacts      %d\noperations     %d\n", s.Contexts, s.Branches, s.Messages, s.Artifacts, s.Operations)
	})
}
