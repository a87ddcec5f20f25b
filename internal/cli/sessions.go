package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

// compactedJSON is a compaction.
type compactedJSON struct {
	where
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
	Summaries []window.Stands `json:"summaries"`
	Note      string          `json:"note,omitempty"`
}

type compactIn struct {
	Range        string     `arg:"[A..B]"`
	KeepTokens   *int       `flag:"keep-tokens" doc:"keep the newest {N} tokens as they are; else the setting compact.keep"`
	KeepMessages *int       `flag:"keep-messages" doc:"keep the newest {N} messages instead"`
	From         record.Ref `flag:"from" doc:"summarise a stretch in the middle alone, from {REF} on"`
	To           record.Ref `flag:"to" doc:"the last message {REF} of that stretch"`
	Anew         bool       `flag:"anew" doc:"make the newest summary again, of the messages as they are now"`
	Summary      string     `flag:"summary" doc:"the summary's {TEXT}; - for standard input"`
	Digest       bool       `flag:"digest" doc:"a summary made by rules, without a model"`
	dryRunFlag
	rawFlag
}

// keeps reports whether it says how much stays.
func (in *compactIn) keeps() bool { return in.KeepTokens != nil || in.KeepMessages != nil }

func doCompact(r *run, in *compactIn) error {
	request := window.Request{}
	if in.Summary != "" {
		text, err := r.text(in.Summary, in.rawFlag)
		if err != nil {
			return err
		}
		if strings.TrimSpace(text) == "" {
			return usagef("the summary is empty")
		}
		request.Text = text
	}
	if in.Summary != "" && in.Digest {
		return usagef("compact takes --summary or --digest, not both")
	}
	c, name, err := r.talkOn(r.changing(in.dryRunFlag))
	if err != nil {
		return err
	}
	o, err := r.compactOptions(c, name, in)
	if err != nil {
		return err
	}
	stretch, from, to, err := r.stretch(c, name, in)
	if err != nil {
		return err
	}
	if request.Anew = in.Anew; request.Anew && (stretch || in.keeps()) {
		return usagef("compact --anew leaves the session where it begins: no range, --keep-tokens or --keep-messages goes with it")
	}
	if request.Text == "" && !in.Digest {
		if err := r.whoCompacts(c, name, o, &request, stretch); err != nil {
			return err
		}
	}
	if in.DryRun {
		return r.compactPlan(c, name, o, request, func(w *window.Window) (*window.Plan, error) {
			if stretch {
				return r.planStretch(c, name, w, from, to)
			}
			return window.PlanFor(r.ctx, c, name, w, o, request)
		})
	}
	if request.Embedder, err = r.turn(c, name).Embedder(r.ctx); err != nil {
		r.note("the summary cannot be searched for later: %s", clean(err.Error()))
	}
	compact := window.Compact
	if stretch {
		compact = func(ctx context.Context, c *chatctx.ChatContext, name string, o window.Options, request window.Request) (*window.Compacted, error) {
			return window.CompactStretch(ctx, c, name, o, request, from, to)
		}
	}
	done, err := compact(r.ctx, c, name, o, request)
	if err != nil {
		return compactHint(err, &request)
	}
	text := r.compacted(r.turn(c, name), done)
	v := compactedJSON{where{Operation: done.Operation, Context: c.ID, Branch: done.Branch}, done.Session, done.Start, done.By, done.Summary, done.Messages, done.Before, done.After,
		done.System, done.SummarySize, done.Kept, done.Tools, done.Calls, intOrNull(done.Budget), done.Parts, done.Note}
	return r.made(&chatctx.Committed{Operation: done.Operation, Context: c.ID, Branch: done.Branch}, v, "%s", text)
}

// whoCompacts sets who makes the summary: the provider, if compact.by says so, or a model. The summary of a stretch, and one of ours that is made anew, is ours.
func (r *run) whoCompacts(c *chatctx.ChatContext, name string, o window.Options, request *window.Request, stretch bool) (err error) {
	t := r.turn(c, name)
	ours := stretch
	if request.Anew {
		info, err := c.Branch(r.ctx, name)
		if err != nil {
			return err
		}
		at := o.SessionOf(info.Sessions)
		ours = at < 0 || info.Sessions[at].Provider == ""
	}
	if !ours {
		if request.Provider, err = t.Compactor(r.ctx); err != nil || request.Provider != nil {
			return err
		}
	}
	if o.Model != "" || o.CompactModel != "" {
		request.Completer, err = t.Completer(r.ctx)
		request.Model = cmp.Or(o.CompactModel, o.Model)
	}
	return err
}

