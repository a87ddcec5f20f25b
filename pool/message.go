package pool

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/uuid"
)

// ID names a context, a message, a branch: a version 7 UUID, so that ids made later sort later on one machine. Order is
// never read from ids.
type ID = uuid.UUID

// NewID makes an id. It panics only when the system gives no randomness.
func NewID() ID { return uuid.Must(uuid.NewV7()) }

// Hash is the SHA-256 of an artifact's bytes and its name. The zero Hash is no artifact.
type Hash [32]byte

// Role says who speaks.
type Role string

// The four roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Late is the Kind of a result that came while another program ran its call, and so says nothing of how the call ended.
const Late = "late"

// Time is a moment in microseconds since 1970 UTC; zero is unknown.
type Time int64

// Now is the present moment.
func Now() Time { return Time(time.Now().UnixMicro()) }

// TimeOf cuts t to microseconds; the zero time.Time is unknown.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMicro())
}

// Time is t in UTC, or the zero time.Time where it is unknown.
func (t Time) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

// Message is one message of a conversation. Once stored it never changes, but for the state of its calls and a result's
// compact summary.
type Message struct {
	ID      ID       `cbor:"1,keyasint"`
	Role    Role     `cbor:"2,keyasint"`
	Content []Part   `cbor:"3,keyasint,omitempty"` // in the order they came
	Calls   []Call   `cbor:"4,keyasint,omitempty"` // of an assistant message
	Result  *Result  `cbor:"5,keyasint,omitempty"` // of a tool message
	Meta    Metadata `cbor:"6,keyasint,omitempty"`
	Created Time     `cbor:"7,keyasint,omitempty"`
	// Kind says what a message is that nobody typed: "" for an ordinary one, else injected, summary, digest, interrupted,
	// recap, late, or another word from the place that it was imported from.
	Kind string `cbor:"8,keyasint,omitempty"`
	// Hidden messages are kept and not shown. Unsent ones go to no provider.
	Hidden     bool    `cbor:"9,keyasint,omitempty"`
	Unsent     bool    `cbor:"10,keyasint,omitempty"`
	Unfinished bool    `cbor:"11,keyasint,omitempty"` // a reply that broke off
	CopiedFrom *ID     `cbor:"12,keyasint,omitempty"` // the message that this one is a copy of
	Source     *Source `cbor:"13,keyasint,omitempty"` // where it was imported from
	// AppData belongs to the programs that use the store: a name to any JSON.
	AppData map[string]json.RawMessage `cbor:"14,keyasint,omitempty"`
	// Home is where the message was first put on a branch. It belongs to the store that the message lies in and is in no JSON.
	Home Home `cbor:"15,keyasint,omitzero"`

	// Extra holds the keys of the stored record that this version does not know; they are written back as they are.
	Extra map[uint64]cbor.RawMessage `cbor:"-"`
}

// Home is a place in a context's entries: a segment, from 1, and a position in it. The zero Home is none.
type Home struct {
	_                 struct{} `cbor:",toarray"`
	Segment, Position uint64
}

// The part types that have a meaning here. Any other is kept as Raw.
const (
	TextPart     = "text"
	ImagePart    = "image"
	DocumentPart = "document"
	ThinkingPart = "thinking"
	CallPart     = "tool_call" // where among the parts a call stands
)

