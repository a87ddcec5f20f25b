package chatctx

import "github.com/chatctx/chatctx/branch"

// Expect makes the batch fail with ErrConflict where the branch is not at a revision any more when it is committed. It names no operation.
func (b *Batch) Expect(revision uint64) {
	b.steps = append(b.steps, func(t *txn) error {
		if t.target.Revision != revision {
			return conflict("the branch %q is at revision %d, not %d: read it again", t.target.Name, t.target.Revision, revision)
		}
		return nil
	})
}

// sameSessions reports whether the branch's sessions now are those that used was made from, so that used may take their place: nothing opened
// a session, moved one or pruned since.
func sameSessions(now, used []branch.Session) bool {
	if len(now) == 0 {
		return len(used) == 1 && used[0].Start <= 1
	}
	if len(now) != len(used) {
		return false
	}
	for i := range now {
		if now[i].ID != used[i].ID || now[i].Start != used[i].Start || now[i].PrunedTo > used[i].PrunedTo {
			return false
		}
	}
	return true
}
