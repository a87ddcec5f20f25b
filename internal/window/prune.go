package window

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// These values of a tool's definition say what pruning does with its results. The empty value means PruneResult.
const (
	PruneResult     = "prune"     // one line stands for it
	SummariseResult = "summarise" // one line stands for it, and the summary of a compaction is made from the whole
	KeepResult      = "keep"      // stays
)

// The policies of pruning.
const (
	PruneAuto = "auto"      // by each tool's definition
	KeepAll   = "keep_all"  // nothing while the draft fits
	KeepNone  = "keep_none" // all results before the last user message, at once
)

const prunedMark = "[PRUNED: "

// Prune returns an Enhancer that turns old tool results into one line each, with the tool's name, the call's id and the size. It does so once the results since
// the last mark are over Options.PruneThreshold tokens, and keeps the newest PruneKeep tokens of them and those that the model has not read yet. The mark moves
// there and stays in the draft's session, so that later requests prune the same bytes.
func Prune(w *Window, o Options) enhancer.Enhancer {
	return enhancer.Func("prune", func(ctx context.Context, d *chatctx.Draft) error {
		if err := w.Measure(ctx, d); err != nil || w.Budget == 0 {
			return err
		}
		s := steps{w: w, d: d, o: o}
		names := toolNames(d.Messages)
		s.pruneTo(d.Session.PrunedTo, names)
		if to := s.nextPrune(names); to > d.Session.PrunedTo {
			s.pruneTo(to, names)
			d.Session.PrunedTo = to
		}
		return nil
	})
}

// nextPrune returns the position to prune to now, 0 to leave the mark. names has the tool of each result.
func (s *steps) nextPrune(names []string) int {
	if s.o.PrunePolicy == KeepAll && s.w.Over(s.d) == 0 {
		return 0
	}
	messages := s.d.Messages
	end := unread(messages)
	if s.o.PrunePolicy == KeepNone {
		return s.position(min(end, lastUser(messages)))
	}
	first, since := s.index(s.d.Session.PrunedTo), 0
	for i := first; i < len(messages); i++ {
		if s.prunable(messages[i], names[i]) {
			since += s.w.of(s.d, messages[i])
		}
	}
	if since <= s.o.PruneThreshold {
		return 0
	}
	kept := 0
	for i := len(messages) - 1; i >= first; i-- {
		if !s.prunable(messages[i], names[i]) {
			continue
		}
		kept += s.w.of(s.d, messages[i])
		if kept > s.o.PruneKeep && i < end {
			return s.position(i + 1)
		}
	}
	return 0
}

// lastUser returns the index of the last user message, or the number of messages if there is none.
func lastUser(messages []*chatctx.DraftMessage) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == pool.User && m.Kind == "" {
			return i
		}
	}
	return len(messages)
}

// isResult reports whether a message is a tool result that may be shortened.
func isResult(m *chatctx.DraftMessage) bool {
	return m.Result != nil && m.Role == pool.ToolRole && !m.Pinned
}

// prunable reports whether a message is a result that is not pinned, not kept by its tool's definition, and not pruned already.
func (s *steps) prunable(m *chatctx.DraftMessage, tool string) bool {
	return isResult(m) && !strings.HasPrefix(m.Result.Text, prunedMark) && s.policy(tool) != KeepResult
}

// policy returns what pruning does with a tool's results. A policy for all tools overrides the definitions.
func (s *steps) policy(tool string) string {
	if s.o.PrunePolicy == KeepAll || s.o.PrunePolicy == KeepNone {
		return PruneResult
	}
	return prunePolicy(s.d.Tools, tool)
}

func prunePolicy(tools []record.Tool, name string) string {
	for i := range tools {
		if tools[i].Name == name {
			return tools[i].Prune
		}
	}
	return PruneResult
}

// toolNames returns for each message with a result the name of its tool, "" if it is unknown.
func toolNames(messages []*chatctx.DraftMessage) []string {
	out := make([]string, len(messages))
	for i, at := range partner(messages) {
		r := messages[i].Result
		if r == nil {
			continue
		}
		out[i] = r.Tool
		if at < 0 {
			continue
		}
		for _, c := range messages[at].Calls {
			if c.ID == r.RequestID {
				out[i] = c.Tool
			}
		}
	}
	return out
}

// pruneTo prunes the results up to a position, except those that the model has not read, since the history may be shorter by now. A result that is shorter than
// its line stays.
func (s *steps) pruneTo(position int, names []string) {
	if position == 0 {
		return
	}
	for i, m := range s.d.Messages[:min(s.index(position), unread(s.d.Messages))] {
		if !s.prunable(m, names[i]) {
			continue
		}
		before := s.w.of(s.d, m)
		line := prunedLine(m.Result, names[i])
		if after := tokens.PerMessage + s.w.Counter.Text(line); after < before {
			s.w.replace(m, withResult(m, line), after)
			note(s.d, "prune", m, enhancer.Pruned, "an old result: one line stands for it", before)
		}
	}
}

// prunedLine returns the line that stands for a result, with its compact summary if it has one.
func prunedLine(r *pool.Result, tool string) string {
	tool = cmp.Or(tool, "result")
	line := prunedMark + tool + " | " + r.RequestID + " | " + strconv.Itoa(resultSize(r)) + " bytes]"
	if r.CompactSummary != "" {
		line += " " + r.CompactSummary
	}
	return line
}

// resultSize returns the number of bytes of a result.
func resultSize(r *pool.Result) int {
	n := 0
	for i := range r.Parts {
		n += len(r.Parts[i].Text) + max(len(r.Parts[i].Data), int(r.Parts[i].Size))
	}
	switch {
	case len(r.Parts) > 0:
		return n
	case r.JSON != nil:
		return len(r.JSON)
	}
	return len(r.Text)
}

// withResult returns a message with a text in place of its result.
func withResult(m *chatctx.DraftMessage, text string) *pool.Message {
	message, result := *m.Message, *m.Result
	result.Text, result.JSON, result.Parts = text, nil, nil
	result.SHA256, result.Size = pool.Hash{}, 0
	message.Result = &result
	return &message
}
