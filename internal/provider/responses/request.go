// Package responses talks to models with OpenAI's Responses API.
package responses

import (
	"encoding/json"
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/bodies"
	"github.com/chatctx/chatctx/internal/provider/openai"
	"github.com/chatctx/chatctx/pool"
)

// Adapter makes bodies of the Responses API.
//
// By default they store nothing at the provider (store is false), so the whole history is sent, without the ids of items. Reasoning items are sent back with
// their encrypted content, if the item that they led to follows them.
var Adapter adapter.Adapter[*Body] = adapter.Provider[*request, *Body]{Rules: &rules, Open: open, Render: render}

// maxArguments is the largest size, in bytes, of a call's arguments that are sent back.
const maxArguments = 1 << 20

var rules = adapter.Rules{
	Provider:   Provider,
	Parameters: []string{adapter.Temperature, adapter.TopP, adapter.MaxTokens, adapter.ThinkingKey, adapter.ResponseFormat, adapter.ToolChoice, adapter.ParallelCalls},
	IDs:        adapter.Form{Extra: "_-", Max: 64},
	Tools:      adapter.Form{Extra: "_-", Max: 64},
	System:     true,
	Media:      media(),
}

// media returns OpenAI's rules; here results may also have images and documents.
func media() adapter.MediaRules {
	m := openai.Media
	m.FileURLs, m.InResults, m.InErrors = true, true, true
	return m
}

// open begins a request with the rules for its settings.
func open(s *adapter.Settings) (*request, *adapter.Rules, error) {
	r := &request{settings: s, model: openai.ParseModel(adapter.BareModel(s, Provider))}
	r.model.Name = strings.TrimPrefix(r.model.Name, adapter.OpenAI+"/")
	r.stored = string(s.Extra["store"]) == "true"
	own := rules
	own.Thinking, own.Raw, own.RawLost = r.thinking, native, true
	return r, &own, nil
}

func render(r *request, c *adapter.Conversation) *Body {
	r.Conversation = c
	r.body = &Body{Tools: r.Functions(r.settings), size: bodies.SizeOf(r.Conversation)}
	r.system()
	for _, t := range r.Turns {
		r.turn(t)
	}
	r.parameters()
	r.body.names = r.ToolNames()
	return r.body
}

// request is a body in the making.
type request struct {
	*adapter.Conversation
	settings *adapter.Settings
	model    openai.Model
	stored   bool // the user wants it stored at the provider
	body     *Body
}

// reasoning has the members of a reasoning item that matter here.
type reasoning struct {
	Type      string `json:"type"`
	Encrypted string `json:"encrypted_content"`
}

// thinking returns why a reasoning item cannot be sent back, "" if it can.
func (r *request) thinking(p *pool.Part, _ *pool.Message) string {
	var v reasoning
	_ = json.Unmarshal(p.Raw, &v)
	switch {
	case p.Provider != Provider:
		return "it is not from " + Provider
	case v.Type != "reasoning" || v.Encrypted == "":
		return "it has no encrypted content"
	case p.Model != "" && adapter.Undated(p.Model) != adapter.Undated(r.model.Name):
		return "it is from " + p.Model
	case r.stored:
		return "with store the provider has its own"
	}
	return ""
}

// native reports whether a part is an item that only this API has (for example a web search). It cannot be sent back, and neither can the reasoning that led to
// it.
func native(p *pool.Part, _ *pool.Message) bool {
	return p.Provider == Provider && p.Type != pool.RefusalPart && len(p.Raw) > 0
}

// system puts the system texts at the beginning of the input, one message each: every server accepts them there, and they stay in place when the history grows.
func (r *request) system() {
	texts := r.System
	if r.settings.Format != nil && r.settings.Format.Schema == nil {
		texts = append(texts[:len(texts):len(texts)], adapter.AnswerJSON)
	}
	for _, text := range texts {
		r.add(Item{Type: "message", Role: "system", Content: []Part{{Type: "input_text", Text: text}}})
	}
}

func (r *request) add(i Item) { r.body.Input = append(r.body.Input, i) }

func (r *request) turn(t *adapter.Turn) {
	if t.Role != pool.Assistant {
		m := Item{Type: "message", Role: string(t.Role), from: t.Message}
		for _, i := range t.Items {
			m.Content = append(m.Content, input(i))
		}
		r.add(m)
		return
	}
	r.said(t)
	for _, a := range t.Results {
		o := Item{Type: "function_call_output", CallID: a.Call.ID, from: a.Message}
		for _, i := range a.Items {
			o.Content = append(o.Content, input(i))
		}
		if a.Error {
			o.Content[0] = errorPart(o.Content[0], &o)
		}
		r.add(o)
	}
}

