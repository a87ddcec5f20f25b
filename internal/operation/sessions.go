package operation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

func init() { Register(Group{Heading: "The window", Of: sessionOperations}) }

func sessionOperations() []*Operation {
	return []*Operation{
		Define("sessions.compact", "", Run, "put a summary in place of the older messages, and begin a new session", compactBranch).Caching().Fails("empty").Fails(asking...).
			As("compact", "chatctx compact --dry-run\nchatctx compact --keep-tokens 2000\nchatctx compact --from u2 --to a4\nchatctx compact u1..a4\nchatctx compact --summary \"We fly on Friday; the hotel is booked.\"").
			With("The history stays, and undo brings the old request back. A range A..B summarises only the messages after A up to and including B; without B all but the newest message. The summary is TEXT, else written by the model that the settings compact.model and compact.provider name (else the branch's), else, or with --digest, made by rules."),
		Define("sessions.prune", "", Write, "shorten old tool results to one line each, from now on", pruneResults).Caching().As("prune", "chatctx prune").
			With("Results that the model has not read yet stay. The store keeps them all; undo brings them back into the request."),
		Define("sessions.list", "GET", Read, "list the branch's sessions with their summaries and figures", listSessions).Caching().Fails(asking...).As("sessions", "chatctx sessions").
			With("--search asks the embedding server that the settings embedding.model, embedding.base_url and embedding.key_env name. It has to speak OpenAI's protocol."),
		Define("sessions.resume", "", Write, "go back to a session: whole if it fits, else with its summary", resumeSession).As("resume", "chatctx resume 1").
			With("SESSION is a number as sessions shows it, or an id. The messages of later sessions stay on the branch; with a budget, a digest of their summaries, and of what has none, stands for them."),
	}
}

// Whom says whom to ask, for this command alone.
type Whom struct {
	Provider string `json:"-" flag:"provider" doc:"the {PROVIDER}: openai, openai-responses, anthropic, gemini or ollama"`
	Model    string `json:"-" flag:"model,m" doc:"the {MODEL}; else the setting model, else CHATCTX_MODEL"`
}

// Asks returns whom to ask, and whether that is anybody.
func (w *Whom) Asks() (Whom, bool) { return *w, *w != (Whom{}) }

// branchOf finds a branch, the active one if it has no name, and returns its name.
func (r *Request) branchOf(t Target) (*chatctx.ChatContext, string, error) {
	c, err := r.Store.Context(r.Ctx, t.Context)
	if err != nil {
		return nil, "", err
	}
	info, err := c.Branch(r.Ctx, t.Branch)
	if err != nil {
		return nil, "", err
	}
	return c, info.Name, nil
}

// turnOn returns a turn of a branch as this request makes one.
func (r *Request) turnOn(c *chatctx.ChatContext, branch string) *turn.Turn {
	t := &turn.Turn{Context: c, Branch: branch, Settings: map[string]json.RawMessage{}}
	if r.Turn != nil {
		r.Turn(t)
	}
	return t
}

// Foreseen is a branch's next request.
type Foreseen struct {
	*turn.Request
	Over error // it does not fit: the request is what is left
}

// Ignored returns the settings that are not in force.
func (f *Foreseen) Ignored() []error {
	if f == nil || f.Request == nil || f.Draft == nil {
		return nil
	}
	return f.Draft.Ignored
}

// foresee makes a branch's next request up to the draft, and says what it takes.
func (r *Request) foresee(t *turn.Turn) (*Foreseen, error) {
	req, err := t.Fit(r.Ctx)
	f := &Foreseen{Request: req}
	var budget *enhancer.BudgetError
	if errors.As(err, &budget) {
		window.Of(req).Forecast.Tokens, f.Over = budget.Size, err
		return f, nil
	}
	return f, err
}

// Compacting says what a summary shall stand for, and whose it is.
type Compacting struct {
	Target
	Range        string     `json:"range,omitempty" arg:"[A..B]"`
	KeepTokens   *int       `json:"keep_tokens,omitempty" flag:"keep-tokens" doc:"keep the newest {N} tokens as they are; else the setting compact.keep"`
	KeepMessages *int       `json:"keep_messages,omitempty" flag:"keep-messages" doc:"keep the newest {N} messages instead; 0 begins a session with the summary alone"`
	From         record.Ref `json:"from,omitempty" flag:"from" doc:"summarise a stretch in the middle alone, from {REF} on"`
	To           record.Ref `json:"to,omitempty" flag:"to" doc:"the last message {REF} of that stretch"`
	Anew         bool       `json:"anew,omitempty" flag:"anew" doc:"make the newest summary again, of the messages as they are now"`
	Summary      string     `json:"summary,omitempty" flag:"summary" doc:"the summary's {TEXT}; - for standard input"`
	Digest       bool       `json:"digest,omitempty" flag:"digest" doc:"a summary made by rules, without a model"`
	DryRun
	RawInput
}

