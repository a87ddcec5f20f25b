package operation

import (
	"bytes"
	"encoding/json"
	"errors"
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
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/window"
)

func init() { Register(Group{Heading: "Talking to a model", Of: requestOperations}) }

func requestOperations() []*Operation {
	return []*Operation{
		Define("models.list", "GET", Read, "list the models that a provider offers", listModels).Fails(asking...).As("models", "chatctx models --provider anthropic").
			With("Without --provider: the provider of the branch's settings, else every provider whose key is set."),
		Define("requests.show", "GET", Read, "print the request that send would send: its body alone", showRequest).Fails("empty").Fails(asking...).
			As("request", "chatctx request --provider anthropic --pretty\nchatctx request --check"),
		Define("requests.explain", "GET", Read, "show what each message becomes in a request, and what the request shares with the last one", explain).Fails("empty").Fails(asking...).
			As("explain", "chatctx explain"),
	}
}

// ModelListing names whose models to list.
type ModelListing struct {
	Target
	Provider string `json:"provider,omitempty" flag:"provider" doc:"the {PROVIDER}: openai, openai-responses, anthropic, gemini or ollama"`
}

// Unopened says that there need not be a store.
func (in *ModelListing) Unopened() bool { return true }

// Asks returns whom to ask, and whether that is anybody.
func (in *ModelListing) Asks() (Whom, bool) { return Whom{Provider: in.Provider}, in.Provider != "" }

// Model is a model that a provider offers.
type Model struct {
	Provider string `json:"provider"`
	wire.Model
}

func listModels(r *Request, in *ModelListing) (out List[Model], err error) {
	set, err := r.modelSettings(in.Target)
	if err != nil {
		return out, err
	}
	client, name, err := turn.ClientOf(set, in.Provider, wire.Options{}, os.Getenv)
	switch {
	case errors.Is(err, adapter.ErrNoModel) && in.Provider == "":
		out.all = func(yield func(Model, error) bool) { r.everyModel(set, yield) }
	case err != nil:
		return out, err
	default:
		out.all = func(yield func(Model, error) bool) {
			if _, err := r.modelsOf(name, client, yield); err != nil {
				yield(Model{}, err)
			}
		}
	}
	return out, nil
}

// modelSettings returns the settings of the conversation, if there is one.
func (r *Request) modelSettings(in Target) (map[string]json.RawMessage, error) {
	if r.Store == nil {
		return settings.WithEnv(nil, os.Getenv), nil
	}
	c, err := r.Store.Context(r.Ctx, in.Context)
	if errors.Is(err, chatctx.ErrNotFound) && in.Context == "" {
		return settings.WithEnv(nil, os.Getenv), nil
	}
	if err != nil {
		return nil, err
	}
	inForce, err := c.Effective(r.Ctx, in.Branch)
	return settings.WithEnv(inForce, os.Getenv), err
}

// everyModel yields the models of every provider that can be reached. It is an error only if none can.
func (r *Request) everyModel(set map[string]json.RawMessage, yield func(Model, error) bool) {
	var failed error
	listed := false
	for _, service := range adapter.Services() {
		name, stopped := service.Name, false
		if name == adapter.Responses {
			continue // its list is openai's
		}
		client, _, err := turn.ClientOf(set, name, wire.Options{}, os.Getenv)
		if err == nil {
			stopped, err = r.modelsOf(name, client, yield)
		}
		failed = errors.Join(failed, err)
		if listed = listed || err == nil; stopped {
			return
		}
	}
	if !listed {
		yield(Model{}, failed)
	}
}

// modelsOf yields the models of a provider, until nobody wants more.
func (r *Request) modelsOf(provider string, client wire.Client, yield func(Model, error) bool) (stopped bool, err error) {
	models, err := client.Models(r.Ctx)
	for _, m := range models {
		if err == nil && !yield(Model{provider, m}, nil) {
			return true, nil
		}
	}
	return false, err
}

// Explaining names whom the request is for.
type Explaining struct {
	Target
	Whom
}

// Explained is what became of each message of a branch in a request, and at the end what is true of the whole.
type Explained struct {
	Items []ExplainedMessage `json:"items"`
	End   ExplainedRequest   `json:"end"`
}

// Each calls fn with each message, and at the end with the request.
func (v Explained) Each(fn func(any) error) error {
	for _, m := range v.Items {
		if err := fn(m); err != nil {
			return err
		}
	}
	return fn(v.End)
}

// ExplainedMessage is what became of a message.
type ExplainedMessage struct {
	ID       chatctx.ID `json:"id"`
	Role     string     `json:"role"`
	Kind     string     `json:"kind,omitempty"`
	Position int        `json:"position"`
	State    string     `json:"state"`
	Step     string     `json:"step,omitempty"`
	Tokens   int        `json:"tokens"`
	Notes    []string   `json:"notes,omitempty"`

	Of *chatctx.DraftMessage `json:"-"`
}

// ExplainedRequest is what is true of a request as a whole.
type ExplainedRequest struct {
	Prefix   Prefix `json:"prefix"`
	Steps    []Step `json:"steps"`
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Limit    int    `json:"limit"`
	Overhead int    `json:"overhead"` // prompts, tools and the conversation as a whole
	contract.Window

	Of *turn.Request `json:"-"`
}

