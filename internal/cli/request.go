package cli

import (
	"errors"
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/internal/window"
)

func init() { lookGroups = append(lookGroups, requestLooks) }

func requestLooks() map[string]look {
	explained := look{text: func(r *run, _, out any) {
		switch v := out.(type) {
		case operation.ExplainedMessage:
			r.explainMessage(v.Of, v)
		case operation.ExplainedRequest:
			r.notInForce(v.Of.Draft.Ignored)
			r.printf("\nprompts, tools and overhead %s\n", window.Short(v.Overhead))
			r.explainSteps(v.Of)
		}
	}}
	hinted := func(_ *run, _ any, err error) error { return talkHint(err) }
	explained.fails = hinted
	models := preparing(func(r *run, _ *operation.ModelListing) error {
		if _, err := r.reader(); err != nil && !errors.Is(err, chatctx.ErrNotExist) {
			return err
		}
		return nil
	}, as(func(r *run, _ *operation.ModelListing, m operation.Model) {
		line := fmt.Sprintf("%s  %s", r.paint(dim, pad(m.Provider, 16)), clean(m.ID))
		if m.Name != "" && m.Name != m.ID {
			line += "  " + r.paint(dim, clean(m.Name))
		}
		if m.InputLimit > 0 {
			line += r.paint(dim, fmt.Sprintf("  %d tokens in", m.InputLimit))
		}
		r.printf("%s\n", line)
	}))
	models.fails = hinted
	request := look{fails: hinted, text: func(r *run, _, out any) {
		switch v := out.(type) {
		case operation.RequestBody:
			r.notInForce(v.Ignored)
			body := string(v.Body)
			if r.con.tty {
				body = screen.CleanJSON(body)
			}
			r.printf("%s\n", body)
		case operation.RequestCheck:
			r.printCheck(&v)
		}
	}}
	return map[string]look{"requests.explain": explained, "models.list": models, "requests.show": request}
}

// printCheck shows what was repaired in a request.
func (r *run) printCheck(v *operation.RequestCheck) {
	r.notInForce(v.Ignored)
	for _, p := range v.Summaries {
		r.printf("%s  %s\n", r.paint(yellow, "summary"), p)
	}
	for _, n := range v.Repairs {
		where := "the request"
		if n.Message != nil {
			where = short(*n.Message)
		}
		r.printf("%s  %s\n", r.paint(yellow, where), clean(n.What))
	}
	if len(v.Repairs) == 0 {
		r.note("nothing had to be repaired for %s", v.Provider)
	}
}

func (r *run) explainMessage(m *chatctx.DraftMessage, v operation.ExplainedMessage) {
	state := v.State
	if v.Step != "" {
		state += " by " + v.Step
	}
	place, role := fmt.Sprintf("#%-5d", v.Position), v.Role
	if v.Position == 0 { // made for the request
		place, role = pad("", 6), v.Kind
	}
	r.row(7, "%s %s %s %s %6d  %s", place, r.paint(yellow, short(v.ID)), pad(role, 9), pad(state, 16), v.Tokens, cut(preview(m.Message), max(r.con.width-52, 10)))
	for _, n := range v.Notes {
		r.row(7, "       %s", r.paint(dim, clean(n)))
	}
}

func (r *run) explainSteps(req *turn.Request) {
	for _, s := range req.Report.Steps {
		if s.Before != s.After {
			r.printf("%s  %d → %d tokens\n", pad(s.Name, 12), s.Before, s.After)
		}
	}
	r.row(2, "%s of %s, the next request: %s", clean(req.Model), req.Provider, window.Of(req).Forecast)
	if window.Of(req).Forecast.Reported != nil {
		r.row(2, "%s", window.Of(req).Forecast.Reported)
	}
	r.row(2, "%s", prefixText(window.Of(req).First, &window.Of(req).Prefix))
}

// prefixText says what a request shares with the last one.
func prefixText(first bool, p *window.Prefix) string {
	if first {
		return "the first request of this branch to this provider"
	}
	text := fmt.Sprintf("the first %s (%d tokens of %d) are the same as in the last request", size(int64(p.Bytes)), p.Tokens, p.Total)
	if p.BrokenBy == "" {
		return text
	}
	text += fmt.Sprintf("; %d tokens of that are lost to the cache: broken by %s", p.Lost, clean(p.BrokenBy))
	if p.Message != (chatctx.ID{}) {
		text += " at " + short(p.Message)
	}
	return text
}