// Stretch reports whether only a stretch is summarised.
func (in *Compacting) Stretch() bool { return in.Range != "" || in.From != "" || in.To != "" }

// Keeps reports whether it says how much stays.
func (in *Compacting) Keeps() bool { return in.KeepTokens != nil || in.KeepMessages != nil }

// Compacted is a compaction, or what one would do.
type Compacted struct {
	contract.Where
	Session  int    `json:"session"`
	Start    int    `json:"start"`
	By       string `json:"by"`
	Summary  string `json:"summary"`
	Messages int    `json:"messages"`
	Before   int    `json:"before"`
	After    int    `json:"after"`
	System   int    `json:"system"`
	Size     int    `json:"summary_tokens"`
	Kept     int    `json:"kept"`
	Tools    int    `json:"tools"`
	Calls    int    `json:"calls"`
	Budget   *int   `json:"budget"`
	// Summaries says what each part of the summary stands for.
	Summaries []window.Stands  `json:"summaries"`
	Note      string           `json:"note,omitempty"`
	None      []contract.Where `json:"-" when:""` // in place of the rest: there was nothing to do
	Plan      []CompactionPlan `json:"-" when:"dry-run"`

	Notice       string    `json:"-"`
	Next         *Foreseen `json:"-"` // nil if it is unknown
	Unsearchable error     `json:"-"` // the summary cannot be searched for later
}

// CompactionPlan is what a compaction would do.
type CompactionPlan struct {
	DryRun bool `json:"dry_run"`
	contract.Where
	Start    int    `json:"start"`
	Gone     int    `json:"gone"`
	Kept     int    `json:"kept"`
	Pinned   int    `json:"pinned"`
	Before   int    `json:"before"`
	After    int    `json:"after"`
	AtMost   bool   `json:"at_most"` // after is a bound, since a model will write the summary
	By       string `json:"by"`
	Summary  string `json:"summary,omitempty"`
	Messages []Gone `json:"messages"`

	Stay   int    `json:"-"` // messages
	Origin string `json:"-"` // whose the summary is, in words
}

// Gone is a message that a summary would stand for.
type Gone struct {
	ID       chatctx.ID `json:"id"`
	Role     pool.Role  `json:"role"`
	Position int        `json:"position"`
	Tokens   int        `json:"tokens"`
	Preview  string     `json:"preview"`
}

// CompactionError is the error of a summary that was not made, and whom it was asked of.
type CompactionError struct {
	error
	Provider bool // the branch's provider
	Model    bool // a model
}

func (e *CompactionError) Unwrap() error { return e.error }

// compaction is a compaction on its way.
type compaction struct {
	*Request
	in       *Compacting
	c        *chatctx.ChatContext
	branch   string
	options  window.Options
	asked    window.Request
	from, to int // of a stretch
}

func compactBranch(r *Request, in *Compacting) (v Compacted, err error) {
	k := &compaction{Request: r, in: in}
	if k.c, k.branch, err = r.branchOf(in.Target); err != nil {
		return v, err
	}
	if err := k.prepare(); err != nil {
		return v, err
	}
	if in.DryRun.DryRun {
		plan, err := k.plan()
		if err != nil {
			return k.nothing(&CompactionError{error: err})
		}
		return Compacted{Plan: []CompactionPlan{plan}}, nil
	}
	if k.asked.Embedder, err = embedderOf(r.Ctx, r.turnOn(k.c, k.branch)); err != nil {
		v.Unsearchable = err
	}
	var done *window.Compacted
	if in.Stretch() {
		done, err = window.CompactStretch(r.Ctx, k.c, k.branch, k.options, k.asked, k.from, k.to)
	} else {
		done, err = window.Compact(r.Ctx, k.c, k.branch, k.options, k.asked)
	}
	if err != nil {
		return k.nothing(&CompactionError{err, k.asked.Provider != nil, k.asked.Completer != nil})
	}
	r.Done = &record.Committed{Operation: done.Operation, Context: k.c.ID, Branch: done.Branch}
	if next, err := r.foresee(r.turnOn(k.c, k.branch)); err == nil {
		v.Next, done.After = next, window.Of(next.Request).Forecast.Tokens // no two figures stand for one request
	}
	return Compacted{Where: contract.Where{Operation: done.Operation, Context: k.c.ID, Branch: done.Branch}, Session: done.Session, Start: done.Start, By: done.By,
		Summary: done.Summary, Messages: done.Messages, Before: done.Before, After: done.After, System: done.System, Size: done.SummarySize, Kept: done.Kept,
		Tools: done.Tools, Calls: done.Calls, Budget: orNull(done.Budget), Summaries: done.Parts, Note: done.Note,
		Notice: done.Notice(), Next: v.Next, Unsearchable: v.Unsearchable}, nil
}

