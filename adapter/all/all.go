// Package all selects an adapter by its provider's name.
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

var providers = map[string]adapter.Adapter[adapter.Body]{
	adapter.OpenAI:    plain[*openai.Body]{openai.Adapter},
	adapter.Responses: plain[*responses.Body]{responses.Adapter},
	adapter.Anthropic: plain[*anthropic.Body]{anthropic.Adapter},
	adapter.Gemini:    plain[*gemini.Body]{gemini.Adapter},
	adapter.Ollama:    plain[*ollama.Body]{ollama.Adapter},
}

func of(name string) (adapter.Adapter[adapter.Body], error) {
	p, ok := providers[name]
	if !ok {
		return p, fmt.Errorf("%w %q: use one of %s", adapter.ErrProvider, name, strings.Join(adapter.Providers, ", "))
	}
	return p, nil
}

// Adapt returns the body of a draft for a provider. Errors are adapter.ErrProvider and those of an Adapter.
func Adapt(provider string, d *chatctx.Draft) (adapter.Body, error) {
	p, err := of(provider)
	if err != nil {
		return nil, err
	}
	return p.Adapt(d)
}

// Reader returns a Reader that says what a provider's model gets of each message, by the settings of a draft. Its errors are those of Adapt.
func Reader(provider string, d *chatctx.Draft) (*adapter.Reader, error) {
	p, err := of(provider)
	if err != nil {
		return nil, err
	}
	return p.Reader(d)
}

// plain is an Adapter whose bodies have no type of their own.
type plain[B adapter.Body] struct{ adapter.Adapter[B] }

// Adapt implements adapter.Adapter. With an error the body is nil, and not a nil pointer.
func (p plain[B]) Adapt(d *chatctx.Draft) (adapter.Body, error) {
	b, err := p.Adapter.Adapt(d)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Body returns the bytes of Adapt's body.
func Body(provider string, d *chatctx.Draft) ([]byte, error) {
	b, err := Adapt(provider, d)
	if err != nil {
		return nil, err
	}
	return b.MarshalJSON()
}
