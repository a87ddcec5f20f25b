package enhancer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer/tokens"
	"github.com/chatctx/chatctx/pool"
)

// ErrNothingToCompact: all that the session holds is to be kept.
var ErrNothingToCompact = errors.New("nothing to compact: the session holds no more than is kept")

// Plan says where a compaction cuts. It is made from a draft as the store gives it, before any step.
type Plan struct {
	// Start is the position at which the new session begins.
	Start int
	// Gone are the messages that the summary stands for, Pinned those before the cut that stay (system messages too), Kept the tail.
	Gone, Pinned, Kept []*chatctx.DraftMessage
	Before             tokens.Sizes
	GoneTokens         int
	KeptTokens         int // tail and pinned
}

// Due reports whether a branch is to be compacted: the provider's own input count of the last reply, or where it gave none our count, is past Options.CompactAt of the
// budget; or the session has more than CompactMessages messages, where that is set. It is asked with a draft as the store gives it.
func Due(w *Window, o Options, d *chatctx.Draft) bool {
	if o.CompactMessages > 0 && len(d.Messages) > o.CompactMessages {
		return true
	}
	return w.Budget > 0 && float64(Used(w, d)) > o.CompactAt*float64(w.Budget)
}

// Used is what the branch's next request takes at least: what the provider counted for the last one with its answer, or where it said nothing
// our count. w was measured with the draft.
func Used(w *Window, d *chatctx.Draft) int {
	since := 0
	for i := len(d.Messages) - 1; i >= 0; i-- {
		m := d.Messages[i]
		if in := m.Meta.InputTokens; m.Role == pool.Assistant && in != nil && *in > 0 {
			out := int64(0)
			if m.Meta.OutputTokens != nil {
				out = *m.Meta.OutputTokens
			}
			return int(*in+out) + w.scale(since)
		}
		since += w.of(d, m)
	}
	return w.Size(d)
}

// PlanCompaction says where to cut: the tail is what of the newest messages takes at most Options.CompactKeep tokens, or where the number of messages is what
// makes it due, CompactKeepMessages of them. It is never cut between a call and its result, the tail begins with a user message where one is in reach, and
// the newest message stays in any case. ErrNothingToCompact says that nothing would go.
func PlanCompaction(ctx context.Context, w *Window, o Options, d *chatctx.Draft) (*Plan, error) {
	if err := w.Measure(ctx, d); err != nil {
		return nil, err
	}
	l := layoutOf(d.Messages)
	cut := turnStart(d.Messages, l.may, tailCut(w, o, d, l.may))
	p := &Plan{Before: w.Counter.Sizes(d)}
	for i, m := range d.Messages {
		switch {
		case i >= cut:
			p.Kept = append(p.Kept, m)
			p.KeptTokens += m.Tokens
		case l.stay[i]:
			p.Pinned = append(p.Pinned, m)
			p.KeptTokens += m.Tokens
		default:
			p.Gone = append(p.Gone, m)
			p.GoneTokens += m.Tokens
		}
	}
	if len(p.Gone) == 0 {
		return nil, ErrNothingToCompact
	}
	p.Start = d.Messages[cut-1].Position + 1
	return p, nil
}

// tailCut is the first index at which the tail is short enough.
func tailCut(w *Window, o Options, d *chatctx.Draft, may []bool) int {
	byNumber := o.CompactMessages > 0 && len(d.Messages) > o.CompactMessages
	n := len(d.Messages)
	cut, size := n, 0
	for i := n - 1; i >= 0; i-- {
		size += w.scale(w.of(d, d.Messages[i]))
		if cut < n && (size > o.CompactKeep && !byNumber || byNumber && n-i > o.CompactKeepMessages) {
			break
		}
		if may[i] && d.Messages[i].Position > 0 {
			cut = i
		}
	}
	if cut == n {
		return 0
	}
	return cut
}

// turnStart moves a cut to the next user message, if one follows.
func turnStart(messages []*chatctx.DraftMessage, may []bool, cut int) int {
	for i := cut; i < len(messages); i++ {
		if may[i] && startsTurn(messages[i]) {
			return i
		}
	}
	return cut
}

// Request is how a compaction gets its summary: Text, where it is not empty; else from Completer, where it is not nil; else it is the digest that rules make.
type Request struct {
	Text      string
	Completer Completer
	// Model and Limit are of the Completer's model: what it may be given at most in tokens; 0 takes the model's budget, or 100,000.
	Model string
	Limit int
	// Embedder, if not nil, makes the vector by which the summary can be found. Its failure does not stop the compaction.
	Embedder Embedder
}

// Compacted says what a compaction did.
type Compacted struct {
	Operation string
	Branch    string
	Session   int // the number of the new session, from 1
	Start     int // its first position
	Summary   string
	// By says where the summary is from: text, model or digest.
	By                                      string
	Messages                                int // that the summary stands for
	Before, After                           int // tokens of the request
	System, SummarySize, Kept, Tools, Calls int
	Budget                                  int
}

