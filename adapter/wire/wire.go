// Package wire is what the providers' clients share: frames (server-sent events, JSON lines), replies folded from them into
// messages, sending with retries and time-outs, and one error type.
//
// A client sends a body that an adapter made, as bytes, and gives a Stream. Reading the Stream to its end gives the message.
// Only the provider's own end of a reply makes a message finished: a connection that closes early is no error for HTTP, so a
// Stream that ends without it gives what came, marked unfinished, and ErrIncomplete.
package wire

import (
	"context"
	"net/http"
	"time"
)

// Request is a body on its way to a provider.
type Request struct {
	// Model is the model's name; some providers want it in the address.
	Model string
	// Body is a JSON object, as the provider's adapter made it. Whether to stream is added by the client.
	Body []byte
	// Header is sent beside the client's own, and wins over it.
	Header http.Header
	// Whole asks for the reply in one piece instead of a stream.
	Whole bool
}

// Client talks to one provider. Its methods may be called by many goroutines.
type Client interface {
	// Send asks for a reply and returns once it begins, or an *Error, or the context's cause. Cancelling ctx ends the
	// stream too.
	Send(ctx context.Context, r Request) (*Stream, error)
	// Count is the number of input tokens of a body by the provider's own count, or ErrNoCount.
	Count(ctx context.Context, r Request) (int64, error)
	// Models lists what the provider offers, in its order.
	Models(ctx context.Context) ([]Model, error)
}

// Windower is a Client whose server knows how much a model takes there, in tokens of request and answer together.
type Windower interface {
	// Window gives 0 where the server does not say. sure: the server runs the model so; else it is what the model could take at most.
	Window(ctx context.Context, model string) (tokens int64, sure bool, err error)
}

// Model is a model that a provider offers. Zero limits are unknown.
type Model struct {
	ID          string    `json:"id"`
	Name        string    `json:"name,omitempty"` // for people, where it differs
	Created     time.Time `json:"created,omitzero"`
	InputLimit  int64     `json:"input_limit,omitempty"`  // tokens
	OutputLimit int64     `json:"output_limit,omitempty"` // tokens
}
