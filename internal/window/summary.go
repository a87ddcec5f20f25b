package window

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

const summarySystem = "You write the summary with which a conversation goes on after its older messages are left out. State what the user wants, what was decided and why, " +
	"what was done and what came of it, what is open, and every name, path, identifier, number, constraint and error that may be needed again, word for word. " +
	"Write plain text, no preamble."

// These texts tell the model whether earlier summaries stay beside the new one or are replaced by it.
const (
	summaryBeside = " Earlier summaries may be given: they stay beside yours, so carry over from them only what your summary changes."
	summaryMerged = " Earlier summaries are given, and yours takes their place: carry over every fact, decision, name, number and constraint that they hold and that was not taken back since, " +
		"the oldest ones too. Nothing that you leave out is known afterwards."
)

// summaryMost is the largest summary that is asked for, in tokens, digestMost the largest one by rules, summaryLeast the smallest worth asking for, and
// summaryHead the size of its first line.
const (
	summaryMost  = 2000
	digestMost   = 1000
	summaryLeast = 64
	summaryHead  = 20
)

// bound returns how long the new part may be: a quarter of what it stands for, half of the room, and at most summaryMost. One that replaces earlier summaries
// may be half as long as they are.
func (p *Plan) bound(c *tokens.Counter, merging bool) int {
	n := min(p.GoneTokens/4, summaryMost)
	if merging {
		n = max(n, size(c, p.earlier)/2)
	}
	if p.Room > 0 {
		n = min(n, p.Room/2)
	}
	return max(n, min(summaryLeast, p.GoneTokens/2))
}

// summarise makes the summary of the messages that a plan leaves out. Earlier summaries stay unchanged while there is room; after that a model merges them into
// the new one, or, without a model, they are shortened.
func summarise(ctx context.Context, c *chatctx.ChatContext, w *Window, o Options, d *chatctx.Draft, p *Plan, r Request) (*summary, error) {
	switch {
	case p.provider:
		return p.byProvider(ctx, c, w, d, r.Provider)
	case r.Text != "" || r.Completer == nil:
		return p.withoutModel(w, r)
	}
	if err := p.gains(w); err != nil {
		return nil, err
	}
	merging := p.merging(w.Counter)
	bound := p.bound(w.Counter, merging)
	answer, err := Ask(ctx, c, r.Completer, Question{Kind: "summary", System: system(o, merging), Prompt: prompt(w, o, d, p, r), Limit: bound, About: p.about(d),
		Fits: func(text string) error { return p.fits(w, p.byModel(w.Counter, text, merging), bound) }})
	var whole *enhancer.UnusableError
	switch {
	case errors.As(err, &whole) && !errors.Is(err, pool.ErrNotWhole):
		out, err := p.byRules(w, p.from, min(bound, digestMost))
		if err == nil {
			out.note = whole.Cause.Error() + "; rules made one in its place"
		}
		return out, err
	case err != nil:
		return nil, fmt.Errorf("the summary failed, nothing was compacted: %w", err)
	}
	out := p.byModel(w.Counter, answer.Text, merging)
	out.answer = answer
	return out, nil
}

// about identifies what a summary is about.
func (p *Plan) about(d *chatctx.Draft) pool.Hash {
	of := hashOf(p.Gone)
	return sha256.Sum256(append(of[:], d.Session.Summary[:]...))
}

// byModel returns the summary with a model's text, which stands beside earlier ones or in their place.
func (p *Plan) byModel(c *tokens.Counter, text string, merging bool) *summary {
	one := newPart(p.from, p.Start-1, "model", text)
	if !merging {
		return &summary{parts: append(slices.Clone(p.earlier), one)}
	}
	if n := p.earlier[0].From; n > 0 {
		one = newPart(n, p.Start-1, "model", text)
	}
	own := p.written(c)
	one.Merged = len(p.earlier) - len(own)
	return &summary{parts: append(own, one)}
}

// withoutModel makes the summary from a given text, or by rules.
func (p *Plan) withoutModel(w *Window, r Request) (*summary, error) {
	switch {
	case r.Text == "":
		if err := p.gains(w); err != nil {
			return nil, err
		}
		return p.byRules(w, p.from, p.bound(w.Counter, false))
	case strings.TrimSpace(r.Text) == "":
		return nil, enhancer.ErrNoSummary
	}
	return p.beside(w.Counter, newPart(p.from, p.Start-1, "text", r.Text)), nil
}

// written returns the earlier summaries that somebody wrote, which stay beside one that a model merges. If they take more than half of the room, that one replaces
// them too.
func (p *Plan) written(c *tokens.Counter) []part {
	own := slices.DeleteFunc(slices.Clone(p.earlier), func(e part) bool { return e.By != "text" })
	if size(c, own) > p.Room/2 {
		return nil
	}
	return own
}

