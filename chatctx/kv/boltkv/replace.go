package boltkv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
	if err := l.lockRoom(newPatience(kv.WithPurpose(ctx, "restore"), o.Wait), toReplace, info); err != nil {
		return err
	}
	if l.lock != nil {
		defer l.lock.release()
	}
	if info != nil && kept != "" {
		if err := os.Link(path, kept); err != nil {
			return fmt.Errorf("the store stays as it was: %w", err)
		}
	}
	if info != nil {
		err = rename(fresh, path)
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
