package openai

import (
	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/out"
)

// Body is a request of the Chat Completions API.
type Body struct {
	Fields   jsontree.Members // everything except the history: model, temperature, …
	Tools    []adapter.Function
	Messages []Message

	names map[string]string
	size  int
}

// Message is a message of the history.
type Message struct {
	Role          string // system, user, assistant, tool
	Content       []Part // a single text is sent as a string, no part as null
	Calls         []Call // of an assistant
	CallID        string // of a tool
	Reasoning     string
	WithReasoning bool             // send Reasoning, even if it is empty
	Own           jsontree.Members // an assistant's members that only its own server knows, such as reasoning_details

	from chatctx.ID
}

// Part is a part of a message's content. Type is text, image_url or file.
type Part struct {
	Type  string
	Text  string
	Media *adapter.Media
}

// Call is a call of a function. Arguments is a JSON object.
type Call struct {
	ID, Name, Arguments string
	Own                 jsontree.Members // members that only its own server knows, such as extra_content
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
	if m.CallID != "" {
		j.Text("tool_call_id", m.CallID)
	}
	j.Key("content")
	writeContent(j, m.Content)
	if m.WithReasoning {
		j.Text("reasoning_content", m.Reasoning)
	}
	if len(m.Calls) > 0 {
		out.Array(j, "tool_calls", m.Calls, writeCall)
	}
	writeOwn(j, m.Own)
	j.Close('}')
}

func writeOwn(j *out.JSON, o jsontree.Members) {
	for _, m := range o {
		j.Key(m.Name)
		j.Raw(m.Value)
	}
}

func writeContent(j *out.JSON, content []Part) {
	switch {
	case len(content) == 0:
		j.Raw([]byte("null"))
		return
	case len(content) == 1 && content[0].Type == "text":
		j.String(content[0].Text)
		return
	}
	j.Open('[')
	for i := range content {
		writePart(j, &content[i])
	}
	j.Close(']')
}

func writePart(j *out.JSON, p *Part) {
	j.Open('{')
	j.Text("type", p.Type)
	j.Key(p.Type)
	switch p.Type {
	case "text":
		j.String(p.Text)
	case "image_url":
		j.Open('{')
		j.Key("url")
		j.URL(p.Media.URL, p.Media.Type, p.Media.Data)
		j.Close('}')
	case "file":
		j.Open('{')
		j.Text("filename", FileName(p.Media))
		j.Key("file_data")
		j.URL(p.Media.URL, p.Media.Type, p.Media.Data)
		j.Close('}')
	}
	j.Close('}')
}

// FileName returns a document's name; both APIs require one.
func FileName(m *adapter.Media) string {
	if m.Name != "" {
		return m.Name
	}
	return "document.pdf"
}

func writeCall(j *out.JSON, c *Call) {
	j.Open('{')
	j.Text("id", c.ID)
	j.Text("type", "function")
	j.Key("function")
	j.Open('{')
	j.Text("name", c.Name)
	j.Text("arguments", c.Arguments)
	j.Close('}')
	writeOwn(j, c.Own)
	j.Close('}')
}
