package window

import (
	"context"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// Trim returns an Enhancer that puts digests in place of all blocks except the newest, unless History is turned off, and drops the oldest messages until the
// draft fits. System and pinned messages stay, the last turn's user message stays, calls and results stay together, and the rest begins with a user message:
// turns go as a whole, except the last one. If that is not enough, digests and the summary are shortened. If the draft still does not fit, the error is a
// *BudgetError.
func Trim(w *Window, o Options) enhancer.Enhancer {
	return enhancer.Func("trim", func(ctx context.Context, d *chatctx.Draft) error {
		if err := w.Measure(ctx, d); err != nil || w.Over(d) == 0 {
			return err
		}
		s := steps{w: w, d: d, o: o}
		if !o.Off("history") {
			s.digest(1) // a digest keeps more than trimming does
		}
		over := w.Over(d)
		if over == 0 {
			return nil
		}
		cut, enough := s.trimAt(over, w.goal(over))
		if cut > 0 {
			s.setMark(trimMark, s.position(cut))
			s.trimBefore(cut)
		}
		if enough {
			return nil
		}
		if s.narrow(); w.Over(d) > 0 {
			return s.budgetError()
		}
		return nil
	})
}

// The least size of a digest, and of each part of a summary, in tokens. A digest that would be shorter is dropped.
const (
	leastDigest = 24
	leastPart   = 12
)

// narrow shortens what stands for older messages after everything that may go is gone: digests, the oldest first, then the summary. The session does not keep
// it, so a larger budget has them whole again.
func (s *steps) narrow() {
	for _, m := range slices.Clone(s.d.Messages) {
		if over := s.w.Over(s.d); over > 0 && s.w.byDigest[m.ID] != nil {
			s.narrowDigest(m, m.Tokens-over-1)
		}
	}
	if over := s.w.Over(s.d); over > 0 && s.d.Summary != nil {
		s.narrowSummary(s.w.of(s.d, s.d.Summary) - over)
	}
}

// narrowDigest shortens a digest to at most room tokens, or drops it if that is too little.
func (s *steps) narrowDigest(m *chatctx.DraftMessage, room int) {
	text, whole := "", m.Text()
	if room >= leastDigest+tokens.PerMessage {
		if text = parseDigest(whole).within(s.w.Counter, room-tokens.PerMessage); s.w.Counter.Text(text) > room-tokens.PerMessage {
			text = beginning(s.w.Counter, whole, room-tokens.PerMessage)
		}
	}
	if text == "" {
		for _, old := range s.w.byDigest[m.ID] {
			note(s.d, "trim", old, enhancer.Trimmed, "there is no room for their digest", old.Tokens)
		}
		s.d.Messages = slices.DeleteFunc(s.d.Messages, func(have *chatctx.DraftMessage) bool { return have == m })
		return
	}
	shorter := made("digest", text).Message
	shorter.ID = m.ID
	before := m.Tokens
	m.Message, m.Tokens = shorter, tokens.PerMessage+s.w.Counter.Text(text)
	note(s.d, "trim", m, enhancer.Pruned, "shortened for want of room", before)
}

// narrowSummary shortens the summary to at most room tokens; each part keeps its beginning.
func (s *steps) narrowSummary(room int) {
	parts := partsOf(s.d.Summary)
	room -= tokens.PerMessage + 2*len(parts)
	if len(parts) == 0 || room < leastPart*len(parts) {
		return
	}
	one := summary{parts: shortened(s.w.Counter, parts, room)}
	message, short, before := one.message(), *s.d.Summary, s.d.Summary.Tokens
	message.ID, message.Created, message.Meta = s.d.Summary.ID, s.d.Summary.Created, s.d.Summary.Meta
	short.Message, short.Tokens = message, s.w.Counter.Message(message, nil)
	s.d.Summary = &short
	note(s.d, "trim", &short, enhancer.Pruned, "shortened for want of room", before)
}

// trimTo drops the messages up to a position, except those that must stay.
func (s *steps) trimTo(position int) {
	if position == 0 {
		return
	}
	may, cut := layoutOf(s.d.Messages).may, min(s.index(position), trimEnd(s.d.Messages)) // the history may be shorter by now
	for !may[cut] {
		cut--
	}
	s.trimBefore(cut)
}

// trimEnd returns the last index at which the draft may be cut: the beginning of the last turn, or, later in that turn, the model's last answer.
func trimEnd(messages []*chatctx.DraftMessage) int {
	end := unread(messages)
	if last := lastUser(messages); last < len(messages) {
		end = max(end, last)
	}
	return end
}

// trimBefore drops the messages before an index at which the draft may be cut, except those that must stay.
func (s *steps) trimBefore(cut int) {
	stay, head := layoutOf(s.d.Messages).stay, s.turnHead(cut)
	goes := func(i int) bool { return i < cut && i != head && !stay[i] }
	for i, m := range s.d.Messages {
		if goes(i) {
			s.w.trimmed = append(s.w.trimmed, m)
		}
	}
	leaveOut(s.d, "trim", enhancer.Trimmed, "the oldest messages go where all does not fit", goes)
}

// untrim puts the trimmed messages back in place.
func (s *steps) untrim() {
	for _, m := range s.w.trimmed {
		m.State, m.Step = enhancer.In, ""
	}
	s.d.Messages = append(s.d.Messages, s.w.trimmed...)
	slices.SortStableFunc(s.d.Messages, byPosition)
	s.w.trimmed = nil
}

// turnHead returns the index of the user message of the turn that a cut divides, -1 if the cut is between turns.
func (s *steps) turnHead(cut int) int {
	if cut >= len(s.d.Messages) || startsTurn(s.d.Messages[cut]) {
		return -1
	}
	for i := cut - 1; i >= 0; i-- {
		if startsTurn(s.d.Messages[i]) {
			return i
		}
	}
	return -1
}

func startsTurn(m *chatctx.DraftMessage) bool { return m.Role == pool.User && m.Kind == "" }

// trimAt returns the first index to cut at that clears goal tokens, or the last one that may be cut, and whether it clears enough. Before the last turn it is
// the beginning of a turn; inside the last turn, any index at which the messages may be cut, up to the model's last answer.
func (s *steps) trimAt(over, goal int) (cut int, enough bool) {
	messages := s.d.Messages
	l := layoutOf(messages)
	last, end := lastUser(messages), trimEnd(messages)
	cleared, best := 0, 0
	for i, m := range messages {
		if l.may[i] && i <= end && (i > last || last == len(messages) || startsTurn(m)) {
			best = i
			enough = cleared >= over
			if cleared >= goal {
				return i, true
			}
		}
		if !l.stay[i] && i != last {
			cleared += s.w.of(s.d, m)
		}
	}
	return best, enough
}

func (s *steps) budgetError() error {
	sizes := s.w.Counter.Sizes(s.d)
	e := &enhancer.BudgetError{Size: s.w.scale(sizes.Total()), Limit: s.w.Limit(), Budget: s.w.Budget,
		System: sizes.System + sizes.Prompt + sizes.Summary, Tools: sizes.Tools}
	last := lastUser(s.d.Messages)
	for i, m := range s.d.Messages {
		switch {
		case m.Pinned:
			e.Pinned += m.Tokens
			if m.Position > 0 {
				e.Pins = append(e.Pins, m.Position)
			}
		case isSystem(m) || m.Kind == "digest":
			e.System += m.Tokens
			if isSystem(m) {
				e.Systems = append(e.Systems, m.Position)
			}
		case i >= last:
			e.Latest += m.Tokens
		}
	}
	for _, step := range []string{"prune", "tools", "history", "squeeze", "trim"} {
		if s.o.Off(step) {
			e.Off = append(e.Off, "steps."+step)
		}
	}
	return e
}