// Part is a piece of a message's content. Which fields count depends on Type.
type Part struct {
	Type string `cbor:"1,keyasint"`
	// Text of a text part, or the words of a thinking part. Never trimmed.
	Text string `cbor:"2,keyasint,omitempty"`

	// Image and document: the bytes in Data until they are stored, as the artifact SHA256 of Size bytes after; or a URL.
	MediaType string `cbor:"3,keyasint,omitempty"`
	Name      string `cbor:"4,keyasint,omitempty"`
	URL       string `cbor:"5,keyasint,omitempty"`
	SHA256    Hash   `cbor:"6,keyasint,omitzero"`
	Size      int64  `cbor:"7,keyasint,omitempty"`
	Data      []byte `cbor:"-"`

	// Thinking: what lets the provider that it is from take it back, byte for byte.
	Signature string `cbor:"8,keyasint,omitempty"`
	Redacted  string `cbor:"9,keyasint,omitempty"` // opaque data in place of the words
	Provider  string `cbor:"10,keyasint,omitempty"`
	Model     string `cbor:"11,keyasint,omitempty"`

	CallID string `cbor:"12,keyasint,omitempty"` // of a tool_call part: the Call's ID

	// Raw is, for an unknown type, the whole part as JSON, byte for byte; for a known one, the provider's own block
	// where more than the other fields is needed to send it back.
	Raw json.RawMessage `cbor:"13,keyasint,omitempty"`

	Extra map[uint64]cbor.RawMessage `cbor:"-"`
}

// Status is what was decided about a call.
type Status string

// The three of them. Expired and cancelled calls are Denied, by expiry or by cancel.
const (
	Pending  Status = "pending"
	Approved Status = "approved"
	Denied   Status = "denied"
)

// Execution is how far the running of a call has come.
type Execution string

// A call that nobody ran is NotRun. Running is written before a tool starts; a Running call whose program died is
// Uncertain.
const (
	NotRun    Execution = "none"
	Running   Execution = "running"
	Done      Execution = "done"
	Failed    Execution = "failed"
	Uncertain Execution = "uncertain"
)

// Call is a tool call that an assistant message asks for.
type Call struct {
	ID        string          `cbor:"1,keyasint"` // the provider's; unique in the message, not beyond
	Tool      string          `cbor:"2,keyasint"` // the tool's name
	Arguments json.RawMessage `cbor:"3,keyasint"` // as proposed; usually an object; nil for none
	// Status and Execution as they were when the message was stored; a call that was open since has its state in a record
	// of its own, and a message that was read through the store shows that.
	Status    Status    `cbor:"4,keyasint,omitempty"`
	Execution Execution `cbor:"5,keyasint,omitempty"`
	// Reason of a decision that the message was stored with, or of the last one.
	Reason string `cbor:"6,keyasint,omitempty"`
	// Raw is the provider's own block, where more than the other fields is needed to send it back (thought signatures, item
	// ids).
	Raw      json.RawMessage `cbor:"7,keyasint,omitempty"`
	Provider string          `cbor:"8,keyasint,omitempty"` // who Raw is from
	Model    string          `cbor:"9,keyasint,omitempty"`
	// Later: what Status, Execution and Reason say came after the message was stored. It is never stored itself.
	Later bool `cbor:"-"`

	Extra map[uint64]cbor.RawMessage `cbor:"-"`
}

// Open reports whether the call waits for a decision or for being run.
func (c *Call) Open() bool {
	return c.Status == Pending || c.Status == Approved && c.Execution != Done && c.Execution != Failed
}

// Result answers a call. Of Parts, JSON and Text the first that is not nil or empty counts.
type Result struct {
	RequestID      string          `cbor:"1,keyasint"` // the Call's ID
	Text           string          `cbor:"2,keyasint,omitempty"`
	JSON           json.RawMessage `cbor:"3,keyasint,omitempty"`
	Parts          []Part          `cbor:"4,keyasint,omitempty"`
	IsError        bool            `cbor:"5,keyasint,omitempty"`
	CompactSummary string          `cbor:"6,keyasint,omitempty"` // may be set later
	Tool           string          `cbor:"7,keyasint,omitempty"` // the tool's name, where the call is not known
	// SHA256 and Size name the artifact that holds JSON, or else Text, where that is over 8 KiB; reading puts it back.
	// MediaType says which: application/json, or text/plain. Storing makes all three from Text and JSON where those are there.
	SHA256    Hash   `cbor:"8,keyasint,omitzero"`
	Size      int64  `cbor:"9,keyasint,omitempty"`
	MediaType string `cbor:"10,keyasint,omitempty"`

	Extra map[uint64]cbor.RawMessage `cbor:"-"`
}

