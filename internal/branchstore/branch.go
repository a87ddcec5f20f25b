package branchstore

import (
	"fmt"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/pool"
)

// pieceLen returns the number of entries.
func pieceLen(p branch.Piece) int { return int(p.To - p.From) }

// Current returns the index of the session in which a branch is, -1 if it has none. A session that a provider began is only that of requests to this provider.
func Current(sessions []branch.Session) int {
	for i, s := range slices.Backward(sessions) {
		if s.Provider == "" {
			return i
		}
	}
	return -1
}

// CurrentFor returns the index of the session with which a request begins whose model can read the sessions of a provider that ours accepts: the newest of them,
// if it is newer than the one for anybody.
func CurrentFor(sessions []branch.Session, ours func(s *branch.Session) bool) int {
	own := Current(sessions)
	for i := len(sessions) - 1; i > own; i-- {
		if ours(&sessions[i]) {
			return i
		}
	}
	return own
}

// FirstWith returns the index of the session that a summary was made for: those that resume it, or an earlier one, begin with it too.
func FirstWith(sessions []branch.Session, summary pool.ID) int {
	return slices.IndexFunc(sessions, func(o branch.Session) bool { return o.Summary == summary })
}

// Covered returns the messages before a session's start of which its summary tells, and those after them up to its start that do not go to the model at all,
// each as the position of the last one, 0 for none. i is the session's index.
func Covered(sessions []branch.Session, i int) (summarised, gone int) {
	if i < 0 {
		return 0, 0
	}
	s := &sessions[i]
	if s.Summary != (pool.ID{}) {
		summarised = min(sessions[FirstWith(sessions, s.Summary)].Start, s.Start) - 1
	}
	if s.Start-1 > summarised {
		gone = s.Start - 1
	}
	return summarised, gone
}

// IsWritten reports whether somebody wrote the text of a digest that was asked for. Such a text outlives a compaction.
func IsWritten(d *branch.Digest) bool {
	return d.Kept && (d.By == "text" || d.By == "" && d.Message == pool.ID{})
}

// CheckSessions refuses sessions with positions that no history has. They need not be sorted by Start: a resumed session begins at 1 again.
func CheckSessions(sessions []branch.Session) error {
	for i := range sessions {
		s := &sessions[i]
		if s.Start < 0 || s.PrunedTo < 0 {
			return fmt.Errorf("session %d begins at position %d and is pruned to %d: neither may be negative", i+1, s.Start, s.PrunedTo)
		}
		for _, d := range s.Digests {
			if d.From < 1 || d.To < d.From {
				return fmt.Errorf("session %d has a digest of the positions %d to %d: the first must be 1 or more, and not behind the last", i+1, d.From, d.To)
			}
		}
		for k, at := range s.Apart {
			if at < 1 || at >= s.Start || k > 0 && at <= s.Apart[k-1] {
				return fmt.Errorf("session %d begins at position %d and sends the messages at %d before it: they must stand there, and be in order", i+1, s.Start, s.Apart)
			}
		}
	}
	return nil
}

// Copy returns a branch that shares nothing with b that may change.
func Copy(b *branch.Branch) *branch.Branch {
	c := *b
	c.Ended = branch.End{}
	c.Pieces, c.Sessions = slices.Clone(b.Pieces), slices.Clone(b.Sessions)
	c.Settings, c.AppData = maps.Clone(b.Settings), maps.Clone(b.AppData)
	for i := range c.Sessions {
		s := &c.Sessions[i]
		s.Digests, s.Data = slices.Clone(s.Digests), maps.Clone(s.Data)
		s.Apart = slices.Clone(s.Apart)
	}
	if b.Tokens != nil {
		tokens := *b.Tokens
		c.Tokens = &tokens
	}
	return &c
}

// Len returns the number of messages on the branch.
func Len(b *branch.Branch) int {
	n := 0
	for _, p := range b.Pieces {
		n += pieceLen(p)
	}
	return n
}
