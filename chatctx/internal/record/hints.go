package record

import (
	"sync"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Hints are the records that the last change of a branch by this process leads the next one to, so that a change by ids asks a server for all of them at once. They decide
// nothing: where another process was there meanwhile, what they name is read in vain.
type Hints struct {
	mu sync.Mutex
	of map[hinted][]kv.Key
}

// hinted is a branch as it was named, "" for the active one.
type hinted struct {
	context pool.ID
	branch  string
}

// mostHints bounds how many branches are remembered.
const mostHints = 4096

// Keys are those that were noted last, for kv.Fetch.
func (h *Hints) Keys(context pool.ID, branch string) []kv.Key {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of[hinted{context, branch}]
}

// Note remembers keys for the next time.
func (h *Hints) Note(context pool.ID, branch string, keys []kv.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil || len(h.of) >= mostHints {
		h.of = map[hinted][]kv.Key{}
	}
	h.of[hinted{context, branch}] = keys
}
