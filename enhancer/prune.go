package enhancer

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer/tokens"
	"github.com/chatctx/chatctx/pool"
)

// What pruning does with the results of a tool, by the tool's definition. The zero value is PruneResult.
const (
	PruneResult     = "prune"     // becomes one line
	SummariseResult = "summarise" // becomes one line, and is given whole to the summary of a compaction
	KeepResult      = "keep"      // stays
)

// The policies of pruning.
const (
	PruneAuto = "auto"      // by each tool's definition
	KeepAll   = "keep_all"  // nothing, as long as the draft fits
	KeepNone  = "keep_none" // all results before the last user message, at once
)

const prunedMark = "[PRUNED: "

// Prune turns old tool results into one line each, which keeps the tool's name, the call's id and the size. It does so once the results since the last mark are more than
// Options.PruneThreshold tokens, and then leaves the newest PruneKeep tokens of them and those that the model has not read yet. The mark moves to there and stays in
// the draft's session, so that the same bytes are pruned in later requests.
func Prune(w *Window, o Options) Enhancer {
	return Func("prune", func(ctx context.Context, d *chatctx.Draft) error {
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

// nextPrune is the position to prune to now, 0 for where the mark is. names gives the tool of each result.
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

// lastUser is the index of the last user message, or the number of messages.
func lastUser(messages []*chatctx.DraftMessage) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == pool.User && m.Kind == "" {
			return i
		}
	}
	return len(messages)
}

// isResult: a tool message with a result that may be shortened at all.
func isResult(m *chatctx.DraftMessage) bool {
	return m.Result != nil && m.Role == pool.ToolRole && !m.Pinned
}

// prunable: a result that is not pinned, not kept by its tool's definition, and not a line already.
func (s *steps) prunable(m *chatctx.DraftMessage, tool string) bool {
	return isResult(m) && !strings.HasPrefix(m.Result.Text, prunedMark) && s.policy(tool) != KeepResult
}

// policy is what pruning does with a tool's results. Where the policy is one for all, it wins over the definitions.
func (s *steps) policy(tool string) string {
	if s.o.PrunePolicy == KeepAll || s.o.PrunePolicy == KeepNone {
		return PruneResult
	}
	return prunePolicy(s.d.Tools, tool)
}

func prunePolicy(tools []chatctx.Tool, name string) string {
	for i := range tools {
		if tools[i].Name == name {
			return tools[i].Prune
		}
	}
	return PruneResult
}

// toolNames gives for each message with a result the name of the tool that it is from, "" where nobody knows.
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

// pruneTo prunes the results up to a position, but none that the model has not read: the history may be shorter by now. One that is shorter than its line would be stays.
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
			note(s.d, "prune", m, Pruned, "an old result: one line stands for it", before)
		}
	}
}

// prunedLine stands for a result. A summary that it carries is kept.
func prunedLine(r *pool.Result, tool string) string {
	if tool == "" {
		tool = "result"
	}
	line := prunedMark + tool + " | " + r.RequestID + " | " + strconv.Itoa(resultSize(r)) + " bytes]"
	if r.CompactSummary != "" {
		line += " " + r.CompactSummary
	}
	return line
}

// resultSize is the number of bytes of a result.
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

// withResult is a message with a text in place of its result.
func withResult(m *chatctx.DraftMessage, text string) *pool.Message {
	message, result := *m.Message, *m.Result
	result.Text, result.JSON, result.Parts = text, nil, nil
	result.SHA256, result.Size = pool.Hash{}, 0
	message.Result = &result
	return &message
}
