package journal

import (
	"slices"

	"github.com/chatctx/chatctx/branch"
)

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
