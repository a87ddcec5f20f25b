package window

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// Plan says where a compaction cuts. It is made from a draft as the store returns it, before any step.
type Plan struct {
	// Start is the position at which the new session begins; for a stretch, the position after it.
	Start int
	from  int // the position at which the summarised messages begin
	// Gone are the messages that the summary stands for, Pinned those before the cut that stay (also system messages), Kept the tail.
	Gone, Pinned, Kept []*chatctx.DraftMessage
	Before             tokens.Sizes
	GoneTokens         int
	KeptTokens         int // of the tail and the pinned messages
	// Room is what all summaries together may take, in tokens as we count: summaryShare of the limit. 0 means any.
	Room int
	// earlier are the summaries that the request has already, and what somebody wrote in place of a range; digests are those of ranges behind the cut.
	earlier []part
	digests []branch.Digest
	old     *branch.Session // the session whose summary is made anew
	last    int             // the position of the newest message
	stretch bool
	// provider means that the provider compacts. begins finds the session in which the plan was made.
	provider bool
	begins   func([]branch.Session) int
}

// These shares keep a compaction from being useless. They are shares of a request's limit, except leastGain, which is one of the request.
const (
	summaryShare = 0.4  // for all summaries; a model that writes more than it was asked may take half as much again
	tailShare    = 0.25 // the upper bound of the setting compact.keep
	leastGain    = 0.1  // a compaction that clears less is not begun; for a stretch it is a share of the stretch
	freshShare   = 0.25 // new tokens since the last compaction before the next one is due
)

// ownText is the number of tokens that a person's own summary may always have: it may say what no message says, so the request may grow.
const ownText = 1500

// Due reports whether a branch should be compacted automatically. It is true if the session has more than CompactMessages messages or CompactTurns turns, where
// these are set. It is also true if the request (see Used) is over CompactAt of the budget and at least freshShare of the limit is new since the last
// compaction. d is a draft as the store returns it, measured with w.
func Due(w *Window, o Options, d *chatctx.Draft) bool {
	if o.Off(CompactStep) {
		return false
	}
	if o.CompactMessages > 0 && len(d.Messages) > o.CompactMessages || o.CompactTurns > 0 && turnsIn(d.Messages) > o.CompactTurns {
		return true
	}
	return w.Budget > 0 && float64(Used(w, d)) > o.CompactAt*float64(w.Budget) && float64(arrived(w, d)) >= freshShare*float64(w.Limit())
}

func turnsIn(messages []*chatctx.DraftMessage) int {
	n := 0
	for _, m := range messages {
		if startsTurn(m) {
			n++
		}
	}
	return n
}

// compactedKey is the name under which a session keeps the length that the branch had when it began.
const compactedKey = "compacted_at"

// arrived returns how many tokens came since the session began.
func arrived(w *Window, d *chatctx.Draft) int {
	at, n := 0, 0
	_ = json.Unmarshal(d.Session.Data[compactedKey], &at) // unreadable data count as none
	for _, m := range d.Messages {
		if m.Position > at {
			n += w.of(d, m)
		}
	}
	return w.scale(n)
}

// Used returns the least that the branch's next request takes: the provider's count for the last reply and its answer, with our count of what came since, or
// our count alone if it reported nothing. w was measured with the draft.
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

// PlanCompaction returns where to cut. The tail has the newest messages that take at most Options.CompactKeep tokens, or CompactKeepMessages messages if their
// number makes the compaction due. A cut never parts a call from its result; the tail begins with a user message if one is in reach, and without
// Options.KeepsNothing it always has the newest message. The error is ErrNothingToCompact if no message would go.
func PlanCompaction(ctx context.Context, w *Window, o Options, d *chatctx.Draft) (*Plan, error) {
	return planFrom(ctx, w, o, d, nil)
}

