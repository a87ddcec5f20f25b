package boltkv

import (
	"os"
	"time"
)

// pollEvery is how often a watched file is checked for other processes' commits, which takes some 10 us.
const pollEvery = 120 * time.Millisecond

// version changes with every commit of any process.
type version struct {
	info os.FileInfo
	tx   uint64
}

func (v version) same(w version) bool {
	return v.tx == w.tx && v.info != nil && w.info != nil && os.SameFile(v.info, w.info)
}

// readVersion reads the file without a lock. A file that it cannot read just now counts as unchanged.
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

// startPolling checks the file for changes as long as it has watchers.
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

// pollOnce wakes all watchers after a change. It reports whether there are any.
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

// wakeAll wakes all watchers. The caller holds f.mu.
func (f *file) wakeAll() {
	for _, h := range f.handles {
		h.hub.All()
	}
}