// nothing returns the result of a compaction that has nothing to do, and any other error.
func (k *compaction) nothing(err error) (v Compacted, _ error) {
	if errors.Is(err, enhancer.ErrNothingToCompact) {
		v.None, err = []contract.Where{{Context: k.c.ID, Branch: k.branch}}, nil
	}
	return v, err
}

// prepare finds the settings, the stretch, and who makes the summary.
func (k *compaction) prepare() (err error) {
	if k.options, err = WindowOptions(k.Ctx, k.turnOn(k.c, k.branch)); err != nil {
		return err
	}
	k.options.CompactMessages = 0
	if k.in.KeepTokens != nil {
		k.options.CompactKeep = *k.in.KeepTokens
	}
	if k.in.KeepMessages != nil {
		k.options.CompactMessages, k.options.CompactKeepMessages, k.options.KeepsNothing = 1, *k.in.KeepMessages, *k.in.KeepMessages == 0
	}
	if k.in.Stretch() {
		if k.from, k.to, err = k.stretch(); err != nil {
			return err
		}
	}
	k.asked = window.Request{Text: k.in.Summary, Anew: k.in.Anew}
	if k.in.Summary != "" || k.in.Digest {
		return nil
	}
	return k.author()
}

// author sets who makes the summary: the provider, if compact.by says so, or a model. The summary of a stretch, and one of ours that is made anew, is ours.
func (k *compaction) author() (err error) {
	t, o := k.turnOn(k.c, k.branch), &k.options
	ours := k.in.Stretch()
	if k.in.Anew {
		info, err := k.c.Branch(k.Ctx, k.branch)
		if err != nil {
			return err
		}
		at := o.SessionOf(info.Sessions)
		ours = at < 0 || info.Sessions[at].Provider == ""
	}
	if !ours {
		asking, err := askingOf(k.Ctx, t)
		if err != nil {
			return err
		}
		if k.asked.Provider = asking.Compactor(); k.asked.Provider != nil {
			return nil
		}
	}
	if o.Model != "" || o.CompactModel != "" {
		k.asked.Completer, err = t.Completer(k.Ctx)
		k.asked.Model = cmp.Or(o.CompactModel, o.Model)
	}
	return err
}

// RangeError means that a text is no range A..B, or that it is one where one message is meant.
type RangeError struct {
	Ref   record.Ref
	Range bool
}

func (e *RangeError) Error() string {
	if e.Range {
		return fmt.Sprintf("%q is a range, and one message is meant", e.Ref)
	}
	return fmt.Sprintf("%q is not a range A..B", e.Ref)
}

func (e *RangeError) Unwrap() error { return chatctx.ErrInvalid }

// stretch returns the positions of a stretch. The newest message is always kept, so a range without an end goes up to the one before.
func (k *compaction) stretch() (from, to int, err error) {
	snap, err := k.c.Snapshot(k.Ctx, k.branch)
	if err != nil {
		return 0, 0, err
	}
	ref := k.in.Range
	if ref == "" {
		return k.ends(snap)
	}
	part, err := snap.Range(k.Ctx, record.Ref(ref))
	switch {
	case err != nil:
		return 0, 0, err
	case part == nil:
		return 0, 0, &RangeError{Ref: record.Ref(ref)}
	case part.Snapshot != snap:
		return 0, 0, &record.RefError{Kind: "message", Ref: ref, Branch: snap.Info.Name, On: part.Snapshot.Info.Name}
	}
	if from, to = part.From, part.To; strings.HasSuffix(ref, "..") {
		to--
	}
	if to < from {
		return 0, 0, base.NotFound("message in the range", ref)
	}
	return from, to, nil
}

