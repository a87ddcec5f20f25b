package base

import (
	"sync"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/pool"
)

// Hints has what this process knows from its last changes: the records that it wrote, and of a branch on a server the keys of records that the next change
// will read, so that it can fetch all at once, and where the branch's segment ended. Hints never decide anything: if another process was there meanwhile,
// some reads are wasted.
type Hints struct {
	mu   sync.Mutex
	of   map[hinted][]kv.Key
	ends map[pool.ID]branch.End

	Contexts Lately[*ContextRecord]
	Branches Lately[*branch.Branch]
}

// hinted is a branch by the name that was used, "" for the active one.
type hinted struct {
	context pool.ID
	branch  string
}

// mostHints bounds how many branches are remembered.
const mostHints = 4096

// Keys returns the keys noted last, for kv.Fetch.
func (h *Hints) Keys(context pool.ID, name string) []kv.Key {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of[hinted{context, name}]
}

// End returns where the segment of a branch ended.
func (h *Hints) End(branchID pool.ID) branch.End {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ends[branchID]
}

// Note remembers a branch as a change left it.
func (h *Hints) Note(context pool.ID, name string, b *branch.Branch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil || len(h.of) >= mostHints {
		h.of, h.ends = map[hinted][]kv.Key{}, map[pool.ID]branch.End{}
	}
	end := branchstore.EndOf(b)
	h.ends[b.ID] = end
	h.of[hinted{context, name}] = branchstore.WriteKeys(context, b, end == branch.End{})
}
