package journal

import (
	"slices"

	"github.com/chatctx/chatctx/branch"
)

// SameSessions reports whether the branch's sessions now are those that used was made from, so that used may take their place: nothing opened
// a session, moved one or pruned since.
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

// sessionsUpTo are the sessions that a branch has which holds the first n messages of another: what comes after is not pruned and in no digest.
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

// digestsUpTo are the digests of messages of which none is after a position.
func digestsUpTo(digests []branch.Digest, position int) []branch.Digest {
	return slices.DeleteFunc(slices.Clone(digests), func(d branch.Digest) bool { return d.To > position })
}
