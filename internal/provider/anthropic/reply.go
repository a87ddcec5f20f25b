package anthropic

import (
	"encoding/json"
	"io"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/replies"
	"github.com/chatctx/chatctx/pool"
)

// Provider is the provider's name in messages.
const Provider = "anthropic"

// NewFold returns a Fold for a reply of the Messages API.
func NewFold() wire.Fold { return &fold{} }

type fold struct {
	meta   pool.Metadata
	blocks []*block
	ended  bool
}

// block is a content block that may still grow. Blocks of unknown types keep the members with which they began.
type block struct {
	index     int
	kind      string
	start     json.RawMessage
	text      []byte // of text and thinking, or the pieces of a call's input
	signature []byte
	citations []json.RawMessage
	stopped   bool
}

type event struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message *response       `json:"message"`
	Block   json.RawMessage `json:"content_block"`
	Delta   struct {
		Type       string          `json:"type"`
		Text       wire.Text       `json:"text"`
		Thinking   wire.Text       `json:"thinking"`
		Signature  string          `json:"signature"`
		JSON       wire.Text       `json:"partial_json"`
		Citation   json.RawMessage `json:"citation"`
		Content    json.RawMessage `json:"content"`           // of a compaction: the whole summary, or null
		Encrypted  json.RawMessage `json:"encrypted_content"` // of a compaction
		StopReason string          `json:"stop_reason"`
	} `json:"delta"`
	Usage json.RawMessage `json:"usage"`
}

type response struct {
	Type       string            `json:"type"`
	Model      string            `json:"model"`
	Content    []json.RawMessage `json:"content"`
	StopReason string            `json:"stop_reason"`
	Usage      json.RawMessage   `json:"usage"`
}

func (f *fold) Event(e wire.Event, out func(wire.Delta)) error {
	var v event
	if err := wire.Decode(e.Data, &v); err != nil {
		return err
	}
	switch v.Type {
	case "message_start":
		if v.Message != nil {
			f.meta.Model = v.Message.Model
			f.use(v.Message.Usage)
		}
	case "content_block_start":
		f.start(v.Index, v.Block, out)
	case "content_block_delta":
		f.delta(&v, out)
	case "content_block_stop":
		if b := f.block(v.Index); b != nil {
			b.stopped = true
		}
	case "message_delta":
		f.stop(&v, e.Data)
	case "message_stop":
		f.ended = true
		return io.EOF
	case "error":
		return wire.Classify(Provider, 200, nil, e.Data)
	}
	return nil
}

func (f *fold) Whole(body []byte) error {
	var r response
	if err := wire.Decode(body, &r); err != nil {
		return err
	}
	if r.Type == "error" || r.Content == nil {
		return wire.Classify(Provider, 200, nil, body)
	}
	f.meta.Model, f.meta.FinishReason, f.ended = r.Model, r.StopReason, true
	f.use(r.Usage)
	for i, raw := range r.Content {
		f.start(i, raw, func(wire.Delta) {})
		f.blocks[i].stopped = true
	}
	return nil
}

// stop reads why the reply ends, and keeps everything else about it: a refusal's details, a container, an edited context.
func (f *fold) stop(v *event, data []byte) {
	if v.Delta.StopReason != "" {
		f.meta.FinishReason = v.Delta.StopReason
	}
	f.use(v.Usage)
	o, _ := jsontree.ParseObject(data)
	delta, _ := jsontree.ParseObject(o.Get("delta"))
	var more jsontree.Members
	for _, m := range append(delta.Without("stop_reason"), o.Without("type", "delta", "usage")...) {
		if string(m.Value) != "null" {
			more = append(more, jsontree.Field{Name: m.Name, Value: append(json.RawMessage(nil), m.Value...)})
		}
	}
	if len(more) > 0 {
		f.meta.ProviderData = map[string]json.RawMessage{Provider: more.Bytes()}
	}
}

func (f *fold) Ended() bool { return f.ended }

// block returns the open block of an index, the newest if an index came twice.
func (f *fold) block(index int) *block {
	for i := len(f.blocks) - 1; i >= 0; i-- {
		if f.blocks[i].index == index {
			return f.blocks[i]
		}
	}
	return nil
}

// start begins a block, which is complete already in a response in one piece.
func (f *fold) start(index int, raw json.RawMessage, out func(wire.Delta)) {
	var v struct {
		Type, Signature, Name string
		Text, Thinking        wire.Text
		Citations             []json.RawMessage
	}
	_ = wire.Decode(raw, &v)
	b := &block{index: index, kind: v.Type, start: append(json.RawMessage(nil), raw...), citations: v.Citations}
	switch v.Type {
	case "text":
		b.text = []byte(v.Text)
		show(out, pool.TextPart, v.Text)
	case "thinking":
		b.text, b.signature = []byte(v.Thinking), []byte(v.Signature)
		show(out, pool.ThinkingPart, v.Thinking)
	case "tool_use":
		out(wire.Delta{Type: pool.CallPart, Tool: v.Name})
	}
	f.blocks = append(f.blocks, b)
}

func (f *fold) delta(v *event, out func(wire.Delta)) {
	b := f.block(v.Index)
	if b == nil {
		return
	}
	switch d := &v.Delta; d.Type {
	case "text_delta":
		b.text = append(b.text, d.Text...)
		show(out, pool.TextPart, d.Text)
	case "thinking_delta":
		b.text = append(b.text, d.Thinking...)
		show(out, pool.ThinkingPart, d.Thinking)
	case "signature_delta":
		b.signature = append(b.signature, d.Signature...)
	case "input_json_delta":
		b.text = append(b.text, d.JSON...)
		if b.kind == "tool_use" {
			show(out, pool.CallPart, d.JSON)
		}
	case "compaction_delta":
		if o, err := jsontree.ParseObject(b.start); err == nil {
			for _, m := range []jsontree.Field{{Name: "content", Value: d.Content}, {Name: "encrypted_content", Value: d.Encrypted}} {
				if m.Value != nil {
					o.Set(m.Name, append(json.RawMessage(nil), m.Value...))
				}
			}
			b.start = o.Bytes()
		}
	case "citations_delta":
		b.citations = append(b.citations, append(json.RawMessage(nil), d.Citation...))
	}
}

