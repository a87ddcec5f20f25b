package journal

import (
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/pool"
)

// SetSessions gives a branch its sessions. ErrInvalid if they do not fit the history, or if the pool lacks a summary.
func (t *Txn) SetSessions(b *branch.Branch, sessions []branch.Session) error {
	if err := branch.CheckSessions(sessions); err != nil {
		return record.Invalidf("%v", err)
	}
	n := b.Len()
	for i := range sessions {
		s := &sessions[i]
		if s.Start > n+1 || s.PrunedTo > n || slices.ContainsFunc(s.Digests, func(d branch.Digest) bool { return d.To > n }) {
			return record.Invalidf("session %d names positions behind the end of the branch %q, which has %d messages", i+1, b.Name, n)
		}
		if s.Summary == (pool.ID{}) {
			continue
		}
		has, err := pool.Has(t.Tx, t.ID, s.Summary)
		if err == nil && !has {
			err = record.Invalidf("the summary %s of session %d is not in the pool: store it first, with PutLoose", s.Summary, i+1)
		}
		if err != nil {
			return err
		}
	}
	b.Sessions = slices.Clone(sessions)
	t.Touch(b)
	return nil
}

// SameSessions reports whether used, which was made from a branch's sessions, may replace its present ones: since then no session was opened, moved or
// pruned.
func SameSessions(now, used []branch.Session) bool {
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

// sessionsUpTo returns the sessions of a fork with the first n messages: nothing after these is pruned or in a digest.
func sessionsUpTo(sessions []branch.Session, n int) []branch.Session {
	var out []branch.Session
	for _, s := range sessions {
		if s.Start > n+1 {
			continue
		}
		s.PrunedTo = min(s.PrunedTo, n)
		s.Digests = digestsUpTo(s.Digests, n)
		out = append(out, s)
	}
	return out
}

// digestsUpTo returns the digests that cover no message after a position.
func digestsUpTo(digests []branch.Digest, position int) []branch.Digest {
	return slices.DeleteFunc(slices.Clone(digests), func(d branch.Digest) bool { return d.To > position })
}
