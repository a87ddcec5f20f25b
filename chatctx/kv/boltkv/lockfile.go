package boltkv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/nolink"
)

// The lock file lies beside the store, with ".lock" added to its name. Its text is for people: a line for each program that has the store open, in a slot
// of its own. Its locks are on bytes far behind the text, since on Windows locked bytes cannot be read.
//
//   - The gate is held, exclusively, while entering. A program that waits for the room keeps the gate, so nobody passes it, and the holder of the room can
//     see that somebody waits. Its slot says so, for those behind it.
//   - The room is held, shared or exclusively, while the store is open.
//   - A slot is held while a program has the lock file open: text in a slot that nobody holds is from a dead program.
//
// A link in the place of the lock file, or a file of another kind, is refused and nothing is written: the folder may be a stranger's.
//
// A lock file is never needed to read the store. Deleting it loses nothing: bbolt's own lock is still there, and all programs move to the new lock file
// within the time of a hold.
const (
	gateByte = 1 << 30
	roomByte = gateByte + 1
	slotByte = gateByte + 2

	slots    = 64
	slotSize = 256
)

type lockKind int

const (
	shared lockKind = iota
	exclusive
)

// lockFile is one opening of a lock file. One goroutine at a time uses it, except that others may ask whether the gate is taken.
type lockFile struct {
	path string
	f    *os.File
	info os.FileInfo
	made bool // this opening made the file
	slot int  // -1: all slots were taken
	left bool // a wait was given up: not to be used again

	mu      sync.Mutex
	waits   int // goroutines that wait for a lock; the last one closes the file if closing is set
	closing bool
}

// errInTheWay: what stands in the place of the lock file is no lock file, and would be written into.
var errInTheWay = errors.New("it is no lock file, and locks would be written into it")

