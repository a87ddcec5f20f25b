package pool

import (
	"github.com/chatctx/chatctx/internal/stored"
)

// The tables below name every field of a message once. JSON is written, read and checked by them.
//
// field is a named value of a T.

// field is a named value of a T.
type field[T any] struct {
	name  string
	at    func(*T) any // a pointer to the value
	empty form
	place bool // belongs to an Entry, not to the message
}

// form is how an empty value is written.
type form int

const (
	absent form = iota // left out
	null               // null
	plain              // "", false, []
)

var entryFields = []field[Entry]{
	{name: "id", at: func(e *Entry) any { return &e.ID }, empty: null},
	{name: "parent_id", at: func(e *Entry) any { return &e.Parent }, empty: null, place: true},
	{name: "role", at: func(e *Entry) any { return (*string)(&e.Role) }, empty: plain},
	{name: "content", at: func(e *Entry) any { return &e.Content }, empty: plain},
	{name: "tool_calls", at: func(e *Entry) any { return &e.Calls }},
	{name: "tool_result", at: func(e *Entry) any { return &e.Result }},
	{name: "metadata", at: func(e *Entry) any { return &e.Meta }},
	{name: "turn", at: func(e *Entry) any { return &e.Turn }, empty: null, place: true},
	{name: "position", at: func(e *Entry) any { return &e.Position }, empty: null, place: true},
	{name: "created_at", at: func(e *Entry) any { return &e.Created }, empty: null},
	{name: "session", at: func(e *Entry) any { return &e.Session }, empty: null, place: true},
	{name: "hidden", at: func(e *Entry) any { return &e.Hidden }},
	{name: "unsent", at: func(e *Entry) any { return &e.Unsent }},
	{name: "kind", at: func(e *Entry) any { return &e.Kind }},
	{name: "unfinished", at: func(e *Entry) any { return &e.Unfinished }},
	{name: "outcome", at: outcomeField, place: true},
	{name: "copied_from", at: func(e *Entry) any { return &e.CopiedFrom }},
	{name: "tags", at: func(e *Entry) any { return &e.Tags }, place: true},
	{name: "queued", at: func(e *Entry) any { return &e.Queued }, place: true},
	{name: "source", at: func(e *Entry) any { return &e.Source }},
	{name: "app_data", at: func(e *Entry) any { return &e.AppData }},
}

// outcomeField returns how an answer ended. It is told where a message is shown, and not stored.
func outcomeField(e *Entry) any {
	outcome := ""
	if e.Role == Assistant {
		outcome = string(OutcomeOf(e.Message))
	}
	return &outcome
}

var (
	partType     = field[Part]{name: "type", at: func(p *Part) any { return &p.Type }, empty: plain}
	partText     = field[Part]{name: "text", at: func(p *Part) any { return &p.Text }}
	partThinking = field[Part]{name: "thinking", at: func(p *Part) any { return &p.Text }}
	partCallID   = field[Part]{name: "id", at: func(p *Part) any { return &p.CallID }}
)

var partRest = []field[Part]{
	{name: "media_type", at: func(p *Part) any { return &p.MediaType }},
	{name: "name", at: func(p *Part) any { return &p.Name }},
	{name: "data", at: func(p *Part) any { return &p.Data }},
	{name: "sha256", at: func(p *Part) any { return &p.SHA256 }},
	{name: "size", at: func(p *Part) any { return &p.Size }},
	{name: "url", at: func(p *Part) any { return &p.URL }},
	{name: "signature", at: func(p *Part) any { return &p.Signature }},
	{name: "redacted", at: func(p *Part) any { return &p.Redacted }},
	{name: "provider", at: func(p *Part) any { return &p.Provider }},
	{name: "model", at: func(p *Part) any { return &p.Model }},
	{name: "native", at: func(p *Part) any { return &p.Raw }},
}

// partFields has the fields of the known part types.
var partFields = map[string][]field[Part]{
	TextPart:     append([]field[Part]{partType, partText.as(plain), partCallID}, partRest...),
	ImagePart:    append([]field[Part]{partType, partText, partCallID}, partRest...),
	DocumentPart: append([]field[Part]{partType, partText, partCallID}, partRest...),
	ThinkingPart: append([]field[Part]{partType, partThinking.as(plain), partCallID}, partRest...),
	CallPart:     append([]field[Part]{partType, partCallID.as(plain), partText}, partRest...),
}

func (f field[T]) as(empty form) field[T] {
	f.empty = empty
	return f
}

var callFields = []field[Call]{
	{name: "id", at: func(c *Call) any { return &c.ID }, empty: plain},
	{name: "tool_name", at: func(c *Call) any { return &c.Tool }, empty: plain},
	{name: "arguments", at: func(c *Call) any { return &c.Arguments }, empty: null},
	{name: "effective_arguments", at: func(c *Call) any { return &c.Effective }},
	{name: "changed_by", at: func(c *Call) any { return &c.ChangedBy }},
	{name: "approval_status", at: func(c *Call) any { return (*string)(&c.Status) }, empty: null},
	{name: "execution", at: func(c *Call) any { return (*string)(&c.Execution) }, empty: null},
	{name: "reason", at: func(c *Call) any { return &c.Reason }},
	{name: "provider", at: func(c *Call) any { return &c.Provider }},
	{name: "model", at: func(c *Call) any { return &c.Model }},
	{name: "native", at: func(c *Call) any { return &c.Raw }},
}

