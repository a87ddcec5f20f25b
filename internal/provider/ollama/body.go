package ollama

import (
	"encoding/json"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/out"
)

// Body is a request of Ollama's chat.
type Body struct {
	Fields   jsontree.Members // everything except the history: model, options, …
	Tools    []adapter.Function
	Messages []Message

	names map[string]string
	size  int
}

// Message is a message of the history.
type Message struct {
	Role     string // system, user, assistant, tool
	Content  string
	Images   [][]byte
	Thinking string // of an assistant
	Calls    []Call // of an assistant
	ToolName string // of a tool
	CallID   string // of a tool

	from chatctx.ID
}

// Call is a call of a function. Arguments is a JSON object.
type Call struct {
	ID, Name  string
	Arguments json.RawMessage
}

// ToolNames maps sent names to the draft's names where these differ.
func (b *Body) ToolNames() map[string]string { return b.names }

// MarshalJSON returns the bytes to send. The history comes last, so that a longer one begins with the same bytes.
func (b *Body) MarshalJSON() ([]byte, error) {
	return adapter.Marshal(b.size, b.Fields.Bytes(), b.lists()...)
}

// Prefix returns tools and messages.
func (b *Body) Prefix() []adapter.Piece { return adapter.Pieces(b.lists()...) }

func (b *Body) lists() []adapter.List {
	return []adapter.List{
		{Name: "tools", Len: len(b.Tools), Append: func(body []byte, i int) []byte { return b.Tools[i].Append(body) }},
		{Name: "messages", Len: len(b.Messages), Append: out.Each(b.Messages, writeMessage),
			Message: func(i int) chatctx.ID { return b.Messages[i].from }},
	}
}

func writeMessage(j *out.JSON, m *Message) {
	j.Open('{')
	j.Text("role", m.Role)
	j.Text("content", m.Content)
	if len(m.Images) > 0 {
		out.Array(j, "images", m.Images, func(j *out.JSON, data *[]byte) { j.Base64("", *data) })
	}
	if m.Thinking != "" {
		j.Text("thinking", m.Thinking)
	}
	if len(m.Calls) > 0 {
		out.Array(j, "tool_calls", m.Calls, writeCall)
	}
	if m.ToolName != "" {
		j.Text("tool_name", m.ToolName)
		j.Text("tool_call_id", m.CallID)
	}
	j.Close('}')
}

func writeCall(j *out.JSON, c *Call) {
	j.Open('{')
	j.Text("id", c.ID)
	j.Key("function")
	j.Open('{')
	j.Text("name", c.Name)
	j.Value("arguments", c.Arguments)
	j.Close('}')
	j.Close('}')
}
