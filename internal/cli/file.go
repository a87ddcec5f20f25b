package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	urfave "github.com/urfave/cli/v2"

	"github.com/chatctx/chatctx/chatctx"
)

func fileCommands() []*command {
	return []*command{
		{name: "check", does: "look for damage", scope: onStore, do: doCheck,
			flags: []urfave.Flag{&urfave.BoolFlag{Name: "full", Usage: "read every page, every record, every artifact"}},
			more:  "Exit code 12 where something is found.",
			json:  "ok, problems[{invariant, where, text}]", example: "chatctx check --full"},
		{name: "backup", args: "FILE", does: "write a copy of the store while it is in use", scope: onStore, do: doBackup, flags: []urfave.Flag{
			&urfave.BoolFlag{Name: "yes", Usage: "write over FILE without asking"}},
			json: "file, bytes", example: "chatctx backup ~/chats-copy.db"},
		{name: "stats", does: "what the store holds and takes", scope: onStore, do: doStats,
			json: "file_bytes, used_bytes, free_bytes, contexts, branches, messages, artifacts, operations", example: "chatctx stats --json"},
	}
}

// problemJSON is something that check found.
type problemJSON struct {
	Invariant int    `json:"invariant"`
	Where     string `json:"where"`
	Text      string `json:"text"`
}

func doCheck(r *run) error {
	st, err := r.reader()
	if err != nil {
		return err
	}
	problems := []problemJSON{}
	err = st.Check(r.ctx, r.is("full"), func(p chatctx.Problem) {
		problems = append(problems, problemJSON{p.Invariant, p.Where, p.Text})
	})
	if err != nil {
		return err
	}
	err = r.emit(struct {
		OK       bool          `json:"ok"`
		Problems []problemJSON `json:"problems"`
	}{len(problems) == 0, problems}, func() {
		for _, p := range problems {
			r.printf("%s: %s\n", clean(p.Where), clean(p.Text))
		}
		if len(problems) == 0 {
			r.printf("no problem found\n")
		}
	})
	if err == nil && len(problems) > 0 {
		err = &hinted{&damageFound{len(problems)}, "keep a copy of the file before anything else: chatctx backup FILE"}
	}
	return err
}

func doBackup(r *run) error {
	target := r.arg(0)
	if err := r.mayWrite(target); err != nil {
		return err
	}
	st, err := r.reader()
	if err != nil {
		return err
	}
	n, err := r.writeFile(target, func(w io.Writer) error { return st.Backup(r.ctx, w) })
	if err != nil {
		return err
	}
	return r.emit(map[string]any{"file": target, "bytes": n}, func() {
		r.printf("wrote %s, %s\n", clean(target), size(n))
	})
}

// mayWrite looks before anything is read whether a file may be written: where one is in the way it asks.
func (r *run) mayWrite(target string) error {
	st, err := os.Stat(target)
	if errors.Is(err, fs.ErrNotExist) {
		dir, err := os.Stat(filepath.Dir(target))
		if err != nil {
			return err
		}
		if !dir.IsDir() {
			return fmt.Errorf("%s is no folder", filepath.Dir(target))
		}
		return nil
	}
	if err != nil {
		return err
	}
	if st.IsDir() {
		return fmt.Errorf("%s is a folder", target)
	}
	if path, err := r.storePath(); err == nil {
		if own, err := os.Stat(path); err == nil && os.SameFile(own, st) {
			return usagef("%s is the store itself", target)
		}
	}
	return r.confirm("Write over "+clean(target)+"?", fmt.Errorf("%s %w", target, errExists))
}

// writeFile writes a file whole or not at all, and gives its size. It writes over another file only where the person said so.
func (r *run) writeFile(target string, fill func(io.Writer) error) (n int64, err error) {
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
		os.Remove(f.Name()) // gone already where it was renamed
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
		// A link, unlike a rename, does not write over a file that came meanwhile.
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

func doStats(r *run) error {
	st, err := r.reader()
	if err != nil {
		return err
	}
	s, err := st.Stats(r.ctx)
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
		r.printf("file        %s\nused        %s\nfree        %s\n", size(s.File), size(s.Used), size(s.Free))
		r.printf("contexts    %d\nbranches    %d\nmessages    %d\nartifacts   %d\noperations  %d\n", s.Contexts, s.Branches, s.Messages, s.Artifacts, s.Operations)
	})
}
