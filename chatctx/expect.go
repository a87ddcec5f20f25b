package chatctx

// Expect makes the batch fail with ErrConflict where the branch is not at a revision any more when it is committed. It names no operation.
func (b *Batch) Expect(revision uint64) {
	b.steps = append(b.steps, func(t *txn) error {
		if t.target.Revision != revision {
			return conflict("the branch %q is at revision %d, not %d: read it again", t.target.Name, t.target.Revision, revision)
		}
		return nil
	})
}
