package wire

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
)

// Endpoint is a provider whose requests all go to one path. Its clients neither count tokens nor list models; those of a provider that can do either are written
// with a Sender.
type Endpoint struct {
	Place  Place
	Auth   func(h http.Header, key string) // puts the key into the headers; nil: as a Bearer token
	Path   string                          // behind the place's address: /chat
	Frames func(io.Reader) Frames          // how a stream is cut; nil: server-sent events
	Fold   func() Fold                     // makes the message of one reply
	Ask    json.RawMessage                 // an object: members of the body that ask for a stream, besides "stream": true
}

// Client returns a client for the address and the key of options, else those of the place. Its errors are those of Options.Sender.
func (e Endpoint) Client(o Options) (Client, error) {
	if e.Auth == nil {
		e.Auth = func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }
	}
	if e.Frames == nil {
		e.Frames = SSE
	}
	s, err := o.Sender(e.Place, e.Auth)
	if err != nil {
		return nil, err
	}
	return &endpointClient{e, s}, nil
}

// endpointClient is a Client of an Endpoint.
type endpointClient struct {
	to     Endpoint
	sender *Sender
}

// Send implements Client.
func (c *endpointClient) Send(ctx context.Context, r Request) (*Stream, error) {
	return c.sender.Ask(ctx, c.to.Path, r, c.to.Frames, c.to.Fold(), c.to.Ask)
}

// Count implements Client.
func (c *endpointClient) Count(context.Context, Request) (int64, error) { return 0, ErrNoCount }

// Models implements Client. It returns none: the provider has no list.
func (c *endpointClient) Models(context.Context) ([]Model, error) { return nil, nil }
