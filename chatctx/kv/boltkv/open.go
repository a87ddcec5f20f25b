package boltkv

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// opened is a file that is open in bbolt.
type opened struct {
	path string
	db   *bolt.DB
	f    *os.File // bbolt's own, which it closes
	info os.FileInfo
	// broken: bbolt panicked while it held its own locks, so its DB can only be dropped.
	broken atomic.Bool
	// doubt: the newest change may be lost, see doubtful. The next commit overwrites the trace of it.
	doubt atomic.Bool
}

var (
	// errBusy: another program has bbolt's own lock, or has the file open in a way that keeps this one out.
	errBusy = errors.New("boltkv: in use by somebody without the lock file")
	// errMoved: the path leads to another file than the opened one.
	errMoved = errors.New("boltkv: replaced while it was opened")
)

const (
	// The file grows by an eighth, within these bounds.
	leastGrowth = 4 * pageSize
	mostGrowth  = 1 << 20
	// mapSize is how much of the file is mapped from the start, so that growth seldom has to wait for Views to end.
	mapSize = 1 << 30
	// wide: addresses have more than 32 bits.
	wide = ^uintptr(0)>>32 != 0
)

func boltOptions(write bool) *bolt.Options {
	o := &bolt.Options{
		ReadOnly:     !write,
		PageSize:     pageSize,
		FreelistType: bolt.FreelistMapType,
		NoStatistics: true,
		Timeout:      1, // one try: waiting is done at the lock file
	}
	if write && runtime.GOOS != "windows" && wide {
		o.InitialMmapSize = mapSize
	}
	return o
}

// openFile opens an existing store at path and checks that it is whole.
func openFile(path string, write bool) (o *opened, err error) {
	o = &opened{path: path}
	options := boltOptions(write)
	options.OpenFile = func(name string, flag int, _ os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(name, flag&^os.O_CREATE, 0)
		if held(err) {
			return nil, errBusy
		}
		if err != nil {
			return nil, openError(name, write, err)
		}
		if err := cmp.Or(looksOurs(f), mappable(f, write)); err != nil {
			f.Close()
			return nil, err
		}
		o.f = f
		return f, nil
	}
	if err := o.start(options); err != nil {
		return nil, err
	}
	if err := o.whole(write); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// mappable looks for faults over which bbolt panics while it opens a file. Such a panic would leave the file mapped, and on Windows that keeps programs
// from putting a good file in its place.
func mappable(f *os.File, write bool) error {
	if removeOpen {
		return nil
	}
	m, err := readMeta(f)
	if err != nil {
		return nil // bbolt reports what is wrong
	}
	err = sound(f, m, write)
	if again, metaErr := readMeta(f); err == nil || metaErr != nil || again.tx != m.tx {
		return nil // a program without the lock file wrote meanwhile
	}
	return damaged(f.Name(), err)
}

// regular checks the kind of file before it is opened, since opening a pipe would wait for its other end.
func regular(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, openError(path, false, err)
	case info.IsDir():
		return nil, fmt.Errorf("%w: %s is a folder; name a file", kv.ErrNotOurs, path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is not an ordinary file; name one", kv.ErrNotOurs, path)
	case info.Size() == 0:
		return nil, fmt.Errorf("%w: %s is empty; remove it, and a store can be made there", kv.ErrNotOurs, path)
	}
	return info, nil
}

func openError(path string, write bool, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w: %s", kv.ErrNotExist, path)
	case write && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)):
		return fmt.Errorf("%w: %w", kv.ErrReadOnly, err)
	}
	return fmt.Errorf("the store could not be opened: %w", err)
}

// start opens the file in bbolt without further checks.
func (o *opened) start(options *bolt.Options) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			releaseBolt(o.f)
			o.f.Close()
			err = &spoiled{o.path, r}
		}
	}()
	o.db, err = bolt.Open(o.path, 0o600, options)
	var path *fs.PathError
	var errno syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.Is(err, berrors.ErrTimeout):
		return errBusy
	case o.f == nil, errors.As(err, &path):
		return err
	case errors.As(err, &errno):
		return systemError(o.path, err)
	}
	return &spoiled{o.path, err}
}

// systemError says to which file an error of the system belongs. Network drives, and file systems of programs, often have no locks.
func systemError(path string, err error) error {
	for _, without := range []syscall.Errno{syscall.ENOLCK, syscall.EOPNOTSUPP, syscall.ENOTSUP, syscall.ENOSYS} {
		if errors.Is(err, without) {
			return fmt.Errorf("%s: its file system gives no locks (%w), and without them programs would write over each other: put the store on a local disk, "+
				"or on a server (chatctx copy)", path, err)
		}
	}
	return fmt.Errorf("%s: %w", path, err)
}

