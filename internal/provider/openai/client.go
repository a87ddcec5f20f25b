package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
)

// Client talks to the Chat Completions API, or to another server with its protocol.
type Client struct {
	sender  *wire.Sender
	figures json.RawMessage // the member that asks for usage in a stream
}

// NewClient returns a Client with the address and key of o, else those of OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_ORG_ID. An address has the path up to
// /chat/completions; one without a path gets /v1.
func NewClient(o wire.Options) (*Client, error) {
	s, err := NewSender(Provider, o)
	if err != nil {
		return nil, err
	}
	c := &Client{sender: s, figures: usage}
	if u, err := url.Parse(s.Base); err == nil && strings.HasSuffix(u.Hostname(), "mistral.ai") {
		c.figures = nil // it sends them anyway, and refuses unknown members
	}
	return c, nil
}

// NewSender returns the Sender for all of OpenAI's APIs.
func NewSender(provider string, o wire.Options) (*wire.Sender, error) {
	s, err := o.Sender(PlaceOf(provider), func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) })
	if err != nil {
		return nil, err
	}
	if s.Organisation != "" {
		s.Header.Set("Openai-Organization", s.Organisation)
	}
	if u, err := url.Parse(s.Base); err == nil && u.Path == "" {
		s.Base += "/v1"
	}
	return s, nil
}

// PlaceOf returns the address of OpenAI's APIs for a provider of that name, and the variables that change it.
func PlaceOf(provider string) wire.Place {
	return wire.Place{Provider: provider, Base: "https://api.openai.com/v1", BaseEnv: []string{"OPENAI_BASE_URL"}, KeyEnv: []string{"OPENAI_API_KEY"}, OrgEnv: "OPENAI_ORG_ID"}
}

func init() { adapter.Register(adapter.NewService(PlaceOf(Provider), Adapter, NewClient)) }

// usage asks for figures, which a stream has only on request.
var usage = json.RawMessage(`{"stream_options":{"include_usage":true}}`)

// Send asks for a reply.
func (c *Client) Send(ctx context.Context, r wire.Request) (*wire.Stream, error) {
	return c.sender.Ask(ctx, "/chat/completions", r, wire.SSE, NewFold(), c.figures)
}

// Count returns wire.ErrNoCount.
func (c *Client) Count(context.Context, wire.Request) (int64, error) { return 0, wire.ErrNoCount }

// Models returns the models.
func (c *Client) Models(ctx context.Context) ([]wire.Model, error) { return Models(ctx, c.sender) }

// Models returns the models of a server with OpenAI's list.
func Models(ctx context.Context, s *wire.Sender) ([]wire.Model, error) {
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			Name    string `json:"name"` // OpenRouter
			Created int64  `json:"created"`
			Window  int64  `json:"context_length"` // OpenRouter
			Max     int64  `json:"max_model_len"`  // vLLM
		} `json:"data"`
	}
	if err := s.JSON(ctx, "/models", nil, nil, &list); err != nil {
		return nil, err
	}
	all := make([]wire.Model, 0, len(list.Data))
	for _, m := range list.Data {
		model := wire.Model{ID: m.ID, Name: m.Name, InputLimit: max(m.Window, m.Max)}
		if m.Created > 0 {
			model.Created = time.Unix(m.Created, 0).UTC()
		}
		all = append(all, model)
	}
	return all, nil
}
