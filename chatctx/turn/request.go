package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/all"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

// Request is a branch on its way to a provider, as far as the body.
type Request struct {
	Provider, Model string
	Body            []byte
	Draft           *chatctx.Draft   // as the enhancers left it
	Report          *enhancer.Report // what they did
	Options         enhancer.Options // the settings of the window that they went by
	Window          *enhancer.Window // what the draft was measured with
	// Forecast is what the request takes; where a compaction is due, what it will take at most.
	Forecast *enhancer.Forecast
	Repairs  []chatctx.Note // what the adapter did
	// Chain is the body in the order in which the provider reads it.
	Chain []enhancer.Link
	// Prefix is what this request shares with the last one of this branch to this provider. First: there was none.
	Prefix enhancer.Prefix
	First  bool

	client wire.Client
	wire   wire.Request
	names  map[string]string
	sum    string // of the body's pieces
	info   *chatctx.BranchInfo
	before branch.Session
}

// named are the tools that the request names, nil where a setting names others to the provider.
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

// Request makes the request that Send would send with these messages, without sending or storing anything, and without asking a model: what Send would have one shorten is as it is.
// Repairs that concern one of the messages say what the provider would not take.
func (t *Turn) Request(ctx context.Context, messages ...*chatctx.Message) (*Request, error) {
	req, err := t.begin(ctx, t.Branch, messages...)
	if err != nil {
		return nil, err
	}
	return req, t.build(ctx, req, nil)
}

// Fit is Request as far as the draft: it wants no provider and gives no body. Where that cannot be made to fit, it is given beside the *enhancer.BudgetError.
func (t *Turn) Fit(ctx context.Context) (*Request, error) {
	req, err := t.begin(ctx, t.Branch)
	if err != nil {
		return nil, err
	}
	return req, t.fit(ctx, req, nil)
}

// request is a request with a client, and with the provider's word on the size where it is close to the limit. asides, if not nil, lets a model be asked for what is to be shortened.
func (t *Turn) request(ctx context.Context, branchName string, asides *enhancer.Once) (*Request, error) {
	req, err := t.withClient(ctx, branchName, asides)
	if err != nil {
		return nil, err
	}
	return t.within(ctx, req, asides)
}

func (t *Turn) withClient(ctx context.Context, branchName string, asides *enhancer.Once) (*Request, error) {
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
		return nil, fmt.Errorf("%w: %w", adapter.ErrSetting, err)
	}
	d, err := t.Context.Draft(ctx, branchName)
	if err != nil {
		return nil, err
	}
	for _, m := range more {
		c := *m
		if c.ID == (chatctx.ID{}) {
			m.ID = pool.NewID()
			c.ID = m.ID
		}
		d.Messages = append(d.Messages, &chatctx.DraftMessage{Entry: chatctx.Entry{Message: &c, Position: len(d.Messages) + 1}, State: enhancer.In})
	}
	req := &Request{Draft: d, before: d.Session}
	if req.info, err = t.Context.Branch(ctx, d.Branch); err != nil {
		return nil, err
	}
	d.Settings = t.settings(d.Settings)
	return req, t.misled(d.Ignored, d.Settings)
}

// misled fails where an address that is set is not in force, since it is none: what was meant for there is not sent elsewhere.
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

// build makes the body.
func (t *Turn) build(ctx context.Context, req *Request, asides *enhancer.Once) (err error) {
	if req.Provider, err = providerOf(req.Draft.Settings); err != nil {
		return err
	}
	req.wire.Header = takeHeaders(req.Draft.Settings, req.Provider)
	if err := t.fit(ctx, req, asides); err != nil {
		return err
	}
	if err := req.adapt(); err != nil {
		return err
	}
	return t.compare(ctx, req)
}

