package gemini

import (
	"encoding/json"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/out"
)

// Body is a request of generateContent.
type Body struct {
	Model     string           // for the address; it is not in the bytes
	Fields    jsontree.Members // everything except the history: generationConfig, toolConfig, …
	Functions []adapter.Tool
	Tools     []json.RawMessage // other tools than functions, unchanged
	System    []string
	Contents  []Content

	names map[string]string
	size  int
}

// Content is a turn. Role is user or model.
type Content struct {
	Role  string
	Parts []Part

	from chatctx.ID
}

// Part is a piece of a turn: a text, or the field that is not nil.
type Part struct {
	Text      string
	Thought   bool // the text is a thought
	Media     *adapter.Media
	Call      *FunctionCall
	Response  *FunctionResponse
	Signature string // of a thought; it may come with any other field
}

// FunctionCall is a call. Args is an object.
type FunctionCall struct {
	ID, Name string
	Args     json.RawMessage
}

// FunctionResponse is the answer to a call. Response is an object.
type FunctionResponse struct {
	ID, Name string
	Response json.RawMessage
	Media    []*adapter.Media
}

// ToolNames maps sent names to the draft's names where these differ.
func (b *Body) ToolNames() map[string]string { return b.names }

// MarshalJSON returns the bytes to send. The history comes last, so that a longer one begins with the same bytes.
func (b *Body) MarshalJSON() ([]byte, error) {
	return adapter.Marshal(b.size, b.Fields.Bytes(), b.lists()...)
}

// Prefix returns tools, system texts and contents.
func (b *Body) Prefix() []adapter.Piece { return adapter.Pieces(b.lists()...) }

func (b *Body) lists() []adapter.List {
	functions := min(len(b.Functions), 1)
	return []adapter.List{
		{Name: "tools", Len: functions + len(b.Tools), Append: func(body []byte, i int) []byte {
			if i < functions {
				return out.Append(b.writeFunctions)(body, i)
			}
			return append(body, b.Tools[i-functions]...)
		}},
		{Name: "systemInstruction", Single: true, Len: min(len(b.System), 1), Append: out.Append(b.writeSystem)},
		{Name: "contents", Len: len(b.Contents), Append: out.Each(b.Contents, writeContent),
			Message: func(i int) chatctx.ID { return b.Contents[i].from }},
	}
}

func (b *Body) writeFunctions(j *out.JSON) {
	j.Open('{')
	out.Array(j, "functionDeclarations", b.Functions, func(j *out.JSON, t *adapter.Tool) {
		j.Open('{')
		*j = t.AppendMembers(*j, "parametersJsonSchema")
		j.Close('}')
	})
	j.Close('}')
}

func (b *Body) writeSystem(j *out.JSON) {
	j.Open('{')
	out.Array(j, "parts", b.System, func(j *out.JSON, text *string) {
		j.Open('{')
		j.Text("text", *text)
		j.Close('}')
	})
	j.Close('}')
}

func writeContent(j *out.JSON, c *Content) {
	j.Open('{')
	j.Text("role", c.Role)
	out.Array(j, "parts", c.Parts, writePart)
	j.Close('}')
}

func writePart(j *out.JSON, p *Part) {
	j.Open('{')
	switch {
	case p.Media != nil:
		writeMedia(j, p.Media)
	case p.Call != nil:
		writeFunction(j, "functionCall", p.Call.ID, p.Call.Name)
		j.Value("args", p.Call.Args)
		j.Close('}')
	case p.Response != nil:
		writeFunction(j, "functionResponse", p.Response.ID, p.Response.Name)
		j.Value("response", p.Response.Response)
		writeResponseMedia(j, p.Response.Media)
		j.Close('}')
	default:
		j.Text("text", p.Text)
	}
	if p.Thought {
		j.Key("thought")
		j.Bool(true)
	}
	if p.Signature != "" {
		j.Text("thoughtSignature", p.Signature)
	}
	j.Close('}')
}

// writeFunction begins a call or a response.
func writeFunction(j *out.JSON, kind, id, name string) {
	j.Key(kind)
	j.Open('{')
	j.Text("id", id)
	j.Text("name", name)
}

func writeResponseMedia(j *out.JSON, media []*adapter.Media) {
	if len(media) == 0 {
		return
	}
	out.Array(j, "parts", media, func(j *out.JSON, m **adapter.Media) {
		j.Open('{')
		writeMedia(j, *m)
		j.Close('}')
	})
}

func writeMedia(j *out.JSON, m *adapter.Media) {
	kind := "inlineData"
	if m.URL != "" {
		kind = "fileData"
	}
	j.Key(kind)
	j.Open('{')
	j.Text("mimeType", m.Type)
	if m.URL != "" {
		j.Text("fileUri", m.URL)
	} else {
		j.Key("data")
		j.Base64("", m.Data)
	}
	j.Close('}')
}
