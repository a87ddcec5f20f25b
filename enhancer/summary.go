package enhancer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer/tokens"
	"github.com/chatctx/chatctx/pool"
)

// ErrNoSummary: the model answered nothing, or the text that was given is blank. Nothing was changed.
var ErrNoSummary = errors.New("the summary is empty; nothing was compacted")

const summarySystem = "You write the summary with which a conversation goes on after its older messages are left out. State what the user wants, what was decided and why, " +
	"what was done and what came of it, what is open, and every name, path, identifier, number, constraint and error that may be needed again, word for word. " +
	"An earlier summary may be given: it stays beside yours, so carry over from it only what your summary changes. Write plain text, no preamble."

// digestMost is the size in tokens of a summary that rules make, summaryMost of one that a model is asked for.
const (
	digestMost  = 1000
	summaryMost = 2000
)

// summarise makes the summary of what a plan leaves out, and says where it is from.
func summarise(ctx context.Context, w *Window, o Options, d *chatctx.Draft, p *Plan, r Request) (text, by string, err error) {
	switch {
	case r.Text != "":
		text, by = r.Text, "text"
	case r.Completer != nil:
		system := summarySystem
		if o.CompactSystem != "" {
			system = o.CompactSystem
		}
		by = "model"
		text, err = r.Completer.Complete(ctx, system, prompt(w, d, p, r), summaryMost)
		if err != nil {
			return "", "", fmt.Errorf("the summary failed, nothing was compacted: %w", err)
		}
	default:
		text, by = strings.TrimSpace(strings.TrimPrefix(gather(p.Gone, p.Kept, w.wholeOf).within(w.Counter, digestMost), HistoryMark)), "digest"
	}
	if strings.TrimSpace(text) == "" {
		return "", "", ErrNoSummary
	}
	return text, by, nil
}

// prompt is what a model is given to summarise: the earlier summary, and the messages as a transcript. Where they are too much for it, the middle is only given as
// a digest.
func prompt(w *Window, d *chatctx.Draft, p *Plan, r Request) string {
	limit := r.Limit
	if limit == 0 {
		limit = tokens.ForModel(r.Model).Budget()
	}
	if limit == 0 {
		limit = 100_000
	}
	limit = limit*8/10 - summaryMost
	var head strings.Builder
	if d.Summary != nil {
		head.WriteString("Earlier summary, for reference:\n" + d.Summary.Text() + "\n\n")
	}
	head.WriteString("The messages to summarise:\n\n")
	lines := transcript(d, p.Gone)
	return head.String() + fit(w.Counter, lines, p.Gone, limit-w.Counter.Text(head.String()))
}

// fit joins the transcript; where it is over limit tokens, a first part and the newest are kept and a digest stands for what is between.
func fit(c *tokens.Counter, lines []string, gone []*chatctx.DraftMessage, limit int) string {
	counts, sum := make([]int, len(lines)), 0
	for i, l := range lines {
		counts[i] = c.Text(l) + 1
		sum += counts[i]
	}
	if sum <= limit {
		return strings.Join(lines, "\n")
	}
	first, used := 0, digestMost
	for first < len(lines) && used+counts[first] <= limit/4 {
		used += counts[first]
		first++
	}
	last := len(lines)
	for last > first && used+counts[last-1] <= limit {
		last--
		used += counts[last]
	}
	middle := gather(gone[first:last], gone[last:], func(m *chatctx.DraftMessage) *pool.Message { return m.Message }).within(c, digestMost)
	out := append(append([]string{}, lines[:first]...), middle)
	return strings.Join(append(out, lines[last:]...), "\n")
}

// transcript is a line or more for each message. Results are one line, those of tools whose definition says summarise are whole, and others are shortened.
func transcript(d *chatctx.Draft, messages []*chatctx.DraftMessage) []string {
	names := toolNames(messages)
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = transcriptLine(m, names[i], prunePolicy(d.Tools, names[i]) == SummariseResult)
	}
	return out
}

// resultLine is how many bytes of a result the transcript has.
const resultLine = 400

func transcriptLine(m *chatctx.DraftMessage, tool string, whole bool) string {
	var b strings.Builder
	b.WriteString(string(m.Role))
	if tool != "" {
		b.WriteString(" " + tool)
	}
	b.WriteString(": ")
	switch r := m.Result; {
	case r != nil && r.CompactSummary != "" && !whole:
		b.WriteString(r.CompactSummary)
	case r != nil && !whole:
		b.WriteString(headTail(messageText(m.Message), resultLine, resultLine/2))
	default:
		b.WriteString(messageText(m.Message))
	}
	for i := range m.Calls {
		fmt.Fprintf(&b, " [calls %s %s]", m.Calls[i].Tool, m.Calls[i].Arguments)
	}
	for i := range m.Content {
		if p := &m.Content[i]; p.Type == pool.ImagePart || p.Type == pool.DocumentPart {
			fmt.Fprintf(&b, " [%s %s]", p.Type, p.Name)
		}
	}
	return b.String()
}
