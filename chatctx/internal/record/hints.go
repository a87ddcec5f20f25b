package record

import (
	"sync"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Hints are what this process knows since its last change of a branch of a server's store: the records that the next one leads to, so that a change by ids asks for all of
// them at once, and where the branch's segment ended. They decide nothing: where another process was there meanwhile, what they name is read in vain.
type Hints struct {
	mu   sync.Mutex
	of   map[hinted][]kv.Key
	ends map[pool.ID]branch.End
}

// hinted is a branch as it was named, "" for the active one.
type hinted struct {
	context pool.ID
	branch  string
}

// mostHints bounds how many branches are remembered.
const mostHints = 4096

// Keys are those that were noted last, for kv.Fetch.
func (h *Hints) Keys(context pool.ID, name string) []kv.Key {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of[hinted{context, name}]
}

// End is where the segment of a branch ended.
func (h *Hints) End(branchID pool.ID) branch.End {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ends[branchID]
}

// Note remembers a branch as a change has left it.
func (h *Hints) Note(context pool.ID, name string, b *branch.Branch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil || len(h.of) >= mostHints {
		h.of, h.ends = map[hinted][]kv.Key{}, map[pool.ID]branch.End{}
	}
	end := b.End()
	h.ends[b.ID] = end
	h.of[hinted{context, name}] = branch.WriteKeys(context, b, end == branch.End{})
}
