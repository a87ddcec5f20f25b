package gemini

import (
	"encoding/json"
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/bodies"
)

// parameters sets all fields except the history.
func (r *request) parameters() {
	s := r.settings
	var g jsontree.Members
	if t := s.Temperature; t != nil {
		if *t > 2 {
			r.NoteAll("temperature 2: no more is taken")
		}
		g.Float("temperature", min(*t, 2))
	}
	if p := s.TopP; p != nil {
		if *p > 1 {
			r.NoteAll("top_p 1: no more is taken")
		}
		g.Float("topP", min(*p, 1))
	}
	if s.MaxTokens > 0 {
		g.Int("maxOutputTokens", s.MaxTokens)
	}
	if stop := s.Stop; len(stop) > 0 {
		if len(stop) > 5 {
			r.NoteAll("only the first 5 texts of stop are taken")
			stop = stop[:5]
		}
		g.Texts("stopSequences", stop)
	}
	r.thinkingConfig(&g)
	r.format(&g)
	f := &r.body.Fields
	if len(g) > 0 {
		f.Put("generationConfig", g)
	}
	if c := bodies.Choose(r.Conversation, s); c != nil {
		r.choice(c)
	}
	bodies.Apply(s, f, "generationConfig", "toolConfig")
}

// thinkingConfig sets how much to think: by a level from Gemini 3 on, by a number of tokens for 2.5.
func (r *request) thinkingConfig(g *jsontree.Members) {
	t := r.settings.Thinking
	pro := strings.Contains(r.model, "pro")
	switch {
	case t == nil:
	case r.version < 2.5:
		if !t.Off {
			r.NoteAll("thinking left out: %s does not think", r.model)
		}
	case r.version < 3:
		budget := min(max(t.Tokens, 512), 24576)
		if t.Off && !pro {
			budget = 0
		} else if t.Off {
			budget = 128
			r.NoteAll("thinking 128: %s always thinks", r.model)
		} else if fits, why := t.Within(budget, r.settings.MaxTokens); why != "" {
			budget = fits
			r.NoteAll("%s", why)
		}
		var c jsontree.Members
		c.Int("thinkingBudget", budget)
		c.Bool("includeThoughts", !t.Off)
		g.Put("thinkingConfig", c)
	default:
		if why := bodies.Crowds(r.settings); why != "" {
			r.NoteAll("%s", why)
		}
		level := strings.ToUpper(adapter.Effort(t))
		if t.Off && pro {
			level = "LOW"
			r.NoteAll("thinking low: %s always thinks", r.model)
		} else if t.Off {
			level = "MINIMAL"
		}
		c := jsontree.OneText("thinkingLevel", level)
		c.Bool("includeThoughts", !t.Off)
		g.Put("thinkingConfig", c)
	}
}

func (r *request) format(g *jsontree.Members) {
	format := r.settings.Format
	switch {
	case format == nil:
	case r.version < 3 && len(r.body.Functions)+len(r.body.Tools) > 0:
		r.NoteAll("response_format left out: %s takes none beside tools", r.model)
	default:
		g.Text("responseMimeType", "application/json")
		if format.Schema != nil {
			g.Set("responseJsonSchema", format.Schema)
		}
	}
}

func (r *request) choice(c *adapter.Choice) {
	mode := map[string]string{"auto": "AUTO", "none": "NONE", "required": "ANY", "tool": "ANY"}[c.Mode]
	o := jsontree.OneText("mode", mode)
	if c.Mode == "tool" {
		o.Texts("allowedFunctionNames", []string{c.Tool})
	}
	r.body.Fields.Put("toolConfig", jsontree.One("functionCallingConfig", json.RawMessage(o.Bytes())))
}