// planFrom is PlanCompaction, or cuts where a session began whose summary is to be made anew.
func planFrom(ctx context.Context, w *Window, o Options, d *chatctx.Draft, old *branch.Session) (*Plan, error) {
	if err := w.Measure(ctx, d); err != nil {
		return nil, err
	}
	l := layoutOf(d.Messages)
	cut := turnStart(d.Messages, l.may, tailCut(w, o, d, l.may))
	if o.KeepsNothing {
		cut = firstWaiting(d.Messages, l)
	}
	if old != nil {
		if cut = slices.IndexFunc(d.Messages, func(m *chatctx.DraftMessage) bool { return m.Position >= old.Start }); cut < 0 {
			cut = len(d.Messages)
		}
	}
	p := &Plan{Before: w.Counter.Sizes(d), old: old, provider: o.ProviderCompacts, begins: o.sessionFor()}
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
		return nil, enhancer.ErrNothingToCompact
	}
	p.Room, p.earlier = int(summaryShare*float64(w.counted(w.Limit()))), partsOf(d.Summary)
	p.Start, p.last, p.from = d.Messages[cut-1].Position+1, d.Messages[len(d.Messages)-1].Position, max(d.Session.Start, 1)
	for i := range d.Session.Digests {
		switch g := &d.Session.Digests[i]; {
		case g.Kept && g.From >= p.Start:
			p.digests = append(p.digests, *g)
		case branchstore.IsWritten(g) && standing(g, d.Messages):
			p.earlier = append(p.earlier, newPart(g.From, g.To, "text", strings.TrimPrefix(g.Text, HistoryMark+" ")))
		}
	}
	return p, nil
}

// standing reports whether a digest still stands for what is at its place in a draft.
func standing(g *branch.Digest, messages []*chatctx.DraftMessage) bool {
	var behind []*chatctx.DraftMessage
	stay := layoutOf(messages).stay
	for i, m := range messages {
		if m.Position >= g.From && m.Position <= g.To && !stay[i] {
			behind = append(behind, m)
		}
	}
	return hashOf(behind) == g.Of
}

// firstWaiting returns the index of the first message with a call that waits, the number of messages if there is none.
func firstWaiting(messages []*chatctx.DraftMessage, l layout) int {
	for i, m := range messages {
		if l.may[i] && slices.ContainsFunc(m.Calls, func(c pool.Call) bool { return c.Open() }) {
			return i
		}
	}
	return len(messages)
}

