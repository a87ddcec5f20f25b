package window

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// History returns an Enhancer that puts digests in place of old blocks if the draft does not fit. The last Options.KeepBlocks blocks stay unchanged, as far as
// they take a quarter of the limit, and up to as many more, since the boundary moves by that many blocks at a time. A digest is a user message of kind digest
// that begins with HistoryMark and holds requests, identifiers, addresses, constraints, status codes, errors, decisions, uses of tools and outcomes. If all digests together are over
// Options.DigestTokens tokens, they are merged into one. The draft's session keeps them, with the positions that they stand for.
func History(w *Window, o Options) enhancer.Enhancer {
	return enhancer.Func("history", func(ctx context.Context, d *chatctx.Draft) error {
		if err := w.Measure(ctx, d); err != nil || w.Over(d) == 0 {
			return err
		}
		s := steps{w: w, d: d, o: o}
		s.digest(s.keptBlocks())
		return nil
	})
}

// digest puts digests in place of all blocks except the newest keep. They stand for the messages that
// were trimmed, too: a trim lasts, so without those a digest would not match its messages again.
func (s *steps) digest(keep int) {
	s.untrim()
	if made := s.makeDigests(keep); len(made) > 0 {
		s.put(made)
	}
	s.trimTo(s.marked(trimMark))
}

// put adds digests to the session's, and puts them all in place of their messages.
func (s *steps) put(made []branch.Digest) {
	// Digests that no longer match their messages were not put in, so they are dropped.
	old := slices.DeleteFunc(slices.Clone(s.d.Session.Digests), func(g branch.Digest) bool { return s.w.behind[g.Of] == nil })
	s.expand()
	s.d.Session.Digests = s.capDigests(inOrder(append(old, made...)))
	s.digests()
}

// historyEnd returns the index up to which digests replace blocks now.
func (s *steps) historyEnd(blocks []Block, may []bool, keep int) int {
	n := max(0, len(blocks)-keep) / keep * keep
	if n == 0 {
		n = max(0, len(blocks)-keep) // there are fewer blocks than a jump, so go as far as allowed
	}
	if n == 0 {
		return 0
	}
	end := blocks[n-1].To
	for end > 0 && !may[end] {
		end--
	}
	return end
}

// makeDigests returns a digest for each old block with anything to leave out.
func (s *steps) makeDigests(keep int) []branch.Digest {
	l, blocks := layoutOf(s.d.Messages), Blocks(s.d.Messages)
	end := s.historyEnd(blocks, l.may, keep)
	var out []branch.Digest
	for _, b := range joinBlocks(blocks, l.may, end) {
		var gone []*chatctx.DraftMessage
		put := func() {
			if len(gone) > 0 {
				out = append(out, branch.Digest{From: gone[0].Position, To: gone[len(gone)-1].Position,
					Text: gather(gone, s.d.Messages[end:], s.w.wholeOf).within(s.w.Counter, s.o.DigestTokens), Of: hashOf(gone)})
				gone = nil
			}
		}
		for i := b.From; i < b.To; i++ {
			switch m := s.d.Messages[i]; {
			case s.w.byDigest[m.ID] != nil:
				put() // digests do not overlap
			case !l.stay[i] && m.Position > 0:
				gone = append(gone, m)
			}
		}
		put()
	}
	return out
}

func inOrder(digests []branch.Digest) []branch.Digest {
	slices.SortStableFunc(digests, func(a, b branch.Digest) int { return a.From - b.From })
	return digests
}

// factsBlocks is how many digests are made at most before they are merged: the oldest blocks of a long history share one.
const factsBlocks = 8

// joinBlocks returns the blocks before an index. It joins blocks if a call crosses their boundary, and the first ones if there are more than factsBlocks.
func joinBlocks(blocks []Block, may []bool, end int) []Block {
	n := 0
	for n < len(blocks) && blocks[n].From < end {
		n++
	}
	blocks = blocks[:n]
	var out []Block
	for i, b := range blocks {
		b.To = min(b.To, end)
		if k := len(out); k > 0 && (!may[b.From] || k == 1 && i < n-factsBlocks) {
			out[k-1].To = b.To
			continue
		}
		out = append(out, b)
	}
	return out
}

// hashOf returns a hash of the messages' ids.
func hashOf(messages []*chatctx.DraftMessage) pool.Hash {
	h := sha256.New()
	for _, m := range messages {
		h.Write(m.ID[:])
	}
	return pool.Hash(h.Sum(nil))
}

