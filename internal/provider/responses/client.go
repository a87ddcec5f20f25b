package responses

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/openai"
	"github.com/chatctx/chatctx/internal/provider/replies"
	"github.com/chatctx/chatctx/pool"
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
	return c.sender.Ask(ctx, "/responses", r, wire.SSE, NewFold(), nil)
}

// counted are the members of a body that the counting endpoint accepts.
var counted = []string{"model", "input", "instructions", "tools", "tool_choice", "text", "reasoning", "conversation",
	"previous_response_id", "truncation", "parallel_tool_calls"}

// Count returns the number of input tokens of a body.
func (c *Client) Count(ctx context.Context, r wire.Request) (int64, error) {
	return c.sender.Count(ctx, "/responses/input_tokens", r, counted...)
}

// Compact asks the provider to compact the input of a body. The system texts at its beginning go as instructions, so that they are not part of what comes back.
func (c *Client) Compact(ctx context.Context, r wire.Request) (*pool.Message, error) {
	body, err := compactBody(r.Body)
	if err != nil {
		return nil, err
	}
	var answer json.RawMessage
	if err := c.sender.JSON(ctx, "/responses/compact", r.Header, body, &answer); err != nil {
		return nil, err
	}
	return compaction(r.Model, answer)
}

// compactBody returns the body for the compacting endpoint.
func compactBody(body []byte) ([]byte, error) {
	o, err := jsontree.ParseObject(body)
	if err != nil {
		return nil, err
	}
	var input []json.RawMessage
	if err := json.Unmarshal(o.Get("input"), &input); err != nil {
		return nil, err
	}
	var system []string
	for len(input) > 0 {
		var item struct {
			Role    string
			Content []struct{ Text string }
		}
		if wire.Decode(input[0], &item) != nil || item.Role != "system" {
			break
		}
		for _, p := range item.Content {
			system = append(system, p.Text)
		}
		input = input[1:]
	}
	o = o.Only("model")
	o.Set("input", replies.Array(input))
	if len(system) > 0 {
		o.Set("instructions", jsontree.Quote(strings.Join(system, "\n\n")))
	}
	return o.Bytes(), nil
}

// compaction reads the answer of the compacting endpoint. Without a compaction among its items it is empty, whatever else it has.
func compaction(model string, answer []byte) (*pool.Message, error) {
	var r response
	if err := wire.Decode(answer, &r); err != nil {
		return nil, err
	}
	if !utf8.Valid(answer) || r.Output == nil || len(r.Error) > 0 && string(r.Error) != "null" {
		return nil, wire.Classify(Provider, 200, nil, answer)
	}
	f := &fold{}
	f.use(r.Usage)
	m := &pool.Message{Role: pool.Assistant, Meta: f.meta}
	m.Meta.Provider, m.Meta.Model, m.Meta.FinishReason = Provider, cmp.Or(r.Model, model), cmp.Or(r.Incomplete.Reason, r.Status)
	whole, sound := false, true
	for _, item := range r.Output {
		m.Content = append(m.Content, pool.Part{Type: pool.CompactionPart, Provider: Provider, Model: model, Raw: bytes.Clone(item)})
		var v struct {
			Type      string
			Encrypted string `json:"encrypted_content"`
		}
		err := wire.Decode(item, &v)
		sound = sound && err == nil && v.Type != ""
		whole = whole || v.Type == pool.CompactionPart && v.Encrypted != ""
	}
	switch {
	case !whole:
		m.Content, m.Meta.Error = nil, "it has no compaction"
	case !sound: // the provider would refuse it in each further request
		m.Content, m.Meta.Error = nil, "a part of it is no item of a conversation"
	}
	return m, nil
}

// Models returns the models.
func (c *Client) Models(ctx context.Context) ([]wire.Model, error) {
	return openai.Models(ctx, c.sender)
}
