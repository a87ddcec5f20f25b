package journal

import (
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// SetSessions gives a branch its sessions. ErrInvalid if they do not fit the history, or if the pool lacks a summary.
func (t *Txn) SetSessions(b *branch.Branch, sessions []branch.Session) error {
	if err := branchstore.CheckSessions(sessions); err != nil {
		return base.Invalidf("%v", err)
	}
	n := branchstore.Len(b)
	for i := range sessions {
		s := &sessions[i]
		if s.Start > n+1 || s.PrunedTo > n || slices.ContainsFunc(s.Digests, func(d branch.Digest) bool { return d.To > n }) {
			return base.Invalidf("session %d names positions behind the end of the branch %q, which has %d messages", i+1, b.Name, n)
		}
		if s.Summary == (pool.ID{}) {
			continue
		}
		has, err := poolstore.Has(t.Tx, t.ID, s.Summary)
		if err == nil && !has {
			err = base.Invalidf("the summary %s of session %d is not in the pool: store it first, with PutLoose", s.Summary, i+1)
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

// moveSessions makes a branch's sessions agree with a change of its history, and notes the summaries that no longer stand.
func (t *Txn) moveSessions(b *branch.Branch, at, removed, inserted int) {
	was := b.Sessions
	b.Sessions = sessionsAfter(was, at, removed, inserted, branchstore.Len(b))
	t.noteEnded(b.Name, was, b.Sessions)
}

// Ending returns the summaries that would no longer stand if the messages at positions, in order, left a branch of length messages.
func Ending(name string, sessions []branch.Session, length int, positions []int) []record.SummaryChange {
	t := &Txn{}
	for _, at := range slices.Backward(positions) {
		length--
		left := sessionsAfter(sessions, at-1, 1, 0, length)
		t.noteEnded(name, sessions, left)
		sessions = left
	}
	return t.summaries
}

// noteEnded notes the summaries of sessions, as they were, of which none is left.
func (t *Txn) noteEnded(name string, was, left []branch.Session) {
	for i := max(branchstore.Current(was), 0); i < len(was); i++ {
		n := slices.IndexFunc(left, func(s branch.Session) bool { return s.ID == was[i].ID })
		if n < 0 {
			told, _ := branchstore.Covered(was, i)
			t.noteSummary(record.SummaryChange{Branch: name, From: 1, To: told, Provider: was[i].Provider})
			continue
		}
		for _, d := range was[i].Digests {
			if d.Kept && !slices.ContainsFunc(left[n].Digests, func(o branch.Digest) bool { return o.Of == d.Of }) {
				t.noteSummary(record.SummaryChange{Branch: name, From: d.From, To: d.To})
			}
		}
	}
}

// noteSummary notes what becomes of a summary, unless a note says it that was made before.
func (t *Txn) noteSummary(n record.SummaryChange) {
	known := func(c record.SummaryChange) bool {
		return c.Branch == n.Branch && c.Provider == n.Provider && c.From <= n.From && n.To <= c.To
	}
	if n.From <= n.To && !slices.ContainsFunc(t.summaries, known) {
		t.summaries = append(t.summaries, n)
	}
}

// Marked notes what a new mark of the message at a position of a branch, 0 for none, means for the branch's summaries. The summary of a session goes on telling of
// an excluded message, also a provider's own; that of a range no longer stands, whatever the mark.
func (t *Txn) Marked(b *branch.Branch, position int, excluded bool) {
	own := branchstore.Current(b.Sessions)
	if position == 0 {
		return
	}
	for i := max(own, 0); i < len(b.Sessions); i++ {
		s := &b.Sessions[i]
		if told, _ := branchstore.Covered(b.Sessions, i); excluded && position <= told && !slices.Contains(s.Apart, position) {
			t.noteSummary(record.SummaryChange{Branch: b.Name, From: 1, To: told, Stands: true, Provider: s.Provider})
		}
		for _, d := range s.Digests {
			if i == own && d.Kept && d.From <= position && position <= d.To {
				t.noteSummary(record.SummaryChange{Branch: b.Name, From: d.From, To: d.To})
			}
		}
	}
}

// sessionsAfter returns the sessions of a history that was changed at the place at (from 0) and has length messages now. A summary stands only for messages that the branch holds, so a session ends with any change of what its summary tells of; so does one of which no
// message is left. The other sessions stay at their messages.
func sessionsAfter(sessions []branch.Session, at, removed, inserted, length int) (kept []branch.Session) {
	if removed == 0 && at+inserted == length {
		return sessions // the history grew
	}
	for i := range sessions {
		s := sessions[i]
		told, _ := branchstore.Covered(sessions, i)
		if at < told || at+inserted == length && length < s.Start {
			continue
		}
		if s.Start > at+1 {
			s.Start = max(at+1, s.Start-removed) + inserted
		}
		s.PrunedTo = lastAfter(s.PrunedTo, at, removed, inserted)
		s.Digests = digestsAfter(s.Digests, at, removed, inserted)
		kept = append(kept, s)
	}
	return kept
}

// lastAfter returns where the last position of a range is after a change: before what was removed if it was among that.
func lastAfter(position, at, removed, inserted int) int {
	switch {
	case position <= at:
		return position
	case position <= at+removed:
		return at
	}
	return position - removed + inserted
}

// digestsAfter returns the digests that stand for what they stood for before a change. Those that somebody asked for move with their messages; others that
// stood behind the change are made anew when there is need.
func digestsAfter(digests []branch.Digest, at, removed, inserted int) []branch.Digest {
	var out []branch.Digest
	for _, d := range digests {
		switch {
		case d.To <= at:
			out = append(out, d)
		case d.Kept && d.From > at+removed:
			d.From, d.To = d.From-removed+inserted, d.To-removed+inserted
			out = append(out, d)
		}
	}
	return out
}
