package turn

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/binding"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
	"github.com/fxamacker/cbor/v2"
)

// Request is a request to a provider, with its body and all that went into it.
type Request struct {
	Provider, Model string
	Body            []byte
	Draft           *chatctx.Draft   // as the enhancers left it
	Report          *enhancer.Report // what they did
	Tokens          int              // its size; if a compaction is due, an upper bound
	Repairs         []chatctx.Note   // what the adapter changed

	handle
	client wire.Client
	wire   wire.Request
	names  map[string]string
	sum    string // the sum of the body's pieces
	info   *record.BranchInfo
	before branch.Session
	// covered is the position of the last message that the request has, itself or in a summary.
	covered int
	apart   []int // the positions of those that are excluded
}

// handle has what the request was made with, for window.Of.
type handle = window.Handle

func (r *Request) made() *window.Made { return window.Of(&r.handle) }

// named returns the tools that the request names, nil if a setting names others to the provider.
func (r *Request) named() []string {
	if r.Draft.Settings["provider.tools"] != nil {
		return nil
	}
	names := make([]string, len(r.Draft.Tools))
	for i := range r.Draft.Tools {
		names[i] = r.Draft.Tools[i].Name
	}
	return names
}

// Request returns the request that Send would send with these messages. It sends and stores nothing, and asks no model, so digests that Send would let one
// shorten are unchanged. Repairs about one of the messages say what the provider would not take.
func (t *Turn) Request(ctx context.Context, messages ...*chatctx.Message) (*Request, error) {
	req, err := t.begin(ctx, t.Branch, messages...)
	if err != nil {
		return nil, err
	}
	return req, t.build(ctx, req, nil)
}

// Fit returns a Request up to the draft: it needs no provider and makes no body. If the draft cannot be made to fit, it is returned together with the
// *window.BudgetError.
func (t *Turn) Fit(ctx context.Context) (*Request, error) {
	req, err := t.begin(ctx, t.Branch)
	if err != nil {
		return nil, err
	}
	return req, t.fit(ctx, req, nil)
}

// asking allows a request to let a model shorten digests. Several requests may share once, so that they ask each question once. keep stores what each answer took,
// and the sessions that have its text.
type asking struct {
	once *window.Once
	keep func(ctx context.Context, sessions []branch.Session, paid *chatctx.Message) error
}

// request returns a request with a client, and checks its size with the provider if it is close to the limit.
func (t *Turn) request(ctx context.Context, branchName string, asides *asking) (*Request, error) {
	req, err := t.withClient(ctx, branchName, asides)
	if err != nil {
		return nil, err
	}
	return t.within(ctx, req, asides)
}

func (t *Turn) withClient(ctx context.Context, branchName string, asides *asking) (*Request, error) {
	req, err := t.begin(ctx, branchName)
	if err == nil {
		err = t.build(ctx, req, asides)
	}
	if err != nil {
		return nil, err
	}
	if req.client = t.Client; req.client == nil {
		req.client, err = t.newClient(req.Provider, req.Draft.Settings)
	}
	return req, err
}

// begin reads the branch and its settings.
func (t *Turn) begin(ctx context.Context, branchName string, more ...*chatctx.Message) (*Request, error) {
	if err := settings.CheckAll(t.Settings); err != nil {
		return nil, err
	}
	d, err := t.Context.DraftIn(ctx, branchName, t.session)
	if err != nil {
		return nil, err
	}
	covered, apart := max(d.Session.Start-1, 0), []int(nil)
	for _, m := range d.Messages {
		covered = max(covered, m.Position)
		if m.State == enhancer.Excluded {
			apart = append(apart, m.Position)
		}
	}
	slices.Sort(apart)
	for _, m := range more {
		c := *m
		if c.ID == (chatctx.ID{}) {
			m.ID = pool.NewID()
			c.ID = m.ID
		}
		d.Messages = append(d.Messages, &chatctx.DraftMessage{Entry: chatctx.Entry{Message: &c, Position: len(d.Messages) + 1}, State: enhancer.In})
	}
	req := &Request{Draft: d, before: d.Session, covered: covered, apart: apart}
	if req.info, err = t.Context.Branch(ctx, d.Branch); err != nil {
		return nil, err
	}
	if d.Settings = t.settings(d.Settings); len(more) > 0 && t.System != "" {
		d.System = t.System
	}
	return req, t.misled(d.Ignored, d.Settings)
}

