// Package ollama talks to models that Ollama runs.
package ollama

import (
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/bodies"
	"github.com/chatctx/chatctx/pool"
)

// Adapter makes bodies of Ollama's chat. The content of a message is one text there, with images beside it.
var Adapter adapter.Adapter[*Body] = adapter.Provider[*adapter.Settings, *Body]{Rules: &rules, Open: open, Render: render}

var rules = adapter.Rules{
	Provider:   Provider,
	Parameters: []string{adapter.Temperature, adapter.TopP, adapter.MaxTokens, adapter.Stop, adapter.ThinkingKey, adapter.ResponseFormat},
	IDs:        adapter.Form{Extra: "_-", Max: 64},
	Tools:      adapter.Form{Extra: "_-", Max: 64},
	System:     true, CallOrder: true,
	Media: adapter.MediaRules{Images: []string{"image/png", "image/jpeg", "image/webp"}},
	Thinking: func(p *pool.Part, _ *pool.Message) string {
		if p.Provider != Provider {
			return "it is not from " + Provider
		}
		if strings.TrimSpace(p.Text) == "" {
			return "it is empty"
		}
		return ""
	},
}

func open(s *adapter.Settings) (*adapter.Settings, *adapter.Rules, error) { return s, &rules, nil }

func render(s *adapter.Settings, c *adapter.Conversation) *Body {
	b := &Body{Tools: c.Functions(s), size: bodies.SizeOf(c)}
	if len(c.System) > 0 {
		b.Messages = append(b.Messages, Message{Role: "system", Content: strings.Join(c.System, "\n\n")})
	}
	for _, t := range c.Turns {
		b.turn(t)
	}
	b.parameters(c, s)
	b.names = c.ToolNames()
	return b
}

func (b *Body) turn(t *adapter.Turn) {
	m := Message{Role: string(t.Role), Content: adapter.JoinTexts(t.Items, "\n\n"), from: t.Message}
	for _, i := range t.Items {
		switch {
		case i.Media != nil:
			m.Images = append(m.Images, i.Media.Data)
		case i.Thinking != nil:
			m.Thinking += i.Thinking.Text
		case i.Call != nil:
			m.Calls = append(m.Calls, Call{ID: i.Call.ID, Name: i.Call.Name, Arguments: i.Call.Arguments})
		}
	}
	b.Messages = append(b.Messages, m)
	for _, a := range t.Results {
		b.Messages = append(b.Messages, Message{Role: "tool", Content: a.Plain(), ToolName: a.Call.Name, CallID: a.Call.ID, from: a.Message})
	}
}

// parameters sets all fields except the history.
func (b *Body) parameters(c *adapter.Conversation, s *adapter.Settings) {
	f := &b.Fields
	f.Text("model", adapter.BareModel(s, Provider))
	if t := s.Thinking; t != nil && t.Off {
		f.Bool("think", false)
	} else if t != nil {
		f.Text("think", adapter.Effort(t))
	}
	if s.Format != nil && s.Format.Schema != nil {
		f.Set("format", s.Format.Schema)
	} else if s.Format != nil {
		f.Text("format", "json")
	}
	var o jsontree.Members
	if s.Temperature != nil {
		o.Float("temperature", *s.Temperature)
	}
	if s.TopP != nil {
		if *s.TopP > 1 {
			c.Note(chatctx.ID{}, "top_p 1: no more is taken")
		}
		o.Float("top_p", min(*s.TopP, 1))
	}
	if s.MaxTokens > 0 {
		o.Int("num_predict", s.MaxTokens)
	}
	if len(s.Stop) > 0 {
		o.Texts("stop", s.Stop)
	}
	if len(o) > 0 {
		f.Put("options", o)
	}
	bodies.Apply(s, f, "options")
}
