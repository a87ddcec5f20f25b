package anthropic

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/provider/out"
	"github.com/chatctx/chatctx/pool"
)

// Body is a request of the Messages API.
type Body struct {
	Fields   jsontree.Members // everything except the history: model, max_tokens, …
	Tools    []Tool
	System   []Text
	Messages []Message

	names  map[string]string
	past   bool // the tools are only those that the history calls
	size   int
	pruned *Block // the block with the breakpoint of the prune boundary
}

// Tool is a tool definition.
type Tool struct {
	adapter.Function
	Cache *CacheControl
}

// Text is a system text.
type Text struct {
	Text  string
	Cache *CacheControl
}

// Message is a message of the history.
type Message struct {
	Role    string // user or assistant
	Content []Block

	from chatctx.ID
}

// Block is a content block. Type says which fields count.
type Block struct {
	Type      string
	Text      string          // text, thinking
	Signature string          // thinking
	Data      string          // redacted_thinking
	Media     *adapter.Media  // image, document
	ID        string          // tool_use, tool_result
	Name      string          // tool_use
	Input     json.RawMessage // tool_use
	Content   []Block         // tool_result
	IsError   bool            // tool_result
	Raw       json.RawMessage // any other type: the whole block
	Cache     *CacheControl
}

// CacheControl marks a cache breakpoint, which lives for TTL: 5m, 1h, or "" for the API's default.
type CacheControl struct{ TTL string }

var anyInput = json.RawMessage(`{"type":"object"}`)

// ToolNames maps sent names to the draft's names where these differ.
func (b *Body) ToolNames() map[string]string { return b.names }

// MarshalJSON returns the bytes to send. The history comes last, so that a longer one begins with the same bytes.
func (b *Body) MarshalJSON() ([]byte, error) {
	return adapter.Marshal(b.size, b.Fields.Bytes(), b.lists(true)...)
}

// Prefix returns tools, system texts and messages, without the breakpoints.
func (b *Body) Prefix() []adapter.Piece { return adapter.Pieces(b.lists(false)...) }

func (b *Body) lists(marks bool) []adapter.List {
	return []adapter.List{
		{Name: "tools", Len: len(b.Tools), Append: out.Each(b.Tools, func(j *out.JSON, v *Tool) { writer{j, marks}.tool(v) })},
		{Name: "system", Len: len(b.System), Append: out.Each(b.System, func(j *out.JSON, v *Text) { writer{j, marks}.system(v) })},
		{Name: "messages", Len: len(b.Messages), Append: out.Each(b.Messages, func(j *out.JSON, v *Message) { writer{j, marks}.message(v) }),
			Message: func(i int) chatctx.ID { return b.Messages[i].from }},
	}
}

// writer writes parts of a body, with or without the breakpoints.
type writer struct {
	*out.JSON
	marks bool
}

func (w writer) mark(c *CacheControl) {
	if c != nil && w.marks {
		w.Value("cache_control", c.json())
	}
}

func (c *CacheControl) json() []byte {
	if c.TTL == "" {
		return []byte(`{"type":"ephemeral"}`)
	}
	return []byte(`{"type":"ephemeral","ttl":"` + c.TTL + `"}`)
}

func (w writer) tool(t *Tool) {
	if t.Raw != nil {
		w.Raw(t.Raw)
		return
	}
	w.Open('{')
	*w.JSON = t.AppendMembers(*w.JSON, "input_schema")
	w.mark(t.Cache)
	w.Close('}')
}

func (w writer) system(t *Text) {
	w.begin("text")
	w.Text("text", t.Text)
	w.mark(t.Cache)
	w.Close('}')
}

func (w writer) message(m *Message) {
	w.Open('{')
	w.Text("role", m.Role)
	out.Array(w.JSON, "content", m.Content, w.block)
	w.Close('}')
}

// begin opens an object with its type.
func (w writer) begin(typ string) {
	w.Open('{')
	w.Text("type", typ)
}

func (w writer) block(_ *out.JSON, b *Block) {
	if b.Raw != nil {
		w.Raw(b.Raw)
		return
	}
	w.begin(b.Type)
	switch b.Type {
	case "text":
		w.Text("text", b.Text)
	case "thinking":
		w.Text("thinking", b.Text)
		w.Text("signature", b.Signature)
	case "redacted_thinking":
		w.Text("data", b.Data)
	case pool.ImagePart, pool.DocumentPart:
		w.media(b.Media)
	case "tool_use":
		w.Text("id", b.ID)
		w.Text("name", b.Name)
		w.Value("input", b.Input)
	case "tool_result":
		w.result(b)
	}
	w.mark(b.Cache)
	w.Close('}')
}

func (w writer) result(b *Block) {
	w.Text("tool_use_id", b.ID)
	out.Array(w.JSON, "content", b.Content, w.block)
	if b.IsError {
		w.Key("is_error")
		w.Bool(true)
	}
}

func (w writer) media(m *adapter.Media) {
	w.Key("source")
	switch {
	case m.URL != "":
		w.begin("url")
		w.Text("url", m.URL)
	case m.Type == "text/plain":
		w.begin("text")
		w.Text("media_type", m.Type)
		w.Text("data", string(m.Data))
	default:
		w.begin("base64")
		w.Text("media_type", m.Type)
		w.Key("data")
		w.Base64("", m.Data)
	}
	w.Close('}')
	if m.Kind == pool.DocumentPart && m.Name != "" {
		w.Text("title", m.Name)
	}
}

func endsInSpace(s string) bool { return strings.TrimRightFunc(s, unicode.IsSpace) != s }

var serverID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^srvtoolu_[a-zA-Z0-9_]+$`) })

// serverBlock reports whether a part is half of a pair that the API itself made: a server tool's call and its result, both in the message, in that order. Only
// then they are sent back.
func serverBlock(p *pool.Part, m *pool.Message) bool {
	id, _ := serverTool(p)
	if id == "" {
		return false
	}
	calls, results, call, result := 0, 0, -1, -1
	for i := range m.Content {
		if other, otherCall := serverTool(&m.Content[i]); other == id && otherCall {
			calls, call = calls+1, i
		} else if other == id {
			results, result = results+1, i
		}
	}
	return calls == 1 && results == 1 && call < result
}

// serverTool returns the id of a server tool's call or result, "" for other parts.
func serverTool(p *pool.Part) (id string, isCall bool) {
	if p.Provider != Provider || len(p.Raw) == 0 {
		return "", false
	}
	var v struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		ToolUseID string          `json:"tool_use_id"`
		Input     json.RawMessage `json:"input"`
	}
	if json.Unmarshal(p.Raw, &v) != nil || v.Type != p.Type {
		return "", false
	}
	switch v.Type {
	case "server_tool_use":
		id, isCall = v.ID, true
		if len(v.Input) == 0 || v.Input[0] != '{' {
			id = ""
		}
	case "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result",
		"text_editor_code_execution_tool_result", "tool_search_tool_result":
		id = v.ToolUseID
	}
	if !serverID().MatchString(id) {
		return "", false
	}
	return id, isCall
}