// tailCut returns the first index from which the tail is short enough.
func tailCut(w *Window, o Options, d *chatctx.Draft, may []bool) int {
	keepNumber, n := 0, len(d.Messages)
	switch {
	case o.CompactMessages > 0 && n > o.CompactMessages:
		keepNumber = o.CompactKeepMessages
	case o.CompactTurns > 0 && turnsIn(d.Messages) > o.CompactTurns:
		keepNumber = n - keptTurns(d.Messages, o.CompactTurns)
	}
	cut, size := n, 0
	for i := n - 1; i >= 0; i-- {
		size += w.scale(w.of(d, d.Messages[i]))
		if cut < n && (size > o.CompactKeep && keepNumber == 0 || keepNumber > 0 && n-i > keepNumber) {
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

// keptTurns returns the index at which the newest third of most turns begins.
func keptTurns(messages []*chatctx.DraftMessage, most int) int {
	left := max(most/3, 1)
	for i, m := range slices.Backward(messages) {
		if startsTurn(m) {
			if left--; left == 0 {
				return i
			}
		}
	}
	return 0
}

// turnStart moves a cut to the next user message if there is one.
func turnStart(messages []*chatctx.DraftMessage, may []bool, cut int) int {
	for i := cut; i < len(messages); i++ {
		if may[i] && startsTurn(messages[i]) {
			return i
		}
	}
	return cut
}

// Request says how a compaction gets its summary: from Text if it is not empty, else from Provider, which compacts by itself, or from Completer, if they are not nil,
// else from a digest made by rules.
type Request struct {
	Text      string
	Provider  Compactor
	Completer enhancer.Completer
	// Model is the Completer's model, and Limit what it may be given, in tokens; 0 means the model's budget, or Options.Budget, or 100,000.
	Model string
	Limit int
	// Anew makes the summary of the branch's current session again, of the messages as they are now. The new session takes its place.
	Anew bool
	// Embedder, if not nil, makes the vector by which the summary can be found. If it fails, the compaction goes on without.
	Embedder Embedder
}

// Compacted is the result of a compaction.
type Compacted struct {
	Operation string
	Branch    string
	Session   int // the number of the new session, from 1
	Start     int // its first position
	Summary   string
	// By is the origin of the summary: text, model, digest, or provider, of whose compaction Summary has nothing.
	By string
	// Parts say what each part of the summary stands for: earlier summaries, and the new one. Note says what was not done as usual; "" if nothing.
	Parts                                   []Stands
	Note                                    string
	Messages                                int // the number that the summary stands for
	Before, After                           int // tokens of the request
	System, SummarySize, Kept, Tools, Calls int
	Budget                                  int
}

// Compact puts a summary in place of a branch's older messages: a new session begins with the kept tail. It is one operation, so undo restores the request, and
// no message is removed from the history. No transaction is open while the summary is made, and messages that arrive meanwhile are in the new session. If the
// summary fails or is empty, nothing changes; if the history before the cut changes meanwhile, the error is a chatctx.ErrConflict.
func Compact(ctx context.Context, c *chatctx.ChatContext, branchName string, o Options, r Request) (*Compacted, error) {
	w := o.Window(c)
	d, p, err := planOf(ctx, c, branchName, w, &o, r)
	if err != nil {
		return nil, err
	}
	made, err := summarise(ctx, c, w, o, d, p, r)
	if err != nil {
		return nil, err
	}
	out, err := beginSession(ctx, c, w, d, p, r, made)
	if err != nil {
		return nil, errors.Join(err, made.answer.Lose(ctx, c))
	}
	return out, nil
}

// beginSession stores a summary and the session that begins with it, and after that what makes the summary findable. It does not stop at an interrupt, since the
// summary may be paid for.
func beginSession(ctx context.Context, c *chatctx.ChatContext, w *Window, d *chatctx.Draft, p *Plan, r Request, made *summary) (*Compacted, error) {
	summary := made.message()
	out := p.outcome(w, made)
	if err := p.worth(w, r, out); err != nil {
		return nil, err
	}
	next := branch.Session{ID: pool.NewID(), Start: p.Start, Summary: summary.ID, Created: pool.Now(), Apart: p.apart(d), Digests: p.digests}
	if p.provider {
		next.Provider, next.Model = made.answer.parts[0].Provider, made.answer.parts[0].Model
	}
	setData(&next, compactedKey, p.last)
	if p.old != nil {
		next.PrunedTo, next.Digests, next.Data = p.old.PrunedTo, p.old.Digests, p.old.Data
	}
	stored, number, err := commitSession(context.WithoutCancel(ctx), c, d, p, summary, next)
	if err != nil {
		return nil, err
	}
	out.Operation, out.Branch, out.Session = stored.done.Operation, stored.done.Branch, number
	if r.Embedder != nil && out.Summary != "" {
		embedSummary(ctx, c, r.Embedder, stored, next.ID, out)
	}
	return out, nil
}

// embedSummary adds the vector by which a summary can be found to its session, as a part of the same command. If that fails, the session stays without, and the
// note says so.
func embedSummary(ctx context.Context, c *chatctx.ChatContext, e Embedder, stored *storedSession, session pool.ID, out *Compacted) {
	info, err := c.Branch(ctx, out.Branch)
	if err != nil {
		return
	}
	vectors, err := embed(ctx, e, []string{out.Summary}, info.Sessions)
	if err != nil {
		out.Note = strings.TrimPrefix(out.Note+"; the summary cannot be searched for later: "+err.Error(), "; ")
		return
	}
	at := slices.IndexFunc(info.Sessions, func(s branch.Session) bool { return s.ID == session })
	if at < 0 {
		return // undone, or the branch was cleared
	}
	sessions := slices.Clone(info.Sessions)
	setEmbedding(&sessions[at], e.Name(), vectors[0])
	b := c.Begin(out.Branch)
	b.Name("compact")
	b.Expect(info.Revision)
	b.SetSessions(sessions)
	if done, err := b.Together(stored.batch).Commit(ctx); err == nil {
		out.Operation = done.Operation
	}
}

// planOf reads the draft that a compaction begins with, without the excluded messages, and plans it.
func planOf(ctx context.Context, c *chatctx.ChatContext, branchName string, w *Window, o *Options, r Request) (*chatctx.Draft, *Plan, error) {
	o.ProviderCompacts = r.Provider != nil && r.Text == ""
	var old *branch.Session // whose summary is to be made anew
	d, err := c.DraftIn(ctx, branchName, func(sessions []branch.Session, _ map[string]json.RawMessage) int {
		old = nil
		i := o.sessionFor()(sessions)
		if !r.Anew || i < 0 || sessions[i].Summary == (pool.ID{}) {
			return i
		}
		old = &sessions[i]
		return o.sessionFor()(sessions[:i])
	})
	if err == nil && r.Anew && old == nil {
		err = enhancer.ErrNoSession
	}
	if err == nil {
		err = Exclude().Enhance(ctx, d)
	}
	if err != nil {
		return nil, nil, err
	}
	p, err := planFrom(ctx, w, *o, d, old)
	return d, p, err
}

// PlanFor returns the Plan of a Compact with a Request, without asking a model.
func PlanFor(ctx context.Context, c *chatctx.ChatContext, branchName string, w *Window, o Options, r Request) (*Plan, error) {
	_, p, err := planOf(ctx, c, branchName, w, &o, r)
	return p, err
}

// apart returns the positions before the new session's start that no summary tells of, except system messages.
func (p *Plan) apart(d *chatctx.Draft) []int {
	told := map[int]bool{}
	for _, m := range p.Gone {
		told[m.Position] = true
	}
	for _, m := range p.Pinned {
		told[m.Position] = isSystem(m)
	}
	apart := slices.Clone(d.Session.Apart)
	for at := p.from; at < p.Start; at++ {
		if !told[at] {
			apart = append(apart, at)
		}
	}
	return apart
}

// least returns how many tokens, as we count, a compaction must clear.
func (p *Plan) least() float64 {
	if p.stretch {
		return leastGain * float64(p.GoneTokens)
	}
	return leastGain * float64(p.Before.Total())
}

// worth returns a *NoGainError for a compaction that clears too little. A person's own summary may be longer than what it replaces, within reason.
func (p *Plan) worth(w *Window, r Request, c *Compacted) error {
	own := !p.stretch && r.Text != "" && w.Counter.Text(r.Text) <= ownText
	if own && (c.Budget == 0 || c.After <= w.Limit()) || float64(w.counted(c.Before-c.After)) >= p.least() {
		return nil
	}
	return &enhancer.NoGainError{Before: c.Before, After: c.After, Least: leastGain, Stretch: p.stretch}
}

// outcome returns the figures of the request with a summary.
func (p *Plan) outcome(w *Window, made *summary) *Compacted {
	c := &Compacted{Start: p.Start, Summary: made.text(), By: made.by(), Parts: made.stands(), Note: made.note, Messages: len(p.Gone), Before: w.scale(p.Before.Total()), Budget: w.Budget,
		System: w.scale(p.Before.System + p.Before.Prompt), Tools: w.scale(p.Before.Tools), Kept: w.scale(p.KeptTokens)}
	for _, m := range p.Kept {
		if len(m.Calls) > 0 {
			c.Calls += w.scale(m.Tokens)
		}
	}
	if p.stretch {
		size := tokens.PerMessage + w.Counter.Text(stretchText(made))
		c.Start, c.SummarySize, c.After = p.from, w.scale(size), w.scale(p.Before.Total()-p.GoneTokens+size)
		return c
	}
	c.SummarySize = w.scale(w.Counter.Message(made.message(), nil))
	c.After = c.System + c.SummarySize + c.Tools + c.Kept + tokens.PerConversation
	return c
}

// Foretell returns what Compact, or CompactStretch, would do: After is the size of the request, and Summary the text or the digest by rules. If a model is to
// write the summary, it is not asked: Summary is empty, and After is an upper bound. The error is the one that there would be, also a *NoGainError.
func (p *Plan) Foretell(w *Window, r Request) (*Compacted, error) {
	if r.Text == "" && (p.provider || r.Completer != nil) {
		by := "model"
		if p.provider {
			by = "provider"
		}
		c := &Compacted{Start: p.Start, By: by, Messages: len(p.Gone), Before: w.scale(p.Before.Total()), After: p.atMost(w), Budget: w.Budget}
		if p.stretch {
			c.Start = p.from
		}
		return c, p.gains(w)
	}
	made, err := p.withoutModel(w, r)
	if err != nil {
		return nil, err
	}
	c := p.outcome(w, made)
	return c, p.worth(w, r, c)
}

// tries is how often a compaction reads the branch again after another writer changed it between reading and writing.
const tries = 5

// storedSession is a new session on its branch.
type storedSession struct {
	batch *chatctx.Batch
	done  *record.Committed
}

// commitSession opens the new session, in the place of the old one if its summary is made anew. The history before its start must be the one that the draft has; newer messages are in the new session.
func commitSession(ctx context.Context, c *chatctx.ChatContext, d *chatctx.Draft, p *Plan, summary *pool.Message, next branch.Session) (*storedSession, int, error) {
	current := &d.Session
	if p.old != nil {
		current = p.old
	}
	var err error
	for range tries {
		var snapshot *chatctx.Snapshot
		if snapshot, err = c.Snapshot(ctx, d.Branch); err != nil {
			return nil, 0, err
		}
		if err = unchanged(ctx, snapshot, d, p, current); err != nil {
			return nil, 0, err
		}
		sessions := snapshot.Info.Sessions
		if p.begins(sessions) < 0 {
			sessions = Sessions(snapshot.Info, d.Session)
		}
		if at := p.begins(sessions); p.old != nil && p.provider {
			sessions = slices.Delete(slices.Clone(sessions), at, at+1)
		} else if p.old != nil {
			sessions = sessions[:at]
		} else if sessions[at].PrunedTo >= p.Start {
			next.PrunedTo = sessions[at].PrunedTo
		}
		b := c.Begin(d.Branch)
		b.Name("compact")
		b.Expect(snapshot.Info.Revision)
		b.PutLoose(summary)
		b.SetSessions(append(slices.Clone(sessions), next))
		stored := &storedSession{batch: b.Together(b)}
		if stored.done, err = b.Commit(ctx); err == nil {
			return stored, len(sessions) + 1, nil
		}
		if !errors.Is(err, chatctx.ErrConflict) {
			return nil, 0, err
		}
	}
	return nil, 0, err
}

// unchanged returns a chatctx.ErrConflict unless the branch is in a session and before the cut is the one that the draft has.
func unchanged(ctx context.Context, snapshot *chatctx.Snapshot, d *chatctx.Draft, p *Plan, in *branch.Session) error {
	conflict := &record.ConflictError{Text: fmt.Sprintf("the branch %q changed while the summary was made; nothing was compacted: compact again", d.Branch)}
	var current pool.ID
	if i := p.begins(snapshot.Info.Sessions); i >= 0 {
		current = snapshot.Info.Sessions[i].ID
	}
	if current != in.ID {
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
