package window

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

// marks are the boundaries that a session keeps besides PrunedTo and Digests, by name.
type marks map[string]mark

// mark is the position up to which (inclusive) a step has gone, and the message there. If another message is there now, the mark is ignored.
type mark struct {
	To      int     `json:"to"`
	Message pool.ID `json:"message"`
}

// The names of the marks.
const (
	outputsMark   = "outputs"   // tool outputs are shortened or put aside
	summariesMark = "summaries" // the compact summary of an output stands for it
	comingMark    = "coming"    // outputs that come later are shortened at once
	textsMark     = "texts"     // the rules for answers were applied
	trimMark      = "trim"      // the messages that may go were dropped
)

const marksKey = "window"

func marksOf(s *branch.Session) marks {
	m := marks{}
	_ = json.Unmarshal(s.Data[marksKey], &m) // unreadable data mark nothing
	return m
}

// marked returns the position of a mark of the draft's session, 0 if there is none.
func (s *steps) marked(name string) int { return marksOf(&s.d.Session)[name].To }

// setMark moves a mark forward to a position; it never moves it back.
func (s *steps) setMark(name string, position int) {
	if position <= s.marked(name) {
		return
	}
	m := marksOf(&s.d.Session)
	m[name] = mark{position, s.d.Messages[s.index(position)-1].ID}
	s.storeMarks(m)
}

func (s *steps) storeMarks(m marks) {
	data := maps.Clone(s.d.Session.Data)
	if data == nil {
		data = map[string]json.RawMessage{}
	}
	data[marksKey], _ = json.Marshal(m) // positions and ids always encode, and keys are in order
	s.d.Session.Data = data
}

// dropStale removes the marks whose message is no longer at its position.
func (s *steps) dropStale() {
	m := marksOf(&s.d.Session)
	if len(m) == 0 {
		return
	}
	valid := marks{}
	for name, at := range m {
		if i := s.index(at.To); i > 0 && s.d.Messages[i-1].ID == at.Message {
			valid[name] = at
		}
	}
	if len(valid) < len(m) {
		s.storeMarks(valid)
	}
}

// Recall returns an Enhancer that applies what the session keeps of earlier requests, so that the same bytes are sent again: pruned results, shortened outputs,
// digests, the trim. Without a budget it applies the mark of pruning, and the digests that a person asked for.
func Recall(w *Window, o Options) enhancer.Enhancer {
	return enhancer.Func("recall", func(ctx context.Context, d *chatctx.Draft) error {
		if err := w.Measure(ctx, d); err != nil {
			return err
		}
		s := steps{ctx: ctx, w: w, d: d, o: o}
		if w.Budget == 0 {
			s.askedFor()
			return nil
		}
		s.dropStale()
		if d.Session.PrunedTo == 0 && len(d.Session.Digests) == 0 && len(marksOf(&d.Session)) == 0 {
			return nil
		}
		names := toolNames(d.Messages)
		s.pruneTo(d.Session.PrunedTo, names)
		s.outputsTo(s.marked(outputsMark), s.marked(summariesMark), names)
		s.coming(names)
		s.textsTo(s.marked(textsMark))
		s.digests()
		s.trimTo(s.marked(trimMark))
		return nil
	})
}

// askedFor applies what holds without a budget too: the mark of pruning, and the digests that a person asked for.
func (s *steps) askedFor() {
	s.pruneTo(s.d.Session.PrunedTo, toolNames(s.d.Messages))
	all := s.d.Session.Digests
	s.d.Session.Digests = slices.DeleteFunc(slices.Clone(all), func(g branch.Digest) bool { return !g.Kept })
	if len(s.d.Session.Digests) > 0 {
		s.digests()
	}
	s.d.Session.Digests = all
}

// steps is the state that the built-in steps share.
type steps struct {
	ctx context.Context // of the step, to put outputs aside
	w   *Window
	d   *chatctx.Draft
	o   Options
}

// index returns the index of the first message after a position.
func (s *steps) index(position int) int {
	for i, m := range slices.Backward(s.d.Messages) {
		if m.Position != 0 && m.Position <= position {
			return i + 1
		}
	}
	return 0
}

// position returns the position of the last message before an index that has one; 0 if none has.
func (s *steps) position(index int) int {
	for _, m := range slices.Backward(s.d.Messages[:index]) {
		if m.Position != 0 {
			return m.Position
		}
	}
	return 0
}

// Changed reports whether the steps moved a boundary, so that the session must be stored. before is the draft's session as it was read.
func Changed(before, after *branch.Session) bool {
	return before.PrunedTo != after.PrunedTo || !maps.Equal(marksOf(before), marksOf(after)) || !slices.Equal(before.Digests, after.Digests)
}

// Sessions returns a branch's sessions with a draft's in its place, which is the first if there is none yet. The result is for Batch.SetSessions.
func Sessions(info *record.BranchInfo, current branch.Session) []branch.Session {
	if current.ID == (pool.ID{}) {
		current.ID, current.Created = pool.NewID(), pool.Now()
		current.Start = max(current.Start, 1)
	}
	if len(info.Sessions) == 0 {
		return []branch.Session{current}
	}
	out := slices.Clone(info.Sessions)
	i := slices.IndexFunc(out, func(s branch.Session) bool { return s.ID == current.ID })
	if i < 0 {
		return append([]branch.Session{current}, out...) // the whole history, before what a provider began
	}
	out[i] = current
	return out
}