// gains returns a *NoGainError if it is certain beforehand that a compaction clears too little.
func (p *Plan) gains(w *Window) error {
	gain := p.GoneTokens - p.bound(w.Counter, false) - summaryHead
	if p.provider {
		gain = p.GoneTokens + p.Before.Summary
	}
	if float64(gain) >= p.least() {
		return nil
	}
	return &enhancer.NoGainError{Before: w.scale(p.Before.Total()), After: w.scale(p.Before.Total() - gain), Least: leastGain, Stretch: p.stretch}
}

// merging reports whether there is no room for the earlier summaries beside the new one.
func (p *Plan) merging(c *tokens.Counter) bool {
	return len(p.earlier) > 0 && p.Room > 0 && size(c, p.earlier)+p.bound(c, false)+summaryHead > p.Room
}

// longer is by what factor a model's summary may be longer than it was asked to be.
const longer = 2

// atMost returns an upper bound of the request after the compaction, before any other step: what stays, and the longest summary that is accepted.
func (p *Plan) atMost(w *Window) int {
	if p.provider {
		return p.most(w)
	}
	c, merging := w.Counter, p.merging(w.Counter)
	summary := tokens.PerMessage + summaryHead + longer*p.bound(c, merging)
	if p.stretch {
		return w.scale(p.Before.Total() - p.GoneTokens + summary)
	}
	if !merging {
		summary += size(c, p.earlier)
	}
	return w.scale(p.Before.System + p.Before.Prompt + p.Before.Tools + tokens.PerConversation + p.KeptTokens + summary)
}

// fits returns an error for a model's summary that is too long.
func (p *Plan) fits(w *Window, s *summary, bound int) error {
	n, all := w.Counter.Text(s.last().text), size(w.Counter, s.parts)
	before := p.Before.Summary
	gains := float64(p.GoneTokens+before-all) >= p.least()
	if p.stretch {
		gains = float64(p.GoneTokens-n) >= p.least() // the summary before it stays unchanged
	}
	if gains && (p.Room == 0 || all <= p.Room*3/2) && n <= longer*bound+summaryHead {
		return nil
	}
	return fmt.Errorf("the model's summary has %d tokens, and %d were asked for", n, bound)
}

// byRules makes a summary whose new part is a digest.
func (p *Plan) byRules(w *Window, from, bound int) (*summary, error) {
	text := strings.TrimSpace(strings.TrimPrefix(gather(p.Gone, p.Kept, w.wholeOf).within(w.Counter, min(bound, digestMost)), HistoryMark))
	if text == "" {
		return nil, enhancer.ErrNoSummary
	}
	return p.beside(w.Counter, newPart(from, p.Start-1, "digest", text)), nil
}

// beside puts earlier summaries before a new part, shortened if there is no room for them.
func (p *Plan) beside(c *tokens.Counter, last part) *summary {
	earlier := p.earlier
	if p.Room > 0 && len(earlier) > 0 {
		earlier = shortened(c, earlier, max(p.Room*3/2-c.Text(last.text), 1))
	}
	return &summary{parts: append(slices.Clone(earlier), last)}
}

// system returns the system prompt for the model.
func system(o Options, merging bool) string {
	text := summarySystem
	if o.CompactSystem != "" {
		text = o.CompactSystem
	}
	if merging {
		return text + summaryMerged
	}
	return text + summaryBeside
}

// prompt returns the text that a model is to summarise: the earlier summaries, and the messages as a transcript. If it is too long for the model, a digest
// stands for the middle.
func prompt(w *Window, o Options, d *chatctx.Draft, p *Plan, r Request) string {
	limit := r.Limit
	if limit == 0 {
		limit = tokens.ForModel(r.Model).Budget()
	}
	limit = cmp.Or(limit, o.Budget, 100_000)
	limit = max(limit*8/10-summaryMost, limit/2)
	var head strings.Builder
	if len(p.earlier) > 0 {
		head.WriteString("Earlier summaries:\n")
		for i := range p.earlier {
			head.WriteString(p.earlier[i].text + "\n\n")
		}
	}
	head.WriteString("The messages to summarise:\n\n")
	lines := transcript(d, p.Gone)
	return head.String() + fit(w.Counter, lines, p.Gone, limit-w.Counter.Text(head.String()))
}

// fit joins the transcript. If it is over limit tokens, the first part and the newest stay, and a digest stands for the middle.
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

// transcript returns the text of each message. Results are shortened, except those of tools whose definition says summarise.
func transcript(d *chatctx.Draft, messages []*chatctx.DraftMessage) []string {
	names := toolNames(messages)
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = transcriptLine(m, names[i], prunePolicy(d.Tools, names[i]) == SummariseResult)
	}
	return out
}

// resultLine is how many bytes the transcript has of the beginning of a result.
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
	if ending := m.Ending(); m.Role == pool.Assistant && ending != "" {
		b.WriteString(" [this answer is " + ending + "]")
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