// openLockFile opens the lock file. If it makes the file, it gives it the store's permissions and owner, unless store is nil because there is none yet. It
// returns a nolink.ErrLink or errInTheWay for what must not be written into.
func openLockFile(path string, store os.FileInfo) (*lockFile, error) {
	if !canLock {
		return nil, errors.ErrUnsupported
	}
	l := &lockFile{path: path, slot: -1}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	l.made = err == nil
	switch {
	case errors.Is(err, os.ErrExist):
		if f, l.info, err = nolink.Open(path, os.O_RDWR); err != nil {
			return nil, err
		}
		err = isLockFile(f)
	case err != nil:
		return nil, err
	case store != nil:
		_ = f.Chmod(store.Mode().Perm())
		sameOwner(path, store)
		fallthrough
	default:
		l.info, err = f.Stat()
	}
	if l.f = f; err == nil {
		err = l.claimSlot()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// isLockFile returns errInTheWay unless each slot of the file is empty or begins as lineOf writes it.
func isLockFile(f *os.File) error {
	text := make([]byte, slots*slotSize)
	n, err := f.ReadAt(text, 0)
	if err != nil && err != io.EOF {
		return err
	}
	for at := 0; at < n; at += slotSize {
		line := bytes.TrimLeft(text[at:min(at+slotSize, n)], " \x00\n")
		if len(line) > 0 && line[0] != '{' {
			return fmt.Errorf("%s: %w: move it away", f.Name(), errInTheWay)
		}
	}
	return nil
}

func (l *lockFile) claimSlot() error {
	for i := range slots {
		slot := (os.Getpid() + i) % slots
		got, err := tryLock(l.f, slotByte+int64(slot), exclusive)
		if err != nil {
			return err
		}
		if got {
			l.slot = slot
			return nil
		}
	}
	return nil
}

// current reports whether the path still leads to this file.
func (l *lockFile) current() bool {
	info, err := os.Stat(l.path)
	return err == nil && os.SameFile(info, l.info)
}

// close gives up all locks, also those that pending waits still get.
func (l *lockFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closing = true
	if l.waits == 0 {
		l.f.Close()
	}
}

// take enters the room through the gate. If it fails, l holds nothing.
func (l *lockFile) take(p *patience, kind lockKind) error {
	if err := l.acquire(p, gateByte, exclusive); err != nil {
		return err
	}
	defer func() { _ = unlock(l.f, gateByte) }()
	if got, err := tryLock(l.f, roomByte, kind); got || err != nil {
		return err
	}
	waits := holder(p)
	waits.Waits = true
	l.sign(&waits)
	err := l.acquire(p, roomByte, kind)
	if err != nil {
		l.sign(nil)
	}
	return err
}

func (l *lockFile) release() {
	l.sign(nil)
	_ = unlock(l.f, roomByte)
}

// wanted reports whether another program waits to enter.
func (l *lockFile) wanted() bool { return taken(l.f, gateByte) }

// blocked bounds the threads that wait in the system for locks: a wait that was given up keeps its thread until the lock is free.
var blocked = semaphore.NewWeighted(32)

func (l *lockFile) acquire(p *patience, offset int64, kind lockKind) error {
	got, err := tryLock(l.f, offset, kind)
	if got || err != nil {
		return err
	}
	if canBlock && !p.spent() && blocked.TryAcquire(1) {
		return l.block(p, offset, kind)
	}
	for {
		if err := p.pause(); err != nil {
			return err
		}
		if got, err := tryLock(l.f, offset, kind); got || err != nil {
			return err
		}
	}
}

// block waits for the lock in a goroutine of its own, since the system call cannot be cancelled.
func (l *lockFile) block(p *patience, offset int64, kind lockKind) error {
	l.mu.Lock()
	l.waits++
	l.mu.Unlock()
	done := make(chan error, 1)
	go func() {
		done <- waitLock(l.f, offset, kind)
		blocked.Release(1)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.waits--; l.closing && l.waits == 0 {
			l.f.Close()
		}
	}()
	err := p.wait(done)
	l.left = p.over(err)
	return err
}

// sign writes who has the store open into this opening's slot; nil clears it.
func (l *lockFile) sign(h *kv.Holder) {
	if l.slot < 0 {
		return
	}
	text := bytes.Repeat([]byte{' '}, slotSize)
	text[slotSize-1] = '\n'
	if h != nil {
		line := lineOf(h)
		if len(line) >= slotSize {
			line = lineOf(&kv.Holder{PID: h.PID, Since: h.Since})
		}
		copy(text, line)
	}
	_, _ = l.f.WriteAt(text, int64(l.slot)*slotSize) // it is for people only: a full disk is no reason to stop
}

// holders lists the other openings that have the store open, the longest-standing first, and last the one that waits at the gate.
func (l *lockFile) holders() []*kv.Holder {
	text := make([]byte, slots*slotSize)
	n, _ := l.f.ReadAt(text, 0)
	var found []*kv.Holder
	for slot := range n / slotSize {
		line := bytes.Trim(text[slot*slotSize:(slot+1)*slotSize], " \x00\n")
		if h := holderOf(line); h != nil && slot != l.slot && taken(l.f, slotByte+int64(slot)) {
			found = append(found, h)
		}
	}
	slices.SortFunc(found, func(a, b *kv.Holder) int {
		if a.Waits != b.Waits {
			if b.Waits {
				return -1
			}
			return 1
		}
		return a.Since.Compare(b.Since)
	})
	return found
}

// lineOf writes a program as JSON.
func lineOf(h *kv.Holder) []byte {
	line := strconv.AppendInt([]byte(`{"pid":`), int64(h.PID), 10)
	text := func(name, text string) {
		if text != "" {
			line = jsontree.AppendString(append(jsontree.AppendString(append(line, ','), name), ':'), text)
		}
	}
	text("command", h.Command)
	text("purpose", h.Purpose)
	text("since", h.Since.Format(time.RFC3339Nano))
	if h.Waits {
		line = append(line, `,"waits":true`...)
	}
	return append(line, '}')
}

// holderOf reads what lineOf wrote, or returns nil.
func holderOf(line []byte) *kv.Holder {
	v, err := jsontree.Parse(line)
	if err != nil || v.Kind != jsontree.Object {
		return nil
	}
	h := &kv.Holder{}
	for _, m := range v.Members {
		switch m.Name {
		case "pid":
			h.PID, err = strconv.Atoi(m.Value.Text)
		case "command":
			h.Command = m.Value.Text
		case "purpose":
			h.Purpose = m.Value.Text
		case "since":
			h.Since, err = time.Parse(time.RFC3339Nano, m.Value.Text)
		case "waits":
			h.Waits = m.Value.Text == "true"
		}
		if err != nil {
			return nil
		}
	}
	return h
}

// holder is this program, in a transaction that begins now.
func holder(p *patience) kv.Holder {
	return kv.Holder{PID: os.Getpid(), Command: command(), Purpose: engine.Purpose(p.ctx), Since: time.Now()}
}

// command is this program's name in lock files. It leaves out arguments, which may hold private text.
func command() string {
	name := filepath.Base(os.Args[0])
	if len(name) > 60 {
		name = name[:60]
	}
	return name
}