// capDigests merges digests into one if together they are over the cap. Those that a person asked for stay unchanged, and only digests between two of them are
// merged.
func (s *steps) capDigests(all []branch.Digest) []branch.Digest {
	var out []branch.Digest
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(g branch.Digest) bool { return g.Kept })
		if n < 0 {
			n = len(all)
		}
		out = append(out, s.capped(all[:n])...)
		if n < len(all) {
			out = append(out, all[n])
			n++
		}
		all = all[n:]
	}
	return out
}

func (s *steps) capped(all []branch.Digest) []branch.Digest {
	sum := 0
	for i := range all {
		sum += s.w.Counter.Text(all[i].Text)
	}
	if sum <= s.o.DigestTokens || len(all) < 2 {
		return all
	}
	f := parseDigest(all[0].Text)
	for _, g := range all[1:] {
		f.merge(parseDigest(g.Text))
	}
	one := branch.Digest{From: all[0].From, To: all[len(all)-1].To, Text: f.within(s.w.Counter, s.o.DigestTokens)}
	one.Of = hashOf(s.standFor([]branch.Digest{one})[0])
	return []branch.Digest{one}
}

// expand puts the messages behind the digests back in place.
func (s *steps) expand() {
	var out []*chatctx.DraftMessage
	for _, m := range s.d.Messages {
		behind, ok := s.w.byDigest[m.ID]
		if !ok {
			out = append(out, m)
			continue
		}
		for _, old := range behind {
			old.State, old.Step = enhancer.In, ""
		}
		out = append(out, behind...)
	}
	slices.SortStableFunc(out, byPosition)
	s.d.Messages = out
}

// byPosition orders messages by position; one without a position stays after the one before it. It is used on lists that are in order except for runs with
// pinned messages between.
func byPosition(a, b *chatctx.DraftMessage) int {
	if a.Position == 0 || b.Position == 0 {
		return 0
	}
	return a.Position - b.Position
}

// standFor returns for each digest the messages of the draft that it stands for. Digests must be in the order of the conversation and must not overlap.
func (s *steps) standFor(digests []branch.Digest) [][]*chatctx.DraftMessage {
	out := make([][]*chatctx.DraftMessage, len(digests))
	if len(digests) == 0 {
		return out
	}
	stay, g := layoutOf(s.d.Messages).stay, 0
	for i, m := range s.d.Messages {
		for g < len(digests) && m.Position > digests[g].To {
			g++
		}
		if g < len(digests) && m.Position >= digests[g].From && !stay[i] {
			out[g] = append(out[g], m)
		}
	}
	return out
}

// digests puts the session's digests in place of the messages that they stand for. It skips a digest whose messages have changed, and one that stands for the
// last message, since the history was rewound to there.
func (s *steps) digests() {
	digests := s.d.Session.Digests
	behind := s.standFor(digests)
	kept := make([]*chatctx.DraftMessage, 0, len(s.d.Messages))
	g, next := 0, 0 // the current digest, and the index of its next message
	var last *chatctx.DraftMessage
	resumed := numberIn(&s.d.Session, resumedKey)
	if n := len(s.d.Messages); n > 0 {
		last = s.d.Messages[n-1]
	}
	for _, m := range s.d.Messages {
		for g < len(digests) && next == len(behind[g]) {
			g, next = g+1, 0
		}
		if g == len(digests) || m != behind[g][next] {
			kept = append(kept, m)
			continue
		}
		if next == 0 {
			if hashOf(behind[g]) != digests[g].Of || behind[g][len(behind[g])-1] == last && digests[g].To != resumed {
				behind[g] = nil
				kept = append(kept, m)
				continue
			}
			kept = append(kept, s.digestMessage(&digests[g], behind[g]))
		}
		next++
	}
	s.d.Messages = kept
}

// digestMessage returns the message of a digest, and notes what became of the messages that it stands for.
func (s *steps) digestMessage(g *branch.Digest, behind []*chatctx.DraftMessage) *chatctx.DraftMessage {
	m := made("digest", g.Text)
	m.ID = idOf("digest", string(g.Of[:]), g.Text)
	m.Step = "history"
	m.Tokens = tokens.PerMessage + s.w.Counter.Text(g.Text)
	s.w.remember(g.Of, m.ID, behind)
	s.d.Notes = slices.Grow(s.d.Notes, len(behind))
	what := fmt.Sprintf("in the digest of the messages %d to %d", g.From, g.To)
	for _, old := range behind {
		note(s.d, "history", old, enhancer.Digested, what, old.Tokens)
	}
	return m
}
