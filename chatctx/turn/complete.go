package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/settings"
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

// completer asks the model of compact.model if it is set, else the conversation's own.
func (t *Turn) completer(inForce map[string]json.RawMessage) *completer {
	return &completer{t, asideOf(inForce)}
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

// completer asks the model that its settings name.
type completer struct {
	turn     *Turn
	settings map[string]json.RawMessage
}

// Name identifies what decides how a question is answered: the server, the model, and the limit of its answers if that is set.
func (c *completer) Name() string {
	name, _ := providerOf(c.settings, c.turn.getenv) // Complete reports the error
	return fmt.Sprintf("%s\x00%s\x00%s\x00%s", name, textSetting(c.settings, "base_url"), textSetting(c.settings, "model"), c.settings[asideLimit])
}

// asideSettings are the settings that do not apply to a question apart from the conversation.
var asideSettings = []string{"thinking", "response_format", "tool_choice", "parallel_tool_calls", "stop", "cache", "cache.ttl"}

// asideLimit is the setting with the largest answer to a question apart from the conversation.
const asideLimit = "compact.max_tokens"

// Complete sends such a question and returns the reply. With an error it is what had arrived, nil for nothing.
func (c *completer) Complete(ctx context.Context, p enhancer.Prompt) (*chatctx.Message, error) {
	req, err := c.request(p.System, p.Text, p.Limit)
	if err != nil {
		return nil, err
	}
	id := pool.NewID()
	complete := func(m *chatctx.Message) *chatctx.Message {
		m.ID, m.Meta.Completed = id, pool.Now()
		m.Meta.Model = cmp.Or(m.Meta.Model, req.Model)
		return m
	}
	if err := report(p.Took, complete(&chatctx.Message{Meta: pool.Metadata{Provider: req.Provider}})); err != nil {
		return nil, err
	}
	stream, err := req.client.Send(ctx, req.wire)
	if err != nil {
		return nil, err
	}
	// What has arrived is stored after the first piece, the second, the fourth and so on, so that the work stays in proportion to the answer.
	pieces := 0
	reply, err := stream.Read(func(wire.Delta) {
		if pieces++; pieces&(pieces-1) == 0 {
			if m := stream.Partial(); m != nil {
				_ = report(p.Took, complete(m)) // the store may be held for long; the whole is stored in any case
			}
		}
	})
	if reply != nil {
		complete(reply)
	}
	return reply, err
}

// report calls took, if there is one; see enhancer.Prompt.
func report(took func(*chatctx.Message) error, m *chatctx.Message) error {
	if took == nil {
		return nil
	}
	return took(m)
}

// request returns the request of a question apart from the conversation, for an answer of about limit tokens at most.
func (c *completer) request(system, prompt string, limit int) (*Request, error) {
	t, settings := c.turn, maps.Clone(c.settings)
	for _, key := range asideSettings {
		delete(settings, key)
	}
	if settings["max_tokens"] = settings[asideLimit]; settings["max_tokens"] == nil {
		settings["max_tokens"], _ = json.Marshal(max(limit*2, 256)) // a number always encodes; the factor is there since models count differently
	}
	m := pool.NewText(pool.User, prompt)
	m.ID = pool.NewID()
	d := &chatctx.Draft{Settings: settings, System: system,
		Messages: []*chatctx.DraftMessage{{Entry: chatctx.Entry{Message: m, Position: 1}, State: enhancer.In}}}
	name, err := providerOf(settings, t.getenv)
	if err != nil {
		return nil, err
	}
	req := &Request{Provider: name, Draft: d}
	req.wire.Header = takeHeaders(settings, name, false)
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
