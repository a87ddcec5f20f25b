//go:build linux || darwin

package boltkv

import (
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open file description locks end with the process, and closing another descriptor of the file does not free them.

// canLock: there are locks on bytes of a file.
const canLock = true

// canBlock: waitLock may run in a goroutine while other calls use the same file.
const canBlock = true

func fcntl(f *os.File, cmd int, kind int16, offset int64) (unix.Flock_t, error) {
	defer runtime.KeepAlive(f)
	for {
		lock := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: offset, Len: 1}
		err := unix.FcntlFlock(f.Fd(), cmd, &lock)
		if !errors.Is(err, unix.EINTR) {
			return lock, err
		}
	}
}

func flockType(kind lockKind) int16 {
	if kind == shared {
		return unix.F_RDLCK
	}
	return unix.F_WRLCK
}

// tryLock takes the lock on one byte. It reports false if another program has it.
func tryLock(f *os.File, offset int64, kind lockKind) (bool, error) {
	_, err := fcntl(f, setLock, flockType(kind), offset)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// waitLock takes the lock on one byte, however long it must wait.
func waitLock(f *os.File, offset int64, kind lockKind) error {
	_, err := fcntl(f, setLockWait, flockType(kind), offset)
	return err
}

func unlock(f *os.File, offset int64) error {
	_, err := fcntl(f, setLock, unix.F_UNLCK, offset)
	return err
}

// taken reports whether another opening has a lock on the byte.
func taken(f *os.File, offset int64) bool {
	lock, err := fcntl(f, getLock, unix.F_WRLCK, offset)
	return err == nil && lock.Type != unix.F_UNLCK
}

// releaseBolt gives up bbolt's own lock. Closing the file would not if a mapping of it is left.
func releaseBolt(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// sameOwner gives a file the owner of another, if this process may do that.
func sameOwner(path string, as os.FileInfo) {
	if s, ok := as.Sys().(*syscall.Stat_t); ok {
		_ = os.Chown(path, int(s.Uid), int(s.Gid))
	}
}

// removeOpen: an open file can be removed, and another renamed over it.
const removeOpen = true

// mapGrows: mapping a file that is open to write grows it to the size of the map.
const mapGrows = false

// held reports whether another program's use of the file caused the error. On this system none does.
func held(error) bool { return false }

func nameHeld(error) bool { return false }
