// Package wire has what the providers' clients share: frames (server-sent events, JSON lines), folds from replies to messages, sending with retries and
// time-outs, and one error type.
//
// A client sends a body that an adapter made and returns a Stream. Reading the Stream to its end returns the message. Only the provider's own end of a reply
// makes a message finished. HTTP does not treat a connection that closes early as an error, so a Stream that ends without that end returns what arrived, marked
// unfinished, and ErrIncomplete.
package wire

import (
	"context"
	"net/http"
	"time"

	"github.com/chatctx/chatctx/pool"
)

// Request is a body for a provider.
type Request struct {
	// Model is the model's name; some providers need it in the address.
	Model string
	// Body is a JSON object that the provider's adapter made. The client adds whether to stream.
	Body []byte
	// Header is sent with the client's own and overrides it.
	Header http.Header
	// Whole asks for the reply in one piece instead of a stream.
	Whole bool
}

// Client talks to one provider. It is safe for concurrent use.
type Client interface {
	// Send asks for a reply and returns once it begins. The error is an *Error or the context's cause. Cancelling ctx ends the stream too.
	Send(ctx context.Context, r Request) (*Stream, error)
	// Count returns the number of input tokens of a body by the provider's own count, or ErrNoCount.
	Count(ctx context.Context, r Request) (int64, error)
	// Models returns the models that the provider offers, in its order.
	Models(ctx context.Context) ([]Model, error)
}

// Windower is a Client whose server knows how many tokens of request and answer together a model accepts there.
type Windower interface {
	// Window returns the number of tokens, 0 if the server does not say. sure means that the server runs the model with it; otherwise it is the most that the
	// model could accept.
	Window(ctx context.Context, model string) (tokens int64, sure bool, err error)
}

// Compacter is a Client whose provider compacts a history by itself.
type Compacter interface {
	// Compact returns what stands for the history of a body: a message of pool.CompactionParts with the provider's own items, unchanged, and what they took. Its
	// outcome is that of a reply.
	Compact(ctx context.Context, r Request) (*pool.Message, error)
}

// Model is a model that a provider offers. Zero limits are unknown.
type Model struct {
	ID          string    `json:"id"`
	Name        string    `json:"name,omitempty"` // for people, if it differs
	Created     time.Time `json:"created,omitzero"`
	InputLimit  int64     `json:"input_limit,omitempty"`  // tokens
	OutputLimit int64     `json:"output_limit,omitempty"` // tokens
}
