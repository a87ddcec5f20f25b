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

// provider has the functions of a provider's package.
type provider struct {
	adapt  func(*chatctx.Draft) (adapter.Body, error)
	reader func(*chatctx.Draft) (*adapter.Reader, error)
}

var providers = map[string]provider{
	adapter.OpenAI:    {body(openai.Adapter), openai.Reader},
	adapter.Responses: {body(responses.Adapter), responses.Reader},
	adapter.Anthropic: {body(anthropic.Adapter), anthropic.Reader},
	adapter.Gemini:    {body(gemini.Adapter), gemini.Reader},
	adapter.Ollama:    {body(ollama.Adapter), ollama.Reader},
}

func of(name string) (provider, error) {
	p, ok := providers[name]
	if !ok {
		return p, fmt.Errorf("%w %q: it is one of %s", adapter.ErrProvider, name, strings.Join(adapter.Providers, ", "))
	}
	return p, nil
}

// Adapt returns the body of a draft for a provider. Errors are adapter.ErrProvider and those of an Adapter.
func Adapt(provider string, d *chatctx.Draft) (adapter.Body, error) {
	p, err := of(provider)
	if err != nil {
		return nil, err
	}
	return p.adapt(d)
}

// Reader returns a Reader that says what a provider's model gets of each message, by the settings of a draft. Its errors are those of Adapt.
func Reader(provider string, d *chatctx.Draft) (*adapter.Reader, error) {
	p, err := of(provider)
	if err != nil {
		return nil, err
	}
	return p.reader(d)
}

// body keeps a nil pointer from becoming a non-nil body.
func body[B adapter.Body](a adapter.Adapter[B]) func(*chatctx.Draft) (adapter.Body, error) {
	return func(d *chatctx.Draft) (adapter.Body, error) {
		b, err := a.Adapt(d)
		if err != nil {
			return nil, err
		}
		return b, nil
	}
}

// Body returns the bytes of Adapt's body.
func Body(provider string, d *chatctx.Draft) ([]byte, error) {
	b, err := Adapt(provider, d)
	if err != nil {
		return nil, err
	}
	return b.MarshalJSON()
}
