package adaptertest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// PNG returns the smallest file that claims to be an image of that size.
func PNG(width, height int) []byte {
	var b bytes.Buffer
	b.WriteString("\x89PNG\r\n\x1a\n")
	head := make([]byte, 13)
	binary.BigEndian.PutUint32(head, uint32(width))
	binary.BigEndian.PutUint32(head[4:], uint32(height))
	head[8], head[9] = 8, 2
	chunk := func(name string, data []byte) {
		_ = binary.Write(&b, binary.BigEndian, uint32(len(data)))
		typed := append([]byte(name), data...)
		b.Write(typed)
		_ = binary.Write(&b, binary.BigEndian, crc32.ChecksumIEEE(typed))
	}
	chunk("IHDR", head)
	chunk("IEND", nil)
	return b.Bytes()
}

// Signature returns a signature that names its provider and model, so that tests can find it in a body.
func Signature(provider, model string) string {
	return base64.StdEncoding.EncodeToString([]byte("SIG:" + provider + ":" + model))
}

// generator makes drafts of anything that a branch may hold.
type generator struct {
	*rand.Rand
	provider string
	model    string
	calls    []string // ids so far
	seq      uint64
}

// Random returns a draft for a provider and a model. The same seed returns the same draft.
func Random(seed uint64, provider, model string) *chatctx.Draft {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 58)), provider: provider, model: model}
	d := &chatctx.Draft{Settings: g.settings(), Artifact: func(h pool.Hash) ([]byte, error) {
		if h[0] == 1 {
			return PNG(10, 10), nil
		}
		return nil, errors.New("not there")
	}}
	if g.chance(2) {
		d.System = g.text()
	}
	if g.chance(3) {
		d.Prompt = g.text()
	}
	if g.chance(6) {
		d.Summary = g.wrap(g.message())
	}
	for range g.IntN(4) {
		d.Tools = append(d.Tools, record.Tool{Name: g.tool(), Description: pick(g, "", "does it", "\xff\x00"), Schema: g.schema()})
	}
	for range 1 + g.IntN(14) {
		d.Messages = append(d.Messages, g.wrap(g.message()))
	}
	if g.chance(25) {
		g.manyImages(d)
	}
	return d
}

// chance returns true once in n times on average.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

func (g *generator) id() pool.ID {
	g.seq++
	var id pool.ID
	binary.BigEndian.PutUint64(id[8:], g.seq)
	return id
}

func (g *generator) wrap(m *pool.Message) *chatctx.DraftMessage {
	d := &chatctx.DraftMessage{Cache: g.chance(8)}
	d.Message, d.Position = m, int(g.seq)
	return d
}

func (g *generator) text() string {
	return pick(g, "", " ", "\n\t", "\u00a0\u3000", "\u200b", "\x00", "\x1c\x1d", "Hello", "What is 2+2?", "ends in space ", "ends\n\n", "\xff\xfe bad", "\xed\xa0\x80",
		"quote \" back \\ slash </script> \u2028", "😀 𝄞", "json please", strings.Repeat("long ", 200), "[system] fake", "Continue.", "\ufeff", "e\u0301")
}

func (g *generator) tool() string {
	return pick(g, "search", "read_file", "read file", "read_file", "9lives", "", "mcp.server/do:it", strings.Repeat("n", 70), strings.Repeat("n", 130), "größe", "search", "x_1",
		"a-b", "\xff")
}

func (g *generator) schema() json.RawMessage {
	return pick(g, json.RawMessage(nil), json.RawMessage(`{"type":"object","properties":{"a":{"type":"array"}}}`), json.RawMessage(`{"type":"object"}`),
		json.RawMessage(`{"$schema":"x","anyOf":[{"type":"object"}],"additionalProperties":false}`), json.RawMessage(`[1]`), json.RawMessage(`{"a":`),
		json.RawMessage(`{"type":"object","properties":{"type":{"type":["array","null"]},"x":{"items":{"type":"array"},"type":"array"}},"required":["zz"]}`),
		json.RawMessage(`{"type":"string"}`), json.RawMessage(`{"type":"object","properties":{"a":true,"b":null}}`), json.RawMessage(`null`), json.RawMessage(`{"properties":[],"type":"object","oneOf":[]}`))
}

func (g *generator) callID() string {
	id := pick(g, "", "call_1", "toolu_01ABC", "call:1/2", strings.Repeat("i", 70), "a b", "chatcmpl-tool-ü", "call_2", "\xff", "123456789", "fc_1|call_9", fmt.Sprint("call_", g.IntN(1000)))
	g.calls = append(g.calls, id)
	return id
}

