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

// marks are the boundaries that a session keeps beside PrunedTo and Digests: positions up to which (included) a step has gone. They only grow.
type marks struct {
	Outputs   int `json:"outputs,omitempty"`   // tool outputs are shortened or put aside
	Summaries int `json:"summaries,omitempty"` // a compact summary stands for an output that has one
	Edits     int `json:"edits,omitempty"`     // the optional edits are made
	Trim      int `json:"trim,omitempty"`      // what may be dropped is dropped
}

const marksKey = "window"

func marksOf(s *branch.Session) marks {
	var m marks
	_ = json.Unmarshal(s.Data[marksKey], &m) // what cannot be read marks nothing
	return m
}

func setMarks(s *branch.Session, m marks) {
	data := maps.Clone(s.Data)
	if data == nil {
		data = map[string]json.RawMessage{}
	}
	data[marksKey], _ = json.Marshal(m) // numbers always encode
	s.Data = data
}

// Recall applies what the session remembers from earlier requests, so that they are sent as they were: pruned results, shortened outputs, digests, the trim. It
// changes nothing without a budget.
func Recall(w *Window, o Options) Enhancer {
	return Func("recall", func(ctx context.Context, d *chatctx.Draft) error {
		if err := w.Measure(ctx, d); err != nil || w.Budget == 0 {
			return err
		}
		m := marksOf(&d.Session)
		steps := steps{w: w, d: d, o: o}
		names := toolNames(d.Messages)
		steps.pruneTo(d.Session.PrunedTo, names)
		steps.outputsTo(m.Outputs, m.Summaries, names)
		steps.editsTo(m.Edits)
		steps.digests()
		steps.trimTo(m.Trim)
		return nil
	})
}

// steps is what the parts of the built-in steps share.
type steps struct {
	w *Window
	d *chatctx.Draft
	o Options
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
	return before.PrunedTo != after.PrunedTo || marksOf(before) != marksOf(after) || !slices.Equal(before.Digests, after.Digests)
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
