package boltkv

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/nolink"
)

// need is the use that a transaction makes of the open file.
type need int

const (
	toRead    need = iota // shares the file with others; this process may write meanwhile
	toCopy                // nobody writes meanwhile
	toWrite               // other processes are out
	toReplace             // other processes and all other transactions of this process are out
)

// lease keeps the file open while this process needs it, and lets go when another process waits. Each transaction of the process begins with enter and ends
// with leave.
type lease struct {
	path     string
	idleHold time.Duration // negative: none
	maxHold  time.Duration
	fleeting bool

	mu      sync.Mutex
	changed chan error // closed and replaced at each change for which enter may wait

	file    *opened // nil while nobody has the file open
	how     need    // what it was opened for
	users   int     // transactions under way
	writers int     // in enter, to write or replace
	waiting int     // in enter
	opening bool    // one of them is opening the file
	yield   bool    // no transaction may enter; the last user closes the file
	since   time.Time
	looked  time.Time // time of the last check that file and lock file are at their paths
	left    time.Time // when the last user left
	signed  kv.Holder // what other processes see

	lock  *lockFile // nil if a lock file cannot be made
	idle  *time.Timer
	armed bool
}

func newLease(path string, o Options) *lease {
	l := &lease{path: path, fleeting: o.Fleeting, idleHold: o.IdleHold, maxHold: o.MaxHold, changed: make(chan error)}
	l.idle = time.AfterFunc(time.Hour, l.rest)
	l.idle.Stop()
	return l
}

func (l *lease) broadcast() {
	close(l.changed)
	l.changed = make(chan error)
}

// enter waits until the file is open for the caller's need.
func (l *lease) enter(p *patience, n need) (*opened, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.long = l.heldLong
	l.waiting++
	defer func() { l.waiting-- }()
	if n >= toWrite {
		l.writers++
		defer func() {
			l.writers--
			l.broadcast()
		}()
	}
	for {
		l.mayYield()
		switch {
		case l.admits(n):
			l.users++
			l.say(p)
			return l.file, nil
		case l.file == nil && !l.opening && (n != toRead || l.writers == 0):
			if err := l.open(p, n); err != nil {
				return nil, err
			}
			l.users++
			return l.file, nil
		case l.file != nil:
			l.yield = true
			if l.users == 0 {
				l.shut()
				continue
			}
		}
		if err := l.await(p); err != nil {
			return nil, err
		}
	}
}

// admits reports whether the open file serves the need.
func (l *lease) admits(n need) bool {
	if l.file == nil || l.yield {
		return false
	}
	switch n {
	case toRead:
		return l.how == toWrite || l.how <= toCopy && l.writers == 0
	case toCopy:
		return l.how <= toCopy && l.writers == 0
	case toWrite:
		return l.how == toWrite
	}
	return false
}

func (l *lease) await(p *patience) error {
	changed := l.changed
	l.mu.Unlock()
	defer l.mu.Lock()
	return l.explain(p, p.wait(changed))
}

// leave ends what enter began. With stale the file is opened again before its next use.
func (l *lease) leave(stale bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users--
	l.yield = l.yield || stale || l.file.broken.Load() || l.how == toReplace
	if l.users > 0 {
		return
	}
	l.left = time.Now()
	l.mayYield()
	switch {
	case l.yield, l.idleHold < 0 && l.waiting == 0:
		l.shut()
	case !l.armed:
		l.armed = true
		l.idle.Reset(l.idleHold)
	}
}

// mayYield decides, after the file was held for MaxHold, whether to let go: if another process waits, or if another file is at the path.
func (l *lease) mayYield() {
	if l.file == nil || l.yield {
		return
	}
	now := time.Now()
	if now.Sub(l.since) < l.maxHold {
		return
	}
	if l.lock != nil && l.lock.wanted() {
		l.yield = true
	}
	if now.Sub(l.looked) >= l.maxHold {
		l.looked = now
		if !l.file.current() || l.lock != nil && !l.lock.current() {
			l.yield = true
		}
	}
}

// rest closes the file after it was idle for long enough. The timer calls it.
func (l *lease) rest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	if l.file == nil || l.users > 0 {
		return
	}
	if idle := time.Since(l.left); idle < l.idleHold {
		l.armed = true
		l.idle.Reset(l.idleHold - idle)
		return
	}
	l.shut()
}

// shut closes the file. It must have no users.
func (l *lease) shut() {
	l.file.close()
	if mapGrows && l.how >= toWrite && l.lock != nil { // no other process can enter yet
		giveBack(l.path)
	}
	l.file, l.yield = nil, false
	if l.lock != nil {
		l.lock.release()
	}
	l.broadcast()
}

// giveBack cuts off the space that mapping the file added to it. If that fails, for example because another program maps the file, the next writer does it.
func giveBack(path string) {
	if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		_ = cut(f)
		f.Close()
	}
}

