package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/window"
)

// requested makes the request of the branch that the flags name. It only reads.
func (r *run) requested() (*turn.Request, error) {
	c, snap, err := r.snapshot()
	if err != nil {
		return nil, err
	}
	req, err := r.turn(c, snap.Info.Name).Request(r.ctx)
	if req != nil {
		r.notInForce(req.Draft.Ignored)
	}
	return req, talkHint(err)
}

// repairJSON is what an adapter did to a message; without a message, to the request as a whole.
type repairJSON struct {
	Message *chatctx.ID `json:"message"`
	What    string      `json:"what"`
}

type requestIn struct {
	whomFlags
	Pretty bool `flag:"pretty" doc:"indented"`
	Check  bool `flag:"check" doc:"print what was repaired, and why, in place of the body"`
}

func doRequest(r *run, in *requestIn) error {
	req, err := r.requested()
	if err != nil {
		return err
	}
	if in.Check {
		return r.checkRequest(req)
	}
	body := req.Body
	if in.Pretty {
		var b bytes.Buffer
		if err := json.Indent(&b, body, "", "  "); err != nil {
			return err
		}
		body = b.Bytes()
	}
	if r.con.tty {
		body = []byte(screen.CleanJSON(string(body)))
	}
	r.printf("%s\n", body)
	return nil
}

func (r *run) checkRequest(req *turn.Request) error {
	v := struct {
		Provider string          `json:"provider"`
		Model    string          `json:"model"`
		Body     json.RawMessage `json:"body"`
		Repairs  []repairJSON    `json:"repairs"`
		// Summaries says what each part of the request's first summary stands for.
		Summaries []window.Stands `json:"summaries"`
	}{req.Provider, req.Model, req.Body, []repairJSON{}, summaryParts(req.Draft)}
	for _, n := range req.Repairs {
		v.Repairs = append(v.Repairs, repairJSON{idOrNull(n.Message), n.What})
	}
	return r.emit(v, func() {
		for _, p := range v.Summaries {
			r.printf("%s  %s\n", r.paint(yellow, "summary"), p)
		}
		for _, n := range req.Repairs {
			where := "the request"
			if n.Message != (chatctx.ID{}) {
				where = short(n.Message)
			}
			r.printf("%s  %s\n", r.paint(yellow, where), clean(n.What))
		}
		if len(req.Repairs) == 0 {
			r.note("nothing had to be repaired for %s", req.Provider)
		}
	})
}

// summaryParts says what the summary of a draft stands for, part by part.
func summaryParts(d *chatctx.Draft) []window.Stands {
	if d.Summary == nil {
		return []window.Stands{}
	}
	return window.SummaryParts(d.Summary.Message)
}

// explainedJSON is what became of a message.
type explainedJSON struct {
	ID       chatctx.ID `json:"id"`
	Role     string     `json:"role"`
	Kind     string     `json:"kind,omitempty"`
	Position int        `json:"position"`
	State    string     `json:"state"`
	Step     string     `json:"step,omitempty"`
	Tokens   int        `json:"tokens"`
	Notes    []string   `json:"notes,omitempty"`
}

// prefixJSON is what a request shares with the last one.
type prefixJSON struct {
	Bytes    int         `json:"bytes"`
	Tokens   int         `json:"tokens"`
	Total    int         `json:"total"` // tokens of the request
	First    bool        `json:"first"` // there was none before
	BrokenBy string      `json:"broken_by,omitempty"`
	Message  *chatctx.ID `json:"message,omitempty"`
	Lost     int         `json:"lost"`
	Cost     *cost.Money `json:"cost_nano,omitempty"` // of what is lost
	Currency string      `json:"currency,omitempty"`
}

// stepJSON is what an enhancer did.
type stepJSON struct {
	Name    string `json:"name"`
	Before  int    `json:"before"`
	After   int    `json:"after"`
	Skipped bool   `json:"skipped,omitempty"`
}

