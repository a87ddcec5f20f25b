package responses

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
const Provider = "openai-responses"

// NewFold returns a Fold for a reply of the Responses API. Each output item becomes one part or one call, whose Raw is the unchanged item.
func NewFold() wire.Fold { return &fold{} }

type fold struct {
	id    string
	meta  pool.Metadata
	items []*item // by output index; nil if none came
	ended bool
}

// item is an output item: raw once it is done, until then the words that have arrived.
type item struct {
	kind string
	raw  json.RawMessage
	text []byte
	// part is the type of the words: a text or a refusal.
	part string
}

type event struct {
	Type     string          `json:"type"`
	Index    int             `json:"output_index"`
	Item     json.RawMessage `json:"item"`
	Delta    wire.Text       `json:"delta"`
	Response *response       `json:"response"`
}

type response struct {
	ID         string            `json:"id"`
	Model      string            `json:"model"`
	Status     string            `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Usage      json.RawMessage   `json:"usage"`
	Error      json.RawMessage   `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// shown are the events with words, and the type of these.
var shown = map[string]string{
	"response.output_text.delta":             pool.TextPart,
	"response.refusal.delta":                 pool.RefusalPart,
	"response.reasoning_summary_text.delta":  pool.ThinkingPart,
	"response.reasoning_text.delta":          pool.ThinkingPart,
	"response.function_call_arguments.delta": pool.CallPart,
	"response.custom_tool_call_input.delta":  pool.CallPart,
}

func (f *fold) Event(e wire.Event, out func(wire.Delta)) error {
	if string(e.Data) == "[DONE]" { // some servers send it after the end
		return io.EOF
	}
	var v event
	if err := wire.Decode(e.Data, &v); err != nil {
		if wire.Reports(e) {
			return wire.Classify(Provider, 200, nil, e.Data)
		}
		return err
	}
	if typ, ok := shown[v.Type]; ok {
		if it := f.item(v.Index); it != nil {
			it.text = append(it.text, v.Delta...)
			if it.kind == "" && (typ == pool.TextPart || typ == pool.RefusalPart) { // no event has announced it
				it.kind = "message"
			}
			it.part = typ
			out(wire.Delta{Type: typ, Text: string(v.Delta)})
		}
		return nil
	}
	switch v.Type {
	case "response.created", "response.in_progress", "response.queued":
		f.head(v.Response)
	case "response.output_item.added":
		f.added(&v, out)
	case "response.output_item.done":
		if it := f.item(v.Index); it != nil {
			it.kind, it.raw = typeOf(v.Item), bytes.Clone(v.Item)
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return f.end(v.Response)
	case "error":
		return wire.Classify(Provider, 200, nil, e.Data)
	default:
		if (v.Type == "" || e.Name == "error") && wire.Reports(e) {
			return wire.Classify(Provider, 200, nil, e.Data)
		}
	}
	return nil
}

// maxItems bounds the list, in case of a wrong index.
const maxItems = 100_000

func (f *fold) item(index int) *item {
	if index < 0 || index > maxItems {
		return nil
	}
	for len(f.items) <= index {
		f.items = append(f.items, nil)
	}
	if f.items[index] == nil {
		f.items[index] = &item{}
	}
	return f.items[index]
}

func (f *fold) added(v *event, out func(wire.Delta)) {
	it := f.item(v.Index)
	if it == nil {
		return
	}
	it.kind = typeOf(v.Item)
	if it.kind == "function_call" || it.kind == "custom_tool_call" {
		var c struct{ Name string }
		_ = wire.Decode(v.Item, &c)
		out(wire.Delta{Type: pool.CallPart, Tool: c.Name})
	}
}

func typeOf(item json.RawMessage) string {
	var v struct{ Type string }
	_ = wire.Decode(item, &v)
	if v.Type == "" {
		return "message"
	}
	return v.Type
}

// head reads the id and model of a response, which its first event has already.
func (f *fold) head(r *response) {
	if r == nil {
		return
	}
	f.id, f.meta.Model = r.ID, r.Model
}

// end reads the last event, whose response is complete; the items that came before it stay unchanged.
func (f *fold) end(r *response) error {
	if r == nil {
		return io.ErrUnexpectedEOF
	}
	f.head(r)
	f.use(r.Usage)
	switch r.Status {
	case "failed":
		if len(r.Error) == 0 || string(r.Error) == "null" {
			return &wire.Error{Kind: wire.Overloaded, Provider: Provider, Status: 200, Message: "the response failed, and no reason was given"}
		}
		return wire.Classify(Provider, 200, nil, jsontree.Members{{Name: "error", Value: r.Error}}.Bytes())
	case "cancelled", "in_progress", "queued":
		return &wire.Error{Kind: wire.Incomplete, Provider: Provider, Status: 200, Message: "the response is " + r.Status}
	}
	f.ended, f.meta.FinishReason = true, r.Status
	if r.Incomplete.Reason != "" {
		f.meta.FinishReason = r.Incomplete.Reason
	}
	for i, raw := range r.Output {
		if it := f.item(i); it != nil && it.raw == nil {
			it.kind, it.raw = typeOf(raw), bytes.Clone(raw)
		}
	}
	return io.EOF
}

func (f *fold) Whole(body []byte) error {
	var r response
	if err := wire.Decode(body, &r); err != nil {
		return err
	}
	if r.Status == "" && r.Output == nil {
		return wire.Classify(Provider, 200, nil, body)
	}
	if err := f.end(&r); err != io.EOF {
		return err
	}
	return nil
}

func (f *fold) Ended() bool { return f.ended }

func (f *fold) use(raw json.RawMessage) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	var u struct {
		Input   *int64 `json:"input_tokens"`
		Output  *int64 `json:"output_tokens"`
		Details struct {
			Read  *int64 `json:"cached_tokens"`
			Write *int64 `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			Reasoning *int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
	_ = wire.Decode(raw, &u)
	f.meta.Usage = bytes.Clone(raw)
	f.meta.InputTokens, f.meta.OutputTokens = u.Input, u.Output
	f.meta.CacheRead, f.meta.CacheWrite, f.meta.ReasoningTokens = u.Details.Read, u.Details.Write, u.OutputDetails.Reasoning
}

func (f *fold) Message() *pool.Message {
	m := &pool.Message{Role: pool.Assistant, Meta: f.meta, Unfinished: !f.ended}
	m.Meta.Provider = Provider
	for _, it := range f.items {
		if it != nil {
			f.put(m, it)
		}
	}
	wire.UniqueIDs(m, f.id)
	return m
}

// put adds an item. Of an unfinished one only the words of a message can be used.
func (f *fold) put(m *pool.Message, it *item) {
	if it.raw == nil {
		if it.kind == "message" && len(it.text) > 0 {
			m.Content = append(m.Content, pool.Part{Type: it.part, Text: wire.Whole(it.text)})
		}
		return
	}
	p := pool.Part{Type: it.kind, Provider: Provider, Model: f.meta.Model, Raw: it.raw}
	switch it.kind {
	case "message":
		if p.Type, p.Text = words(it.raw); p.Text == "" {
			return
		}
	case "reasoning":
		p.Type, p.Text = pool.ThinkingPart, thoughts(it.raw)
	case "function_call", "custom_tool_call":
		f.putCall(m, it)
		return
	}
	m.Content = append(m.Content, p)
}

// words returns the texts of a message item, or its refusal if it has none.
func words(raw json.RawMessage) (typ, text string) {
	var v struct {
		Content []struct{ Text, Refusal string }
	}
	_ = wire.Decode(raw, &v)
	var texts, refusals strings.Builder
	for _, c := range v.Content {
		texts.WriteString(c.Text)
		refusals.WriteString(c.Refusal)
	}
	if texts.Len() == 0 && refusals.Len() > 0 {
		return pool.RefusalPart, refusals.String()
	}
	return pool.TextPart, texts.String()
}

// thoughts returns the words of a reasoning item: all of them if the model sends them, else their summary.
func thoughts(raw json.RawMessage) string {
	var v struct {
		Content, Summary []struct{ Text string }
	}
	_ = wire.Decode(raw, &v)
	if len(v.Content) == 0 {
		v.Content = v.Summary
	}
	var texts []string
	for _, c := range v.Content {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "\n\n")
}

// putCall adds a call. If the limit of tokens cut it off, it leaves the call out and says so.
func (f *fold) putCall(m *pool.Message, it *item) {
	var v struct {
		CallID    string  `json:"call_id"`
		Name      string  `json:"name"`
		Arguments string  `json:"arguments"`
		Input     *string `json:"input"`
		Status    string  `json:"status"`
	}
	_ = wire.Decode(it.raw, &v)
	if v.Status == "incomplete" || f.meta.FinishReason == "max_output_tokens" && v.Input == nil && !json.Valid([]byte(v.Arguments)) {
		m.Meta.Error = pool.CutCall(v.Name)
		return
	}
	arguments := wire.Arguments([]byte(v.Arguments))
	if v.Input != nil {
		arguments = jsontree.Quote(*v.Input)
	}
	m.Calls = append(m.Calls, pool.Call{ID: v.CallID, Tool: v.Name, Arguments: arguments, Status: pool.Pending, Execution: pool.NotRun,
		Provider: Provider, Model: f.meta.Model, Raw: it.raw})
	m.Content = append(m.Content, pool.Part{Type: pool.CallPart, CallID: v.CallID})
}
