// Package boltkv is the kv engine for one file on disk, kept by bbolt, that several programs can use at the same time.
//
// While a program has the file open to write, bbolt locks it against all others, even readers. So no program keeps the file open: boltkv opens it for the
// moment of use, and a lock file beside it lets programs take turns. For the user this means:
//
//   - A View or an Update should be short. All others wait for it, in this process and in others.
//   - A View or Update inside another one of the same file waits for itself, until Options.Wait is over.
//   - When an Update returns nil, its changes are on the disk. Updates that run at the same time are committed together.
//   - The file may be moved, replaced or rewritten by others. The next transaction sees the file that is at the path then.
//
// boltkv trusts the file system's locks and memory maps: network and cloud-synced folders often have neither.
package boltkv

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/internal/door"
	"github.com/chatctx/chatctx/chatctx/kv/internal/watch"
)

// Options are options of Open. The zero Options open an existing file, to read and write.
type Options struct {
	// Create makes the file, readable only by its owner, and its folders if they do not exist.
	Create bool
	// ReadOnly refuses every Update with kv.ErrReadOnly.
	ReadOnly bool
	// Wait bounds how long a transaction waits for other programs; 0 means 5 seconds, less than 0 not at all. Time during which the holder has one of
	// engine.IsLong does not count.
	Wait time.Duration
	// IdleHold is how long the file stays open for the next transaction; 0 means 2 ms, less than 0 not at all.
	IdleHold time.Duration
	// MaxHold is how long transactions may follow each other while another program waits; 0 means 10 ms.
	MaxHold time.Duration
	// Sequential names the buckets whose keys mostly come in order. Their pages are filled to the end.
	Sequential []string
	// Fleeting means that the file need not outlast the program: nothing waits for the disk.
	Fleeting bool
	// Check decides whether the file is what the caller expects. It runs in the first transaction on each file found at the path, often in Open, and its
	// error refuses the transaction.
	Check func(kv.Tx) error
	// Init fills a new file before others can see it.
	Init func(kv.RwTx) error
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&o.Wait, 5*time.Second)
	set(&o.IdleHold, 2*time.Millisecond)
	set(&o.MaxHold, 10*time.Millisecond)
	return o
}

// Open opens the file at path. Several Opens of one file in a process share it, even by different paths; IdleHold, MaxHold, Sequential and Fleeting are then
// those of the first.
//
// Its errors are kv.ErrNotExist, kv.ErrNotOurs, kv.ErrDamaged, those of Check or Init, and the system's. Open does not wait, except to make the file: while
// another program writes, it looks at the first bytes only, and Check runs in the first transaction. The database is a kv.Keeper.
func Open(path string, o Options) (kv.DB, error) {
	o = o.withDefaults()
	real, err := locate(path)
	if err != nil {
		return nil, err
	}
	if err := peek(real); errors.Is(err, kv.ErrNotExist) && o.Create && !o.ReadOnly {
		if err := create(real, o); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	h := &handle{wait: o.Wait, readOnly: o.ReadOnly, looks: o.Check}
	share(h, real, o)
	if err := h.tryOut(); err != nil {
		h.close(true)
		return nil, err
	}
	return h, nil
}

// tryOut checks the whole file if no other program writes to it just now. Waiting here too would double a command's wait.
func (h *handle) tryOut() error {
	err := h.look(context.Background(), -1, toRead, func(o *opened, t *tx) error { return h.check(o, t) })
	if errors.Is(err, kv.ErrLocked) {
		return nil
	}
	return err
}

// locate makes a path absolute and resolves its links.
func locate(path string) (string, error) {
	if err := nameable(path); err != nil {
		return "", err
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path)), nil
	}
	return path, nil
}

// peek refuses a file that is no store, without leaving a lock file beside it.
func peek(path string) error {
	if _, err := regular(path); err != nil {
		return err
	}
	f, err := os.Open(path)
	if held(err) {
		return nil // the first transaction waits for the file
	}
	if err != nil {
		return openError(path, false, err)
	}
	defer f.Close()
	if err := looksOurs(f); !errors.Is(err, errBusy) {
		return err
	}
	return nil
}

// handle is the result of one Open.
type handle struct {
	file     *file
	wait     time.Duration
	readOnly bool
	looks    func(kv.Tx) error
	hub      watch.Hub

	door door.Door

	mu      sync.Mutex
	checked os.FileInfo // the file that was checked last
}

// View implements kv.DB.
func (h *handle) View(ctx context.Context, fn func(kv.Tx) error) error {
	return h.look(ctx, h.wait, toRead, func(o *opened, t *tx) error {
		if err := h.check(o, t); err != nil {
			return err
		}
		return fn(t)
	})
}

// look runs fn in a reading transaction.
func (h *handle) look(ctx context.Context, wait time.Duration, n need, fn func(*opened, *tx) error) error {
	if err := h.door.Enter(ctx); err != nil {
		return err
	}
	defer h.door.Leave()
	o, err := h.file.lease.enter(newPatience(ctx, wait), n)
	if err != nil {
		return err
	}
	stale := false
	defer func() { h.file.lease.leave(stale) }()
	err = o.view(fn)
	stale = errors.Is(err, kv.ErrDamaged)
	return err
}

// view runs fn in a reading transaction of bbolt.
func (o *opened) view(fn func(*opened, *tx) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	bolt, err := o.begin(false)
	if err != nil {
		return err
	}
	defer o.rollback(bolt)
	defer o.fault(&err)
	t := &tx{session: newSession(o, bolt, nil)}
	defer func() { t.ended = true }()
	if err := fn(o, t); err != nil {
		return err
	}
	return t.damage
}

// check runs the caller's Check on a file that this handle has not seen yet.
func (h *handle) check(o *opened, t kv.Tx) error {
	h.mu.Lock()
	known := h.checked != nil && os.SameFile(h.checked, o.info)
	h.mu.Unlock()
	if known {
		return nil
	}
	if h.looks != nil {
		if err := h.looks(t); err != nil {
			return err
		}
	}
	h.mu.Lock()
	h.checked = o.info
	h.mu.Unlock()
	return nil
}

// Update implements kv.DB.
func (h *handle) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	if h.readOnly {
		return kv.ErrReadOnly
	}
	if err := h.door.Enter(ctx); err != nil {
		return err
	}
	defer h.door.Leave()
	return h.file.updates.update(ctx, &member{
		handle: h, fn: fn, joined: time.Now(), turn: make(chan turn, 1), ran: make(chan struct{}, 1),
	})
}

// Watch implements kv.DB.
func (h *handle) Watch(ctx context.Context, bucket string, prefix []byte) (<-chan struct{}, error) {
	c, err := h.hub.Add(ctx, bucket, prefix)
	if err == nil {
		h.file.startPolling()
	}
	return c, err
}

// Close implements kv.DB.
func (h *handle) Close() error {
	h.close(false)
	return nil
}

// close ends the handle. With unwanted it also removes a lock file that the handle made for nothing.
func (h *handle) close(unwanted bool) {
	first := h.door.Close()
	h.hub.Close()
	if first {
		unshare(h, unwanted)
	}
}