func show(out func(wire.Delta), typ string, text wire.Text) {
	if text != "" {
		out(wire.Delta{Type: typ, Text: string(text)})
	}
}

// use reads figures. They are cumulative: later ones replace earlier ones.
func (f *fold) use(raw json.RawMessage) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	f.meta.Usage = jsontree.Merge(f.meta.Usage, raw)
	var u struct {
		Input   *int64 `json:"input_tokens"`
		Read    *int64 `json:"cache_read_input_tokens"`
		Write   *int64 `json:"cache_creation_input_tokens"`
		Output  *int64 `json:"output_tokens"`
		Details struct {
			Thinking *int64 `json:"thinking_tokens"`
		} `json:"output_tokens_details"`
	}
	_ = wire.Decode(f.meta.Usage, &u)
	f.meta.InputTokens = replies.Sum(u.Input, u.Read, u.Write)
	f.meta.CacheRead, f.meta.CacheWrite = u.Read, u.Write
	f.meta.OutputTokens, f.meta.ReasoningTokens = u.Output, u.Details.Thinking
}

func (f *fold) Message() *pool.Message {
	m := &pool.Message{Role: pool.Assistant, Meta: f.meta, Unfinished: !f.ended}
	m.Meta.Provider = Provider
	for _, b := range f.blocks {
		f.put(m, b)
	}
	wire.UniqueIDs(m, f.meta.Model+string(f.meta.Usage))
	return m
}

// put adds a block to the message, unless it is incomplete and the API would not accept it back.
func (f *fold) put(m *pool.Message, b *block) {
	switch {
	case b.kind == "text":
		if len(b.text) > 0 {
			m.Content = append(m.Content, b.textPart(m.Meta.Model))
		}
	case b.kind == "thinking":
		if len(b.signature) > 0 && (b.stopped || f.ended) {
			m.Content = append(m.Content, pool.Part{Type: pool.ThinkingPart, Text: wire.Whole(b.text), Signature: string(b.signature),
				Provider: Provider, Model: m.Meta.Model, Raw: b.rawBeyond("thinking", "signature")})
		}
	case !b.stopped && !f.ended:
	case b.kind == "redacted_thinking":
		var v struct{ Data string }
		_ = wire.Decode(b.start, &v)
		m.Content = append(m.Content, pool.Part{Type: pool.ThinkingPart, Redacted: v.Data,
			Provider: Provider, Model: m.Meta.Model, Raw: b.rawBeyond("data")})
	case b.kind == "tool_use":
		f.putCall(m, b)
	default:
		m.Content = append(m.Content, pool.Part{Type: b.kind, Provider: Provider, Model: m.Meta.Model, Raw: b.raw()})
	}
}

func (b *block) textPart(model string) pool.Part {
	p := pool.Part{Type: pool.TextPart, Text: wire.Whole(b.text)}
	if len(b.citations) > 0 {
		p.Provider, p.Model, p.Raw = Provider, model, b.raw()
	}
	return p
}

// putCall adds a call. If the limit of tokens cut its arguments off, it leaves the call out and says so.
func (f *fold) putCall(m *pool.Message, b *block) {
	var v struct {
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	_ = wire.Decode(b.start, &v)
	arguments := b.text
	if len(arguments) == 0 {
		arguments = v.Input
	}
	unbegun := len(b.text) == 0 && string(v.Input) == "{}" && b == f.blocks[len(f.blocks)-1]
	if f.meta.FinishReason == "max_tokens" && (unbegun || !json.Valid(arguments)) {
		m.Meta.Error = pool.CutCall(v.Name)
		return
	}
	m.Calls = append(m.Calls, pool.Call{ID: v.ID, Tool: v.Name, Arguments: wire.Arguments(arguments), Status: pool.Pending,
		Execution: pool.NotRun, Provider: Provider, Model: m.Meta.Model, Raw: b.rawBeyond("id", "name", "input")})
	m.Content = append(m.Content, pool.Part{Type: pool.CallPart, CallID: v.ID})
}

// rawBeyond returns the block if it has other members than its type and these, for which a part or call has fields; else nil.
func (b *block) rawBeyond(names ...string) json.RawMessage {
	if o, err := jsontree.ParseObject(b.start); err != nil || len(o.Without("type").Without(names...)) == 0 {
		return nil
	}
	return b.raw()
}

// raw returns the block as the API would send it in one piece.
func (b *block) raw() json.RawMessage {
	o, err := jsontree.ParseObject(b.start)
	if err != nil {
		return append(json.RawMessage(nil), b.start...)
	}
	switch {
	case b.kind == "text":
		o.Set("text", jsontree.Quote(wire.Whole(b.text)))
		if len(b.citations) > 0 {
			o.Set("citations", replies.Array(b.citations))
		}
	case b.kind == "thinking":
		o.Set("thinking", jsontree.Quote(wire.Whole(b.text)))
		o.Set("signature", jsontree.Quote(string(b.signature)))
	case len(b.text) > 0 && json.Valid(b.text):
		o.Set("input", wire.Arguments(b.text))
	}
	return o.Bytes()
}
