package enhancer

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// marks are the boundaries that a session keeps beside PrunedTo and Digests, by name.
type marks map[string]mark

// mark is a position up to which (included) a step has gone, and the message that stands there: where another one does by now, the mark counts no more.
type mark struct {
	To      int     `json:"to"`
	Message pool.ID `json:"message"`
}

// The names of the marks.
const (
	outputsMark   = "outputs"   // tool outputs are shortened or put aside
	summariesMark = "summaries" // a compact summary stands for an output that has one
	textsMark     = "texts"     // the rules for answers are applied
	trimMark      = "trim"      // what may be dropped is dropped
)

const marksKey = "window"

func marksOf(s *branch.Session) marks {
	m := marks{}
	_ = json.Unmarshal(s.Data[marksKey], &m) // what cannot be read marks nothing
	return m
}

// marked is where a mark of the draft's session stands, 0 for nowhere.
func (s *steps) marked(name string) int { return marksOf(&s.d.Session)[name].To }

// setMark moves a mark to a position, if it is not there or further already.
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
	data[marksKey], _ = json.Marshal(m) // positions and ids always encode, names in order
	s.d.Session.Data = data
}

// dropStale takes away the marks whose message does not stand where it did.
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

// Recall applies what the session remembers from earlier requests, so that they are sent as they were: pruned results, shortened outputs, digests, the trim. It
// changes nothing without a budget.
func Recall(w *Window, o Options) Enhancer {
	return Func("recall", func(ctx context.Context, d *chatctx.Draft) error {
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
		s.textsTo(s.marked(textsMark))
		s.digests()
		s.trimTo(s.marked(trimMark))
		return nil
	})
}

// askedFor puts in the digests that somebody asked for: they hold without a budget too.
func (s *steps) askedFor() {
	all := s.d.Session.Digests
	s.d.Session.Digests = slices.DeleteFunc(slices.Clone(all), func(g branch.Digest) bool { return !g.Kept })
	if len(s.d.Session.Digests) > 0 {
		s.digests()
	}
	s.d.Session.Digests = all
}

// steps is what the parts of the built-in steps share.
type steps struct {
	ctx context.Context // of the step, where it puts things aside
	w   *Window
	d   *chatctx.Draft
	o   Options
}

// index is the index of the first message after a position.
func (s *steps) index(position int) int {
	for i, m := range slices.Backward(s.d.Messages) {
		if m.Position != 0 && m.Position <= position {
			return i + 1
		}
	}
	return 0
}

// position is that of the last message before an index that has one; 0 for none.
func (s *steps) position(index int) int {
	for _, m := range slices.Backward(s.d.Messages[:index]) {
		if m.Position != 0 {
			return m.Position
		}
	}
	return 0
}

// Changed reports whether the steps moved a boundary, so that the session is to be stored. before is the draft's session as it was read.
func Changed(before, after *branch.Session) bool {
	return before.PrunedTo != after.PrunedTo || !maps.Equal(marksOf(before), marksOf(after)) || !slices.Equal(before.Digests, after.Digests)
}

// Sessions are a branch's sessions with the last one replaced by a draft's; where there is none yet, that is the first. They are for Batch.SetSessions.
func Sessions(info *chatctx.BranchInfo, current branch.Session) []branch.Session {
	if current.ID == (pool.ID{}) {
		current.ID, current.Created = pool.NewID(), pool.Now()
		current.Start = max(current.Start, 1)
	}
	if len(info.Sessions) == 0 {
		return []branch.Session{current}
	}
	out := slices.Clone(info.Sessions)
	out[len(out)-1] = current
	return out
}
