package all

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/provider/anthropic"
	"github.com/chatctx/chatctx/internal/provider/gemini"
	"github.com/chatctx/chatctx/internal/provider/ollama"
	"github.com/chatctx/chatctx/internal/provider/openai"
	"github.com/chatctx/chatctx/internal/provider/responses"
	"github.com/chatctx/chatctx/pool"
)

// sentence has characters of one to four bytes, of one and of two units.
const sentence = "aé€😀\n\"\\𝒳 z"

// split is a text as two JSON texts whose pieces, joined, are the text.
type split struct{ a, b string }

// splits cut a text at every byte, as bytes, and at every unit of UTF-16, as escapes.
func splits(text string) []split {
	escaped := func(s string) string {
		raw, _ := json.Marshal(s) // the result is not valid for other bytes; only ASCII needs escapes here
		return string(raw)
	}
	bytes := func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			if s[i] < 0x80 {
				b.WriteString(strings.Trim(escaped(string(rune(s[i]))), `"`))
				if s[i] == '"' {
					b.WriteString(`"`)
				}
			} else {
				b.WriteByte(s[i])
			}
		}
		return `"` + b.String() + `"`
	}
	units := func(list []uint16) string {
		var b strings.Builder
		for _, u := range list {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
		return `"` + b.String() + `"`
	}
	var out []split
	for i := range len(text) + 1 {
		out = append(out, split{bytes(text[:i]), bytes(text[i:])})
	}
	all := utf16.Encode([]rune(text))
	for i := range len(all) + 1 {
		out = append(out, split{units(all[:i]), units(all[i:])})
	}
	return out
}

// streamed shows how each provider streams a text, thinking and a call's arguments in two pieces each.
var streamed = map[string]struct {
	fold   func() wire.Fold
	frames func(io.Reader) wire.Frames
	// events have %s for the pieces: of the thinking, of the text, and of the arguments if the provider sends them in pieces.
	events   []string
	thinking bool
	calls    bool
}{
	"openai": {openai.NewFold, wire.SSE, []string{
		`{"choices":[{"delta":{"reasoning_content":%s}}]}`, `{"choices":[{"delta":{"reasoning_content":%s}}]}`, `{"choices":[{"delta":{"content":%s}}]}`, `{"choices":[{"delta":{"content":%s}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":%s}}]}}]}`, `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":%s}}]},"finish_reason":"tool_calls"}]}`,
		`[DONE]`}, true, true},
	"anthropic": {anthropic.NewFold, wire.SSE, []string{
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":%s}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":%s}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}`,
		`{"type":"content_block_stop","index":0}`, `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":%s}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":%s}}`, `{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}`, `{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":%s}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":%s}}`, `{"type":"content_block_stop","index":2}`, `{"type":"message_stop"}`}, true, true},
	"gemini": {gemini.NewFold, wire.SSE, []string{
		`{"candidates":[{"content":{"parts":[{"text":%s,"thought":true}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":%s,"thought":true}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":%s}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":%s}]},"finishReason":"STOP"}]}`}, true, false},
	"ollama": {ollama.NewFold, wire.JSONLines, []string{
		`{"message":{"thinking":%s}}`, `{"message":{"thinking":%s}}`, `{"message":{"content":%s}}`, `{"message":{"content":%s}}`, `{"done":true}`}, true, false},
	"responses": {responses.NewFold, wire.SSE, []string{
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"message"}}`, `{"type":"response.output_text.delta","output_index":0,"delta":%s}`,
		`{"type":"response.output_text.delta","output_index":0,"delta":%s}`}, false, false}, // everything else comes again in one piece
}

// TestSplitCharactersStayWhole: characters that are split between two events are whole in the message and on the screen, however the stream itself is cut.
func TestSplitCharactersStayWhole(t *testing.T) {
	for name, p := range streamed {
		t.Run(name, func(t *testing.T) {
			arguments := `{"a":"é€😀𝒳"}`
			texts, args := splits(sentence), splits(arguments)
			for i := range max(len(texts), len(args)) {
				text, arg := texts[i%len(texts)], args[i%len(args)]
				var pieces []any
				if p.thinking {
					pieces = append(pieces, text.a, text.b)
				}
				pieces = append(pieces, text.a, text.b)
				if p.calls {
					pieces = append(pieces, arg.a, arg.b)
				}
				body := events(name, p.events, pieces)
				m, shown, err := readStream(body, p.frames, p.fold())
				if err != nil && name != "responses" {
					t.Fatalf("%v\n%s", err, body)
				}
				want := map[string]string{pool.TextPart: sentence}
				if p.thinking {
					want[pool.ThinkingPart] = sentence
				}
				if p.calls {
					want[pool.CallPart] = arguments
					if len(m.Calls) != 1 || string(m.Calls[0].Arguments) != arguments {
						t.Fatalf("calls %+v of\n%s", m.Calls, body)
					}
				}
				got := map[string]string{}
				for _, part := range m.Content {
					if part.Type != pool.CallPart {
						got[part.Type] += part.Text
					}
				}
				for typ, text := range want {
					if shown[typ] != text || typ != pool.CallPart && got[typ] != text {
						t.Fatalf("%s: shown %q, in the message %q, want %q of\n%s", typ, shown[typ], got[typ], text, body)
					}
				}
			}
		})
	}
}

func events(provider string, list []string, pieces []any) string {
	var b strings.Builder
	for _, e := range list {
		if n := strings.Count(e, "%s"); n > 0 {
			e, pieces = fmt.Sprintf(e, pieces[:n]...), pieces[n:]
		}
		if provider != "ollama" {
			e = "data: " + e + "\n"
		}
		b.WriteString(e + "\n")
	}
	return b.String()
}

func readStream(body string, frames func(io.Reader) wire.Frames, fold wire.Fold) (*pool.Message, map[string]string, error) {
	shown := map[string]string{}
	s := wire.NewStream("x", io.NopCloser(strings.NewReader("")), frames(iotest.OneByteReader(strings.NewReader(body))), fold)
	m, err := s.Read(func(d wire.Delta) {
		shown[d.Type] += d.Text
	})
	return m, shown, err
}

// TestHalvesAlone: halves whose other half never comes become U+FFFD, everywhere in a message.
func TestHalvesAlone(t *testing.T) {
	body := events("openai", []string{
		`{"model":"m","choices":[{"delta":{"content":"a\ud83d"}}]}`, `{"choices":[{"delta":{"content":"b\ude00"}}]}`, "{\"choices\":[{\"delta\":{\"content\":\"c\xf0\x9f\"}}]}",
		`{"choices":[{"delta":{"annotations":[{"x":"\ud800"}],"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":\"\\ud83d\"}"}}]},"finish_reason":"stop"}],"usage":{"note":"\udc00"}}`,
		`[DONE]`}, nil)
	m, shown, err := readStream(body, wire.SSE, openai.NewFold())
	if err != nil || m.Validate() != nil {
		t.Fatal(err, m.Validate())
	}
	if got := m.Content[0].Text; got != "a\uFFFDb\uFFFDc\uFFFD" || shown[pool.TextPart] != got {
		t.Errorf("%q, shown %q", got, shown[pool.TextPart])
	}
	if got := string(m.Calls[0].Arguments); got != `{"a":"\ufffd"}` {
		t.Errorf("arguments %s", got)
	}
	if got := string(m.Meta.ProviderData["openai"]) + string(m.Meta.Usage); strings.Contains(got, `\ud`) || !strings.Contains(got, `\ufffd`) {
		t.Errorf("metadata %s", got)
	}
}
