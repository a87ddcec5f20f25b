package pool

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/uuid"
)

// ID identifies a context, a message or a branch. It is a version 7 UUID, so ids made later on one machine sort later; but no order is ever read from ids.
type ID = uuid.UUID

// NewID returns a new id. It panics only if the system has no randomness.
func NewID() ID { return uuid.Must(uuid.NewV7()) }

// Hash is the SHA-256 of an artifact's bytes, and so its name. The zero Hash means no artifact.
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

// Late is the Kind of a result that came while another program ran its call. It does not say how the call ended.
const Late = "late"

// Time is a moment in microseconds since 1970 UTC; zero means unknown.
type Time int64

// Now returns the present moment.
func Now() Time { return Time(time.Now().UnixMicro()) }

// TimeOf truncates t to microseconds; the zero time.Time becomes unknown.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMicro())
}

// Time returns t in UTC, or the zero time.Time if t is unknown.
func (t Time) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

// Message is one message of a conversation. Once stored it never changes, except for the states of its calls and the compact summary of its result.
type Message struct {
	ID      ID       `cbor:"1,keyasint"`
	Role    Role     `cbor:"2,keyasint"`
	Content []Part   `cbor:"3,keyasint,omitempty"` // in their original order
	Calls   []Call   `cbor:"4,keyasint,omitempty"` // of an assistant's message
	Result  *Result  `cbor:"5,keyasint,omitempty"` // of a tool's message
	Meta    Metadata `cbor:"6,keyasint,omitempty"`
	Created Time     `cbor:"7,keyasint,omitempty"`
	// Kind says what a message is that nobody typed: "" for an ordinary one, else injected, summary, digest, interrupted, recap, late, or another word from
	// the place that it was imported from.
	Kind string `cbor:"8,keyasint,omitempty"`
	// Hidden messages are kept but not shown. Unsent ones go to no provider.
	Hidden     bool    `cbor:"9,keyasint,omitempty"`
	Unsent     bool    `cbor:"10,keyasint,omitempty"`
	Unfinished bool    `cbor:"11,keyasint,omitempty"` // a reply that broke off
	CopiedFrom *ID     `cbor:"12,keyasint,omitempty"` // the original of a copy
	Source     *Source `cbor:"13,keyasint,omitempty"` // where it was imported from
	// AppData belongs to the programs that use the store: names to any JSON.
	AppData map[string]json.RawMessage `cbor:"14,keyasint,omitempty"`
	// Home is where the message was first put on a branch. It belongs to the store and is not in the JSON.
	Home Home `cbor:"15,keyasint,omitzero"`
	// Aside names the artifacts of the values over 8 KiB that are kept as they came (Raw of parts, calls and the source, ProviderData), by their places in
	// the message's JSON. Storing a message sets it; reading one restores the values. It belongs to the store and is not in the JSON.
	Aside map[string]Aside `cbor:"16,keyasint,omitempty"`

	// Extra has the keys of the stored record that this version does not know; they are written back unchanged.
	Extra map[uint64]cbor.RawMessage `cbor:"-"`
}

// Home is a place in a context's entries: a segment, from 1, and a position in it. The zero Home means none.
type Home struct {
	_                 struct{} `cbor:",toarray"`
	Segment, Position uint64
}

// The part types with a meaning here. A part of any other type is kept as Raw.
const (
	TextPart     = "text"
	ImagePart    = "image"
	DocumentPart = "document"
	ThinkingPart = "thinking"
	CallPart     = "tool_call" // the place of a call among the parts
	// CompactionPart is what a provider made of all that came before: only the provider can read it. It begins a session.
	CompactionPart = "compaction"
)

// Part is a piece of a message's content. Its Type decides which fields count.
type Part struct {
	Type string `cbor:"1,keyasint"`
	// Text of a text part, or the words of a thinking part. It is never trimmed.
	Text string `cbor:"2,keyasint,omitempty"`

	// Image and document: the bytes are in Data until they are stored, then in the artifact SHA256 of Size bytes; or they are at URL.
	MediaType string `cbor:"3,keyasint,omitempty"`
	Name      string `cbor:"4,keyasint,omitempty"`
	URL       string `cbor:"5,keyasint,omitempty"`
	SHA256    Hash   `cbor:"6,keyasint,omitzero"`
	Size      int64  `cbor:"7,keyasint,omitempty"`
	Data      []byte `cbor:"-"`

	// Thinking: what its provider needs to take it back, byte for byte.
	Signature string `cbor:"8,keyasint,omitempty"`
	Redacted  string `cbor:"9,keyasint,omitempty"` // opaque data in place of the words
	Provider  string `cbor:"10,keyasint,omitempty"`
	Model     string `cbor:"11,keyasint,omitempty"`

	CallID string `cbor:"12,keyasint,omitempty"` // of a tool_call part: the Call's ID

	// Raw of an unknown type is the whole part as JSON, byte for byte. Of a known type it is the provider's own block, if the other fields do not suffice
	// to send it back.
	Raw json.RawMessage `cbor:"13,keyasint,omitempty"`

	Extra map[uint64]cbor.RawMessage `cbor:"-"`
}

// Status is the decision about a call.
type Status string

// The three statuses. Expired and cancelled calls are Denied too.
const (
	Pending  Status = "pending"
	Approved Status = "approved"
	Denied   Status = "denied"
	// Of calls of other programs' agents alone:
	Left      Status = "left"      // left to the agent that asked
	Withdrawn Status = "withdrawn" // whoever asked is gone, and the call did not run
)