// misled returns an error if an address that is set is not in force because it is invalid, so that requests for it do not go elsewhere.
func (t *Turn) misled(ignored []error, inForce map[string]json.RawMessage) error {
	_, wrong := settings.FromEnv(t.getenv)
	for _, err := range append(wrong, ignored...) {
		var e *settings.Error
		if !errors.As(err, &e) || inForce[e.Name] != nil {
			continue
		}
		if row, _ := settings.Lookup(e.Name); row.Type == settings.Address {
			return err
		}
	}
	return nil
}

// build makes the request's body.
func (t *Turn) build(ctx context.Context, req *Request, asides *asking) (err error) {
	if req.Provider, err = providerOf(req.Draft.Settings, t.getenv); err != nil {
		return err
	}
	t.askCompaction(req)
	req.wire.Header = takeHeaders(req.Draft.Settings, req.Provider, req.Draft.Session.Provider != "")
	if err := t.fit(ctx, req, asides); err != nil {
		return err
	}
	if err := req.adapt(); err != nil {
		return err
	}
	return t.compare(ctx, req)
}

// fit makes the draft fit the window.
func (t *Turn) fit(ctx context.Context, req *Request, asides *asking) (err error) {
	if req.made().Options, err = t.options(ctx, req.Draft.Settings, asides != nil); err != nil {
		return err
	}
	req.made().Options.Offer = t.Calls != nil // the program answers the model's calls
	var c enhancer.Completer
	if asides != nil {
		c = asides.once.By(t.completer(req.Draft.Settings))
	}
	pipeline := window.Standard(req.made().Options, t.Context, c, t.Enhancers...)
	req.made().Window = pipeline.Window
	if asides != nil {
		req.made().Window.Context = t.Context
		req.made().Window.Keep = func(ctx context.Context, session branch.Session, paid *chatctx.Message) error {
			req.info.Sessions = window.Sessions(req.info, session)
			now := req.info.Sessions[len(req.info.Sessions)-1]
			req.Draft.Session.ID, req.Draft.Session.Start, req.Draft.Session.Created = now.ID, now.Start, now.Created
			req.before = now
			return asides.keep(ctx, req.info.Sessions, paid)
		}
	}
	if req.made().Forecast, err = pipeline.Foresee(ctx, req.made().Options, req.Draft); err != nil {
		return err
	}
	if req.made().Forecast.Due { // unless the model's summary was not usable
		gaveUp, err := window.GaveUp(ctx, t.Context, t.summariser(req.Draft.Settings), req.Draft)
		if err != nil {
			return err
		}
		if o := req.made().Options; gaveUp {
			o.StepsOff = append(slices.Clone(o.StepsOff), window.CompactStep)
			if req.made().Forecast, err = pipeline.Foresee(ctx, o, req.Draft); err != nil {
				return err
			}
		}
	}
	if req.Report, err = pipeline.Run(ctx, req.Draft); err != nil {
		return err
	}
	req.made().Forecast.Settled(req.Report)
	req.Tokens = req.made().Forecast.Tokens
	return nil
}

// settings returns those in force with the turn's own above them, and the environment's below.
func (t *Turn) settings(inForce map[string]json.RawMessage) map[string]json.RawMessage {
	under := settings.WithEnv(inForce, t.getenv)
	if p := adapter.ProviderOf(textSetting(t.Settings, "model")); p != "" && t.Settings["provider"] == nil && textSetting(under, "base_url") == "" {
		// the model is p's, so p's key goes with it and not one that was set for another provider
		was, err := providerOf(under, t.getenv)
		if err != nil {
			was = p
		}
		under["provider"] = jsontree.Quote(was)
		under = settings.InForce(under, map[string]json.RawMessage{"provider": jsontree.Quote(p)})
	}
	return settings.InForce(under, t.Settings)
}

