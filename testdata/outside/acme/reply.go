package acme

import (
	"encoding/json"
	"io"
	"slices"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/pool"
)

// event is a piece of a streamed reply. A reply in one piece is a single event, with all of it.
type event struct {
	ID     string          `json:"id"`
	Model  string          `json:"model"`
	Text   wire.Text       `json:"text"`
	Calls  []call          `json:"calls"`
	End    string          `json:"end"` // why the model stopped; only in the last event
	Read   *int64          `json:"read"`
	Wrote  *int64          `json:"wrote"`
	Failed json.RawMessage `json:"error"`
}

// fold makes a message of events. It implements wire.Fold.
type fold struct {
	id    string
	parts wire.Parts
	calls []pool.Call
	meta  pool.Metadata
}

func newFold() wire.Fold { return &fold{} }

func (f *fold) Event(e wire.Event, out func(wire.Delta)) error {
	var v event
	if err := wire.Decode(e.Data, &v); err != nil {
		return err
	}
	if len(v.Failed) > 0 {
		return wire.Classify(Name, 200, nil, e.Data)
	}
	if v.ID != "" {
		f.id, f.meta.Model = v.ID, v.Model
	}
	if v.Text != "" {
		f.parts.Text(pool.TextPart, v.Text)
		out(wire.Delta{Type: pool.TextPart, Text: string(v.Text)})
	}
	for _, c := range v.Calls {
		out(wire.Delta{Type: pool.CallPart, Tool: c.Tool, Text: string(c.With)})
		f.calls = append(f.calls, pool.Call{ID: c.ID, Tool: c.Tool, Arguments: wire.Arguments(c.With), Status: pool.Pending, Execution: pool.NotRun,
			Provider: Name, Model: f.meta.Model})
	}
	if v.End == "" {
		return nil
	}
	f.meta.FinishReason, f.meta.InputTokens, f.meta.OutputTokens = v.End, v.Read, v.Wrote
	return io.EOF // the provider's own end: only now is the reply whole
}

func (f *fold) Whole(body []byte) error {
	if err := f.Event(wire.Event{Data: body}, func(wire.Delta) {}); err != io.EOF {
		return err
	}
	return nil
}

func (f *fold) Ended() bool { return f.meta.FinishReason != "" }

func (f *fold) Message() *pool.Message {
	m := &pool.Message{Role: pool.Assistant, Content: f.parts.List(), Calls: slices.Clone(f.calls), Meta: f.meta, Unfinished: !f.Ended()}
	wire.Sign(m, Name)
	wire.UniqueIDs(m, f.id)
	return m
}