// Prefix is what a request shares with the last one.
type Prefix struct {
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

// Step is what an enhancer did.
type Step struct {
	Name    string `json:"name"`
	Before  int    `json:"before"`
	After   int    `json:"after"`
	Skipped bool   `json:"skipped,omitempty"`
}

// nextRequest returns the branch that is meant, and the request that would be sent for it.
func (r *Request) nextRequest(in Target) (*chatctx.ChatContext, *chatctx.Snapshot, *turn.Request, error) {
	c, snap, err := r.snapshot(in)
	if err != nil {
		return nil, nil, nil, err
	}
	req, err := r.turnOn(c, snap.Info.Name).Request(r.Ctx)
	return c, snap, req, err
}

func explain(r *Request, in *Explaining) (v Explained, err error) {
	c, snap, req, err := r.nextRequest(in.Target)
	if err != nil {
		return v, err
	}
	notes := map[chatctx.ID][]string{}
	for _, n := range req.Draft.Notes {
		notes[n.Message] = append(notes[n.Message], n.What)
	}
	messages, err := r.summarised(c, snap, req)
	if err != nil {
		return v, err
	}
	shares, overhead := window.Of(req).Window.Shares(req.Draft)
	if s := req.Draft.Summary; s != nil {
		for _, p := range window.SummaryParts(s.Message) {
			notes[s.ID] = append(notes[s.ID], p.String())
		}
	}
	for _, m := range messages {
		e := ExplainedMessage{m.ID, string(m.Role), m.Kind, m.Position, m.State, m.Step, m.Tokens, notes[m.ID], m}
		if n, ok := shares[m.ID]; ok { // in the request
			e.Tokens = n
		}
		v.Items = append(v.Items, e)
	}
	v.End = explainedRequest(req, overhead)
	return v, nil
}

func explainedRequest(req *turn.Request, overhead int) ExplainedRequest {
	p := window.Of(req).Prefix
	prefix := Prefix{Bytes: p.Bytes, Tokens: p.Tokens, Total: p.Total, First: window.Of(req).First, BrokenBy: p.BrokenBy, Message: contract.ID(p.Message), Lost: p.Lost}
	if p.Price != nil && p.BrokenBy != "" {
		prefix.Cost, prefix.Currency = &p.Cost, p.Price.Currency
	}
	steps := []Step{}
	for _, s := range req.Report.Steps {
		steps = append(steps, Step{s.Name, s.Before, s.After, s.Skipped})
	}
	return ExplainedRequest{prefix, steps, req.Provider, req.Model, req.Report.Limit, overhead, contract.WindowOf(window.Of(req).Forecast), req}
}

// summarised returns all messages of the branch: those for which the summary stands, the summary, and those of the session, each with its position on the
// branch.
func (r *Request) summarised(c *chatctx.ChatContext, snap *chatctx.Snapshot, req *turn.Request) ([]*chatctx.DraftMessage, error) {
	d, in := req.Draft, map[int]*chatctx.DraftMessage{}
	for _, m := range req.Report.Messages {
		if m.Position < d.Session.Start {
			in[m.Position] = m
		}
	}
	var out []*chatctx.DraftMessage
	if d.Session.Start > 1 {
		gone, err := r.beforeSession(c, snap, req, in)
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
func (r *Request) beforeSession(c *chatctx.ChatContext, snap *chatctx.Snapshot, req *turn.Request, in map[int]*chatctx.DraftMessage) ([]*chatctx.DraftMessage, error) {
	marks, err := c.Marks(r.Ctx)
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
	for e, err := range snap.Entries(r.Ctx, 1, min(req.Draft.Session.Start-1, snap.Len())) {
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
	return before.Messages, window.Of(req).Window.Counter.Fill(r.Ctx, before)
}

// RequestShowing says for whom a request is, and what of it is shown.
type RequestShowing struct {
	Target
	Whom
	Pretty bool `json:"pretty,omitempty" flag:"pretty" doc:"indented"`
	Check  bool `json:"check,omitempty" flag:"check" doc:"print what was repaired, and why, in place of the body"`
}

// RequestBody is the body of a request, or what was repaired in it.
type RequestBody struct {
	Body  []byte         `json:"-"`
	Check []RequestCheck `json:"-" when:"check"`

	Ignored []error `json:"-"` // settings that are not in force
}

// AppendJSON appends the body as it is.
func (v RequestBody) AppendJSON(b []byte) ([]byte, error) { return append(b, v.Body...), nil }

// RequestCheck is what was repaired in a request.
type RequestCheck struct {
	Provider string          `json:"provider"`
	Model    string          `json:"model"`
	Body     json.RawMessage `json:"body"`
	Repairs  []Repair        `json:"repairs"`
	// Summaries says what each part of the request's first summary stands for.
	Summaries []window.Stands `json:"summaries"`

	Ignored []error `json:"-"` // settings that are not in force
}

// Repair is what an adapter did to a message; without a message, to the request as a whole.
type Repair struct {
	Message *chatctx.ID `json:"message"`
	What    string      `json:"what"`
}

func showRequest(r *Request, in *RequestShowing) (v RequestBody, err error) {
	_, _, req, err := r.nextRequest(in.Target)
	if err != nil {
		return v, err
	}
	v = RequestBody{Body: req.Body, Ignored: req.Draft.Ignored}
	if in.Check {
		check := RequestCheck{req.Provider, req.Model, req.Body, []Repair{}, []window.Stands{}, req.Draft.Ignored}
		if s := req.Draft.Summary; s != nil {
			check.Summaries = window.SummaryParts(s.Message)
		}
		for _, n := range req.Repairs {
			check.Repairs = append(check.Repairs, Repair{contract.ID(n.Message), n.What})
		}
		v.Check = []RequestCheck{check}
	}
	if in.Pretty {
		var b bytes.Buffer
		err = json.Indent(&b, req.Body, "", "  ")
		v.Body = b.Bytes()
	}
	return v, err
}
