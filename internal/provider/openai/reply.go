package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/pool"
)

// Provider is the provider's name in messages.
const Provider = "openai"

// NewFold returns a Fold for a reply of the Chat Completions API, or of another server with its protocol, even if that sends its thinking as reasoning_content
// or reasoning, calls without an index or an id, or no [DONE].
func NewFold() wire.Fold { return &fold{} }

type fold struct {
	id      string
	meta    pool.Metadata
	usage   []byte // the latest figures
	parts   wire.Parts
	refusal []byte
	calls   []*call
	extra   jsontree.Members // members of the message that have no field here
	ended   bool
}

// call is a call whose arguments may still be arriving.
type call struct {
	index     *int
	id, name  string
	arguments []byte
	extra     jsontree.Members
}

type chunk struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index   int             `json:"index"`
	Delta   json.RawMessage `json:"delta"`
	Message json.RawMessage `json:"message"`
	Finish  string          `json:"finish_reason"`
	Error   json.RawMessage `json:"error"` // OpenRouter's, about the server behind it
}

type delta struct {
	Content   json.RawMessage `json:"content"` // a text or, from some servers, parts
	Refusal   wire.Text       `json:"refusal"`
	Thinking  wire.Text       `json:"reasoning_content"`
	Reasoning wire.Text       `json:"reasoning"`
	Calls     []callDelta     `json:"tool_calls"`
}

type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // a text; from some servers an object
	} `json:"function"`
	Custom *struct {
		Name  string    `json:"name"`
		Input wire.Text `json:"input"`
	} `json:"custom"`
	raw json.RawMessage
}

// UnmarshalJSON also keeps the bytes.
func (c *callDelta) UnmarshalJSON(raw []byte) error {
	type plain callDelta
	err := wire.Decode(raw, (*plain)(c))
	c.raw = raw
	return err
}

func (f *fold) Event(e wire.Event, out func(wire.Delta)) error {
	if bytes.Equal(bytes.TrimSpace(e.Data), []byte("[DONE]")) {
		f.ended = true
		return io.EOF
	}
	return f.take(e, out)
}

func (f *fold) Whole(body []byte) error {
	var c chunk
	err := wire.Decode(body, &c)
	if len(c.Choices) == 0 && wire.Reports(wire.Event{Data: body}) {
		return wire.Classify(Provider, 200, nil, body)
	}
	if err != nil {
		return err
	}
	if len(c.Choices) == 0 {
		return wire.Classify(Provider, 200, nil, body)
	}
	err = f.take(wire.Event{Data: body}, func(wire.Delta) {})
	f.ended = err == nil
	return err
}

// take reads a chunk, or a whole response, which differ in the name of one member.
func (f *fold) take(e wire.Event, out func(wire.Delta)) error {
	var c chunk
	err := wire.Decode(e.Data, &c)
	if len(c.Error) > 0 && string(c.Error) != "null" || len(c.Choices) == 0 && wire.Reports(e) {
		return wire.Classify(Provider, 200, nil, e.Data)
	}
	if err != nil {
		return err
	}
	if c.ID != "" {
		f.id = c.ID
	}
	if c.Model != "" {
		f.meta.Model = c.Model
	}
	if len(c.Usage) > 0 && string(c.Usage) != "null" {
		f.usage = append(f.usage[:0], c.Usage...)
	}
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index != 0 {
			continue
		}
		if len(ch.Error) > 0 && string(ch.Error) != "null" {
			return wire.Classify(Provider, 200, nil, jsontree.Members{{Name: "error", Value: ch.Error}}.Bytes())
		}
		for _, raw := range []json.RawMessage{ch.Delta, ch.Message} {
			if err := f.delta(raw, out); err != nil {
				return err
			}
		}
		if ch.Finish != "" {
			f.meta.FinishReason = ch.Finish
			if brokenOff[strings.ToLower(ch.Finish)] {
				return &wire.Error{Kind: wire.Overloaded, Provider: Provider, Status: 200, Type: ch.Finish, Message: "the server ended the answer early (" + ch.Finish + ")"}
			}
			f.ended = true
		}
	}
	return nil
}

// brokenOff are servers' words for an answer that they could not finish: DeepSeek's, vLLM's and SGLang's, OpenRouter's and Mistral's.
var brokenOff = map[string]bool{"insufficient_system_resource": true, "abort": true, "error": true}

