package boltkv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/engine"
)

// Replace puts the file fresh, which must lie in the same folder, in the place of the file at path, or at path if there is none. No program has the old
// file open meanwhile; programs that use the store go on with the new one. The old file, which need not be whole, gets the name kept, which must be free;
// "" means that it is removed. Of Options only Wait counts. Either everything is done, durably, or path is as it was.
func Replace(ctx context.Context, path, fresh, kept string, o Options) error {
	o = o.withDefaults()
	path, err := locate(path)
	if err != nil {
		return err
	}
	l := newLease(path, o)
	done := false
	defer func() { l.end(!done) }()
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return openError(path, true, err)
	}
	p := newPatience(engine.WithPurpose(ctx, "restore"), o.Wait)
	if err := l.lockRoom(p, toReplace, info); err != nil {
		return err
	}
	if l.lock != nil {
		defer l.lock.release()
	}
	if info != nil {
		if err := l.mayReplace(); err != nil {
			return err
		}
	}
	if info != nil && kept != "" {
		if err := keepAs(path, kept); err != nil {
			return fmt.Errorf("the file could not be replaced, and the store stays as it was: %w", err)
		}
	}
	if info != nil {
		err = rename(p, fresh, path)
	} else {
		err = intoPlace(fresh, path)
	}
	if err != nil {
		if info != nil && kept != "" {
			_ = os.Remove(kept)
		}
		return fmt.Errorf("the file could not be replaced, and the store stays as it was: %w", err)
	}
	done = true
	return syncDir(filepath.Dir(path))
}

// keepAs gives a file a second name. If the file system has no links, it makes a copy.
func keepAs(path, kept string) error {
	err := os.Link(path, kept)
	if err == nil || errors.Is(err, os.ErrExist) {
		return err
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(kept, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		_ = os.Remove(kept)
	}
	return err
}

// rename moves a file over another one. If another program has that open, it waits as for a lock.
func rename(p *patience, from, to string) error {
	for {
		err := os.Rename(from, to)
		if err == nil || !nameHeld(err) {
			return err
		}
		if over := p.pause(); errors.Is(over, errOutOfPatience) {
			return fmt.Errorf("%w: %w", &kv.LockedError{Waited: time.Since(p.begun)}, err)
		} else if over != nil {
			return over
		}
	}
}
