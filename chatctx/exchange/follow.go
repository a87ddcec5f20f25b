package exchange

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Still is how long a file must be unchanged before everything in it counts as finished.
const Still = 10 * time.Second

// Follower imports what other programs write while they write it. It imports a message when its program marks it finished, when another one follows, or when
// its file was unchanged for a while. It writes and locks nothing except the store. It is not safe for concurrent use.
type Follower struct {
	Store   *chatctx.Store
	Options Options
	Now     func() time.Time             // nil means time.Now
	Report  func(path string, r *Report) // called with the result of a file if there is any; nil means never

	files map[string]*followed
}

// followed is a file that was written to.
type followed struct {
	changed time.Time // the last time
	next    time.Time // when to read it again
	dirty   bool      // it was written to since the last reading
}

// pause is the shortest time between two readings of a file: it grows with the time that a reading takes.
const pause = time.Second

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
		file = &followed{next: now.Add(pause)}
		f.files[path] = file
	}
	file.changed, file.dirty = now, true
}

// Due returns when Take has something to do; waiting is false if no file waits.
func (f *Follower) Due() (at time.Time, waiting bool) {
	for _, file := range f.files {
		t := file.changed.Add(Still)
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
		still := now.Sub(file.changed) >= Still
		if !still && (!file.dirty || now.Before(file.next)) {
			continue
		}
		o := f.Options
		o.finished = !still
		file.dirty = false
		rep, err := Import(ctx, f.Store, []string{path}, o)
		if err != nil {
			return err
		}
		if rep.Files > 0 && (rep.Changed() || rep.Purged > 0) && f.Report != nil {
			f.Report(path, rep)
		}
		if still {
			delete(f.files, path)
		}
		file.next = f.now().Add(max(pause, 20*f.now().Sub(now)))
	}
	return nil
}

// finishedOnly removes the ends of a conversation that may still be written: answers with nothing after them that no program marked as finished. It reports
// whether there were any.
func finishedOnly(in *record.Incoming) bool {
	hasMore := make([]bool, len(in.Nodes))
	keep := make([]bool, len(in.Nodes))
	for i := len(in.Nodes) - 1; i >= 0; i-- {
		n := in.Nodes[i]
		m := n.Message
		keep[i] = hasMore[i] || m.Role != pool.Assistant || m.Meta.FinishReason != "" && !m.Unfinished
		if keep[i] && n.Parent > 0 {
			hasMore[n.Parent-1] = true
		}
	}
	if !slices.Contains(keep, false) {
		return false
	}
	number := make([]int, len(in.Nodes)+1) // the number of a node among those that stay, or that of the one above it
	var nodes []record.Node
	for i, n := range in.Nodes {
		n.Parent = number[n.Parent]
		if number[i+1] = n.Parent; keep[i] {
			nodes = append(nodes, n)
			number[i+1] = len(nodes)
		}
	}
	in.Nodes = nodes
	for i := range in.Branches {
		in.Branches[i].Leaf = number[in.Branches[i].Leaf]
	}
	for name, n := range in.Tags {
		if in.Tags[name] = number[n]; !keep[n-1] {
			delete(in.Tags, name)
		}
	}
	seen := map[int]bool{}
	in.Branches = slices.DeleteFunc(in.Branches, func(b record.IncomingBranch) bool {
		twice := seen[b.Leaf]
		seen[b.Leaf] = true
		return twice
	})
	return true
}
