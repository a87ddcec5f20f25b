package chatctx

import (
	"github.com/chatctx/chatctx/chatctx/internal/journal"
)

// Expect makes the batch fail with ErrConflict where the branch is not at a revision any more when it is committed. It names no operation.
func (b *Batch) Expect(revision uint64) {
	b.steps = append(b.steps, func(t *journal.Txn) error { return t.Expect(&revision) })
}