func (f *fold) delta(raw json.RawMessage, out func(wire.Delta)) error {
	if len(raw) == 0 {
		return nil
	}
	var d delta
	if err := wire.Decode(raw, &d); err != nil {
		return err
	}
	f.words(pool.ThinkingPart, d.Thinking, out)
	f.words(pool.ThinkingPart, d.reasoning(), out)
	f.content(d.Content, out)
	if d.Refusal != "" {
		f.refusal = append(f.refusal, d.Refusal...)
		out(wire.Delta{Type: pool.RefusalPart, Text: string(d.Refusal)})
	}
	for i := range d.Calls {
		f.call(&d.Calls[i], out)
	}
	f.keepExtra(raw)
	return nil
}

// reasoning returns the thinking that a server sends under the other name, "" if it sends both.
func (d *delta) reasoning() wire.Text {
	if d.Thinking != "" {
		return ""
	}
	return d.Reasoning
}

func (f *fold) words(typ string, text wire.Text, out func(wire.Delta)) {
	if text != "" {
		f.parts.Text(typ, text)
		out(wire.Delta{Type: typ, Text: string(text)})
	}
}

// content adds the words of a content: a text or, from some servers, a list of parts, in which Mistral's thinking is a list of its own.
func (f *fold) content(raw json.RawMessage, out func(wire.Delta)) {
	if len(raw) == 0 || raw[0] != '[' {
		f.words(pool.TextPart, text(raw), out)
		return
	}
	type part struct {
		Text     wire.Text
		Thinking json.RawMessage
	}
	var parts []part
	_ = wire.Decode(raw, &parts)
	for _, p := range parts {
		f.words(pool.TextPart, p.Text, out)
		if len(p.Thinking) == 0 || p.Thinking[0] != '[' {
			f.words(pool.ThinkingPart, text(p.Thinking), out)
			continue
		}
		var thoughts []part
		_ = wire.Decode(p.Thinking, &thoughts)
		for _, t := range thoughts {
			f.words(pool.ThinkingPart, t.Text, out)
		}
	}
}

// call adds a piece of a call: to the one with its index, else to a new one if it has an id or name, else to the last one.
func (f *fold) call(d *callDelta, out func(wire.Delta)) {
	c := f.find(d)
	if c == nil {
		c = &call{index: d.Index}
		f.calls = append(f.calls, c)
	}
	if d.ID != "" {
		c.id = d.ID
	}
	name, arguments := d.Function.Name, text(d.Function.Arguments)
	if d.Custom != nil {
		name, arguments = d.Custom.Name, d.Custom.Input
	}
	if name != "" && c.name == "" {
		c.name = name
		out(wire.Delta{Type: pool.CallPart, Tool: name})
	}
	if arguments != "" {
		c.arguments = append(c.arguments, arguments...)
		out(wire.Delta{Type: pool.CallPart, Text: string(arguments)})
	}
	if bytes.Contains(d.raw, []byte(`"extra_content"`)) || d.Custom != nil {
		if o, err := jsontree.ParseObject(d.raw); err == nil {
			for _, m := range o.Without("index", "id", "function", "custom") {
				c.extra.Set(m.Name, bytes.Clone(m.Value))
			}
		}
	}
}

func (f *fold) find(d *callDelta) *call {
	for i := len(f.calls) - 1; i >= 0; i-- {
		c := f.calls[i]
		other := d.ID != "" && c.id != "" && d.ID != c.id
		if d.Index != nil && c.index != nil && *d.Index == *c.index && !other {
			return c
		}
		if d.Index == nil && d.ID != "" && d.ID == c.id {
			return c
		}
	}
	if n := len(f.calls); n > 0 && d.ID == "" && d.Function.Name == "" && d.Custom == nil {
		return f.calls[n-1]
	}
	return nil
}

// text returns the text of a JSON string, or the JSON itself.
func text(raw json.RawMessage) wire.Text {
	var s wire.Text
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	return wire.Text(raw)
}

// plainMembers are those with fields here; all other members of a message are kept.
var plainMembers = map[string]bool{"role": true, "content": true, "refusal": true, "reasoning_content": true, "reasoning": true,
	"tool_calls": true, "function_call": true}