// fit makes the draft fit the window.
func (t *Turn) fit(ctx context.Context, req *Request, asides *enhancer.Once) (err error) {
	if req.Options, err = t.options(ctx, req.Draft.Settings, asides != nil); err != nil {
		return err
	}
	req.Options.Offer = t.Calls != nil // somebody answers the model's calls
	var c enhancer.Completer
	if asides != nil {
		c = asides.By(t.completer(req.Draft.Settings))
	}
	pipeline := enhancer.Standard(req.Options, t.Context, c, t.Enhancers...)
	req.Window = pipeline.Window
	if req.Forecast, err = pipeline.Foresee(ctx, req.Options, req.Draft); err != nil {
		return err
	}
	if req.Report, err = pipeline.Run(ctx, req.Draft); err != nil {
		return err
	}
	req.Forecast.Settled(req.Report)
	return nil
}

// settings are those in force with the turn's own over them, and the environment's under them.
func (t *Turn) settings(inForce map[string]json.RawMessage) map[string]json.RawMessage {
	under := settings.WithEnv(inForce, t.getenv)
	if p := adapter.ProviderOf(textSetting(t.Settings, "model")); p != "" && t.Settings["provider"] == nil && textSetting(under, "base_url") == "" {
		// the model is known to be p's, whose key goes along and not the one that was set for another
		was, err := providerOf(under)
		if err != nil {
			was = p
		}
		under["provider"] = wire.String(was)
		under = settings.InForce(under, map[string]json.RawMessage{"provider": wire.String(p)})
	}
	return settings.InForce(under, t.Settings)
}

// textSetting is a setting that is a text, "" for none.
func textSetting(settings map[string]json.RawMessage, key string) string {
	var s string
	_ = json.Unmarshal(settings[key], &s) // another type is refused by those who read it
	return strings.TrimSpace(s)
}

// takeHeaders takes what goes into headers out of the settings, which otherwise go into the body.
func takeHeaders(settings map[string]json.RawMessage, provider string) http.Header {
	const key = adapter.Anthropic + ".betas"
	if provider != adapter.Anthropic || settings[key] == nil {
		return nil
	}
	var betas []string
	if json.Unmarshal(settings[key], &betas) != nil {
		betas = []string{textSetting(settings, key)}
	}
	delete(settings, key)
	return http.Header{"Anthropic-Beta": {strings.Join(betas, ",")}}
}

// adapt makes the body.
func (r *Request) adapt() error {
	d := r.Draft
	before := len(d.Notes)
	body, err := all.Adapt(r.Provider, d)
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
	r.sum = adapter.NewChain(pieces...).Sum()
	if r.Window != nil { // else it is no branch's
		r.Chain = chain(pieces, d, r.Window)
	}
	return nil
}

// chain hashes the pieces of a body and says which message and step each is from. Their tokens add up to the draft's.
func chain(pieces []adapter.Piece, d *chatctx.Draft, w *enhancer.Window) []enhancer.Link {
	of, fixed := w.Shares(d)
	byID := make(map[chatctx.ID]*chatctx.DraftMessage, len(d.Messages))
	for _, m := range d.Messages {
		byID[m.ID] = m
	}
	links := make([]enhancer.Link, 0, len(pieces))
	counted := map[chatctx.ID]bool{}
	for _, p := range pieces {
		l := enhancer.Link{Message: p.Message, Hash: hash(p.Bytes), Bytes: len(p.Bytes)}
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

// compare finds what the request shares with the last one.
func (t *Turn) compare(ctx context.Context, req *Request) error {
	raw, err := t.Context.LastRequest(ctx, req.Draft.Branch, req.Provider)
	if err != nil {
		return err
	}
	var before []enhancer.Link
	if req.First = raw == nil; !req.First && cbor.Unmarshal(raw, &before) != nil {
		req.First, before = true, nil // of another version
	}
	req.Prefix = enhancer.Share(before, req.Chain, req.Options.Prices.Of(req.Provider, req.Model, time.Time{}))
	return nil
}

// record is the chain for the next comparison.
func (r *Request) record() []byte {
	raw, err := cbor.Marshal(r.Chain)
	if err != nil {
		return nil
	}
	return raw
}

// sessions are the branch's sessions with what this request made of the present one; nil where it changed nothing.
func (r *Request) sessions() []branch.Session {
	if !enhancer.Changed(&r.before, &r.Draft.Session) {
		return nil
	}
	return enhancer.Sessions(r.info, r.Draft.Session)
}
