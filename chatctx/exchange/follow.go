package exchange

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// Still is how long a file is not written to before all that is in it counts as finished.
const Still = 10 * time.Second

// Follower takes in what other programs write while they write it. A message is taken when its program marks it finished, when another follows it,
// or when its file was still for a while. Nothing is written or locked beside the store. It is used by one goroutine.
type Follower struct {
	Store   *chatctx.Store
	Options Options
	Now     func() time.Time             // nil: time.Now
	Report  func(path string, r *Report) // what came of a file; called where that is something. nil: not at all

	files map[string]*followed
}

// followed is a file that was written to.
type followed struct {
	changed time.Time // the last time
	next    time.Time // when to look into it again
	dirty   bool      // it was written to since it was looked into
}

// pause is how long a file is left alone between two looks, at least: it grows with how long a look takes.
const pause = time.Second

func (f *Follower) now() time.Time {
	if f.Now == nil {
		return time.Now()
	}
	return f.Now()
}

// Changed tells that a file was written to. The log of a database stands for the database.
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

// Due is when Take has something to do; false where nothing waits.
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

// Take imports what is due: of files that are written to what is finished in them, of those that are still all. Its error is one of Import's.
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
		if rep.Files > 0 && rep.Contexts > 0 && f.Report != nil {
			f.Report(path, rep)
		}
		if still {
			delete(f.files, path)
		}
		file.next = f.now().Add(max(pause, 20*f.now().Sub(now)))
	}
	return nil
}

// finishedOnly leaves the ends of a conversation out that may still be written: the answers with nothing after them that no program marked as
// finished. It tells whether there were any.
func finishedOnly(in *chatctx.Incoming) bool {
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
	number := make([]int, len(in.Nodes)+1) // of a node among those that stay, or of the one above it
	var nodes []chatctx.Node
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
	in.Branches = slices.DeleteFunc(in.Branches, func(b chatctx.IncomingBranch) bool {
		twice := seen[b.Leaf]
		seen[b.Leaf] = true
		return twice
	})
	return true
}
