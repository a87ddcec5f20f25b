package turn

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/settings"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

// Completer asks the model that the branch's settings name, apart from any branch: nothing is stored.
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

// asideOf puts the settings under compact. in the place of the conversation's own. Another address, or another provider, has its own key.
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

// asideSettings are the settings that a question apart from the conversation goes without.
var asideSettings = []string{"thinking", "response_format", "tool_choice", "parallel_tool_calls", "stop", "cache", "cache.ttl"}

func (c *completer) Complete(ctx context.Context, system, prompt string, limit int) (enhancer.Answer, error) {
	settings := asideOf(c.settings)
	for _, key := range asideSettings {
		delete(settings, key)
	}
	settings["max_tokens"], _ = json.Marshal(max(limit*2, 256)) // a number always encodes; models count differently
	m := pool.NewText(pool.User, prompt)
	m.ID = pool.NewID()
	d := &chatctx.Draft{Settings: settings, System: system,
		Messages: []*chatctx.DraftMessage{{Entry: chatctx.Entry{Message: m, Position: 1}, State: enhancer.In}}}
	name, err := providerOf(settings)
	if err != nil {
		return enhancer.Answer{}, err
	}
	req := &Request{Provider: name, Draft: d}
	req.wire.Header = takeHeaders(settings, name)
	if err := req.adapt(); err != nil {
		return enhancer.Answer{}, err
	}
	if req.client = c.turn.Client; req.client == nil {
		if req.client, err = c.turn.newClient(name, settings); err != nil {
			return enhancer.Answer{}, err
		}
	}
	stream, err := req.client.Send(ctx, req.wire)
	if err != nil {
		return enhancer.Answer{}, err
	}
	reply, err := stream.Read(nil)
	if err != nil {
		return enhancer.Answer{}, err
	}
	meta := reply.Meta
	meta.Completed = pool.Now()
	if meta.Model == "" {
		meta.Model = req.Model
	}
	return enhancer.Answer{Text: reply.Text(), ID: pool.NewID(), Meta: meta}, nil
}
