package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/window"
)

func init() { lookGroups = append(lookGroups, statusLooks) }

func statusLooks() map[string]look {
	return map[string]look{"status": orFails(as((*run).printStatus), func(_ *run, _ *operation.Target, err error) error { return talkHint(err) })}
}

// printStatus lists what is known.
func (r *run) printStatus(_ *operation.Target, s *operation.Status) {
	line := func(name, value string) {
		if value != "" {
			r.printf("%-12s %s\n", name, value)
		}
	}
	r.notInForce(s.Next.Ignored())
	line("store", clean(s.Store))
	line("conversation", named(s.Title, s.Context))
	head := "empty"
	if s.Head != nil {
		head = fmt.Sprintf("%s, %s, head %s", count(s.Messages, "message"), count(s.Turns, "turn"), short(*s.Head))
	}
	line("branch", fmt.Sprintf("%s: %s, revision %d", clean(s.Branch), head, s.Revision))
	model := cmp.Or(plainValue(s.Model), "none is set")
	if provider := plainValue(s.Provider); provider != "" {
		model += ", provider " + provider
	}
	line("model", model)
	line("mode", plainValue(s.Mode))
	if s.Next != nil {
		line("window", "the next request: "+window.Of(s.Next.Request).Forecast.String())
		if s.Next.Over != nil {
			line("", clean(s.Next.Over.Error()))
		}
	}
	if s.Tokens != (branch.Tokens{}) {
		line("reported", fmt.Sprintf("%d tokens in, %d out for the last reply", s.Tokens.Input, s.Tokens.Output))
	}
	if s.Cache != nil {
		line("cache", fmt.Sprintf("%s tokens read, %s written by the last reply", figure(s.Cache.Read), figure(s.Cache.Written)))
	}
	line("session", strconv.Itoa(s.Session))
	line("calls", cmp.Or((&waits{s.Open}).String(), "no open calls"))
	if s.Queued > 0 {
		line("queue", count(s.Queued, "message"))
	}
	if s.Replying != nil {
		line("replying", fmt.Sprintf("%s, process %d on %s", clean(s.Replying.Program), s.Replying.PID, clean(s.Replying.Host)))
	}
	if s.Trashed != 0 {
		r.note("it is in the trash; take it out: %s", r.again("restore "+short(s.Context)))
	}
}

// figure is a count that may be unknown.
func figure(n *int64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatInt(*n, 10)
}

// plainValue returns a setting for people: text without quotes.
func plainValue(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return clean(s)
	}
	return clean(string(raw))
}