// planStretch plans the summary of a stretch.
func (r *run) planStretch(c *chatctx.ChatContext, name string, w *window.Window, from, to int) (*window.Plan, error) {
	d, err := c.Draft(r.ctx, name)
	if err != nil {
		return nil, err
	}
	if err := window.Exclude().Enhance(r.ctx, d); err != nil {
		return nil, err
	}
	return window.PlanStretch(r.ctx, w, d, from, to)
}

// stretch parses A..B, or --from and --to, as positions.
func (r *run) stretch(c *chatctx.ChatContext, name string, in *compactIn) (given bool, from, to int, err error) {
	ends, ranged := in.From != "" || in.To != "", in.Range != ""
	switch {
	case !ends && !ranged:
		return false, 0, 0, nil
	case ends && ranged:
		err = usagef("compact takes a range A..B or --from and --to, not both")
	case ends && (in.From == "" || in.To == ""):
		err = usagef("--from and --to go together: they are the first and the last message of a stretch")
	case in.keeps():
		err = usagef("a range says itself what goes: leave out --keep-tokens and --keep-messages")
	}
	if err != nil {
		return false, 0, 0, err
	}
	snap, err := c.Snapshot(r.ctx, name)
	if err != nil {
		return false, 0, 0, err
	}
	if ranged {
		from, to, err = r.stretchOf(snap, in.Range)
		return true, from, to, err
	}
	var at [2]int
	for i, ref := range []record.Ref{in.From, in.To} {
		e, err := snap.Place(r.ctx, ref)
		if err != nil {
			return false, 0, 0, err
		}
		at[i] = e.Position
	}
	if at[0] > at[1] {
		return false, 0, 0, usagef("--from stands after --to: #%d and #%d", at[0], at[1])
	}
	return true, at[0], at[1], nil
}

// stretchOf returns the positions of a range on the branch. The newest message is always kept, so a range without an end goes up to the one before.
func (r *run) stretchOf(snap *chatctx.Snapshot, ref string) (from, to int, err error) {
	part, err := snap.Range(r.ctx, record.Ref(ref))
	switch {
	case err != nil:
		return 0, 0, err
	case part == nil:
		return 0, 0, &usageError{fmt.Sprintf("%q is not a range A..B", ref), "up to it: " + r.again("compact .."+quote(ref))}
	case part.Snapshot != snap:
		return 0, 0, &chatctx.RefError{Kind: "message", Ref: ref, Branch: snap.Info.Name, On: part.Snapshot.Info.Name}
	}
	if from, to = part.From, part.To; strings.HasSuffix(ref, "..") {
		to--
	}
	if to < from {
		return 0, 0, base.NotFound("message in the range", ref)
	}
	return from, to, nil
}

// compactOptions returns the settings changed by the flags.
func (r *run) compactOptions(c *chatctx.ChatContext, name string, in *compactIn) (window.Options, error) {
	o, err := r.windowOptions(c, name)
	if err != nil {
		return o, err
	}
	o.CompactMessages = 0
	if valueOf(in.KeepTokens) < 0 {
		return o, usagef("--keep-tokens takes a number of 0 or more")
	}
	if valueOf(in.KeepMessages) < 0 {
		return o, usagef("--keep-messages takes a number of 0 or more")
	}
	if in.KeepTokens != nil {
		o.CompactKeep = *in.KeepTokens
	}
	if in.KeepMessages != nil {
		o.CompactMessages, o.CompactKeepMessages = 1, *in.KeepMessages
	}
	return o, nil
}

// compactHint says what to type after a summary failed.
func compactHint(err error, asked *window.Request) error {
	if errors.Is(err, enhancer.ErrNothingToCompact) {
		return &hinted{err, "keep less: compact --keep-tokens 1000"}
	}
	if errors.Is(err, enhancer.ErrNoSession) {
		return &hinted{err, "make one: chatctx compact"}
	}
	if errors.Is(err, enhancer.ErrStretch) {
		return &usageError{err.Error(), "chatctx log shows the numbers; chatctx compact --from u2 --to a4"}
	}
	var none *enhancer.NoGainError
	if errors.As(err, &none) {
		return err
	}
	switch {
	case errors.Is(err, chatctx.ErrConflict):
		return err
	case asked.Provider != nil:
		var provider *wire.Error
		if errors.As(err, &provider) {
			err = talkHint(err)
		}
		return withHint(err, "what helps: our own summary, chatctx config compact.by=self; without a model: chatctx compact --digest, or --summary TEXT")
	case asked.Completer != nil:
		return withHint(talkHint(err), "without a model: chatctx compact --digest, or --summary TEXT")
	}
	return err
}