// end closes file and lock file for good. It must have no users. With unwanted it also removes a lock file that this lease made.
func (l *lease) end(unwanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle.Stop()
	if l.file != nil {
		l.shut()
	}
	if l.lock == nil {
		return
	}
	lock := l.lock
	l.lock = nil
	unwanted = unwanted && lock.made && lock.current()
	if !removeOpen {
		lock.close()
	}
	if unwanted {
		_ = os.Remove(lock.path) // a program that has it open sees that it is gone, or prevents the removal
	}
	if removeOpen {
		lock.close()
	}
}

// mayReplace reports, in the room, whether the file may be replaced. If it must be closed for that, as on Windows, only the lock file keeps others from
// writing meanwhile.
func (l *lease) mayReplace() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if removeOpen || l.lock != nil {
		return nil
	}
	return fmt.Errorf("the lock file %s.lock cannot be made, and without it others could write meanwhile; look what is in its place", l.path)
}

// open opens the file. It releases l.mu meanwhile.
func (l *lease) open(p *patience, n need) error {
	l.opening = true
	l.mu.Unlock()
	file, err := l.openUnlocked(p, n)
	l.mu.Lock()
	l.opening = false
	l.broadcast()
	if err != nil {
		return err
	}
	l.file, l.how, l.since = file, n, time.Now()
	l.looked = l.since
	return nil
}

func (l *lease) openUnlocked(p *patience, n need) (*opened, error) {
	for {
		info, err := regular(l.path)
		if err != nil {
			return nil, err
		}
		if err := l.lockRoom(p, n, info); err != nil {
			return nil, err
		}
		file, err := l.openBolt(p, n >= toWrite)
		if err == nil {
			return file, nil
		}
		if l.lock != nil {
			l.lock.release()
		}
		if !errors.Is(err, errMoved) {
			return nil, err
		}
	}
}

// lockRoom enters the room of the lock file that is at its path now. If no lock file can be made, as in a read-only folder, bbolt's own lock must do.
func (l *lease) lockRoom(p *patience, n need, store os.FileInfo) error {
	kind := shared
	if n >= toWrite {
		kind = exclusive
	}
	for {
		if l.lock != nil && !l.lock.current() {
			l.setLock(nil)
		}
		if l.lock == nil {
			lock, err := openLockFile(l.path+".lock", store)
			if held(err) {
				if err := p.pause(); err != nil {
					return l.explain(p, err)
				}
				continue
			}
			if errors.Is(err, nolink.ErrLink) || errors.Is(err, errInTheWay) {
				return err
			}
			if err != nil {
				return nil
			}
			l.setLock(lock)
		}
		if err := l.lock.take(p, kind); err != nil {
			err = l.explain(p, err)
			if l.lock.left {
				l.setLock(nil)
			}
			return err
		}
		if l.lock.current() {
			l.sign(p)
			return nil
		}
		l.lock.release()
	}
}

// setLock changes the lock file under l.mu, since heldLong reads it while the file is being opened.
func (l *lease) setLock(lock *lockFile) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock != nil {
		l.lock.close()
	}
	l.lock = lock
}

// openBolt also waits for bbolt's own lock: it is the only lock of programs without the lock file or with a deleted one.
func (l *lease) openBolt(p *patience, write bool) (*opened, error) {
	for waits := false; ; waits = true {
		file, err := openFile(l.path, write)
		if err == nil {
			file.db.NoSync = l.fleeting
			if waits {
				l.sign(p)
			}
		}
		if !errors.Is(err, errBusy) {
			return file, err
		}
		if !waits && l.lock != nil {
			h := holder(p)
			h.Waits = true
			l.lock.sign(&h)
		}
		if err := p.pause(); err != nil {
			return nil, l.explain(p, err)
		}
	}
}

// sign shows other processes who has the file open, and since when.
func (l *lease) sign(p *patience) {
	l.signed = holder(p)
	if l.lock != nil {
		l.lock.sign(&l.signed)
	}
}

// say changes the shown purpose to that of the latest transaction, unless one with a long purpose is still there.
func (l *lease) say(p *patience) {
	if l.users > 1 && engine.IsLong(l.signed.Purpose) {
		return
	}
	if purpose := engine.Purpose(p.ctx); purpose != l.signed.Purpose && l.lock != nil {
		l.sign(p)
	}
}

// heldLong returns the holder of the file that has one of the long purposes, or nil.
func (l *lease) heldLong() *kv.Holder {
	for _, h := range l.holders() {
		if !h.Waits && engine.IsLong(h.Purpose) {
			return h
		}
	}
	return nil
}

// holders lists the programs that have the file open, this one first, and after them the one that waits to.
func (l *lease) holders() []*kv.Holder {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []*kv.Holder
	if l.users > 0 {
		signed := l.signed
		found = append(found, &signed)
	}
	if l.lock != nil {
		found = append(found, l.lock.holders()...)
	}
	return found
}

// explain turns the end of a wait into a *kv.LockedError that names the holder.
func (l *lease) explain(p *patience, err error) error {
	if !errors.Is(err, errOutOfPatience) {
		return err
	}
	locked := &kv.LockedError{Waited: time.Since(p.begun)}
	if found := l.holders(); len(found) > 0 {
		locked.Holder = *found[0]
	}
	return fmt.Errorf("%s: %w", l.path, locked)
}
