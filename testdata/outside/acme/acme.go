// Package acme is an adapter for the chat of Acme, a provider that does not exist. A program that imports it can ask Acme:
//
//	import _ "example.org/outside/acme"
package acme

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
)

// Name is the provider's name in the setting provider and in messages.
const Name = "acme"

func init() {
	place := wire.Place{Provider: Name, Base: "https://api.acme.example", BaseEnv: []string{"ACME_URL"}, KeyEnv: []string{"ACME_API_KEY"}}
	client := wire.Endpoint{Place: place, Path: "/talk", Fold: newFold}
	s := adapter.NewService(place, Adapter, client.Client)
	s.Own = "a field of Acme's talk, as it is"
	s.Implied = func(model string) bool { return strings.HasPrefix(model, "acme-") }
	adapter.Register(s)
}

// Adapter makes bodies of Acme's talk: lines of text, one after another. It takes no images.
var Adapter adapter.Adapter[*Body] = adapter.Provider[*adapter.Settings, *Body]{
	Rules:  &rules,
	Open:   func(s *adapter.Settings) (*adapter.Settings, *adapter.Rules, error) { return s, &rules, nil },
	Render: render,
}

var rules = adapter.Rules{
	Provider:   Name,
	Parameters: []string{adapter.Temperature, adapter.MaxTokens},
	IDs:        adapter.Form{Extra: "_-", Max: 40},
	Tools:      adapter.Form{Extra: "_", Max: 40},
	System:     true, // anywhere
	CallOrder:  true,
}

// Body is a request of Acme's talk.
type Body struct {
	fields json.RawMessage // everything but the lists
	tools  []adapter.Function
	lines  []line
	names  map[string]string
}

type parameters struct {
	Model       string   `json:"model"`
	Temperature *float64 `json:"temperature,omitempty"`
	Most        int64    `json:"most,omitempty"`
}

// line is one thing that somebody says.
type line struct {
	From  string `json:"from"` // system, user, assistant, tool
	Text  string `json:"text,omitempty"`
	Calls []call `json:"calls,omitempty"` // of the assistant
	Call  string `json:"call,omitempty"`  // of a tool: the call that it answers

	message chatctx.ID
}

type call struct {
	ID   string          `json:"id"`
	Tool string          `json:"tool"`
	With json.RawMessage `json:"with"`
}

// render makes the body of a conversation in normal form: each call has its result, no text is blank, ids and names are ones that the rules allow.
func render(s *adapter.Settings, c *adapter.Conversation) *Body {
	b := &Body{tools: c.Functions(s), names: c.ToolNames()}
	if len(c.System) > 0 {
		b.lines = append(b.lines, line{From: "system", Text: strings.Join(c.System, "\n\n")})
	}
	for _, t := range c.Turns {
		l := line{From: string(t.Role), Text: adapter.JoinTexts(t.Items, "\n\n"), message: t.Message}
		for _, i := range t.Items {
			if i.Call != nil {
				l.Calls = append(l.Calls, call{i.Call.ID, i.Call.Name, i.Call.Arguments})
			}
		}
		b.lines = append(b.lines, l)
		for _, r := range t.Results {
			b.lines = append(b.lines, line{From: "tool", Call: r.Call.ID, Text: r.Plain(), message: r.Message})
		}
	}
	fields, err := json.Marshal(parameters{adapter.BareModel(s, Name), s.Temperature, s.MaxTokens})
	if err == nil {
		b.fields, err = s.Apply(fields)
	}
	if err != nil {
		panic(err) // of a struct and an object
	}
	return b
}

// MarshalJSON implements adapter.Body.
func (b *Body) MarshalJSON() ([]byte, error) {
	return adapter.Marshal(4096, b.fields, b.lists()...)
}

// Prefix implements adapter.Body.
func (b *Body) Prefix() []adapter.Piece { return adapter.Pieces(b.lists()...) }

// ToolNames implements adapter.Body.
func (b *Body) ToolNames() map[string]string { return b.names }

func (b *Body) lists() []adapter.List {
	return []adapter.List{
		{Name: "tools", Len: len(b.tools), Append: func(body []byte, i int) []byte { return b.tools[i].Append(body) }},
		{Name: "lines", Len: len(b.lines), Append: func(body []byte, i int) []byte { return appendJSON(body, b.lines[i]) },
			Message: func(i int) chatctx.ID { return b.lines[i].message }},
	}
}

// appendJSON appends a value without the escapes that only HTML needs.
func appendJSON(body []byte, v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // arguments are JSON, and nothing else can fail
	}
	return append(body, bytes.TrimSpace(out.Bytes())...)
}
