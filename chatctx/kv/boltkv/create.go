package boltkv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/leftover"
)

// create makes the file at path unless another program makes it at the same time. An unfinished file is never at path.
func create(path string, o Options) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("the store could not be made: %w", err)
	}
	l := newLease(path, o)
	made := false
	defer func() { l.end(!made) }()
	if err := l.lockRoom(newPatience(context.Background(), o.Wait), toReplace, nil); err != nil {
		return err
	}
	if l.lock != nil {
		defer l.lock.release()
	}
	if _, err := os.Lstat(path); err == nil {
		made = true
		return nil
	}
	if err := build(path, o); err != nil {
		return fmt.Errorf("the store could not be made: %w", err)
	}
	made = true
	return nil
}

// build makes the file under another name and links it into place. If it is killed, the next program removes the file, wherever that one's own store is.
func build(path string, o Options) error {
	if !o.Fleeting {
		if dir, err := filepath.Abs(filepath.Dir(path)); err == nil {
			defer leftover.Announce(dir)()
		}
	}
	temp := leftover.Path(filepath.Dir(path), "new-"+filepath.Base(path))
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	defer os.Remove(temp)
	fresh, err := makeFile(temp)
	if err != nil {
		return err
	}
	fresh.db.NoSync = o.Fleeting
	err = fresh.fill(o.Sequential, o.Init)
	fresh.close()
	if err != nil {
		return err
	}
	if err := intoPlace(temp, path); err != nil || o.Fleeting {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// makeFile makes an empty database, readable only by its owner, at a path where there is no file yet.
func makeFile(path string) (*opened, error) {
	o := &opened{path: path}
	options := boltOptions(true)
	options.OpenFile = func(name string, flag int, perm os.FileMode) (f *os.File, err error) {
		o.f, err = os.OpenFile(name, flag|os.O_EXCL, perm)
		return o.f, err
	}
	if err := o.start(options); err != nil {
		return nil, err
	}
	var err error
	if o.info, err = o.f.Stat(); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// fill runs fn, if not nil, in a transaction on a file that no other program sees, and syncs the file unless it is fleeting.
func (o *opened) fill(sequential []string, fn func(kv.RwTx) error) error {
	if fn != nil {
		err := o.change(sequential, func(t *rwTx, _ *bolt.Tx) error { return fn(t) })
		if err != nil {
			return err
		}
	}
	if o.db.NoSync {
		return nil
	}
	return o.f.Sync()
}

// change runs fn in one transaction and commits it.
func (o *opened) change(sequential []string, fn func(*rwTx, *bolt.Tx) error) error {
	tx, err := o.begin(true)
	if err != nil {
		return err
	}
	if err := o.within(tx, sequential, fn); err != nil {
		return err
	}
	return o.commit(tx)
}

// within runs fn on tx. If fn fails or panics, tx is rolled back.
func (o *opened) within(bolt *bolt.Tx, sequential []string, fn func(*rwTx, *bolt.Tx) error) (err error) {
	done := false
	defer func() {
		if !done || err != nil {
			o.rollback(bolt)
		}
	}()
	defer o.fault(&err)
	t := &rwTx{tx: tx{session: newSession(o, bolt, sequential)}}
	defer func() { t.ended = true }()
	if err = fn(t, bolt); err == nil {
		err = t.damage
	}
	done = true
	return err
}

// intoPlace links the new file to its name unless a file is there already. On file systems without links it looks first and then renames.
func intoPlace(temp, path string) error {
	err := os.Link(temp, path)
	if err == nil || errors.Is(err, os.ErrExist) {
		return nil
	}
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	return os.Rename(temp, path)
}
