// Package boltkv is the kv engine for one file on disk, kept by bbolt, that several programs use at the same time.
//
// bbolt locks the whole file while somebody writes to it, even against readers. So nobody keeps it: the file is opened for
// the moment in which it is needed, and a lock file beside it lets programs wait for each other in turn. What follows for the
// user:
//
//   - A View or an Update is short. All others wait for it, within this process and without.
//   - A View or Update inside another one of the same file waits for itself, until Options.Wait is over.
//   - An Update that returned nil is on the disk. Several that run at the same time are committed together.
//   - The file may be moved, replaced or rewritten by others; the next transaction sees the file that is at the path then.
//
// It trusts the file system's locks and memory maps: network and cloud-synced folders often have neither.
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
	"github.com/chatctx/chatctx/chatctx/kv/internal/watch"
)

// Options say how a file is opened. The zero Options open one that is there, to read and write.
type Options struct {
	// Create makes the file, readable by its owner alone, and its folders when it is not there.
	Create bool
	// ReadOnly refuses every Update with kv.ErrReadOnly.
	ReadOnly bool
	// Wait bounds how long a transaction waits for other programs; 0 is 5 seconds, less is not at all. Waiting for a holder
	// with one of kv.LongPurposes does not count.
	Wait time.Duration
	// IdleHold is how long the file stays open for the next transaction; 0 is 2 ms, less is not at all.
	IdleHold time.Duration
	// MaxHold is how long transactions may follow each other while another program waits; 0 is 10 ms.
	MaxHold time.Duration
	// Sequential are the buckets whose keys mostly come in order: their pages are filled to the end.
	Sequential []string
	// Check looks whether the file is what the caller takes it for. It runs in the first transaction on each file that
	// is found at the path, often by Open, and its error refuses the transaction.
	Check func(kv.Tx) error
	// Init fills a new file, before anybody can see it.
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

// Open opens the file at path. Several Opens of one file in a process, by whatever paths, share it; IdleHold, MaxHold and
// Sequential are then those of the first.
//
// Its errors are kv.ErrNotExist, kv.ErrNotOurs, kv.ErrDamaged, what Check or Init returned, or the system's. But it does not wait
// (only where it has to make the file): while another program writes, just the first bytes are looked at, and Check runs in
// the first transaction. The database is a kv.Keeper.
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

// tryOut looks at the whole file, if nobody else writes to it right now: a second wait would double what a command takes.
func (h *handle) tryOut() error {
	err := h.look(context.Background(), -1, toRead, func(o *opened, t *tx) error { return h.check(o, t) })
	if errors.Is(err, kv.ErrLocked) {
		return nil
	}
	return err
}

// locate makes a path absolute and follows its links.
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

// peek refuses what is no store without leaving a lock file beside it.
func peek(path string) error {
	if _, err := regular(path); err != nil {
		return err
	}
	f, err := os.Open(path)
	if held(err) {
		return nil // the first transaction waits for it
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

// handle is one Open of a file.
type handle struct {
	file     *file
	wait     time.Duration
	readOnly bool
	looks    func(kv.Tx) error
	hub      watch.Hub

	mu      sync.Mutex
	closed  bool
	active  sync.WaitGroup
	checked os.FileInfo // the file that was looked at last
}

func (h *handle) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return kv.ErrClosed
	}
	h.active.Add(1)
	return nil
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
	if err := h.begin(ctx); err != nil {
		return err
	}
	defer h.active.Done()
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

// check has the caller look at a file that this handle did not see yet.
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
	if err := h.begin(ctx); err != nil {
		return err
	}
	defer h.active.Done()
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

// close with unwanted takes a lock file back that was made for nothing.
func (h *handle) close(unwanted bool) {
	h.mu.Lock()
	closed := h.closed
	h.closed = true
	h.mu.Unlock()
	h.active.Wait()
	h.hub.Close()
	if !closed {
		unshare(h, unwanted)
	}
}