// textSetting returns a setting that is a text, "" if there is none.
func textSetting(settings map[string]json.RawMessage, key string) string {
	var s string
	_ = json.Unmarshal(settings[key], &s) // another type is refused where the setting is used
	return strings.TrimSpace(s)
}

// adapt makes the body of the draft.
func (r *Request) adapt() error {
	d := r.Draft
	before := len(d.Notes)
	service, err := adapter.ServiceOf(r.Provider)
	if err != nil {
		return err
	}
	body, err := service.Adapter.Adapt(d)
	if err != nil {
		return err
	}
	if r.Body, err = body.MarshalJSON(); err != nil {
		return err
	}
	r.Repairs, r.names = d.Notes[before:], body.ToolNames()
	r.Model = adapter.BareModel(&adapter.Settings{Model: textSetting(d.Settings, "model"), BaseURL: textSetting(d.Settings, "base_url")}, r.Provider)
	r.wire.Model, r.wire.Body = r.Model, r.Body
	pieces := body.Prefix()
	r.sum = binding.NewChain(pieces...).Sum()
	if r.made().Window != nil { // otherwise it is not the request of a branch
		r.made().Chain = chain(pieces, d, r.made().Window)
	}
	return nil
}

// chain hashes the pieces of a body and says for each its message and the step that last changed it. Their tokens add up to the draft's.
func chain(pieces []adapter.Piece, d *chatctx.Draft, w *window.Window) []window.Link {
	of, fixed := w.Shares(d)
	byID := make(map[chatctx.ID]*chatctx.DraftMessage, len(d.Messages))
	for _, m := range d.Messages {
		byID[m.ID] = m
	}
	links := make([]window.Link, 0, len(pieces))
	counted := map[chatctx.ID]bool{}
	for _, p := range pieces {
		l := window.Link{Message: p.Message, Hash: hash(p.Bytes), Bytes: len(p.Bytes)}
		switch m := byID[p.Message]; {
		case m != nil:
			l.Step = m.Step
			if !counted[m.ID] {
				l.Tokens, counted[m.ID] = of[m.ID], true
			}
		case d.Summary != nil && p.Message == d.Summary.ID:
			l.Step, l.Tokens = "summary", of[p.Message]
		case len(counted) == 0:
			l.Step = "system"
		}
		links = append(links, l)
	}
	if len(links) > 0 { // prompts, and messages without a piece of their own: system texts, which begin the request
		for _, n := range of {
			fixed += n
		}
		for i := range links {
			fixed -= links[i].Tokens
		}
		links[0].Tokens += fixed
	}
	return links
}

// compare finds the part that the request shares with the last one.
func (t *Turn) compare(ctx context.Context, req *Request) error {
	raw, err := view.LastRequest(ctx, base.ContextOf(t.Context.Store(), t.Context.ID), req.Draft.Branch, req.Provider)
	if err != nil {
		return err
	}
	var before []window.Link
	if req.made().First = raw == nil; !req.made().First && cbor.Unmarshal(raw, &before) != nil {
		req.made().First, before = true, nil // it is of another version
	}
	req.made().Prefix = window.Share(before, req.made().Chain, req.made().Options.Prices.Of(req.Provider, req.Model, time.Time{}))
	return nil
}

// record returns the chain for the next comparison.
func (r *Request) record() []byte {
	raw, err := cbor.Marshal(r.made().Chain)
	if err != nil {
		return nil
	}
	return raw
}

// sessions returns the branch's sessions with the current one as this request changed it; nil if it did not.
func (r *Request) sessions() []branch.Session {
	if !window.Changed(&r.before, &r.Draft.Session) {
		return nil
	}
	return window.Sessions(r.info, r.Draft.Session)
}
