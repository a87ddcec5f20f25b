package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

// Completer returns a Completer for the model that the branch's settings name. It works apart from any branch and stores nothing.
func (t *Turn) Completer(ctx context.Context) (enhancer.Completer, error) {
	inForce, err := t.inForce(ctx)
	if err != nil {
		return nil, err
	}
	return t.completer(inForce), nil
}

func (t *Turn) completer(settings map[string]json.RawMessage) enhancer.Completer {
	return &completer{t, settings}
}

// asideOf returns the settings with those under compact. in place of the conversation's own. Another address, or another provider, has its own key.
func asideOf(inForce map[string]json.RawMessage) map[string]json.RawMessage {
	own := map[string]json.RawMessage{}
	for _, key := range []string{"model", "provider", "base_url", "key_env", "profile"} {
		if v := inForce["compact."+key]; v != nil {
			own[key] = v
		}
	}
	out := maps.Clone(inForce)
	if own["model"] != nil && own["provider"] == nil && out["base_url"] == nil {
		delete(out, "provider")
	}
	return settings.InForce(out, own)
}

type completer struct {
	turn     *Turn
	settings map[string]json.RawMessage
}

// asideSettings are the settings that do not apply to a question apart from the conversation.
var asideSettings = []string{"thinking", "response_format", "tool_choice", "parallel_tool_calls", "stop", "cache", "cache.ttl"}

func (c *completer) Complete(ctx context.Context, system, prompt string, limit int) (enhancer.Answer, error) {
	req, err := c.turn.aside(asideOf(c.settings), system, prompt, limit)
	if err != nil {
		return enhancer.Answer{}, err
	}
	reply, err := req.complete(ctx)
	if err != nil {
		return enhancer.Answer{}, err
	}
	return enhancer.Answer{Text: reply.Text(), ID: pool.NewID(), Meta: reply.Meta}, nil
}

// aside returns the request of a question apart from the conversation, for an answer of about limit tokens at most.
func (t *Turn) aside(settings map[string]json.RawMessage, system, prompt string, limit int) (*Request, error) {
	for _, key := range asideSettings {
		delete(settings, key)
	}
	settings["max_tokens"], _ = json.Marshal(max(limit*2, 256)) // a number always encodes; the factor is there since models count differently
	m := pool.NewText(pool.User, prompt)
	m.ID = pool.NewID()
	d := &chatctx.Draft{Settings: settings, System: system,
		Messages: []*chatctx.DraftMessage{{Entry: chatctx.Entry{Message: m, Position: 1}, State: enhancer.In}}}
	name, err := providerOf(settings, t.getenv)
	if err != nil {
		return nil, err
	}
	req := &Request{Provider: name, Draft: d}
	req.wire.Header = takeHeaders(settings, name)
	if err := req.adapt(); err != nil {
		return nil, err
	}
	if req.client = t.Client; req.client == nil {
		if req.client, err = t.newClient(name, settings); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// complete sends such a request and returns the whole answer.
func (r *Request) complete(ctx context.Context) (*chatctx.Message, error) {
	stream, err := r.client.Send(ctx, r.wire)
	if err != nil {
		return nil, err
	}
	reply, err := stream.Read(nil)
	if err != nil {
		return nil, err
	}
	reply.Meta.Completed = pool.Now()
	reply.Meta.Model = cmp.Or(reply.Meta.Model, r.Model)
	return reply, nil
}