// keepExtra keeps the other members of a delta (annotations, audio, reasoning_details): it joins lists and replaces other values.
func (f *fold) keepExtra(raw json.RawMessage) {
	if !jsontree.HasOther(raw, plainMembers) {
		return
	}
	o, err := jsontree.ParseObject(raw)
	if err != nil {
		return
	}
	for _, m := range o {
		if !plainMembers[m.Name] && len(m.Value) > 0 && string(m.Value) != "null" && string(m.Value) != "[]" {
			f.extra.Set(m.Name, join(f.extra.Get(m.Name), m.Value))
		}
	}
}

func join(older, newer json.RawMessage) json.RawMessage {
	if len(older) < 2 || older[0] != '[' || newer[0] != '[' {
		return bytes.Clone(newer)
	}
	joined := append(json.RawMessage(nil), older[:len(older)-1]...)
	return append(append(joined, ','), newer[1:]...)
}

func (f *fold) Ended() bool { return f.ended }

// figures sets the usage in metadata.
func (f *fold) figures(m *pool.Metadata) {
	if len(f.usage) == 0 {
		return
	}
	m.Usage = bytes.Clone(f.usage)
	var u struct {
		Input   *int64 `json:"prompt_tokens"`
		Output  *int64 `json:"completion_tokens"`
		Hit     *int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
		Details struct {
			Read  *int64 `json:"cached_tokens"`
			Write *int64 `json:"cache_write_tokens"`
		} `json:"prompt_tokens_details"`
		OutputDetails struct {
			Reasoning *int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	_ = wire.Decode(m.Usage, &u)
	m.InputTokens, m.OutputTokens = u.Input, u.Output
	m.CacheRead, m.CacheWrite, m.ReasoningTokens = u.Details.Read, u.Details.Write, u.OutputDetails.Reasoning
	if m.CacheRead == nil {
		m.CacheRead = u.Hit
	}
}

func (f *fold) Message() *pool.Message {
	m := &pool.Message{Role: pool.Assistant, Content: f.parts.List(), Meta: f.meta, Unfinished: !f.ended}
	wire.Sign(m, Provider)
	f.figures(&m.Meta)
	if len(f.refusal) > 0 {
		m.Content = append(m.Content, f.refusalPart())
	}
	if len(f.extra) > 0 {
		m.Meta.ProviderData = map[string]json.RawMessage{Provider: f.extra.Bytes()}
	}
	for i, c := range f.calls {
		f.put(m, c, i == len(f.calls)-1)
	}
	wire.UniqueIDs(m, f.id)
	return m
}

func (f *fold) refusalPart() pool.Part {
	text := wire.Whole(f.refusal)
	raw := jsontree.Members{{Name: "type", Value: jsontree.Quote(pool.RefusalPart)}, {Name: "refusal", Value: jsontree.Quote(text)}}
	return pool.Part{Type: pool.RefusalPart, Text: text, Provider: Provider, Model: f.meta.Model, Raw: raw.Bytes()}
}

// put adds a call, unless it is incomplete: the last one of a reply that has not ended, or one that the limit of tokens cut off.
func (f *fold) put(m *pool.Message, c *call, last bool) {
	if !f.ended && (last || !json.Valid(c.arguments)) {
		return
	}
	if last && f.meta.FinishReason == "length" && !json.Valid(c.arguments) {
		m.Meta.Error = pool.CutCall(c.name)
		return
	}
	call := pool.Call{ID: c.id, Tool: c.name, Arguments: wire.Arguments(c.arguments), Status: pool.Pending, Execution: pool.NotRun,
		Provider: Provider, Model: f.meta.Model}
	if len(c.extra.Without("type")) > 0 || string(c.extra.Get("type")) == `"custom"` {
		call.Raw = c.raw()
	}
	m.Calls = append(m.Calls, call)
}

// raw returns the call as the API sends it in one piece.
func (c *call) raw() json.RawMessage {
	o := jsontree.Members{{Name: "id", Value: jsontree.Quote(c.id)}}
	o = append(o, c.extra...)
	name, words := "function", "arguments"
	if string(c.extra.Get("type")) == `"custom"` {
		name, words = "custom", "input"
	}
	inner := jsontree.Members{{Name: "name", Value: jsontree.Quote(c.name)}, {Name: words, Value: jsontree.Quote(wire.Whole(c.arguments))}}
	o.Set(name, inner.Bytes())
	return o.Bytes()
}
