package enhancer

import (
	"context"

	"github.com/chatctx/chatctx/pool"
)

// Completer asks a model apart from a conversation. Squeeze and summaries need one; package chatctx/turn has it.
type Completer interface {
	// Name identifies the model, its provider and the limit of its answers. A question without a usable answer is not asked again under the same name.
	Name() string
	// Complete returns the model's reply to a prompt. The reply need not be whole. With an error it is what had arrived, or nil.
	Complete(ctx context.Context, p Prompt) (*pool.Message, error)
}

// Prompt is a question to a model apart from a conversation.
type Prompt struct {
	System, Text string
	Limit        int // about how many tokens the answer may have
	// Took, if not nil, stores what the answer takes, by the metadata of the reply so far; its text is not kept. A Completer that calls it before it asks, and
	// while the answer arrives, loses nothing of what was paid if the program is killed.
	Took func(reply *pool.Message) error
}