// planJSON is what a compaction would do.
type planJSON struct {
	DryRun bool `json:"dry_run"`
	where
	Start    int        `json:"start"`
	Gone     int        `json:"gone"`
	Kept     int        `json:"kept"`
	Pinned   int        `json:"pinned"`
	Before   int        `json:"before"`
	After    int        `json:"after"`
	AtMost   bool       `json:"at_most"` // after is a bound, since a model will write the summary
	By       string     `json:"by"`
	Summary  string     `json:"summary,omitempty"`
	Messages []goneJSON `json:"messages"`
}

type goneJSON struct {
	ID       chatctx.ID `json:"id"`
	Role     pool.Role  `json:"role"`
	Position int        `json:"position"`
	Tokens   int        `json:"tokens"`
	Preview  string     `json:"preview"`
}

func (r *run) compactPlan(c *chatctx.ChatContext, name string, o window.Options, request window.Request, plan func(*window.Window) (*window.Plan, error)) error {
	w := o.Window(c)
	p, err := plan(w)
	if err != nil {
		return compactHint(err, &window.Request{})
	}
	would, err := p.Foretell(w, request)
	if err != nil {
		return compactHint(err, &window.Request{})
	}
	v := planJSON{true, where{Context: c.ID, Branch: name}, would.Start, p.GoneTokens, p.KeptTokens, len(p.Pinned), would.Before, would.After, would.By == "model" || would.By == "provider", would.By, would.Summary, []goneJSON{}}
	for _, m := range p.Gone {
		v.Messages = append(v.Messages, goneJSON{m.ID, m.Role, m.Position, m.Tokens, tokens.Preview(m.Message, 60)})
	}
	return r.emit(v, func() {
		for _, m := range v.Messages {
			r.printf("%s  %-9s %6d  %s\n", r.paint(yellow, short(m.ID)), m.Role, m.Tokens, cut(clean(m.Preview), max(r.con.width-29, 10)))
		}
		r.printf("would put a summary in place of %s, %s tokens; %s and %s stay, %s tokens\n", count(len(p.Gone), "message"), window.Short(p.GoneTokens),
			count(len(p.Kept), "message"), count(len(p.Pinned), "pinned one"), window.Short(p.KeptTokens))
		atMost := ""
		if v.AtMost {
			atMost = "≤ "
		}
		r.printf("the request, with %s: %s → %s%s tokens\n", would.Origin(), window.Short(v.Before), atMost, window.Short(v.After))
	})
}

// prunedJSON is what pruning did.
type prunedJSON struct {
	DryRun bool `json:"dry_run,omitempty"`
	where
	Position      int  `json:"position"`
	Results       int  `json:"results"`
	Before        int  `json:"before"`
	After         int  `json:"after"`
	RequestBefore int  `json:"request_before"`
	RequestAfter  int  `json:"request_after"`
	Budget        *int `json:"budget"`
}

type pruneIn struct {
	KeepTokens *int `flag:"keep-tokens" doc:"leave the newest {N} tokens of them; else the setting prune.keep"`
	dryRunFlag
}

func doPrune(r *run, in *pruneIn) error {
	if valueOf(in.KeepTokens) < 0 {
		return usagef("--keep-tokens takes a number of 0 or more")
	}
	c, name, err := r.talkOn(r.changing(in.dryRunFlag))
	if err != nil {
		return err
	}
	o, err := r.windowOptions(c, name)
	if err != nil {
		return err
	}
	if in.KeepTokens != nil {
		o.PruneKeep = *in.KeepTokens
	}
	pruning := window.SetPruned
	if in.DryRun {
		pruning = window.PlanPruning
	}
	p, err := pruning(r.ctx, c, name, o)
	if err != nil {
		return err
	}
	v := prunedJSON{in.DryRun, where{Operation: p.Operation, Context: c.ID, Branch: p.Branch}, p.Position, p.Results, p.Before, p.After, p.RequestBefore, p.RequestAfter, intOrNull(o.Budget)}
	if in.DryRun {
		return r.emit(v, func() { r.printf("would be: %s\n", p.Notice(o.Budget)) })
	}
	return r.made(&chatctx.Committed{Operation: p.Operation, Context: c.ID, Branch: p.Branch}, v, "%s", p.Notice(o.Budget))
}

// sessionJSON is a session of a branch.
type sessionJSON struct {
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
	Kind     string      `json:"kind"` // provider if a provider began it, else own
	Provider *string     `json:"provider"`
	Model    *string     `json:"model"`
	Score    *float64    `json:"score,omitempty"`
}

