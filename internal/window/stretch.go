package window

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
)

// CompactStretch puts a summary in place of the messages at the positions from to to of a branch's session, and leaves those before and after unchanged. It
// widens the stretch rather than part a call from its result. Pinned and system messages stay. It is one operation; later compactions summarise the stretch's
// own messages, not its summary. It is an ErrStretch if the stretch cannot be summarised.
func CompactStretch(ctx context.Context, c *chatctx.ChatContext, branchName string, o Options, r Request, from, to int) (*Compacted, error) {
	info, err := c.Branch(ctx, branchName)
	if err != nil {
		return nil, err
	}
	d, err := c.Draft(ctx, info.Name)
	if err != nil {
		return nil, err
	}
	if err := Exclude().Enhance(ctx, d); err != nil {
		return nil, err
	}
	w := o.Window(c)
	p, err := PlanStretch(ctx, w, d, from, to)
	if err != nil {
		return nil, err
	}
	made, err := summarise(ctx, c, w, o, d, p, r)
	if err != nil {
		return nil, err
	}
	out, err := putStretch(context.WithoutCancel(ctx), c, w, d, p, r, info, made)
	if err != nil {
		return nil, errors.Join(err, made.answer.Lose(ctx, c))
	}
	return out, nil
}

// putStretch stores the digest that stands for a stretch. Its summary may be paid for.
func putStretch(ctx context.Context, c *chatctx.ChatContext, w *Window, d *chatctx.Draft, p *Plan, r Request, info *record.BranchInfo, made *summary) (*Compacted, error) {
	digest := branch.Digest{From: p.Gone[0].Position, To: p.Gone[len(p.Gone)-1].Position, Text: stretchText(made), Of: hashOf(p.Gone), Squeezed: true, Kept: true, By: made.by()}
	if made.answer != nil {
		digest.Message = made.answer.Paid.ID
	}
	out := p.outcome(w, made)
	if err := p.worth(w, r, out); err != nil {
		return nil, err
	}
	d.Session.Digests = inOrder(append(outside(d.Session.Digests, digest), digest))
	b := c.Begin(info.Name)
	b.Name("compact")
	b.Expect(info.Revision)
	if made.answer != nil {
		b.PutLoose(made.answer.Paid)
	}
	sessions := Sessions(info, d.Session)
	b.SetSessions(sessions)
	done, err := b.Commit(ctx)
	if err != nil {
		return nil, err
	}
	out.Operation, out.Branch, out.Session = done.Operation, done.Branch, len(sessions)
	return out, nil
}

// stretchText returns the digest of a stretch.
func stretchText(made *summary) string { return HistoryMark + " " + made.last().text }

// outside returns the digests that a new one does not overlap. It replaces the others; messages of those that it does not hold are sent whole again.
func outside(all []branch.Digest, g branch.Digest) []branch.Digest {
	return slices.DeleteFunc(slices.Clone(all), func(old branch.Digest) bool { return old.To >= g.From && old.From <= g.To })
}

// PlanStretch returns the Plan for a stretch in the middle. It is made from a draft as the store returns it. It is an ErrStretch if the stretch cannot be
// summarised.
func PlanStretch(ctx context.Context, w *Window, d *chatctx.Draft, from, to int) (*Plan, error) {
	if err := w.Measure(ctx, d); err != nil {
		return nil, err
	}
	if len(d.Messages) == 0 {
		return nil, fmt.Errorf("%w: the request has no messages", enhancer.ErrStretch)
	}
	l := layoutOf(d.Messages)
	at := func(position int) int {
		return slices.IndexFunc(d.Messages, func(m *chatctx.DraftMessage) bool { return m.Position >= position && m.Position >= d.Session.Start })
	}
	first, end := at(from), at(to+1)
	if first < 0 || end < 0 || end <= first {
		return nil, fmt.Errorf("%w: it goes from #%d to #%d, and the request begins with #%d and keeps the newest message, #%d", enhancer.ErrStretch, from, to, max(d.Session.Start, 1), d.Messages[len(d.Messages)-1].Position)
	}
	for !l.may[first] {
		first--
	}
	for !l.may[end] {
		end++
	}
	p := &Plan{Before: w.Counter.Sizes(d), stretch: true}
	for i, m := range d.Messages {
		if i >= first && i < end && !l.stay[i] {
			p.Gone = append(p.Gone, m)
			p.GoneTokens += m.Tokens
			continue
		}
		p.Kept = append(p.Kept, m)
		p.KeptTokens += m.Tokens
	}
	if len(p.Gone) == 0 || end >= len(d.Messages) {
		return nil, fmt.Errorf("%w: what stands from #%d to #%d stays in any case", enhancer.ErrStretch, from, to)
	}
	p.from, p.Start = p.Gone[0].Position, p.Gone[len(p.Gone)-1].Position+1
	return p, nil
}