func (g *generator) arguments() json.RawMessage {
	return pick(g, json.RawMessage(nil), json.RawMessage(`{}`), json.RawMessage(`{"path":"a b","n":[1,2,{"x":null}]}`), json.RawMessage(`{"cut":"of`), json.RawMessage(`[1,2]`),
		json.RawMessage(`"text"`), json.RawMessage(`"{\"in\":1}"`), json.RawMessage(`null`), json.RawMessage(`  `), json.RawMessage(`""`), json.RawMessage(`12`), json.RawMessage(`{"lone":"\ud800"}`),
		json.RawMessage("{\"bad\":\"\xff\"}"), json.RawMessage(` { "spaced" : 1 } `), json.RawMessage(`{"big":12345678901234567890.5e400}`), json.RawMessage(`{"p":"\ud83d\ude00 \\ud800"}`),
		json.RawMessage(strings.Repeat(`{"d":`, 60)+"1"+strings.Repeat("}", 60)))
}

func (g *generator) message() *pool.Message {
	m := &pool.Message{ID: g.id(), Unsent: g.chance(20), Unfinished: g.chance(12), Kind: pick(g, "", "", "", "injected", "interrupted")}
	switch n := g.IntN(20); {
	case n < 6:
		m.Role = pool.User
		m.Content = g.parts(false)
	case n < 12:
		g.assistant(m)
	case n < 17:
		m.Role = pool.ToolRole
		g.result(m)
	case n < 18:
		m.Role = pool.System
		m.Content = g.parts(false)
	case n < 19:
		m.Role = pick(g, pool.Role("developer"), pool.Role("function"), pool.Role(""), pool.User, pool.ToolRole)
		m.Content = g.parts(true)
		if g.chance(3) {
			m.Calls = g.someCalls()
		}
	default:
		m.Role = pick(g, pool.User, pool.Assistant)
	}
	return m
}

func (g *generator) assistant(m *pool.Message) {
	m.Role = pool.Assistant
	m.Meta.Provider, m.Meta.Model = g.source()
	m.Content = g.parts(true)
	if g.chance(2) {
		m.Calls = g.someCalls()
	}
	for i := range m.Calls {
		c := &m.Calls[i]
		c.Provider, c.Model = m.Meta.Provider, m.Meta.Model
		if c.Provider == "gemini" && g.chance(2) {
			c.Raw = json.RawMessage(`{"functionCall":{"name":"x","args":{}},"thoughtSignature":"` + Signature(c.Provider, c.Model) + `"}`)
		}
		if g.chance(2) {
			at := g.IntN(len(m.Content) + 1)
			part := pool.Part{Type: pool.CallPart, CallID: c.ID}
			m.Content = append(m.Content[:at:at], append([]pool.Part{part}, m.Content[at:]...)...)
		}
	}
}

// source returns the origin of a reply: half of the time the model of the request.
func (g *generator) source() (provider, model string) {
	if g.chance(2) {
		return g.provider, g.model
	}
	return pick(g, "anthropic", "openai", "openai-responses", "gemini", "ollama", ""), pick(g, "claude-x-9", "other", "")
}

func (g *generator) someCalls() []pool.Call {
	var calls []pool.Call
	for range 1 + g.IntN(3) {
		calls = append(calls, pool.Call{ID: g.callID(), Tool: g.tool(), Arguments: g.arguments(), Status: pick(g, pool.Pending, pool.Approved, pool.Denied, ""),
			Execution: pick(g, pool.NotRun, pool.Running, pool.Done, pool.Failed, pool.Uncertain, ""), Reason: pick(g, "", "no", "not\nnow")})
	}
	return calls
}

func (g *generator) result(m *pool.Message) {
	if g.chance(20) {
		m.Content = g.parts(false)
		return
	}
	r := &pool.Result{RequestID: "gone", IsError: g.chance(4), Tool: g.tool()}
	if len(g.calls) > 0 && !g.chance(8) {
		r.RequestID = g.calls[max(0, len(g.calls)-1-g.IntN(4))]
	}
	switch g.IntN(4) {
	case 0:
		r.Text = g.text()
	case 1:
		r.JSON = g.arguments()
	case 2:
		r.Parts = g.parts(true)
	}
	m.Result = r
}

func (g *generator) parts(any bool) []pool.Part {
	var parts []pool.Part
	for range g.IntN(4) {
		switch n := g.IntN(12); {
		case n < 7:
			parts = append(parts, pool.Part{Type: pool.TextPart, Text: g.text()})
		case n < 9:
			parts = append(parts, g.media())
		case any && n < 11:
			parts = append(parts, g.thinking())
		default:
			parts = append(parts, g.odd())
		}
	}
	return parts
}

func (g *generator) thinking() pool.Part {
	p := pool.Part{Type: pool.ThinkingPart, Text: pick(g, "", "thinking", " ")}
	p.Provider, p.Model = g.source()
	if g.chance(5) {
		p.Provider, p.Model = "", ""
		return p
	}
	s := Signature(p.Provider, p.Model)
	switch g.IntN(4) {
	case 0:
		p.Redacted = s
	case 1:
	default:
		p.Signature = s
	}
	if p.Provider == "openai-responses" {
		p.Signature, p.Redacted = "", ""
		p.Raw = json.RawMessage(`{"id":"rs_` + fmt.Sprint(g.seq, g.IntN(100)) + `","type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"` + s + `"}`)
		if g.chance(4) {
			p.Raw = json.RawMessage(`{"id":"rs_1","type":"reasoning","summary":[]}`)
		}
	}
	return p
}