type sessionsIn struct {
	Search string `flag:"search" doc:"those whose summaries mean something like {TEXT}, the nearest first"`
}

func doSessions(r *run, in *sessionsIn) error {
	c, name, err := r.talkOn(r.caching)
	if err != nil {
		return err
	}
	o, err := r.windowOptions(c, name)
	if err != nil {
		return err
	}
	if in.Search != "" {
		return r.searchSessions(c, name, o, in.Search)
	}
	list, err := window.ListSessions(r.ctx, c, name, o)
	if err != nil {
		return err
	}
	for i := range list {
		if err := r.printSession(&list[i], nil); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) searchSessions(c *chatctx.ChatContext, name string, o window.Options, text string) error {
	e, err := r.turn(c, name).Embedder(r.ctx)
	if err != nil {
		return talkHint(err)
	}
	if e == nil {
		return &usageError{"no embedding endpoint is set", "chatctx config --store embedding.model=text-embedding-3-small (and embedding.base_url=URL for a server of your own)"}
	}
	hits, err := window.SearchSessions(r.ctx, c, name, o, e, text)
	if err != nil {
		return talkHint(err)
	}
	for i := range hits {
		if err := r.printSession(&hits[i].SessionInfo, &hits[i].Score); err != nil {
			return err
		}
	}
	if len(hits) == 0 {
		r.note("no session of %s has a summary", clean(name))
	}
	return nil
}

// printSession prints a session, in a search with its score.
func (r *run) printSession(s *window.SessionInfo, score *float64) error {
	kind := "own"
	if s.Provider != "" {
		kind = "provider"
	}
	v := sessionJSON{s.Number, idOrNull(s.ID), s.Current, s.Start, s.End, s.Messages, s.Tokens, s.Input, s.Output, s.CacheRead, s.CacheWrite, nil, stringOrNull(s.Summary), intOrNull(s.PrunedTo), kind, stringOrNull(s.Provider), stringOrNull(s.Session.Model), score}
	if s.Created != 0 {
		at := s.Created.Time()
		v.Created = &at
	}
	return r.emit(v, func() {
		if score != nil {
			r.printf("%.2f ", *score)
		}
		r.sessionLine(s)
	})
}

func (r *run) sessionLine(s *window.SessionInfo) {
	mark, what := " ", s.Summary
	if s.Current {
		mark = r.paint(green, "*")
		what = "(the current one)"
	}
	if s.Provider != "" {
		what = strings.TrimSpace(what + fmt.Sprintf(" (%s compacted, for %s)", clean(s.Provider), clean(s.Session.Model)))
	}
	what = cmp.Or(what, "(no summary)")
	cached := ""
	if s.CacheRead > 0 && s.Input > 0 {
		cached = fmt.Sprintf(", %d %% of the input from the cache", (200*s.CacheRead+s.Input)/(2*s.Input))
	}
	holds := fmt.Sprintf("from #%d on, no message yet", s.Start)
	if s.Messages > 0 {
		holds = fmt.Sprintf("#%d to #%d, %s, %s tokens", s.Start, s.End, count(s.Messages, "message"), window.Short(s.Tokens))
	}
	r.row(5, "%s %2d  %s%s  %s", mark, s.Number, holds, cached,
		cut(oneLine(what), max(r.con.width-50, 20)))
}

// resumedJSON is a session that was resumed.
type resumedJSON struct {
	where
	Session int  `json:"session"`
	Of      int  `json:"of"`
	Whole   bool `json:"whole"`
	Tokens  int  `json:"tokens"`
}

type resumeIn struct {
	Session string `arg:"SESSION"`
}

func doResume(r *run, in *resumeIn) error {
	c, name, err := r.talkOn(r.writer)
	if err != nil {
		return err
	}
	o, err := r.windowOptions(c, name)
	if err != nil {
		return err
	}
	done, err := window.Resume(r.ctx, c, name, o, in.Session)
	if err != nil {
		return err
	}
	how := "with its summary, since it does not fit whole"
	if done.Whole {
		how = "whole"
	}
	v := resumedJSON{where{Operation: done.Operation, Context: c.ID, Branch: done.Branch}, done.Session, done.Of, done.Whole, done.Tokens}
	return r.made(&chatctx.Committed{Operation: done.Operation, Context: c.ID, Branch: done.Branch}, v, "back in session %d, %s: %s tokens%s", done.Of, how, window.Short(done.Tokens), r.nextRequest(r.turn(c, name)))
}

func intOrNull(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}
