package enhancer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer/tokens"
	"github.com/chatctx/chatctx/pool"
)

// History puts digests in place of old blocks where the draft does not fit. At least the last Options.KeepBlocks blocks stay as they are, and up to as many more: the
// boundary moves by that many blocks at a time. A digest is a user message of kind digest that begins with HistoryMark and holds what was asked, identifiers, addresses,
// constraints, status codes, errors, decisions, uses of tools and outcomes. All digests together are of at most Options.DigestTokens tokens; over that they are
// merged into one. They stay in the draft's session, with the positions that they stand for.
func History(w *Window, o Options) Enhancer {
	return Func("history", func(ctx context.Context, d *chatctx.Draft) error {
		if err := w.Measure(ctx, d); err != nil || w.Over(d) == 0 {
			return err
		}
		s := steps{w: w, d: d, o: o}
		made := s.makeDigests(s.historyEnd())
		if len(made) == 0 {
			return nil
		}
		// Digests whose messages have changed since were not put in: they are dropped.
		old := slices.DeleteFunc(slices.Clone(d.Session.Digests), func(g branch.Digest) bool { return w.behind[g.Of] == nil })
		s.expand()
		d.Session.Digests = s.capDigests(append(old, made...))
		s.digests()
		return nil
	})
}

// historyEnd is the index up to which blocks give way now.
func (s *steps) historyEnd() int {
	blocks, may := Blocks(s.d.Messages), cuts(s.d.Messages)
	keep := max(1, s.o.KeepBlocks)
	n := max(0, len(blocks)-keep) / keep * keep
	if n == 0 {
		n = max(0, len(blocks)-keep) // fewer blocks than a jump: as far as allowed
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

// makeDigests makes a digest for each block before an index that holds anything to leave out.
func (s *steps) makeDigests(end int) []branch.Digest {
	stay := fixed(s.d.Messages)
	var out []branch.Digest
	for _, b := range joinBlocks(Blocks(s.d.Messages[:end]), cuts(s.d.Messages), factsBlocks) {
		var gone []*chatctx.DraftMessage
		for i := b.From; i < b.To; i++ {
			if m := s.d.Messages[i]; !stay[i] && m.Position > 0 {
				gone = append(gone, m)
			}
		}
		if len(gone) == 0 {
			continue
		}
		out = append(out, branch.Digest{From: gone[0].Position, To: gone[len(gone)-1].Position,
			Text: gather(gone).within(s.w.Counter, s.o.DigestTokens), Of: hashOf(gone)})
	}
	return out
}

// factsBlocks is how many digests are made at most before they are merged: of a long history the older blocks share one.
const factsBlocks = 16

// joinBlocks joins blocks whose boundary a call crosses, and the first ones where there are more than most.
func joinBlocks(blocks []Block, may []bool, most int) []Block {
	var out []Block
	for _, b := range blocks {
		if n := len(out); n > 0 && (!may[b.From] || n == 1 && len(blocks) > most && b.From < blocks[len(blocks)-most].From) {
			out[n-1].To = b.To
			continue
		}
		out = append(out, b)
	}
	return out
}

// hashOf names messages by their ids.
func hashOf(messages []*chatctx.DraftMessage) pool.Hash {
	h := sha256.New()
	for _, m := range messages {
		h.Write(m.ID[:])
	}
	return pool.Hash(h.Sum(nil))
}

// capDigests merges digests into one where they are together over the cap.
func (s *steps) capDigests(all []branch.Digest) []branch.Digest {
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
	one.Of = hashOf(s.standsFor(&one))
	return []branch.Digest{one}
}

// standsFor are the messages of the draft that a digest stands for.
func (s *steps) standsFor(g *branch.Digest) []*chatctx.DraftMessage {
	stay := fixed(s.d.Messages)
	var out []*chatctx.DraftMessage
	for i, m := range s.d.Messages {
		if m.Position >= g.From && m.Position <= g.To && m.Position > 0 && !stay[i] {
			out = append(out, m)
		}
	}
	return out
}

// expand puts the messages behind the digests back in their place.
func (s *steps) expand() {
	var out []*chatctx.DraftMessage
	for _, m := range s.d.Messages {
		behind, ok := s.w.byDigest[m.ID]
		if !ok {
			out = append(out, m)
			continue
		}
		for _, old := range behind {
			old.State, old.Step = In, ""
		}
		out = append(out, behind...)
	}
	slices.SortStableFunc(out, byPosition)
	s.d.Messages = out
}

// byPosition orders messages that have a position; one that has none stays behind the one before it. It is used on lists that are in order but for stretches with pinned messages
// between.
func byPosition(a, b *chatctx.DraftMessage) int {
	if a.Position == 0 || b.Position == 0 {
		return 0
	}
	return a.Position - b.Position
}

// digests puts the session's digests in place of what they stand for. One whose messages are not the same any more is left aside.
func (s *steps) digests() {
	for i := range s.d.Session.Digests {
		g := &s.d.Session.Digests[i]
		s.digest(g)
	}
}

func (s *steps) digest(g *branch.Digest) {
	stay := fixed(s.d.Messages)
	var gone []*chatctx.DraftMessage
	first := -1
	for i, m := range s.d.Messages {
		if m.Position >= g.From && m.Position <= g.To && m.Position > 0 && !stay[i] {
			if first < 0 {
				first = i
			}
			gone = append(gone, m)
		}
	}
	if first < 0 || hashOf(gone) != g.Of {
		return
	}
	m := made(pool.User, "digest", g.Text)
	m.ID = idOf("digest", string(g.Of[:]), g.Text)
	m.State, m.Step = In, "history"
	m.Tokens = tokens.PerMessage + s.w.Counter.Text(g.Text)
	s.w.remember(g.Of, m.ID, gone)
	kept := make([]*chatctx.DraftMessage, 0, len(s.d.Messages)-len(gone)+1)
	for i, old := range s.d.Messages {
		if i == first {
			kept = append(kept, m)
		}
		if old.Position >= g.From && old.Position <= g.To && old.Position > 0 && !stay[i] {
			note(s.d, "history", old, Digested, fmt.Sprintf("in the digest of the messages %d to %d", g.From, g.To), old.Tokens)
			continue
		}
		kept = append(kept, old)
	}
	s.d.Messages = kept
}
