package gemini

import (
	"bytes"
	"encoding/json"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/replies"
	"github.com/chatctx/chatctx/pool"
)

// Provider is the provider's name in messages.
const Provider = "gemini"

// SignaturePart is the type of a part that has only the signature of what came before it.
const SignaturePart = "thought_signature"

// NewFold returns a Fold for a reply of generateContent or streamGenerateContent.
func NewFold() wire.Fold { return &fold{} }

type fold struct {
	id    string
	meta  pool.Metadata
	usage []byte // the latest figures, which are cumulative
	parts wire.Parts
	calls []pool.Call
	ended bool
}

type chunk struct {
	Candidates []struct {
		Content struct {
			Parts []json.RawMessage `json:"parts"`
		} `json:"content"`
		Finish    string          `json:"finishReason"`
		Message   string          `json:"finishMessage"`
		Grounding json.RawMessage `json:"groundingMetadata"`
		Index     int             `json:"index"`
	} `json:"candidates"`
	Feedback struct {
		Block   string `json:"blockReason"`
		Message string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage json.RawMessage `json:"usageMetadata"`
	Model string          `json:"modelVersion"`
	ID    string          `json:"responseId"`
	Error json.RawMessage `json:"error"`
}

type part struct {
	Text      *wire.Text `json:"text"`
	Thought   bool       `json:"thought"`
	Signature string     `json:"thoughtSignature"`
	Call      *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Inline *struct {
		MediaType string `json:"mimeType"`
		Data      []byte `json:"data"`
	} `json:"inlineData"`
}

func (f *fold) Event(e wire.Event, out func(wire.Delta)) error {
	var c chunk
	if err := wire.Decode(e.Data, &c); err != nil {
		return err
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return wire.Classify(Provider, 200, nil, e.Data)
	}
	f.take(&c)
	if reason := c.Feedback.Block; reason != "" && len(c.Candidates) == 0 {
		return &wire.Error{Kind: wire.Refused, Provider: Provider, Status: 200, Type: reason,
			Message: "the prompt was blocked (" + reason + ") " + c.Feedback.Message}
	}
	for i := range c.Candidates {
		cand := &c.Candidates[i]
		if cand.Index != 0 {
			continue
		}
		for _, raw := range cand.Content.Parts {
			f.part(raw, out)
		}
		if len(cand.Grounding) > 0 {
			f.meta.ProviderData = map[string]json.RawMessage{Provider: jsontree.Members{
				{Name: "groundingMetadata", Value: bytes.Clone(cand.Grounding)}}.Bytes()}
		}
		if cand.Finish != "" {
			f.meta.FinishReason, f.meta.Error, f.ended = cand.Finish, cand.Message, true
		}
	}
	return nil
}

// take reads the fields beside the candidates.
func (f *fold) take(c *chunk) {
	if c.Model != "" {
		f.meta.Model = c.Model
	}
	if c.ID != "" {
		f.id = c.ID
	}
	if len(c.Usage) > 0 && string(c.Usage) != "null" {
		f.usage = append(f.usage[:0], c.Usage...)
	}
}

// figures sets the usage in metadata.
func (f *fold) figures(m *pool.Metadata) {
	if len(f.usage) == 0 {
		return
	}
	m.Usage = bytes.Clone(f.usage)
	var u struct {
		Prompt     *int64 `json:"promptTokenCount"`
		Tool       *int64 `json:"toolUsePromptTokenCount"`
		Cached     *int64 `json:"cachedContentTokenCount"`
		Candidates *int64 `json:"candidatesTokenCount"`
		Thoughts   *int64 `json:"thoughtsTokenCount"`
	}
	_ = wire.Decode(m.Usage, &u)
	m.InputTokens = replies.Sum(u.Prompt, u.Tool)
	m.OutputTokens = replies.Sum(u.Candidates, u.Thoughts)
	m.CacheRead, m.ReasoningTokens = u.Cached, u.Thoughts
}

// part adds a part. Consecutive words of one kind are joined until a signature: it belongs to the part that it came with, so that part is kept unchanged.
func (f *fold) part(raw json.RawMessage, out func(wire.Delta)) {
	var p part
	_ = wire.Decode(raw, &p)
	switch {
	case p.Call != nil:
		f.call(&p, raw, out)
	case p.Inline != nil:
		f.parts.Add(f.native(pool.Part{Type: kindOf(p.Inline.MediaType), MediaType: p.Inline.MediaType, Data: p.Inline.Data,
			Signature: p.Signature}))
	case p.Text != nil && (*p.Text != "" || p.Signature == ""):
		f.text(&p, raw, out)
	case p.Signature != "":
		f.parts.Add(f.native(pool.Part{Type: SignaturePart, Raw: bytes.Clone(raw)}))
	default:
		f.parts.Add(f.native(pool.Part{Type: firstName(raw), Raw: bytes.Clone(raw)}))
	}
}

func (f *fold) text(p *part, raw json.RawMessage, out func(wire.Delta)) {
	typ := pool.TextPart
	if p.Thought {
		typ = pool.ThinkingPart
	}
	if *p.Text != "" {
		out(wire.Delta{Type: typ, Text: string(*p.Text)})
	}
	switch {
	case p.Signature != "":
		f.parts.Add(f.native(pool.Part{Type: typ, Text: wire.Whole([]byte(*p.Text)), Signature: p.Signature, Raw: bytes.Clone(raw)}))
	case *p.Text != "":
		f.parts.Text(typ, *p.Text)
	}
}

func (f *fold) call(p *part, raw json.RawMessage, out func(wire.Delta)) {
	out(wire.Delta{Type: pool.CallPart, Tool: p.Call.Name})
	if len(p.Call.Args) > 0 {
		out(wire.Delta{Type: pool.CallPart, Text: string(p.Call.Args)})
	}
	c := pool.Call{ID: p.Call.ID, Tool: p.Call.Name, Arguments: wire.Arguments(p.Call.Args), Status: pool.Pending,
		Execution: pool.NotRun, Provider: Provider, Model: f.meta.Model}
	if p.Signature != "" {
		c.Raw = bytes.Clone(raw)
	}
	f.calls = append(f.calls, c)
	f.parts.Add(pool.Part{Type: pool.CallPart, CallID: c.ID})
}

// native sets a part's provider and model.
func (f *fold) native(p pool.Part) pool.Part {
	p.Provider, p.Model = Provider, f.meta.Model
	return p
}

func kindOf(mediaType string) string {
	if len(mediaType) > 6 && mediaType[:6] == "image/" {
		return pool.ImagePart
	}
	return pool.DocumentPart
}

// firstName returns the name of the data in a part of an unknown kind.
func firstName(raw json.RawMessage) string {
	o, _ := jsontree.ParseObject(raw)
	for _, m := range o.Without("thought", "thoughtSignature", "videoMetadata") {
		return m.Name
	}
	return "empty"
}

// Whole adds a response; a stream requested without server-sent events is an array of them.
func (f *fold) Whole(body []byte) error {
	chunks := []json.RawMessage{body}
	if body = bytes.TrimSpace(body); len(body) > 0 && body[0] == '[' {
		if err := wire.Decode(body, &chunks); err != nil {
			return err
		}
	}
	for _, c := range chunks {
		if err := f.Event(wire.Event{Data: c}, func(wire.Delta) {}); err != nil {
			return err
		}
	}
	if !f.ended && f.meta.Model == "" && f.usage == nil && f.parts.List() == nil {
		return wire.Classify(Provider, 200, nil, body)
	}
	return nil
}

func (f *fold) Ended() bool { return f.ended }

func (f *fold) Message() *pool.Message {
	m := &pool.Message{Role: pool.Assistant, Content: f.parts.List(), Calls: append([]pool.Call(nil), f.calls...), Meta: f.meta,
		Unfinished: !f.ended}
	wire.Sign(m, Provider)
	f.figures(&m.Meta)
	wire.UniqueIDs(m, f.id)
	return m
}