// Speaks reports whether the result says something itself: then the content of its message is for people and programs alone.
func (r *Result) Speaks() bool {
	return len(r.Parts) > 0 || len(r.JSON) > 0 || strings.TrimSpace(r.Text) != ""
}

// Metadata is what is known of how a message came to be. A nil count is unknown.
type Metadata struct {
	Model           string          `cbor:"1,keyasint,omitempty"`
	Provider        string          `cbor:"2,keyasint,omitempty"`
	InputTokens     *int64          `cbor:"3,keyasint,omitempty"` // the whole input, cached or not
	OutputTokens    *int64          `cbor:"4,keyasint,omitempty"`
	CacheRead       *int64          `cbor:"5,keyasint,omitempty"`
	CacheWrite      *int64          `cbor:"6,keyasint,omitempty"`
	ReasoningTokens *int64          `cbor:"7,keyasint,omitempty"`
	Usage           json.RawMessage `cbor:"8,keyasint,omitempty"` // as the provider reported it
	FinishReason    string          `cbor:"9,keyasint,omitempty"`
	Error           string          `cbor:"10,keyasint,omitempty"`
	Completed       Time            `cbor:"11,keyasint,omitempty"`
	// ProviderData is opaque here: a provider's name to what it wants kept.
	ProviderData map[string]json.RawMessage `cbor:"12,keyasint,omitempty"`

	Extra map[uint64]cbor.RawMessage `cbor:"-"`
}

// Source says where a message was imported from.
type Source struct {
	Format       string `cbor:"1,keyasint"`           // chatgpt, claude-code …
	Conversation string `cbor:"2,keyasint,omitempty"` // its id there
	Node         string `cbor:"3,keyasint,omitempty"` // the message's id there
	Role         string `cbor:"4,keyasint,omitempty"` // the role there, where it is none of ours
	// Raw is the record as it came, where something in it was not understood.
	Raw []byte `cbor:"5,keyasint,omitempty"`

	Extra map[uint64]cbor.RawMessage `cbor:"-"`
}

// Text is all text parts, joined as they are.
func (m *Message) Text() string {
	n := 0
	for i := range m.Content {
		if m.Content[i].Type == TextPart {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	var b []byte
	for i := range m.Content {
		if m.Content[i].Type == TextPart {
			b = append(b, m.Content[i].Text...)
		}
	}
	return string(b)
}

// Receipt reports whether the message says only what a model took for a title or a shorter digest. It has no words and stands on no branch; it counts as no message of its conversation,
// and stays in the pool for as long as that, since it was paid for.
func (m *Message) Receipt() bool {
	return m.Hidden && m.Unsent && (m.Kind == "title" || m.Kind == "digest") && len(m.Content) == 0 && m.Result == nil
}

// NewText is a message of one text part.
func NewText(role Role, text string) *Message {
	return &Message{Role: role, Content: []Part{{Type: TextPart, Text: text}}}
}

// Weight is about how many bytes a message takes.
func (m *Message) Weight() int {
	n := 300 + partsWeight(m.Content)
	if m.Result != nil {
		n += len(m.Result.Text) + len(m.Result.JSON) + partsWeight(m.Result.Parts)
	}
	for _, c := range m.Calls {
		n += len(c.Arguments) + len(c.Raw)
	}
	if m.Source != nil {
		n += len(m.Source.Raw)
	}
	for _, d := range m.Meta.ProviderData {
		n += len(d)
	}
	return n
}

func partsWeight(parts []Part) int {
	n := 0
	for i := range parts {
		p := &parts[i]
		n += 100 + len(p.Text) + len(p.Data) + len(p.Raw) + len(p.Signature) + len(p.Redacted) + len(p.URL)
	}
	return n
}
