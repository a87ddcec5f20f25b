package responses

import (
	"context"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/provider/openai"
)

// Client talks to the Responses API, or to another server with its protocol.
type Client struct{ sender *wire.Sender }

// NewClient returns a Client with the address and key that openai.NewClient would use.
func NewClient(o wire.Options) (*Client, error) {
	s, err := openai.NewSender(Provider, o)
	if err != nil {
		return nil, err
	}
	return &Client{s}, nil
}

func init() { adapter.Register(adapter.NewService(openai.PlaceOf(Provider), Adapter, NewClient)) }

// Send asks for a reply.
func (c *Client) Send(ctx context.Context, r wire.Request) (*wire.Stream, error) {
	return c.sender.Ask(ctx, "/responses", r, wire.SSE, NewFold())
}

// counted are the members of a body that the counting endpoint accepts.
var counted = []string{"model", "input", "instructions", "tools", "tool_choice", "text", "reasoning", "conversation",
	"previous_response_id", "truncation", "parallel_tool_calls"}

// Count returns the number of input tokens of a body.
func (c *Client) Count(ctx context.Context, r wire.Request) (int64, error) {
	return c.sender.Count(ctx, "/responses/input_tokens", r, counted...)
}

// Models returns the models.
func (c *Client) Models(ctx context.Context) ([]wire.Model, error) {
	return openai.Models(ctx, c.sender)
}
