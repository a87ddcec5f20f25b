package boltkv

import (
	"os"
	"time"
)

// pollEvery is how often a file with watchers is looked at for other processes' commits: some 10 us of work each time.
const pollEvery = 120 * time.Millisecond

// version changes with every commit of whatever process.
type version struct {
	info os.FileInfo
	tx   uint64
}

func (v version) same(w version) bool {
	return v.tx == w.tx && v.info != nil && w.info != nil && os.SameFile(v.info, w.info)
}

// readVersion looks at the file without any lock. What cannot be read just now has not changed.
func readVersion(path string, before version) version {
	f, err := os.Open(path)
	if err != nil {
		return before
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return before
	}
	m, err := readMeta(f)
	if err != nil {
		return before
	}
	return version{info, m.tx}
}

// startPolling has the file looked at for as long as somebody watches it.
func (f *file) startPolling() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.polling {
		return
	}
	f.polling = true
	f.seen = readVersion(f.path, version{})
	go f.poll()
}

func (f *file) poll() {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for range tick.C {
		if !f.pollOnce() {
			return
		}
	}
}

// pollOnce wakes all watchers after a change, and says whether there are any.
func (f *file) pollOnce() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	watchers := 0
	for _, h := range f.handles {
		watchers += h.hub.Len()
	}
	if watchers == 0 {
		f.polling = false
		return false
	}
	now := readVersion(f.path, f.seen)
	if !now.same(f.seen) {
		f.seen = now
		f.wakeAll()
	}
	return true
}

// wakeAll wakes all watchers. f.mu is held.
func (f *file) wakeAll() {
	for _, h := range f.handles {
		h.hub.All()
	}
}