var deciderFields = []field[Decider]{
	{name: "kind", at: func(d *Decider) any { return &d.Kind }, empty: plain},
	{name: "name", at: func(d *Decider) any { return &d.Name }, empty: plain},
	{name: "claimed", at: func(d *Decider) any { return &d.Claimed }},
	{name: "said_by_file", at: func(d *Decider) any { return &d.Said }},
}

// The field "result" has a result's JSON, or else its text. outcome is that field, asideText the text if both exist.
type (
	outcome   Result
	asideText Result
)

var resultFields = []field[Result]{
	{name: "request_id", at: func(r *Result) any { return &r.RequestID }, empty: plain},
	{name: "tool_name", at: func(r *Result) any { return &r.Tool }},
	{name: "result", at: func(r *Result) any { return (*outcome)(r) }},
	{name: "text", at: func(r *Result) any { return (*asideText)(r) }},
	{name: "parts", at: func(r *Result) any { return &r.Parts }},
	{name: "is_error", at: func(r *Result) any { return &r.IsError }, empty: plain},
	{name: "compact_summary", at: func(r *Result) any { return &r.CompactSummary }},
	{name: "media_type", at: func(r *Result) any { return &r.MediaType }},
	{name: "sha256", at: func(r *Result) any { return &r.SHA256 }},
	{name: "size", at: func(r *Result) any { return &r.Size }},
}

var metaFields = []field[Metadata]{
	{name: "model_id", at: func(d *Metadata) any { return &d.Model }, empty: null},
	{name: "provider_id", at: func(d *Metadata) any { return &d.Provider }, empty: null},
	{name: "input_tokens", at: func(d *Metadata) any { return &d.InputTokens }, empty: null},
	{name: "output_tokens", at: func(d *Metadata) any { return &d.OutputTokens }, empty: null},
	{name: "cache_read_tokens", at: func(d *Metadata) any { return &d.CacheRead }, empty: null},
	{name: "cache_write_tokens", at: func(d *Metadata) any { return &d.CacheWrite }, empty: null},
	{name: "reasoning_tokens", at: func(d *Metadata) any { return &d.ReasoningTokens }, empty: null},
	{name: "usage", at: func(d *Metadata) any { return &d.Usage }, empty: null},
	{name: "finish_reason", at: func(d *Metadata) any { return &d.FinishReason }, empty: null},
	{name: "error", at: func(d *Metadata) any { return &d.Error }, empty: null},
	{name: "completed_at", at: func(d *Metadata) any { return &d.Completed }, empty: null},
	{name: "provider_data", at: func(d *Metadata) any { return &d.ProviderData }},
}

var sourceFields = []field[Source]{
	{name: "format", at: func(s *Source) any { return &s.Format }, empty: plain},
	{name: "context", at: func(s *Source) any { return &s.Conversation }},
	{name: "node", at: func(s *Source) any { return &s.Node }},
	{name: "role", at: func(s *Source) any { return &s.Role }},
	{name: "raw", at: func(s *Source) any { return &s.Raw }},
	{name: "grew_from", at: func(s *Source) any { return &s.GrewFrom }},
}

// visitor calls fn with a pointer to each value of a message that contains no other.
type visitor struct {
	stored.Cursor
	fn func(c *stored.Cursor, value any) error
}

func visit(m *Message, fn func(c *stored.Cursor, value any) error) error {
	v := visitor{Cursor: stored.Cursor{Path: make([]byte, 0, 64)}, fn: fn}
	return visitFields(&v, &Entry{Message: m}, entryFields)
}

func visitFields[T any](v *visitor, holder *T, fields []field[T]) error {
	for i := range fields {
		if fields[i].place {
			continue
		}
		back := v.Enter(fields[i].name)
		if err := v.value(fields[i].at(holder)); err != nil {
			return err
		}
		v.Leave(back)
	}
	return nil
}

func visitList[T any](v *visitor, list []T, fields []field[T]) error {
	for i := range list {
		back := v.EnterIndex(i)
		if err := visitFields(v, &list[i], fields); err != nil {
			return err
		}
		v.Leave(back)
	}
	return nil
}

func (v *visitor) value(value any) error {
	switch x := value.(type) {
	case *[]Part:
		return visitList(v, *x, partFields[TextPart])
	case *[]Call:
		return visitList(v, *x, callFields)
	case *Metadata:
		return visitFields(v, x, metaFields)
	case **Result:
		if *x == nil {
			return nil
		}
		return visitFields(v, *x, resultFields)
	case **Decider:
		if *x == nil {
			return nil
		}
		return visitFields(v, *x, deciderFields)
	case **Source:
		if *x == nil {
			return nil
		}
		return visitFields(v, *x, sourceFields)
	}
	return v.fn(&v.Cursor, value)
}