func doExplain(r *run, _ *whomFlags) error {
	req, err := r.requested()
	if err != nil {
		return err
	}
	notes := map[chatctx.ID][]string{}
	for _, n := range req.Draft.Notes {
		notes[n.Message] = append(notes[n.Message], n.What)
	}
	messages, err := r.summarised(req)
	if err != nil {
		return err
	}
	shares, overhead := req.Window.Shares(req.Draft)
	if s := req.Draft.Summary; s != nil {
		for _, p := range window.SummaryParts(s.Message) {
			notes[s.ID] = append(notes[s.ID], p.String())
		}
	}
	for _, m := range messages {
		v := explainedJSON{m.ID, string(m.Role), m.Kind, m.Position, m.State, m.Step, m.Tokens, notes[m.ID]}
		if n, ok := shares[m.ID]; ok { // in the request
			v.Tokens = n
		}
		if err := r.emit(v, func() { r.explainMessage(m, v) }); err != nil || r.stopped() {
			return err
		}
	}
	if r.json() {
		return r.printJSON(r.explainEnd(req, overhead))
	}
	r.printf("\nprompts, tools and overhead %s\n", window.Short(overhead))
	r.explainSteps(req)
	return nil
}

// summarised returns all messages of the branch: those for which the summary stands, the summary, and those of the session, each with its position on the
// branch.
func (r *run) summarised(req *turn.Request) ([]*chatctx.DraftMessage, error) {
	d, in := req.Draft, map[int]*chatctx.DraftMessage{}
	for _, m := range req.Report.Messages {
		if m.Position < d.Session.Start {
			in[m.Position] = m
		}
	}
	var out []*chatctx.DraftMessage
	if d.Session.Start > 1 {
		gone, err := r.beforeSession(req, in)
		if err != nil {
			return nil, err
		}
		out = gone
	}
	if d.Summary != nil {
		out = append(out, d.Summary)
	}
	for _, m := range req.Report.Messages {
		if in[m.Position] != m {
			out = append(out, m)
		}
	}
	return out, nil
}

// beforeSession returns the messages before a request's session, with token counts. in has those of them that the request contains.
func (r *run) beforeSession(req *turn.Request, in map[int]*chatctx.DraftMessage) ([]*chatctx.DraftMessage, error) {
	c, snap, err := r.snapshot()
	if err != nil {
		return nil, err
	}
	marks, err := c.Marks(r.ctx)
	if err != nil {
		return nil, err
	}
	before, sessions, session := &chatctx.Draft{Artifact: req.Draft.Artifact}, snap.Info.Sessions, &req.Draft.Session
	at := slices.IndexFunc(sessions, func(s branch.Session) bool { return s.ID == session.ID })
	if at < 0 { // the request begins it
		sessions = append(slices.Clone(sessions), *session)
		at = len(sessions) - 1
	}
	summarised, _ := branchstore.Covered(sessions, at)
	by := "compact"
	if session.Provider != "" {
		by = "provider"
	}
	for e, err := range snap.Entries(r.ctx, 1, min(req.Draft.Session.Start-1, snap.Len())) {
		if err != nil {
			return nil, err
		}
		m := in[e.Position]
		if m == nil {
			m = &chatctx.DraftMessage{Entry: *e, State: enhancer.Summarised, Step: by}
			switch {
			case marks[e.ID] == enhancer.Excluded:
				m.State, m.Step = enhancer.Excluded, "exclude"
			case e.Position > summarised: // of a session after the one that was resumed with its summary
				m.State, m.Step = enhancer.Trimmed, "resume"
			}
		}
		before.Messages = append(before.Messages, m)
	}
	return before.Messages, req.Window.Counter.Fill(r.ctx, before)
}

