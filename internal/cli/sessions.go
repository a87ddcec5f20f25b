package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/window"
)

func init() { lookGroups = append(lookGroups, sessionLooks) }

func sessionLooks() map[string]look {
	compacted := preparing((*run).readCompacting, look{text: func(r *run, _, out any) {
		switch v := out.(type) {
		case contract.Where:
			r.printf("nothing to compact on %s: the session holds no more than is kept\n", clean(v.Branch))
			r.note("keep less: %s", r.again("compact --keep-tokens 1000"))
		case operation.CompactionPlan:
			r.compactPlan(&v)
		case operation.Compacted:
			if v.Unsearchable != nil {
				r.note("the summary cannot be searched for later: %s", clean(v.Unsearchable.Error()))
			}
			r.printf("%s%s\n", v.Notice, r.nextRequest(v.Next))
		}
	}})
	none := func(r *run, in any) {
		r.note("no session of %s has a summary", clean(in.(*operation.SessionListing).Branch))
	}
	return map[string]look{
		"sessions.compact": orFails(compacted, (*run).compactHint),
		"sessions.prune": preparing(func(_ *run, in *operation.Shortening) error {
			if valueOf(in.KeepTokens) < 0 {
				return usagef("--keep-results takes a number of 0 or more")
			}
			return nil
		}, as(func(r *run, in *operation.Shortening, v operation.Shortened) {
			r.printf("%s%s\n", map[bool]string{true: "would be: "}[v.DryRun], v.Notice)
		})),
		"sessions.list": orFails(look{none: none, text: as(func(r *run, _ *operation.SessionListing, v operation.Session) {
			if v.Score != nil {
				r.printf("%.2f ", *v.Score)
			}
			r.sessionLine(v.Info)
		}).text}, func(_ *run, in *operation.SessionListing, err error) error {
			if errors.Is(err, operation.ErrNoEmbedder) {
				return &hinted{err, "chatctx config --default embedding.model=text-embedding-3-small (and embedding.base_url=URL for a server of your own)"}
			}
			if in.Search != "" {
				return talkHint(err)
			}
			return err
		}),
		"sessions.resume": as(func(r *run, _ *operation.Resuming, v operation.Resumed) {
			how := "with its summary, since it does not fit whole"
			if v.Whole {
				how = "whole"
			}
			r.printf("back in session %d, %s: %s tokens%s\n", v.Of, how, window.Short(v.Tokens), r.nextRequest(v.Next))
		}),
	}
}

// nextRequest says what a branch's next request takes, "" if that is unknown.
func (r *run) nextRequest(next *operation.Foreseen) string {
	if next == nil {
		return ""
	}
	r.notInForce(next.Ignored())
	return "\n  the next request: " + window.Of(next.Request).Forecast.String()
}

// readCompacting reads the summary, and refuses what does not go together.
func (r *run) readCompacting(in *operation.Compacting) (err error) {
	if in.Summary != "" {
		if in.Summary, err = r.text(in.Summary, rawFlag(in.RawInput)); err != nil {
			return err
		}
		if strings.TrimSpace(in.Summary) == "" {
			return usagef("the summary is empty")
		}
		if in.Digest {
			return usagef("compact takes --summary or --digest, not both")
		}
	}
	ends := in.From != "" || in.To != ""
	switch {
	case valueOf(in.KeepTokens) < 0:
		return usagef("--keep-tokens takes a number of 0 or more")
	case valueOf(in.KeepMessages) < 0:
		return usagef("--keep-messages takes a number of 0 or more")
	case ends && in.Range != "":
		return usagef("compact takes a range A..B or --from and --to, not both")
	case ends && (in.From == "" || in.To == ""):
		return usagef("--from and --to go together: they are the first and the last message of a stretch")
	case in.Stretch() && in.Keeps():
		return usagef("a range says itself what goes: leave out --keep-tokens and --keep-messages")
	case in.Anew && (in.Stretch() || in.Keeps()):
		return usagef("compact --anew leaves the session where it begins: no range, --keep-tokens or --keep-messages goes with it")
	}
	return nil
}

// compactHint says what to type after a summary failed.
func (r *run) compactHint(_ *operation.Compacting, err error) error {
	var ranged *operation.RangeError
	if errors.As(err, &ranged) {
		return &hinted{err, "up to it: " + r.again("compact .."+quote(string(ranged.Ref)))}
	}
	if errors.Is(err, enhancer.ErrNoSession) {
		return &hinted{err, "make one: chatctx compact"}
	}
	if errors.Is(err, enhancer.ErrStretch) {
		return &usageError{err.Error(), "chatctx log shows the numbers; chatctx compact --from u2 --to a4"}
	}
	var none *enhancer.NoGainError
	var failed *operation.CompactionError
	if errors.As(err, &none) || !errors.As(err, &failed) {
		return err
	}
	switch {
	case errors.Is(err, chatctx.ErrConflict):
		return err
	case failed.Provider:
		var provider *wire.Error
		if errors.As(err, &provider) {
			err = talkHint(err)
		}
		return withHint(err, "what helps: our own summary, chatctx config compact.by=self; without a model: chatctx compact --digest, or --summary TEXT")
	case failed.Model:
		return withHint(talkHint(err), "without a model: chatctx compact --digest, or --summary TEXT")
	}
	return err
}

// compactPlan shows what a compaction would do.
func (r *run) compactPlan(v *operation.CompactionPlan) {
	for _, m := range v.Messages {
		r.printf("%s  %-9s %6d  %s\n", r.paint(yellow, short(m.ID)), m.Role, m.Tokens, cut(clean(m.Preview), max(r.con.width-29, 10)))
	}
	r.printf("would put a summary in place of %s, %s tokens; %s and %s stay, %s tokens\n", count(len(v.Messages), "message"), window.Short(v.Gone),
		count(v.Stay, "message"), count(v.Pinned, "pinned one"), window.Short(v.Kept))
	atMost := ""
	if v.AtMost {
		atMost = "≤ "
	}
	r.printf("the request, with %s: %s → %s%s tokens\n", v.Origin, window.Short(v.Before), atMost, window.Short(v.After))
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
