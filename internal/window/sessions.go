package window

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// SessionInfo describes a session of a branch.
type SessionInfo struct {
	branch.Session
	Number   int  // from 1
	Current  bool // requests begin with it
	End      int  // the position of its last message; Start-1 if it has none
	Messages int
	Tokens   int    // of its messages, by our count
	Before   string // the summary with which it began
	// Summary is the summary that stands for it since, with which the next session began; "" for the current one.
	Summary string
	of      Stands // what Summary stands for
	// Input and Output are the sums of what the provider reported for its replies. CacheRead is the part of the input that came from its cache, CacheWrite the
	// part that it stored there.
	Input, Output, CacheRead, CacheWrite int64
}

// ListSessions returns a branch's sessions, the oldest first. A branch that was never compacted has one, without an id.
func ListSessions(ctx context.Context, c *chatctx.ChatContext, branchName string, o Options) ([]SessionInfo, error) {
	snapshot, err := c.Snapshot(ctx, branchName)
	if err != nil {
		return nil, err
	}
	list := snapshot.Info.Sessions
	if len(list) == 0 {
		list = []branch.Session{{Start: 1}}
	}
	out := make([]SessionInfo, len(list))
	counter, current := o.Window(c).Counter, o.SessionOf(list)
	for i, s := range list {
		out[i] = SessionInfo{Session: s, Number: i + 1, Current: i == current, End: snapshot.Len()}
		if next := after(list, i); next != nil {
			out[i].End = max(next.Start-1, min(numberIn(next, leftKey), snapshot.Len()), s.Start-1)
		}
		if err := out[i].count(ctx, snapshot, counter); err != nil {
			return nil, err
		}
		if s.Summary == (pool.ID{}) {
			continue
		}
		m, err := c.Message(ctx, s.Summary)
		if err != nil {
			return nil, err
		}
		out[i].Before = SummaryText(m)
		before := branchstore.Current(list[:i])
		if before >= 0 && s.Provider == "" && branchstore.FirstWith(list, s.Summary) == i {
			out[before].Summary = out[i].Before
			if stands := SummaryParts(m); len(stands) > 0 {
				out[before].of = stands[len(stands)-1]
			}
		}
	}
	return out, nil
}

// SessionOf returns the index of the session with which requests begin, -1 if there is none.
func (o *Options) SessionOf(sessions []branch.Session) int {
	if o.InForce != nil && len(sessions) > 0 {
		return o.InForce(sessions)
	}
	return branchstore.Current(sessions)
}

// after returns the session that ended the one with an index, nil if none did. One that a provider began ends none of those that are for everybody.
func after(sessions []branch.Session, i int) *branch.Session {
	for k := i + 1; k < len(sessions); k++ {
		if sessions[k].Provider == "" || sessions[i].Provider != "" {
			return &sessions[k]
		}
	}
	return nil
}

// count sets the figures of a session's messages.
func (s *SessionInfo) count(ctx context.Context, snapshot *chatctx.Snapshot, counter *tokens.Counter) error {
	d := &chatctx.Draft{}
	if s.End >= s.Start {
		for e, err := range snapshot.Entries(ctx, s.Start, s.End) {
			if err != nil {
				return err
			}
			d.Messages = append(d.Messages, &chatctx.DraftMessage{Entry: *e})
		}
	}
	if err := counter.Fill(ctx, d); err != nil {
		return err
	}
	s.Messages = len(d.Messages)
	for _, m := range d.Messages {
		s.Tokens += m.Tokens
		for _, f := range []struct {
			sum *int64
			n   *int64
		}{{&s.Input, m.Meta.InputTokens}, {&s.Output, m.Meta.OutputTokens}, {&s.CacheRead, m.Meta.CacheRead}, {&s.CacheWrite, m.Meta.CacheWrite}} {
			if f.n != nil {
				*f.sum += *f.n
			}
		}
	}
	return nil
}