func (r *run) explainMessage(m *chatctx.DraftMessage, v explainedJSON) {
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

func (r *run) explainEnd(req *turn.Request, overhead int) any {
	p := req.Prefix
	prefix := prefixJSON{Bytes: p.Bytes, Tokens: p.Tokens, Total: p.Total, First: req.First, BrokenBy: p.BrokenBy, Message: idOrNull(p.Message), Lost: p.Lost}
	if p.Price != nil && p.BrokenBy != "" {
		prefix.Cost, prefix.Currency = &p.Cost, p.Price.Currency
	}
	steps := []stepJSON{}
	for _, s := range req.Report.Steps {
		steps = append(steps, stepJSON{s.Name, s.Before, s.After, s.Skipped})
	}
	return struct {
		Prefix   prefixJSON `json:"prefix"`
		Steps    []stepJSON `json:"steps"`
		Provider string     `json:"provider"`
		Model    string     `json:"model"`
		Limit    int        `json:"limit"`
		Overhead int        `json:"overhead"` // prompts, tools and the conversation as a whole
		contract.Window
	}{prefix, steps, req.Provider, req.Model, req.Report.Limit, overhead, contract.WindowOf(req.Forecast)}
}

func (r *run) explainSteps(req *turn.Request) {
	for _, s := range req.Report.Steps {
		if s.Before != s.After {
			r.printf("%s  %d → %d tokens\n", pad(s.Name, 12), s.Before, s.After)
		}
	}
	r.row(2, "%s of %s, the next request: %s", clean(req.Model), req.Provider, req.Forecast)
	if req.Forecast.Reported != nil {
		r.row(2, "%s", req.Forecast.Reported)
	}
	r.row(2, "%s", prefixText(req.First, &req.Prefix))
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

// modelJSON is a model that a provider offers.
type modelJSON struct {
	Provider string `json:"provider"`
	wire.Model
}

func doModels(r *run, in *providerFlag) error {
	settings, err := r.modelSettings()
	if err != nil {
		return err
	}
	client, name, err := turn.ClientOf(settings, in.Provider, wire.Options{}, os.Getenv)
	if errors.Is(err, adapter.ErrNoModel) && in.Provider == "" {
		return r.allModels(settings)
	}
	if err != nil {
		return talkHint(err)
	}
	return r.listModels(name, client)
}

// allModels lists the models of every provider that can be reached. It is an error only if none can.
func (r *run) allModels(settings map[string]json.RawMessage) error {
	var failed error
	listed := false
	for _, service := range adapter.Services() {
		name := service.Name
		if name == adapter.Responses {
			continue // its list is openai's
		}
		client, _, err := turn.ClientOf(settings, name, wire.Options{}, os.Getenv)
		if err == nil {
			err = r.listModels(name, client)
		}
		failed = errors.Join(failed, err)
		if listed = listed || err == nil; r.stopped() {
			return nil
		}
	}
	if !listed {
		return failed
	}
	return nil
}

// modelSettings returns the settings of the conversation, if there is one.
func (r *run) modelSettings() (map[string]json.RawMessage, error) {
	c, err := r.conversation()
	if errors.Is(err, chatctx.ErrNotExist) || errors.Is(err, chatctx.ErrNotFound) && r.contextRef() == "" {
		return settings.WithEnv(nil, os.Getenv), nil
	}
	if err != nil {
		return nil, err
	}
	inForce, err := c.Effective(r.ctx, r.branchName())
	return settings.WithEnv(inForce, os.Getenv), err
}

func (r *run) listModels(provider string, client wire.Client) error {
	models, err := client.Models(r.ctx)
	if err != nil {
		return talkHint(err)
	}
	for _, m := range models {
		err := r.emit(modelJSON{provider, m}, func() {
			line := fmt.Sprintf("%s  %s", r.paint(dim, pad(provider, 16)), clean(m.ID))
			if m.Name != "" && m.Name != m.ID {
				line += "  " + r.paint(dim, clean(m.Name))
			}
			if m.InputLimit > 0 {
				line += r.paint(dim, fmt.Sprintf("  %d tokens in", m.InputLimit))
			}
			r.printf("%s\n", line)
		})
		if err != nil || r.stopped() {
			return err
		}
	}
	return nil
}
