package boltkv

import (
	"os"
	"slices"
	"sync"

	"github.com/chatctx/chatctx/chatctx/kv/internal/watch"
)

// file is a database file, shared by all handles of this process.
type file struct {
	path       string
	lease      *lease
	updates    updates
	sequential []string

	mu      sync.Mutex
	handles []*handle
	polling bool
	seen    version // what the last poll saw
}

// files lists the files that this process has open.
var files struct {
	sync.Mutex
	open []*file
}

// share gives h the file at path.
func share(h *handle, path string, o Options) {
	files.Lock()
	defer files.Unlock()
	i := slices.IndexFunc(files.open, func(f *file) bool { return f.is(path) })
	if i < 0 {
		i = len(files.open)
		files.open = append(files.open, &file{path: path, lease: newLease(path, o), sequential: o.Sequential})
	}
	h.file = files.open[i]
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	h.file.handles = append(h.file.handles, h)
}

// is reports whether path leads to this file, perhaps by another name.
func (f *file) is(path string) bool {
	if f.path == path {
		return true
	}
	mine, err := os.Stat(f.path)
	if err != nil {
		return false
	}
	other, err := os.Stat(path)
	return err == nil && os.SameFile(mine, other)
}

// unshare detaches h from its file; the last handle closes the file. With unwanted it also removes the lock file, if this process made it.
func unshare(h *handle, unwanted bool) {
	f := h.file
	files.Lock()
	f.mu.Lock()
	f.handles = slices.DeleteFunc(f.handles, func(other *handle) bool { return other == h })
	last := len(f.handles) == 0
	f.mu.Unlock()
	if last {
		files.open = slices.DeleteFunc(files.open, func(other *file) bool { return other == f })
	}
	files.Unlock()
	if last {
		f.lease.end(unwanted)
	}
}

// wrote tells the watchers of all handles which keys a commit changed.
func (f *file) wrote(keys []watch.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.handles {
		h.hub.Wrote(keys)
	}
}