// FindSession returns a session by its number or by at least four digits of the beginning or end of its id. The errors are chatctx.NotFound and
// chatctx.Ambiguous.
func FindSession(list []SessionInfo, ref string) (*SessionInfo, error) {
	var hits []*SessionInfo
	n, err := strconv.Atoi(ref)
	for i := range list {
		id := list[i].ID.String()
		if err == nil && n == list[i].Number {
			return &list[i], nil
		}
		if len(ref) >= 4 && list[i].ID != (pool.ID{}) && (strings.HasPrefix(id, ref) || strings.HasSuffix(id, ref)) {
			hits = append(hits, &list[i])
		}
	}
	switch len(hits) {
	case 0:
		return nil, base.NotFound("session", ref)
	case 1:
		return hits[0], nil
	}
	names := make([]string, len(hits))
	for i, h := range hits {
		names[i] = h.ID.String()
	}
	return nil, base.Ambiguous("session", ref, names, 0)
}

// Resumed is the result of Resume.
type Resumed struct {
	Operation string
	Branch    string
	Session   int  // the number of the new session
	Of        int  // the number of the session that was resumed
	Whole     bool // with its messages, not only with its summary
	Tokens    int  // of the part that was brought back
}

// Resume goes back to a session: a new session begins with its messages if they take at most Options.ResumeShare of the budget, or there is no budget or no
// summary, else with its summary. A digest of their summaries then stands for the messages of later sessions if there is a budget. It is one operation that
// undo takes back. Resuming the current session is a conflict.
func Resume(ctx context.Context, c *chatctx.ChatContext, branchName string, o Options, ref string) (*Resumed, error) {
	list, err := ListSessions(ctx, c, branchName, o)
	if err != nil {
		return nil, err
	}
	s, err := FindSession(list, ref)
	if err != nil {
		return nil, err
	}
	if s.Current {
		return nil, &record.ConflictError{Text: fmt.Sprintf("session %d is the current one already", s.Number)}
	}
	if s.Provider != "" {
		return nil, &record.ConflictError{Text: fmt.Sprintf("session %d is one of %s, which requests for %s begin with by themselves; resume another", s.Number, s.Provider, s.Model)}
	}
	info, err := c.Branch(ctx, branchName)
	if err != nil {
		return nil, err
	}
	out := &Resumed{Session: len(list) + 1, Of: s.Number, Tokens: s.Tokens}
	out.Whole = o.Budget == 0 || s.Summary == "" || float64(s.Tokens) <= o.ResumeShare*float64(o.Budget)
	next := branch.Session{ID: pool.NewID(), Start: s.Start, Summary: s.Session.Summary, Created: pool.Now(), Apart: s.Apart}
	if out.Whole {
		rest, err := later(ctx, c, info, s.End+1, list[s.Number:], o)
		if err != nil {
			return nil, err
		}
		next.Digests = append(carried(&s.Session, s.End, o.Budget), rest...)
		setResumed(&next, info.Messages, rest)
	} else {
		ended := after(info.Sessions, s.Number-1)
		next.Start, next.Summary, next.Apart = info.Messages+1, ended.Summary, ended.Apart
		out.Tokens = o.Window(c).Counter.Text(s.Summary)
	}
	b := c.Begin(info.Name)
	b.Name("resume")
	b.Expect(info.Revision)
	b.SetSessions(append(slices.Clone(info.Sessions), next))
	done, err := b.Commit(ctx)
	if err != nil {
		return nil, err
	}
	out.Operation, out.Branch = done.Operation, done.Branch
	return out, nil
}

// The keys of what a resumed session records: the position up to which its last digest stands, if it has one, and the last position of the session that was
// left.
const (
	resumedKey = "resumed"
	leftKey    = "left"
)

// setResumed records where a session was resumed, on a branch of that many messages, and the digest that stands for the later ones.
func setResumed(s *branch.Session, messages int, later []branch.Digest) {
	s.Data = map[string]json.RawMessage{leftKey: json.RawMessage(strconv.Itoa(messages))}
	if len(later) > 0 {
		s.Data[resumedKey] = json.RawMessage(strconv.Itoa(later[0].To))
	}
}

