package ollama

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
const Provider = "ollama"

// NewFold returns a Fold for a reply of /api/chat.
func NewFold() wire.Fold { return &fold{} }

type fold struct {
	created string // the time of the first line: special enough for call ids
	meta    pool.Metadata
	parts   wire.Parts
	calls   []pool.Call
	ended   bool
}

type chunk struct {
	Model   string `json:"model"`
	Created string `json:"created_at"`
	Message struct {
		Content  wire.Text         `json:"content"`
		Thinking wire.Text         `json:"thinking"`
		Images   [][]byte          `json:"images"`
		Calls    []json.RawMessage `json:"tool_calls"`
	} `json:"message"`
	Done   bool            `json:"done"`
	Reason string          `json:"done_reason"`
	Input  *int64          `json:"prompt_eval_count"`
	Output *int64          `json:"eval_count"`
	Error  json.RawMessage `json:"error"`
}

func (f *fold) Event(e wire.Event, out func(wire.Delta)) error {
	var c chunk
	if err := wire.Decode(e.Data, &c); err != nil {
		return err
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return wire.Classify(Provider, 200, nil, e.Data)
	}
	if f.created == "" {
		f.created, f.meta.Model = c.Created, c.Model
	}
	for _, piece := range []struct {
		typ  string
		text wire.Text
	}{{pool.ThinkingPart, c.Message.Thinking}, {pool.TextPart, c.Message.Content}} {
		if piece.text != "" {
			f.parts.Text(piece.typ, piece.text)
			out(wire.Delta{Type: piece.typ, Text: string(piece.text)})
		}
	}
	for _, image := range c.Message.Images {
		f.parts.Add(pool.Part{Type: pool.ImagePart, Data: image})
	}
	for _, raw := range c.Message.Calls {
		f.call(raw, out)
	}
	if !c.Done {
		return nil
	}
	f.end(&c, e.Data)
	return io.EOF
}

// call adds a call, which always comes in one piece.
func (f *fold) call(raw json.RawMessage, out func(wire.Delta)) {
	var v struct {
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	_ = wire.Decode(raw, &v)
	out(wire.Delta{Type: pool.CallPart, Tool: v.Function.Name})
	out(wire.Delta{Type: pool.CallPart, Text: string(v.Function.Arguments)})
	f.calls = append(f.calls, pool.Call{ID: v.ID, Tool: v.Function.Name, Arguments: wire.Arguments(v.Function.Arguments),
		Status: pool.Pending, Execution: pool.NotRun, Provider: Provider, Model: f.meta.Model})
}

// end reads the last line, with the figures.
func (f *fold) end(c *chunk, data []byte) {
	f.ended = true
	f.meta.FinishReason, f.meta.InputTokens, f.meta.OutputTokens = c.Reason, c.Input, c.Output
	o, _ := jsontree.ParseObject(data)
	var figures jsontree.Members
	for _, m := range o {
		if strings.HasSuffix(m.Name, "_count") || strings.HasSuffix(m.Name, "_duration") {
			figures = append(figures, jsontree.Field{Name: m.Name, Value: bytes.Clone(m.Value)})
		}
	}
	if len(figures) > 0 {
		f.meta.Usage = figures.Bytes()
	}
}

// Whole adds a response that was not streamed: one line, which is also the last.
func (f *fold) Whole(body []byte) error {
	if err := f.Event(wire.Event{Data: body}, func(wire.Delta) {}); err != nil && err != io.EOF {
		return err
	}
	return nil
}

func (f *fold) Ended() bool { return f.ended }

func (f *fold) Message() *pool.Message {
	m := &pool.Message{Role: pool.Assistant, Content: f.parts.List(), Calls: append([]pool.Call(nil), f.calls...), Meta: f.meta,
		Unfinished: !f.ended}
	wire.Sign(m, Provider)
	wire.UniqueIDs(m, f.created)
	return m
}
