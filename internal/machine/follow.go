// Package machine finds what the programs of this machine keep, and imports it while they write it. It opens no file to find one.
package machine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange"
)

// Follower imports what other programs write while they write it. It imports a message when its program marks it finished, when another one follows, or when
// its file was unchanged for a while. It writes and locks nothing except the store. It is not safe for concurrent use.
type Follower struct {
	Store   *chatctx.Store
	Options exchange.Options
	Now     func() time.Time                      // nil means time.Now
	Report  func(path string, r *exchange.Report) // called with the result of a file if there is any; nil means never

	files map[string]*followed
}

// followed is a file that was written to.
type followed struct {
	changed time.Time // the last time
	next    time.Time // when to read it again
	dirty   bool      // it was written to since the last reading
}

// Pause is the shortest time between two readings of a file: it grows with the time that a reading takes.
const Pause = time.Second

func (f *Follower) now() time.Time {
	if f.Now == nil {
		return time.Now()
	}
	return f.Now()
}

// Changed says that a file was written to. The log of a database counts as the database.
func (f *Follower) Changed(path string) {
	for _, ending := range []string{"-wal", "-shm", "-journal"} {
		path = strings.TrimSuffix(path, ending)
	}
	if f.files == nil {
		f.files = map[string]*followed{}
	}
	now := f.now()
	file := f.files[path]
	if file == nil {
		file = &followed{next: now.Add(Pause)}
		f.files[path] = file
	}
	file.changed, file.dirty = now, true
}

// Due returns when Take has something to do; waiting is false if no file waits.
func (f *Follower) Due() (at time.Time, waiting bool) {
	for _, file := range f.files {
		t := file.changed.Add(exchange.Still)
		if file.dirty && file.next.Before(t) {
			t = file.next
		}
		if !waiting || t.Before(at) {
			at, waiting = t, true
		}
	}
	return at, waiting
}

// Take imports what is due: the finished part of files that are being written to, and all of those that are still. Its errors are those of Import.
func (f *Follower) Take(ctx context.Context) error {
	var due []string
	for path := range f.files {
		due = append(due, path)
	}
	slices.Sort(due)
	for _, path := range due {
		file, now := f.files[path], f.now()
		still := now.Sub(file.changed) >= exchange.Still
		if !still && (!file.dirty || now.Before(file.next)) {
			continue
		}
		o := f.Options
		o.Finished = !still
		file.dirty = false
		rep, err := exchange.Import(ctx, f.Store, []string{path}, o)
		if err != nil {
			return err
		}
		if rep.Files > 0 && (rep.Changed() || rep.Purged > 0) && f.Report != nil {
			f.Report(path, rep)
		}
		if still {
			delete(f.files, path)
		}
		file.next = f.now().Add(max(Pause, 20*f.now().Sub(now)))
	}
	return nil
}
