package care

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/leftover"
	"github.com/chatctx/chatctx/internal/plural"
)

// Backup writes a copy of one state of the store while other programs go on. The copy is a store. It returns ErrInvalid if the engine keeps no file, and
// ErrConflict while a purge is unfinished, since the copy would have the purged bytes.
func Backup(ctx context.Context, s *base.Store, w io.Writer) error {
	k, ok := s.Engine.(kv.Keeper)
	if !ok {
		return notKept(s, kv.CareBackup, "a store in memory has no file to copy")
	}
	due, err := PurgeDue(ctx, s)
	if err != nil {
		return err
	}
	if due {
		return base.Conflict("a purge or redaction was cut short, and its bytes are still in the file: finish it first (chatctx vacuum), since a copy would have them too")
	}
	return k.Backup(engine.WithPurpose(ctx, "backup"), w)
}

// notKept returns the error for an engine that keeps no file. It says what to do instead.
func notKept(s *base.Store, of kv.Care, otherwise string) error {
	if h, is := s.Engine.(engine.Hosted); is {
		otherwise = h.Instead(of)
	}
	return base.Invalid("%s", otherwise)
}

// BackupBeside writes a copy of the store into a new file beside path, named after path and what, and returns its name.
func BackupBeside(ctx context.Context, s *base.Store, path, what string) (string, error) {
	name, err := freeFile(path, what)
	if err != nil {
		return "", err
	}
	return name, newFile(name, func(f *os.File) error { return Backup(ctx, s, f) })
}

// newFile makes the file at name, which must be free, whole or not at all.
func newFile(name string, fill func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), leftover.Name("backup"))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err = fill(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), name); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Rename(f.Name(), name) // on file systems without links
}

// freeFile returns a free name beside path: chats.db.before-restore, chats.db.before-restore.2 …
func freeFile(path, what string) (string, error) {
	for n := 1; n < 1000; n++ {
		name := path + "." + what
		if n > 1 {
			name += fmt.Sprintf(".%d", n)
		}
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
	return "", base.Conflict("there are a thousand files %s.%s… already: remove some", path, what)
}

// Restore puts a copy of a backup in the place of the store at path, or at path if there is none. It first checks the whole backup and refuses one with a
// problem (ErrDamaged). It keeps the file that was at path, whole or not, beside it. Programs that use the store go on with the restored one.
func Restore(ctx context.Context, path, backup string) (*record.Restored, error) {
	if same, err := sameFile(path, backup); err != nil || same {
		if same {
			err = base.Invalidf("%s is the store itself: name another file", backup)
		}
		return nil, err
	}
	from, err := Open(backup, record.OpenOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer from.Close()
	out := &record.Restored{}
	if err := Sound(ctx, from); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	fresh := leftover.Path(filepath.Dir(path), "restore-"+filepath.Base(path))
	if err := newFile(fresh, func(f *os.File) error { return Backup(ctx, from, f) }); err != nil {
		return nil, err
	}
	defer os.Remove(fresh) // no longer there if it took the store's place
	stats, err := Measure(ctx, from)
	if err != nil {
		return nil, err
	}
	out.Stats = *stats
	if _, err := os.Lstat(path); err == nil {
		if out.Kept, err = freeFile(path, "before-restore"); err != nil {
			return nil, err
		}
	}
	return out, boltkv.Replace(ctx, path, fresh, out.Kept, boltkv.Options{})
}

// Sound returns nil if a full check finds nothing, else ErrDamaged with the first problem.
func Sound(ctx context.Context, s *base.Store) error {
	var first *record.Problem
	n := 0
	err := Check(ctx, s, true, func(p record.Problem) {
		if n++; first == nil {
			first = &p
		}
	})
	if err == nil && first != nil {
		err = base.Damaged("a check finds %s, the first: %s: %s", plural.Count(n, "problem"), first.Where, first.Text)
	}
	return err
}

func sameFile(a, b string) (bool, error) {
	ia, err := os.Stat(a)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ib, err := os.Stat(b)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // Open reports it in better words
	}
	return err == nil && os.SameFile(ia, ib), err
}