// carried returns the lasting digests of a session, up to its end, for the one that resumes it. There they are digests that somebody asked for.
func carried(s *branch.Session, end, budget int) (digests []branch.Digest) {
	for _, d := range Lasting(s, budget) {
		if d.To <= end {
			d.Kept = true
			digests = append(digests, d)
		}
	}
	return digests
}

// Lasting returns the digests of a session that stand in each request in place of their messages: those that a person asked for and, with a budget, that of a
// resumed session. Others come and go with the room.
func Lasting(s *branch.Session, budget int) (digests []branch.Digest) {
	resumed := numberIn(s, resumedKey)
	for _, d := range s.Digests {
		if d.Kept || budget > 0 && resumed > 0 && d.To == resumed {
			digests = append(digests, d)
		}
	}
	return digests
}

// numberIn returns a number of a session's data, 0 if there is none.
func numberIn(s *branch.Session, key string) int {
	n := 0
	_ = json.Unmarshal(s.Data[key], &n) // unreadable data count as none
	return n
}

// later returns the digest that stands for the messages after a session that is resumed, from a position on, or none if there are none. The later sessions may
// themselves have gone back to before it.
func later(ctx context.Context, c *chatctx.ChatContext, info *record.BranchInfo, from int, sessions []SessionInfo, o Options) ([]branch.Digest, error) {
	to := info.Messages
	if from > to {
		return nil, nil
	}
	snapshot, err := c.Snapshot(ctx, info.Name)
	if err != nil {
		return nil, err
	}
	entries, err := snapshot.Page(ctx, from, to)
	if err != nil {
		return nil, err
	}
	marked, err := c.Marks(ctx)
	if err != nil {
		return nil, err
	}
	var messages []*chatctx.DraftMessage
	for _, e := range entries {
		mark := marked[e.ID]
		if mark != enhancer.Excluded {
			messages = append(messages, &chatctx.DraftMessage{Entry: *e, Pinned: mark == enhancer.Pinned})
		}
	}
	var gone []*chatctx.DraftMessage
	stay := layoutOf(messages).stay
	for i, m := range messages {
		if !stay[i] {
			gone = append(gone, m)
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	// A summary that tells of what stands before cannot be a part of it.
	sessions = slices.DeleteFunc(slices.Clone(sessions), func(s SessionInfo) bool { return s.Summary == "" || s.of.From < from })
	by := "digest"
	if slices.ContainsFunc(sessions, func(s SessionInfo) bool { return s.of.By == "text" }) {
		by = "text"
	}
	return []branch.Digest{{From: gone[0].Position, To: gone[len(gone)-1].Position, Text: laterText(gone, sessions, o.Window(c).Counter, o.DigestTokens), Of: hashOf(gone), Squeezed: true, By: by}}, nil
}

// laterText returns the digest of messages of later sessions: their summaries, and facts of the messages of which none tells, with at most limit tokens.
func laterText(gone []*chatctx.DraftMessage, sessions []SessionInfo, counter *tokens.Counter, limit int) string {
	var notes []string
	told := map[int]bool{}
	for _, s := range sessions {
		notes = append(notes, strings.Join(strings.Fields(s.Summary), " "))
		for pos := s.Start; pos <= s.End; pos++ {
			told[pos] = true
		}
	}
	var untold []*chatctx.DraftMessage
	for _, m := range gone {
		if !told[m.Position] {
			untold = append(untold, m)
		}
	}
	f := &facts{}
	if len(untold) > 0 {
		f = parseDigest(gather(untold, nil, func(m *chatctx.DraftMessage) *pool.Message { return m.Message }).within(counter, limit))
	}
	f.messages, f.notes = len(gone), append(notes, f.notes...)
	return f.String()
}

// SetPruned moves the prune mark of a branch's current session, as chatctx prune does: one line stands for each result, except the newest Options.PruneKeep
// tokens of them and those that the model has not read. It ignores the threshold and needs no budget.
func SetPruned(ctx context.Context, c *chatctx.ChatContext, branchName string, o Options) (*Pruning, error) {
	info, err := c.Branch(ctx, branchName)
	if err != nil {
		return nil, err
	}
	out, session, err := planPruning(ctx, c, info.Name, o)
	if err != nil || session == nil {
		return out, err
	}
	b := c.Begin(info.Name)
	b.Name("prune")
	b.Expect(info.Revision)
	b.SetSessions(Sessions(info, *session))
	done, err := b.Commit(ctx)
	if err != nil {
		return nil, err
	}
	out.Operation = done.Operation
	return out, nil
}

// PlanPruning returns what SetPruned would do.
func PlanPruning(ctx context.Context, c *chatctx.ChatContext, branchName string, o Options) (*Pruning, error) {
	out, _, err := planPruning(ctx, c, branchName, o)
	return out, err
}

// planPruning prunes a draft; the session is nil if the mark did not move.
func planPruning(ctx context.Context, c *chatctx.ChatContext, branchName string, o Options) (*Pruning, *branch.Session, error) {
	d, err := c.Draft(ctx, branchName)
	if err != nil {
		return nil, nil, err
	}
	out := &Pruning{Branch: d.Branch}
	if out.RequestBefore, err = requestSize(ctx, c, d.Branch, o, d.Session); err != nil {
		return nil, nil, err
	}
	asked := o
	o.PruneThreshold = 0
	if o.PrunePolicy == KeepAll {
		o.PrunePolicy = PruneAuto
	}
	w := o.Window(c)
	w.Budget = cmp.Or(w.Budget, noBudget)
	if err := Exclude().Enhance(ctx, d); err != nil {
		return nil, nil, err
	}
	if err := w.Measure(ctx, d); err != nil {
		return nil, nil, err
	}
	before := d.Session.PrunedTo
	out.Before = results(w, d)
	if err := Prune(w, o).Enhance(ctx, d); err != nil {
		return nil, nil, err
	}
	out.After, out.Position = results(w, d), d.Session.PrunedTo
	if out.RequestAfter, err = requestSize(ctx, c, d.Branch, asked, d.Session); err != nil {
		return nil, nil, err
	}
	for _, n := range d.Notes {
		if n.Step == "prune" {
			out.Results++
		}
	}
	if d.Session.PrunedTo == before {
		return out, nil, nil
	}
	return out, &d.Session, nil
}

// requestSize returns the tokens of a branch's next request if its session were this one: after the steps, or a bound if a compaction is due.
func requestSize(ctx context.Context, c *chatctx.ChatContext, branchName string, o Options, session branch.Session) (int, error) {
	d, err := c.Draft(ctx, branchName)
	if err != nil {
		return 0, err
	}
	d.Session = session
	p := Standard(o, c, nil)
	f, err := p.Foresee(ctx, o, d)
	if err != nil {
		return 0, err
	}
	done, err := p.Run(ctx, d)
	var budget *enhancer.BudgetError
	switch {
	case errors.As(err, &budget):
		return budget.Size, nil
	case err != nil:
		return 0, err
	}
	f.Settled(done)
	return f.Tokens, nil
}

// noBudget is a budget that no request reaches.
const noBudget = 1 << 30

// Pruning is the result of SetPruned.
type Pruning struct {
	Operation                   string // "" if the mark did not move
	Branch                      string
	Position                    int // of the mark
	Results                     int // the number that are one line now
	Before, After               int // tokens of tool results
	RequestBefore, RequestAfter int // tokens of the branch's next request, as the steps leave it
}

// results returns the tokens of all tool results.
func results(w *Window, d *chatctx.Draft) int {
	n := 0
	for _, m := range d.Messages {
		if m.Result != nil {
			n += w.of(d, m)
		}
	}
	return n
}
