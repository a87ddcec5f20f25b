// Package all picks an adapter by its provider's name.
package all

import (
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/anthropic"
	"github.com/chatctx/chatctx/adapter/gemini"
	"github.com/chatctx/chatctx/adapter/ollama"
	"github.com/chatctx/chatctx/adapter/openai"
	"github.com/chatctx/chatctx/adapter/responses"
	"github.com/chatctx/chatctx/chatctx"
)

// Adapt makes the body of a draft for a provider. Errors are adapter.ErrProvider and those of an Adapter.
func Adapt(provider string, d *chatctx.Draft) (adapter.Body, error) {
	switch provider {
	case adapter.OpenAI:
		return body(openai.Adapter, d)
	case adapter.Responses:
		return body(responses.Adapter, d)
	case adapter.Anthropic:
		return body(anthropic.Adapter, d)
	case adapter.Gemini:
		return body(gemini.Adapter, d)
	case adapter.Ollama:
		return body(ollama.Adapter, d)
	}
	return nil, fmt.Errorf("%w %q: it is one of %s", adapter.ErrProvider, provider, strings.Join(adapter.Providers, ", "))
}

// body keeps a nil pointer from becoming a body.
func body[B adapter.Body](a adapter.Adapter[B], d *chatctx.Draft) (adapter.Body, error) {
	b, err := a.Adapt(d)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Body gives the bytes of Adapt's body.
func Body(provider string, d *chatctx.Draft) ([]byte, error) {
	b, err := Adapt(provider, d)
	if err != nil {
		return nil, err
	}
	return b.MarshalJSON()
}