func (k *compaction) ends(snap *chatctx.Snapshot) (from, to int, err error) {
	var at [2]int
	for i, ref := range []record.Ref{k.in.From, k.in.To} {
		e, err := snap.Place(k.Ctx, ref)
		if err != nil {
			return 0, 0, err
		}
		at[i] = e.Position
	}
	if at[0] > at[1] {
		return 0, 0, base.Invalid("--from stands after --to: #%d and #%d", at[0], at[1])
	}
	return at[0], at[1], nil
}

// plan says what the compaction would do.
func (k *compaction) plan() (v CompactionPlan, err error) {
	w := k.options.Window(k.c)
	var p *window.Plan
	if k.in.Stretch() {
		p, err = k.planStretch(w)
	} else {
		p, err = window.PlanFor(k.Ctx, k.c, k.branch, w, k.options, k.asked)
	}
	if err != nil {
		return v, err
	}
	would, err := p.Foretell(w, k.asked)
	if err != nil {
		return v, err
	}
	v = CompactionPlan{true, contract.Where{Context: k.c.ID, Branch: k.branch}, would.Start, p.GoneTokens, p.KeptTokens, len(p.Pinned), would.Before, would.After,
		would.By == "model" || would.By == "provider", would.By, would.Summary, []Gone{}, len(p.Kept), would.Origin()}
	for _, m := range p.Gone {
		v.Messages = append(v.Messages, Gone{m.ID, m.Role, m.Position, m.Tokens, tokens.Preview(m.Message, 60)})
	}
	return v, nil
}

func (k *compaction) planStretch(w *window.Window) (*window.Plan, error) {
	d, err := k.c.Draft(k.Ctx, k.branch)
	if err != nil {
		return nil, err
	}
	if err := window.Exclude().Enhance(k.Ctx, d); err != nil {
		return nil, err
	}
	return window.PlanStretch(k.Ctx, w, d, k.from, k.to)
}

// Shortening says which tool results to shorten.
type Shortening struct {
	Target
	KeepTokens *int `json:"keep_tokens,omitempty" flag:"keep-results" old:"keep-tokens" doc:"leave the newest {N} tokens of them; else the setting prune.keep"`
	DryRun
}

// Shortened is what pruning did, or would do.
type Shortened struct {
	DryRun bool `json:"dry_run,omitempty"`
	contract.Where
	Position      int  `json:"position"`
	Results       int  `json:"results"`
	Before        int  `json:"before"`
	After         int  `json:"after"`
	RequestBefore int  `json:"request_before"`
	RequestAfter  int  `json:"request_after"`
	Budget        *int `json:"budget"`

	Notice string `json:"-"`
}

func pruneResults(r *Request, in *Shortening) (v Shortened, err error) {
	c, name, err := r.branchOf(in.Target)
	if err != nil {
		return v, err
	}
	o, err := WindowOptions(r.Ctx, r.turnOn(c, name))
	if err != nil {
		return v, err
	}
	if in.KeepTokens != nil {
		o.PruneKeep = *in.KeepTokens
	}
	pruning := window.SetPruned
	if in.DryRun.DryRun {
		pruning = window.PlanPruning
	}
	p, err := pruning(r.Ctx, c, name, o)
	if err != nil {
		return v, err
	}
	if !in.DryRun.DryRun {
		r.Done = &record.Committed{Operation: p.Operation, Context: c.ID, Branch: p.Branch}
	}
	return Shortened{in.DryRun.DryRun, contract.Where{Operation: p.Operation, Context: c.ID, Branch: p.Branch}, p.Position, p.Results, p.Before, p.After, p.RequestBefore,
		p.RequestAfter, orNull(o.Budget), p.Notice(o.Budget)}, nil
}

func orNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// SessionListing says which sessions to list.
type SessionListing struct {
	Target
	Search string `json:"search,omitempty" flag:"search" doc:"those whose summaries mean something like {TEXT}, the nearest first"`
}

