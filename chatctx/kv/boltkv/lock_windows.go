package boltkv

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// canLock: there are locks on bytes of a file.
const canLock = true

// canBlock: a LockFileEx that waits would block all other calls on the handle.
const canBlock = false

func at(offset int64) *windows.Overlapped {
	return &windows.Overlapped{Offset: uint32(offset), OffsetHigh: uint32(offset >> 32)}
}

// tryLock takes the lock on one byte. It reports false if another program has it.
func tryLock(f *os.File, offset int64, kind lockKind) (bool, error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if kind == exclusive {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, at(offset))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

func waitLock(*os.File, int64, lockKind) error { return errors.ErrUnsupported }

func unlock(f *os.File, offset int64) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, at(offset))
}

// taken reports whether another opening has a lock on the byte.
func taken(f *os.File, offset int64) bool {
	got, err := tryLock(f, offset, exclusive)
	if got {
		_ = unlock(f, offset)
	}
	return err == nil && !got
}

// releaseBolt gives up bbolt's own lock, which is on the last possible byte. Closing the file would not if a mapping of it is left.
func releaseBolt(f *os.File) { _ = unlock(f, -1) }

// syncDir does nothing: NTFS keeps names in its journal.
func syncDir(string) error { return nil }

func sameOwner(string, os.FileInfo) {}

// removeOpen: an open file can be removed, and another renamed over it.
const removeOpen = false

// mapGrows: mapping a file that is open to write grows it to the size of the map.
const mapGrows = true

// held reports whether another program's use of the file caused the error: a virus scanner, a backup, a sync client.
func held(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION)
}

// nameHeld is held for a rename over a file that another program has open.
func nameHeld(err error) bool { return held(err) || errors.Is(err, windows.ERROR_ACCESS_DENIED) }