// said adds an assistant's words and calls. It holds a reasoning item back until the item that it led to.
func (r *request) said(t *adapter.Turn) {
	var held *Item
	joined := false // whether a text continues the previous message
	put := func(i Item) {
		if held != nil {
			r.add(*held)
			held = nil
		}
		r.add(i)
	}
	drop := func() {
		if held != nil {
			r.Note(t.Message, "thinking left out: what it led to does not follow it")
			held = nil
		}
	}
	for _, i := range t.Items {
		switch {
		case i.Call != nil:
			put(Item{Type: "function_call", CallID: i.Call.ID, Name: i.Call.Name, Arguments: r.arguments(t, i.Call), from: t.Message})
		case i.Thinking != nil:
			drop()
			held = &Item{Type: "reasoning", Raw: withoutIDs(i.Thinking.Raw), from: t.Message}
		case i.Raw != nil && i.Raw.Type == pool.CompactionPart:
			put(Item{Type: i.Raw.Type, Raw: i.Raw.Raw, from: t.Message})
		case i.Raw != nil:
			drop()
			r.Note(t.Message, "%s left out: the provider does not keep what it belongs to", i.Raw.Type)
		case joined:
			last := &r.body.Input[len(r.body.Input)-1]
			last.Content = append(last.Content, Part{Type: "output_text", Text: i.Text})
		default:
			put(Item{Type: "message", Role: "assistant", Content: []Part{{Type: "output_text", Text: i.Text}}, from: t.Message})
		}
		joined = i.Text != ""
	}
	drop()
}

// errorPart marks an output as an error: before its first text, or in a part of its own.
func errorPart(first Part, o *Item) Part {
	if first.Type == "input_text" {
		first.Text = adapter.ErrorIs + first.Text
		return first
	}
	o.Content = append([]Part{{}}, o.Content...)
	return Part{Type: "input_text", Text: strings.TrimSpace(adapter.ErrorIs)}
}

func (r *request) arguments(t *adapter.Turn, c *adapter.Call) string {
	if len(c.Arguments) <= maxArguments {
		return string(c.Arguments)
	}
	r.Note(t.Message, "arguments of call %s left out: %d bytes, the limit is %d", c.Call.ID, len(c.Arguments), maxArguments)
	var f jsontree.Members
	f.Text("left_out", "arguments over the limit")
	return string(f.Bytes())
}

// withoutIDs returns a reasoning item without what refers to the provider's own store.
func withoutIDs(raw json.RawMessage) json.RawMessage {
	o, err := jsontree.ParseObject(raw)
	if err != nil {
		return raw
	}
	o = o.Only("type", "summary", "encrypted_content")
	if s := o.Get("summary"); s == nil || s[0] != '[' {
		o.Set("summary", json.RawMessage("[]"))
	}
	return o.Bytes()
}

func input(i adapter.Item) Part {
	switch {
	case i.Media == nil:
		return Part{Type: "input_text", Text: i.Text}
	case i.Media.Kind == pool.ImagePart:
		return Part{Type: "input_image", Media: i.Media}
	}
	return Part{Type: "input_file", Media: i.Media}
}

// parameters sets all fields except the history.
func (r *request) parameters() {
	s, f := r.settings, &r.body.Fields
	f.Text("model", r.model.Name)
	f.Bool("store", false)
	if s.MaxTokens > 0 {
		if s.MaxTokens < 16 {
			r.NoteAll("max_tokens 16: less is not taken")
		}
		f.Int("max_output_tokens", max(s.MaxTokens, 16))
	}
	openai.Sampling(r.Conversation, s, r.model, f)
	effort, why := r.model.Effort(s.Thinking)
	if why != "" {
		r.NoteAll("thinking left out: %s", why)
	}
	if effort != "" {
		if why := bodies.Crowds(s); why != "" {
			r.NoteAll("%s", why)
		}
		f.Put("reasoning", jsontree.OneText("effort", effort))
	}
	if r.model.Reasons && !r.stored {
		f.Texts("include", []string{"reasoning.encrypted_content"})
	}
	if s.Format != nil {
		f.Put("text", r.format())
	}
	if len(r.body.Tools) > 0 && s.Parallel != nil {
		f.Bool("parallel_tool_calls", *s.Parallel)
	}
	if c := bodies.Choose(r.Conversation, s); c != nil && c.Mode == "tool" {
		o := jsontree.OneText("type", "function")
		o.Text("name", c.Tool)
		f.Put("tool_choice", o)
	} else if c != nil {
		f.Text("tool_choice", c.Mode)
	}
	bodies.Apply(s, f, "text", "reasoning")
}

func (r *request) format() jsontree.Members {
	format := r.settings.Format
	if format.Schema == nil {
		return jsontree.One("format", jsontree.OneText("type", "json_object").Bytes())
	}
	o := jsontree.OneText("type", "json_schema")
	o.Text("name", format.Name)
	o.Set("schema", format.Schema)
	if format.Strict != nil {
		o.Bool("strict", *format.Strict)
	}
	return jsontree.One("format", o.Bytes())
}
