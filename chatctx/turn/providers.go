package turn

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/view"
)

// ErrNoProvider means that the settings name no provider, and the model's name does not imply one.
var ErrNoProvider = errors.New("no provider")

// providerOf returns the provider that settings name, else the one that the model's name implies, else OpenAI's if the environment has another address for it:
// servers there have models of any name.
func providerOf(settings map[string]json.RawMessage, getenv func(string) string) (string, error) {
	if p := textSetting(settings, "provider"); p != "" {
		if _, err := adapter.ServiceOf(p); err != nil {
			return "", fmt.Errorf("%w %q: use one of %s", ErrNoProvider, p, adapter.Names())
		}
		return p, nil
	}
	model := textSetting(settings, "model")
	if model == "" {
		return "", adapter.ErrNoModel
	}
	if textSetting(settings, "base_url") != "" {
		return adapter.OpenAI, nil // a model's name must not lead away from an address
	}
	if p := adapter.ProviderOf(model); p != "" {
		return p, nil
	}
	if openai, err := adapter.ServiceOf(adapter.OpenAI); err == nil {
		for _, address := range openai.Place.BaseEnv {
			if strings.TrimSpace(getenv(address)) != "" {
				return adapter.OpenAI, nil
			}
		}
	}
	return "", fmt.Errorf("%w is known for the model %q: give --provider one of %s", ErrNoProvider, model, adapter.Names())
}

// inForce returns the settings of the turn's branch.
func (t *Turn) inForce(ctx context.Context) (map[string]json.RawMessage, error) {
	own, err := t.Context.Effective(ctx, t.Branch)
	if err != nil {
		return nil, err
	}
	ignored, err := view.Ignored(ctx, base.ContextOf(t.Context.Store(), t.Context.ID), t.Branch)
	if err != nil {
		return nil, err
	}
	all := t.settings(own)
	return all, t.misled(ignored, all)
}

// NewClient returns the client that the branch's settings and the environment name. If name is "", it uses the provider that Send would use.
func (t *Turn) NewClient(ctx context.Context, name string) (client wire.Client, provider string, err error) {
	inForce, err := t.inForce(ctx)
	if err != nil {
		return nil, "", err
	}
	return ClientOf(inForce, name, t.HTTP, t.getenv)
}

// ClientOf returns the client that settings name, for a provider, or, if name is "", for the one that they name.
func ClientOf(inForce map[string]json.RawMessage, name string, o wire.Options, getenv func(string) string) (wire.Client, string, error) {
	p, err := providerOf(inForce, getenv)
	switch {
	case name == "" && err != nil:
		return nil, "", err
	case name == "":
		name = p
	case err != nil || p != name: // the address and the key are those of another provider
		inForce = settings.InForce(inForce, map[string]json.RawMessage{"provider": jsontree.Quote(p)}, map[string]json.RawMessage{"provider": jsontree.Quote(name)})
	}
	service, err := adapter.ServiceOf(name)
	if err != nil {
		return nil, "", fmt.Errorf("%w %q: use one of %s", ErrNoProvider, name, adapter.Names())
	}
	c, err := service.Client(wireOptions(inForce, o, getenv))
	return c, name, err
}

func (t *Turn) newClient(name string, settings map[string]json.RawMessage) (wire.Client, error) {
	o := t.HTTP
	if o.OnRetry == nil {
		o.OnRetry = func(failed *wire.Error, wait time.Duration) { t.show(Event{Retry: &Retry{failed, wait}}) }
	}
	c, _, err := ClientOf(settings, name, o, t.getenv)
	return c, err
}

// wireOptions returns the program's options, completed from the settings of a server.
func wireOptions(inForce map[string]json.RawMessage, o wire.Options, getenv func(string) string) wire.Options {
	if o.BaseURL == "" { // a key goes with its address, so both are either the settings' or the program's
		if o.BaseURL = textSetting(inForce, "base_url"); o.BaseURL != "" || o.KeyEnv == "" {
			o.KeyEnv = textSetting(inForce, "key_env")
		}
	}
	for _, key := range []string{"organisation", "organization"} {
		if o.Organisation == "" {
			o.Organisation = textSetting(inForce, key)
		}
	}
	if o.Getenv == nil {
		o.Getenv = getenv
	}
	v := settings.Values(inForce)
	if o.Limits.Retries == 0 {
		if o.Limits.Retries = v.Count("retries"); o.Limits.Retries == 0 {
			o.Limits.Retries = -1
		}
	}
	if o.Limits.FirstByte == 0 {
		d := v.Time("timeout")
		o.Limits.FirstByte, o.Limits.Stall = d, d
	}
	return o
}

func hash(b []byte) [16]byte {
	h := sha256.Sum256(b)
	return [16]byte(h[:16])
}