// Compact puts a summary in place of a branch's older messages: a new session begins with the kept tail. It is one operation, so undo brings the request back as it was; no message is
// removed from the history. Nothing is open while the summary is made, and messages that arrive meanwhile are in the new session. A summary that fails or is empty changes nothing, nor does
// a history that changed before the cut meanwhile (chatctx.ErrConflict).
func Compact(ctx context.Context, c *chatctx.ChatContext, branchName string, o Options, r Request) (*Compacted, error) {
	d, err := c.Draft(ctx, branchName)
	if err != nil {
		return nil, err
	}
	if err := Exclude().Enhance(ctx, d); err != nil {
		return nil, err
	}
	w := o.Window(c)
	p, err := PlanCompaction(ctx, w, o, d)
	if err != nil {
		return nil, err
	}
	text, by, err := summarise(ctx, w, o, d, p, r)
	if err != nil {
		return nil, err
	}
	summary := summaryMessage(d, p, text, by, w.Counter)
	next := branch.Session{ID: pool.NewID(), Start: p.Start, Summary: summary.ID, Created: pool.Now()}
	if r.Embedder != nil {
		if vectors, err := r.Embedder.Embed(ctx, []string{text}); err == nil && len(vectors) == 1 {
			setEmbedding(&next, r.Embedder.Name(), vectors[0])
		}
	}
	done, number, err := commitSession(ctx, c, d, p, summary, next)
	if err != nil {
		return nil, err
	}
	out := &Compacted{Operation: done.Operation, Branch: done.Branch, Session: number, Start: p.Start, Summary: text, By: by, Messages: len(p.Gone),
		Before: w.scale(p.Before.Total()), Budget: w.Budget}
	out.figures(w, p, d, summary)
	return out, nil
}

// figures are those of the request after the compaction, as it stands now.
func (c *Compacted) figures(w *Window, p *Plan, d *chatctx.Draft, summary *pool.Message) {
	c.System = w.scale(p.Before.System + p.Before.Prompt)
	c.SummarySize = w.scale(w.Counter.Message(summary, nil))
	c.Tools = w.scale(p.Before.Tools)
	c.Kept = w.scale(p.KeptTokens)
	for _, m := range p.Kept {
		if len(m.Calls) > 0 {
			c.Calls += w.scale(m.Tokens)
		}
	}
	c.After = c.System + c.SummarySize + c.Tools + c.Kept + tokens.PerConversation
}

// earlierTokens is how much of earlier summaries is given along.
const earlierTokens = 2000

// summaryMessage is the message of a summary. Earlier summaries are given along before it, a part each and as they were; the oldest go where they take too much.
func summaryMessage(d *chatctx.Draft, p *Plan, text, by string, c *tokens.Counter) *pool.Message {
	m := &pool.Message{ID: pool.NewID(), Role: pool.User, Kind: "summary"}
	if d.Summary != nil {
		parts := d.Summary.Content
		for len(parts) > 1 && partsTokens(parts, c) > earlierTokens {
			parts = parts[1:]
		}
		m.Content = append(m.Content, parts...)
	}
	from := max(d.Session.Start, 1)
	head := fmt.Sprintf("[SUMMARY of the messages %d to %d of this conversation]\n", from, p.Start-1)
	m.Content = append(m.Content, pool.Part{Type: pool.TextPart, Text: head + text})
	quoted, _ := json.Marshal(by) // a text always encodes
	m.AppData = map[string]json.RawMessage{summaryBy: quoted}
	return m
}

// summaryBy is the name under which a summary message says where it is from.
const summaryBy = "summary_by"

func partsTokens(parts []pool.Part, c *tokens.Counter) int {
	n := 0
	for i := range parts {
		n += c.Text(parts[i].Text)
	}
	return n
}

// SummaryText is the summary that a summary message holds, without the earlier ones that it gives along.
func SummaryText(m *pool.Message) string {
	if m == nil || len(m.Content) == 0 {
		return ""
	}
	text := m.Content[len(m.Content)-1].Text
	if strings.HasPrefix(text, "[SUMMARY of ") {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

// tries is how often a compaction reads the branch again when somebody else wrote between reading and writing.
const tries = 5

// commitSession opens the new session. The history before its start must be what the draft saw; what came after it is in the new session.
func commitSession(ctx context.Context, c *chatctx.ChatContext, d *chatctx.Draft, p *Plan, summary *pool.Message, next branch.Session) (*chatctx.Committed, int, error) {
	var err error
	for range tries {
		var snapshot *chatctx.Snapshot
		if snapshot, err = c.Snapshot(ctx, d.Branch); err != nil {
			return nil, 0, err
		}
		if err = unchanged(ctx, snapshot, d, p); err != nil {
			return nil, 0, err
		}
		sessions := snapshot.Info.Sessions
		if len(sessions) == 0 {
			sessions = Sessions(snapshot.Info, d.Session)
		}
		if last := sessions[len(sessions)-1]; last.PrunedTo >= p.Start {
			next.PrunedTo = last.PrunedTo
		}
		b := c.Begin(d.Branch)
		b.Name("compact")
		b.Expect(snapshot.Info.Revision)
		b.PutLoose(summary)
		b.SetSessions(append(slices.Clone(sessions), next))
		var done *chatctx.Committed
		if done, err = b.Commit(ctx); err == nil {
			return done, len(sessions) + 1, nil
		}
		if !errors.Is(err, chatctx.ErrConflict) {
			return nil, 0, err
		}
	}
	return nil, 0, err
}

// unchanged fails with chatctx.ErrConflict where the branch is not what the draft saw before the cut.
func unchanged(ctx context.Context, snapshot *chatctx.Snapshot, d *chatctx.Draft, p *Plan) error {
	conflict := &chatctx.ConflictError{Text: fmt.Sprintf("the branch %q changed while the summary was made; nothing was compacted: compact again", d.Branch)}
	var current pool.ID
	if n := len(snapshot.Info.Sessions); n > 0 {
		current = snapshot.Info.Sessions[n-1].ID
	}
	if current != d.Session.ID {
		return conflict
	}
	ids, err := snapshot.IDs(ctx)
	if err != nil {
		return err
	}
	for _, list := range [][]*chatctx.DraftMessage{p.Gone, p.Pinned} {
		for _, m := range list {
			if m.Position > len(ids) || m.Position > 0 && ids[m.Position-1] != m.ID {
				return conflict
			}
		}
	}
	return nil
}