// Session is a session of a branch.
type Session struct {
	Session  int         `json:"session"`
	ID       *chatctx.ID `json:"id"`
	Current  bool        `json:"current"`
	Start    int         `json:"start"`
	End      int         `json:"end"`
	Messages int         `json:"messages"`
	Tokens   int         `json:"tokens"`
	Input    int64       `json:"input_tokens"`
	Output   int64       `json:"output_tokens"`
	Read     int64       `json:"cache_read_tokens"`
	Written  int64       `json:"cache_write_tokens"`
	Created  *time.Time  `json:"created_at"`
	Summary  *string     `json:"summary"`
	PrunedTo *int        `json:"pruned_to"`
	Kind     string      `json:"kind" words:"provider own"` // provider if a provider began it, else own
	Provider *string     `json:"provider"`
	Model    *string     `json:"model"`
	Score    *float64    `json:"score,omitempty"`

	Info *window.SessionInfo `json:"-"`
}

func sessionOf(s *window.SessionInfo, score *float64) Session {
	kind := "own"
	if s.Provider != "" {
		kind = "provider"
	}
	v := Session{s.Number, contract.ID(s.ID), s.Current, s.Start, s.End, s.Messages, s.Tokens, s.Input, s.Output, s.CacheRead, s.CacheWrite, nil, contract.String(s.Summary),
		orNull(s.PrunedTo), kind, contract.String(s.Provider), contract.String(s.Session.Model), score, s}
	if s.Created != 0 {
		at := s.Created.Time()
		v.Created = &at
	}
	return v
}

// ErrNoEmbedder means that nothing says who compares meanings.
var ErrNoEmbedder = base.Says(chatctx.ErrInvalid, "no embedding endpoint is set")

func listSessions(r *Request, in *SessionListing) (out List[Session], err error) {
	c, name, err := r.branchOf(in.Target)
	if err != nil {
		return out, err
	}
	in.Branch = name
	t := r.turnOn(c, name)
	o, err := WindowOptions(r.Ctx, t)
	if err != nil {
		return out, err
	}
	if in.Search == "" {
		list, err := window.ListSessions(r.Ctx, c, name, o)
		return ListEach(list, err, func(s window.SessionInfo) Session { return sessionOf(&s, nil) })
	}
	e, err := embedderOf(r.Ctx, t)
	if err == nil && e == nil {
		err = ErrNoEmbedder
	}
	if err != nil {
		return out, err
	}
	hits, err := window.SearchSessions(r.Ctx, c, name, o, e, in.Search)
	return ListEach(hits, err, func(h window.Hit) Session { return sessionOf(&h.SessionInfo, &h.Score) })
}

// Resuming names a session.
type Resuming struct {
	Target
	Session string `json:"session" arg:"SESSION"`
}

// Resumed is a session that was resumed.
type Resumed struct {
	contract.Where
	Session int  `json:"session"`
	Of      int  `json:"of"`
	Whole   bool `json:"whole"`
	Tokens  int  `json:"tokens"`

	Next *Foreseen `json:"-"` // nil if it is unknown
}

func resumeSession(r *Request, in *Resuming) (v Resumed, err error) {
	c, name, err := r.branchOf(in.Target)
	if err != nil {
		return v, err
	}
	o, err := WindowOptions(r.Ctx, r.turnOn(c, name))
	if err != nil {
		return v, err
	}
	done, err := window.Resume(r.Ctx, c, name, o, in.Session)
	if err != nil {
		return v, err
	}
	r.Done = &record.Committed{Operation: done.Operation, Context: c.ID, Branch: done.Branch}
	v = Resumed{contract.Where{Operation: done.Operation, Context: c.ID, Branch: done.Branch}, done.Session, done.Of, done.Whole, done.Tokens, nil}
	if next, err := r.foresee(r.turnOn(c, name)); err == nil {
		v.Next = next
	}
	return v, nil
}

// askingOf returns what rooms ask of a turn beside sending.
func askingOf(ctx context.Context, t *turn.Turn) (window.Asking, error) {
	inForce, err := t.InForce(ctx)
	if err != nil {
		return nil, err
	}
	return window.AskingOf(inForce), nil
}

// WindowOptions returns the settings of the window for a turn, without asking the server of the model.
func WindowOptions(ctx context.Context, t *turn.Turn) (o window.Options, err error) {
	asking, err := askingOf(ctx, t)
	if err != nil {
		return o, err
	}
	return asking.Options(ctx)
}

func embedderOf(ctx context.Context, t *turn.Turn) (window.Embedder, error) {
	asking, err := askingOf(ctx, t)
	if err != nil {
		return nil, err
	}
	return asking.Embedder()
}