// Execution is the progress of a call.
type Execution string

// NotRun means that nobody ran the call. Running is written before a tool starts; a Running call whose program died is Uncertain.
const (
	NotRun    Execution = "none"
	Running   Execution = "running"
	Done      Execution = "done"
	Failed    Execution = "failed"
	Uncertain Execution = "uncertain"
)

// Call is a tool call that an assistant's message asks for.
type Call struct {
	ID        string          `cbor:"1,keyasint" json:"id"`        // the provider's; unique in the message only
	Tool      string          `cbor:"2,keyasint" json:"tool_name"` // the tool's name
	Arguments json.RawMessage `cbor:"3,keyasint" json:"arguments"` // as proposed; usually an object; nil for none
	// Status and Execution are those with which the message was stored. A call that was open later has its state in a record of its own, and a message that
	// was read through the store has that state.
	Status    Status    `cbor:"4,keyasint,omitempty" json:"approval_status"`
	Execution Execution `cbor:"5,keyasint,omitempty" json:"execution"`
	// Reason is that of the decision with which the message was stored, or of the last one.
	Reason string `cbor:"6,keyasint,omitempty" json:"reason,omitempty"`
	// Raw is the provider's own block, if the other fields do not suffice to send it back (thought signatures, item ids).
	Raw      json.RawMessage `cbor:"7,keyasint,omitempty" json:"-"`
	Provider string          `cbor:"8,keyasint,omitempty" json:"-"` // the provider of Raw
	Model    string          `cbor:"9,keyasint,omitempty" json:"-"`
	// Later: Status, Execution and Reason were set after the message was stored. It is never stored itself.
	Later bool `cbor:"-" json:"-"`
	// Effective are the arguments that an approval put in place of Arguments, and ChangedBy is who approved. A message that was read through the store has them.
	// They are never stored with a message, and what a message says of them decides nothing.
	Effective json.RawMessage `cbor:"-" json:"effective_arguments,omitempty" after:"arguments"`
	ChangedBy *Decider        `cbor:"-" json:"changed_by,omitempty" after:"effective_arguments"`

	Extra map[uint64]cbor.RawMessage `cbor:"-" json:"-"`
}

// Decider is who took a step in the life of a call. Its keys are those that it has in the record of the step.
type Decider struct {
	Kind    string `cbor:"4,keyasint" json:"kind"` // person, rule, inherited, import …
	Name    string `cbor:"5,keyasint,omitempty" json:"name"`
	Claimed string `cbor:"12,keyasint,omitempty" json:"claimed,omitempty"`      // the name that they gave themselves; it is not checked
	Said    bool   `cbor:"10,keyasint,omitempty" json:"said_by_file,omitempty"` // an imported file says so: it is no decision of this store, and has no effect
}

// String returns it for people; nil is somebody unknown.
func (d *Decider) String() string {
	if d == nil {
		return "somebody"
	}
	words := strings.TrimSpace(d.Kind + " " + d.Name)
	if d.Claimed != "" {
		words += " as " + d.Claimed
	}
	if d.Said {
		words += ", the file says"
	}
	return words
}

// Open reports whether the call waits for a decision, waits to be run, runs, or is uncertain.
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
	Tool           string          `cbor:"7,keyasint,omitempty"` // the tool's name, if the call is not known
	// SHA256, Size and MediaType (application/json or text/plain) describe the artifact that has JSON, or else Text, if that is over 8 KiB. Storing a
	// message sets them from Text and JSON; reading it restores these.
	SHA256    Hash   `cbor:"8,keyasint,omitzero"`
	Size      int64  `cbor:"9,keyasint,omitempty"`
	MediaType string `cbor:"10,keyasint,omitempty"`

	Extra map[uint64]cbor.RawMessage `cbor:"-"`
}

// Metadata is what is known of the origin of a message. A nil count is unknown.
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
	// ProviderData is opaque: a provider's name to what it wants kept.
	ProviderData map[string]json.RawMessage `cbor:"12,keyasint,omitempty"`

	Extra map[uint64]cbor.RawMessage `cbor:"-"`
}

// Source says where a message was imported from.
type Source struct {
	Format       string `cbor:"1,keyasint"`           // chatgpt, claude-code …
	Conversation string `cbor:"2,keyasint,omitempty"` // its id there
	Node         string `cbor:"3,keyasint,omitempty"` // the message's id there
	Role         string `cbor:"4,keyasint,omitempty"` // the role there, if it is none of the four
	// Raw is the original record, if something in it was not understood.
	Raw []byte `cbor:"5,keyasint,omitempty"`
	// GrewFrom is the length of the text that was imported first, in bytes, if a later import brought more of it; 0: it did not grow.
	GrewFrom int64 `cbor:"7,keyasint,omitempty"`

	Extra map[uint64]cbor.RawMessage `cbor:"-"`
}

// Text returns all text parts, joined without separators.
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

// NewText returns a message of one text part.
func NewText(role Role, text string) *Message {
	return &Message{Role: role, Content: []Part{{Type: TextPart, Text: text}}}
}

// Facts is what is known about a message, without its text.
type Facts struct {
	ID         ID       `cbor:"-"`
	Role       Role     `cbor:"2,keyasint"`
	Meta       Metadata `cbor:"6,keyasint"`
	Created    Time     `cbor:"7,keyasint"`
	Kind       string   `cbor:"8,keyasint"`
	CopiedFrom *ID      `cbor:"12,keyasint"`
	Source     *Source  `cbor:"13,keyasint"`
	Home       Home     `cbor:"15,keyasint"`
}