func (g *generator) media() pool.Part {
	p := pool.Part{Type: pick(g, pool.ImagePart, pool.ImagePart, pool.DocumentPart), Name: pick(g, "", "a.png", "b\n\"c", strings.Repeat("n", 300))}
	switch g.IntN(12) {
	case 0:
		p.SHA256, p.Size = pool.Hash{1}, 10
	case 1:
		p.SHA256 = pool.Hash{2}
	case 2:
		p.URL = pick(g, "https://example.com/a.png", "file:///etc/passwd", "data:image/png;base64,AAAA", "data:image/gif;base64,"+base64.StdEncoding.EncodeToString(PNG(1, 1)), "https://a b", "data:,x", "http://")
	case 3:
		p.Data = []byte("%PDF-1.4\n%...")
	case 4:
		p.Data = []byte(pick(g, "plain words", "<svg xmlns=''/>", "\x00\x01\x02", "", "BM\x00\x00", "RIFF....WEBPVP8X..............", "GIF89a\x01\x00\x01\x00\x00\x00\x00", "II*\x00", " "))
	case 5:
		p.Data = PNG(9000, 10)
	case 6:
		p.Data = PNG(3000, 10)
	case 7:
		p.Data = []byte{0xff, 0xd8, 0xff, 0xe0}
	case 8:
	default:
		p.Data = PNG(100, 100)
	}
	p.MediaType = pick(g, "", "image/png", "image/jpeg", "application/pdf", "text/plain; charset=utf-8", "image/svg+xml", "application/zip", "nonsense")
	return p
}

func (g *generator) odd() pool.Part {
	p := pick(g, pool.Part{Type: "audio", Raw: json.RawMessage(`{"type":"audio"}`)}, pool.Part{Type: "refusal", Text: "I will not"}, pool.Part{},
		pool.Part{Type: pool.CallPart, CallID: "nothing"}, pool.Part{Type: "thought_signature", Raw: json.RawMessage(`{"text":"","thoughtSignature":"` + Signature(g.provider, g.model) + `"}`)},
		pool.Part{Type: "server_tool_use", Raw: json.RawMessage(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`)},
		pool.Part{Type: "web_search_tool_result", Raw: json.RawMessage(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`)},
		pool.Part{Type: "executableCode", Raw: json.RawMessage(`{"executableCode":{"language":"PYTHON","code":"1"}}`)},
		pool.Part{Type: "web_search_call", Raw: json.RawMessage(`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}`)},
		pool.Part{Type: "\xff\n", Raw: json.RawMessage(`{"x":`)})
	p.Provider, p.Model = g.source()
	return p
}

// manyImages adds more images than may be large.
func (g *generator) manyImages(d *chatctx.Draft) {
	m := &pool.Message{ID: g.id(), Role: pool.User}
	for range 15 + g.IntN(10) {
		m.Content = append(m.Content, pool.Part{Type: pool.ImagePart, Data: PNG(pick(g, 100, 2500), 50)})
	}
	d.Messages = append(d.Messages, g.wrap(m))
}

func (g *generator) settings() map[string]json.RawMessage {
	s := map[string]json.RawMessage{"model": json.RawMessage(`"` + g.model + `"`), "mode": json.RawMessage(`"plan"`), "budget": json.RawMessage("1000")}
	set := func(key string, values ...string) {
		if g.chance(7) {
			s[key] = json.RawMessage(pick(g, values...))
		}
	}
	set("temperature", "0", "0.7", "1", "1.5", "2")
	set("top_p", "0.5", "1", "0.99")
	set("max_tokens", "1", "500", "1024", "20000")
	set("stop", `"END"`, `["a"," ","b","c","d","e","f"]`, `[]`, `[""]`)
	set("thinking", `"off"`, `"low"`, `"medium"`, `"high"`, "2000", "10", "0")
	set("response_format", `"json"`, `"text"`, `{"type":"json_schema","json_schema":{"name":"my answer","schema":{"type":"object","properties":{}}}}`,
		`{"type":"json_schema","name":"x","schema":{"type":"object"},"strict":true}`)
	set("tool_choice", `"auto"`, `"none"`, `"required"`, `"search"`, `{"type":"function","function":{"name":"read file"}}`)
	set("cache", "false", "true")
	set("cache.ttl", `"5m"`, `"1h"`)
	if g.provider != "gemini" && g.provider != "ollama" {
		set("parallel_tool_calls", "true", "false")
	}
	return s
}
