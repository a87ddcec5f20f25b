package responses

import (
	"encoding/json"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/openai"
	"github.com/chatctx/chatctx/internal/provider/out"
)

// Body is a request of the Responses API.
type Body struct {
	Fields jsontree.Members // everything except the history: model, store, …
	Tools  []adapter.Function
	Input  []Item

	names map[string]string
	size  int
}

// Item is an item of the input. Type says which fields count.
type Item struct {
	Type      string          // message, function_call, function_call_output; for any other, Raw is set
	Role      string          // of a message: system, user, assistant
	Content   []Part          // of a message or an output; an output with a single text is sent as a string
	CallID    string          // of a call and its output
	Name      string          // of a call
	Arguments string          // of a call: a JSON object
	Raw       json.RawMessage // the whole item

	from chatctx.ID
}

// Part is a part of an item's content. Type is input_text, input_image, input_file or output_text.
type Part struct {
	Type  string
	Text  string
	Media *adapter.Media
}

// ToolNames maps sent names to the draft's names where these differ.
func (b *Body) ToolNames() map[string]string { return b.names }

// MarshalJSON returns the bytes to send. The history comes last, so that a longer one begins with the same bytes.
func (b *Body) MarshalJSON() ([]byte, error) {
	return adapter.Marshal(b.size, b.Fields.Bytes(), b.lists()...)
}

// Prefix returns tools and input.
func (b *Body) Prefix() []adapter.Piece { return adapter.Pieces(b.lists()...) }

func (b *Body) lists() []adapter.List {
	return []adapter.List{
		{Name: "tools", Len: len(b.Tools), Append: out.Each(b.Tools, writeTool)},
		{Name: "input", Len: len(b.Input), Append: out.Each(b.Input, writeItem),
			Message: func(i int) chatctx.ID { return b.Input[i].from }},
	}
}

func writeTool(j *out.JSON, t *adapter.Function) {
	if t.Raw != nil {
		j.Raw(t.Raw)
		return
	}
	begin(j, "function")
	*j = t.AppendMembers(*j, "parameters")
	j.Key("strict") // without it the API makes the schema strict
	j.Bool(false)
	j.Close('}')
}

// begin opens an object with its type.
func begin(j *out.JSON, typ string) {
	j.Open('{')
	j.Text("type", typ)
}

func writeItem(j *out.JSON, i *Item) {
	if i.Raw != nil {
		j.Raw(i.Raw)
		return
	}
	begin(j, i.Type)
	switch i.Type {
	case "message":
		j.Text("role", i.Role)
		out.Array(j, "content", i.Content, writePart)
	case "function_call":
		j.Text("call_id", i.CallID)
		j.Text("name", i.Name)
		j.Text("arguments", i.Arguments)
	case "function_call_output":
		j.Text("call_id", i.CallID)
		if len(i.Content) == 1 && i.Content[0].Type == "input_text" {
			j.Text("output", i.Content[0].Text)
		} else {
			out.Array(j, "output", i.Content, writePart)
		}
	}
	j.Close('}')
}

func writePart(j *out.JSON, p *Part) {
	begin(j, p.Type)
	switch p.Type {
	case "input_text", "output_text":
		j.Text("text", p.Text)
	case "input_image":
		j.Text("detail", "auto")
		j.Key("image_url")
		j.URL(p.Media.URL, p.Media.Type, p.Media.Data)
	case "input_file":
		if p.Media.URL != "" {
			j.Key("file_url")
		} else {
			j.Text("filename", openai.FileName(p.Media))
			j.Key("file_data")
		}
		j.URL(p.Media.URL, p.Media.Type, p.Media.Data)
	}
	j.Close('}')
}
