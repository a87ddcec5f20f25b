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
)

// Replace puts the file fresh, which lies in the same folder, in the place of the one at path, or where there is none. Nobody has the old one open
// meanwhile; whoever uses the store goes on with the new file. The old one gets the name kept, which must be free ("" : it is gone). It need not be whole. Of Options
// only Wait counts. Either everything is done, durably, or path is as it was.
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
	p := newPatience(kv.WithPurpose(ctx, "restore"), o.Wait)
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
			return fmt.Errorf("the store stays as it was: %w", err)
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
		return fmt.Errorf("the store stays as it was: %w", err)
	}
	done = true
	return syncDir(filepath.Dir(path))
}

// keepAs gives a file a second name, or where the file system has none makes a copy.
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

// rename moves a file over another one. Where somebody's use of that is in the way it waits as for a lock.
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