// whole checks that the file has its full length and that the path still leads to it.
func (o *opened) whole(write bool) error {
	m, err := readMeta(o.f)
	if held(err) {
		return errBusy
	}
	if err != nil {
		return damaged(o.path, err)
	}
	if o.info, err = o.f.Stat(); err != nil {
		return err
	}
	if o.info.Size() < m.size() {
		return damaged(o.path, fmt.Sprintf("the file was cut off: it has %d bytes of %d", o.info.Size(), m.size()))
	}
	if !o.current() {
		return errMoved
	}
	if err := sound(o.f, m, write); err != nil {
		return damaged(o.path, err)
	}
	o.doubt.Store(doubtful(o.f, m))
	return nil
}

// current reports whether the path still leads to this file.
func (o *opened) current() bool {
	info, err := os.Stat(o.path)
	return err == nil && os.SameFile(info, o.info)
}

// close closes the file. It must have no open transaction.
func (o *opened) close() {
	defer func() {
		if r := recover(); r != nil {
			releaseBolt(o.f)
			o.f.Close()
		}
	}()
	if o.broken.Load() {
		releaseBolt(o.f)
		o.f.Close()
		return
	}
	_ = o.db.Close() // the commits have synced everything
}

// damaged returns an ErrDamaged for the file at path. cause is an error, a text, or the value of a panic.
func damaged(path string, cause any) error {
	return fmt.Errorf("%w: %s: %v", kv.ErrDamaged, path, cause)
}

// spoiled is damage that bbolt met. Its message leaves out the words of bbolt, an assertion or a fault of memory, which Cause has.
type spoiled struct {
	path  string
	Cause any
}

func (e *spoiled) Error() string {
	return fmt.Sprintf("%v: %s: it was cut off, or its pages are not as they were written", kv.ErrDamaged, e.path)
}

// Unwrap returns ErrDamaged.
func (e *spoiled) Unwrap() error { return kv.ErrDamaged }

// begin starts a transaction of bbolt.
func (o *opened) begin(write bool) (tx *bolt.Tx, err error) {
	defer func() {
		if r := recover(); r != nil {
			o.broken.Store(true)
			err = &spoiled{o.path, r}
		}
	}()
	return o.db.Begin(write)
}

// rollback ends a transaction of bbolt without a trace.
func (o *opened) rollback(tx *bolt.Tx) {
	defer func() {
		if r := recover(); r != nil {
			o.broken.Store(true)
		}
	}()
	if err := tx.Rollback(); err != nil && !errors.Is(err, berrors.ErrTxClosed) {
		o.broken.Store(true)
	}
}

// commit makes the changes of tx durable and ends tx. If it fails, its error says whether the changes may be there nevertheless.
func (o *opened) commit(tx *bolt.Tx) (err error) {
	id := uint64(tx.ID())
	defer func() {
		if r := recover(); r != nil {
			err = &spoiled{o.path, r}
			o.rollback(tx)
		}
	}()
	o.db.AllocSize = int(min(max(tx.Size()/8, leastGrowth), mostGrowth)) // bbolt grows the file by this when the pages do not fit
	if err = tx.Commit(); err == nil {
		o.doubt.Store(false)
		return nil
	}
	o.rollback(tx)
	return o.outcome(id, err)
}

// outcome says what a failed commit left behind. Once its meta record is in the file, others may see the change, but what was not synced may be lost in a
// crash.
func (o *opened) outcome(id uint64, err error) error {
	if m, metaErr := readMeta(o.f); metaErr != nil || m.tx >= id {
		return fmt.Errorf("%w: %w", kv.ErrUnknownOutcome, err)
	}
	return fmt.Errorf("nothing of the change was stored, since writing to the store failed: %w", err)
}

// fault turns a fault in the mapped file, which any access to a value may cause, into an error. It must be deferred.
func (o *opened) fault(err *error) {
	switch r := recover().(type) {
	case nil:
	case interface {
		error
		Addr() uintptr
	}:
		if !o.maps(r.Addr()) {
			panic(r)
		}
		*err = &spoiled{o.path, r}
	default:
		panic(r)
	}
}

// maps reports whether an address is one that a value of this file could lead to. Damaged values reach some gigabytes beyond it, on 32-bit systems anywhere
// in memory.
func (o *opened) maps(address uintptr) bool {
	if !wide {
		return true
	}
	base := o.db.Info().Data
	return address >= base && uint64(address-base) < uint64(o.info.Size())+16*mapSize
}
