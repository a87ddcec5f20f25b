package anthropic

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
)

// Version is the API version of requests.
const Version = "2023-06-01"

// Client talks to the Messages API, or to another server with its protocol.
type Client struct{ sender *wire.Sender }

// NewClient returns a Client with the address and key of o, else those of ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY. An address may end in /v1.
func NewClient(o wire.Options) (*Client, error) {
	s, err := o.Sender(place(), func(h http.Header, key string) { h.Set("X-Api-Key", key) })
	if err != nil {
		return nil, err
	}
	s.Base = strings.TrimSuffix(s.Base, "/v1")
	if s.Header.Get("Anthropic-Version") == "" {
		s.Header.Set("Anthropic-Version", Version)
	}
	return &Client{s}, nil
}

// place returns the API's address, and the variables that change it.
func place() wire.Place {
	return wire.Place{Provider: Provider, Base: "https://api.anthropic.com", BaseEnv: []string{"ANTHROPIC_BASE_URL"}, KeyEnv: []string{"ANTHROPIC_API_KEY"}}
}

func init() { adapter.Register(adapter.NewService(place(), Adapter, NewClient)) }

// Send asks for a reply.
func (c *Client) Send(ctx context.Context, r wire.Request) (*wire.Stream, error) {
	return c.sender.Ask(ctx, "/v1/messages", r, wire.SSE, NewFold(), nil)
}

// counted are the members of a body that the counting endpoint accepts.
var counted = []string{"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "output_format",
	"mcp_servers", "context_management", "cache_control"}

// Count returns the number of input tokens of a body.
func (c *Client) Count(ctx context.Context, r wire.Request) (int64, error) {
	return c.sender.Count(ctx, "/v1/messages/count_tokens", r, counted...)
}

// Models returns the models, newest first.
func (c *Client) Models(ctx context.Context) ([]wire.Model, error) {
	var all []wire.Model
	after := ""
	for {
		var page struct {
			Data []struct {
				ID      string    `json:"id"`
				Name    string    `json:"display_name"`
				Created time.Time `json:"created_at"`
				Input   int64     `json:"max_input_tokens"`
				Output  int64     `json:"max_tokens"`
			} `json:"data"`
			More bool   `json:"has_more"`
			Last string `json:"last_id"`
		}
		if err := c.sender.JSON(ctx, "/v1/models?limit=1000"+after, nil, nil, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Data {
			all = append(all, wire.Model{ID: m.ID, Name: m.Name, Created: m.Created, InputLimit: m.Input, OutputLimit: m.Output})
		}
		next := "&after_id=" + url.QueryEscape(page.Last)
		if !page.More || page.Last == "" || next == after {
			return all, nil
		}
		after = next
	}
}
