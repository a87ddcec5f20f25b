package record

import (
	"encoding/json"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/pool"
)

// Streamed is a record of the stream as which a conversation goes from one place to another, in this order: a Native; each NativeBranch with its history, which
// is NativeMessages that are new in the stream, and NativeAgain; NativeMessages that are on no branch; NativeTags and NativeMarks; a NativeEnd. The NativeCalls of
// a message come after it, and a NativeArtifact before the first message that names it. All are passed as pointers but NativeAgain.
type Streamed interface {
	Kind() string // the kind of the record, which names its line in an export
}

// Native describes a context on its way between stores.
type Native struct {
	ID       pool.ID                    `json:"id"`
	Title    string                     `json:"title"`
	Derived  bool                       `json:"derived,omitempty"`
	Renamed  bool                       `json:"renamed,omitempty"` // a person gave the title, not a file
	Parent   pool.ID                    `json:"parent,omitzero"`
	Settings map[string]json.RawMessage `json:"settings,omitempty"`
	AppData  map[string]json.RawMessage `json:"app_data,omitempty"`
	Labels   []string                   `json:"labels,omitempty"`
	Active   string                     `json:"active"`
	Created  pool.Time                  `json:"created_at,omitempty"`
	Updated  pool.Time                  `json:"updated_at,omitempty"`
	Task     *Task                      `json:"task,omitempty"`
	Gated    string                     `json:"gated,omitempty"` // an agent's hook brought its calls: the level that held
}

// NativeBranch describes a branch of it. Its history is what it shares with another branch, and then what Append and Again add.
type NativeBranch struct {
	ID         pool.ID `json:"id"`
	Name       string  `json:"name"`
	NativeLike `json:"like,omitzero"`
	System     string                     `json:"system,omitempty"`
	Prompt     string                     `json:"prompt,omitempty"`
	Settings   map[string]json.RawMessage `json:"settings,omitempty"`
	Sessions   []branch.Session           `json:"sessions,omitempty"`
	AppData    map[string]json.RawMessage `json:"app_data,omitempty"`
	From       string                     `json:"from,omitempty"`
	At         pool.ID                    `json:"at,omitzero"`
	Created    pool.Time                  `json:"created_at,omitempty"`
	Tokens     *branch.Tokens             `json:"tokens,omitempty"`
}

// NativeLike says that a history begins with the first Shared messages of a branch that was begun before it.
type NativeLike struct {
	Like   string `json:"branch"`
	Shared int    `json:"messages"`
}

// NativeCall is the state of a call, with the decisions about it.
type NativeCall struct {
	Message pool.ID `json:"message"`
	Index   int     `json:"index"` // of the call in the message, from 0
	CallRecord
}

// NativeMessage is a message of the history of the branch before it or, if Loose, of no branch: a session's summary, or a message with a tag or a mark.
type NativeMessage struct {
	Message *pool.Message
	Loose   bool
}

// NativeAgain continues the history of the branch before it with messages that came before.
type NativeAgain []pool.ID

// NativeArtifact has the bytes of an image or a document.
type NativeArtifact struct {
	SHA256    string `json:"sha256"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// NativeTag is a tag of a message.
type NativeTag struct {
	Name    string  `json:"name"`
	Message pool.ID `json:"message"`
}

// NativeMark says that a message is pinned or excluded.
type NativeMark struct {
	Mark    string  `json:"mark"`
	Message pool.ID `json:"message"`
}

// NativeEnd counts what came. A context without it was cut off.
type NativeEnd struct {
	Context  pool.ID `json:"context"`
	Messages int     `json:"messages"`
	Branches int     `json:"branches"`
}

// The kinds of the records.
func (Native) Kind() string         { return "context" }
func (NativeBranch) Kind() string   { return "branch" }
func (NativeAgain) Kind() string    { return "again" }
func (NativeCall) Kind() string     { return "call" }
func (NativeArtifact) Kind() string { return "artifact" }
func (NativeTag) Kind() string      { return "tag" }
func (NativeMark) Kind() string     { return "mark" }
func (NativeEnd) Kind() string      { return "end" }

// Kind returns message or loose.
func (m NativeMessage) Kind() string {
	if m.Loose {
		return "loose"
	}
	return "message"
}
