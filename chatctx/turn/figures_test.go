package turn

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/adaptertest"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

// anything makes branches with every kind of part, each large enough to show in a wrong figure.
type anything struct {
	*rand.Rand
	n     int
	calls []string // waiting calls
}

func (g *anything) words(most int) string {
	list := []string{"order", "importer", "the", "of", "path/to/file.go", "4711", "failed:", "x = y;", "größer", "und", "東京", "wait", "\n"}
	var b strings.Builder
	for range 1 + g.IntN(most) {
		b.WriteString(list[g.IntN(len(list))] + " ")
	}
	g.n++
	return fmt.Sprint(b.String(), g.n)
}

func (g *anything) image(w, h int) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// part returns a part of a user's message, or of a reply from the provider of; "" is a user's.
func (g *anything) part(of, model string) pool.Part {
	switch g.IntN(12) {
	case 0:
		return pool.Part{Type: pool.ImagePart, MediaType: "image/png", Name: "a.png", Data: g.image(100+g.IntN(900), 100+g.IntN(900))}
	case 1:
		return pool.Part{Type: pool.ImagePart, MediaType: "image/png", Name: "large.png", Data: g.image(2400, 60)}
	case 2:
		return pool.Part{Type: pool.DocumentPart, MediaType: "text/plain", Name: "notes.txt", Data: []byte(g.words(2000))}
	case 3:
		return pool.Part{Type: pool.DocumentPart, MediaType: "application/zip", Name: "a.zip", Data: []byte("PK\x03\x04" + g.words(2000))}
	case 4:
		return pool.Part{Type: "audio", Raw: json.RawMessage(`{"type":"audio","data":"` + strings.Repeat("QUJD", 2000) + `"}`), Provider: of, Model: model}
	case 5:
		text := g.words(300)
		return pool.Part{Type: "remark", Text: text, Raw: must(json.Marshal(map[string]string{"type": "remark", "text": text}))}
	case 6, 7:
		p := pool.Part{Type: pool.ThinkingPart, Text: g.words(1500), Provider: of, Model: model}
		if g.IntN(3) > 0 {
			p.Signature = adaptertest.Signature(of, model)
		}
		if of == adapter.Responses {
			p.Raw = json.RawMessage(`{"type":"reasoning","summary":[{"type":"summary_text","text":` + string(must(json.Marshal(p.Text))) + `}],"encrypted_content":"QUJD"}`)
		}
		return p
	}
	return pool.Part{Type: pool.TextPart, Text: g.words(400)}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func (g *anything) parts(of, model string) (parts []pool.Part) {
	for range 1 + g.IntN(3) {
		parts = append(parts, g.part(of, model))
	}
	return parts
}

func (g *anything) message(providers []string, model string) *pool.Message {
	m := &pool.Message{ID: pool.NewID(), Unsent: g.IntN(25) == 0, Hidden: g.IntN(25) == 0}
	if len(g.calls) > 0 && g.IntN(4) > 0 {
		m.Role, m.Result = pool.ToolRole, &pool.Result{RequestID: g.calls[0], IsError: g.IntN(5) == 0}
		g.calls = g.calls[1:]
		g.result(m)
		return m
	}
	switch g.IntN(10) {
	case 0:
		m.Role, m.Content = pool.System, []pool.Part{{Type: pool.TextPart, Text: []string{strings.Repeat("Be brief and kind. ", 60), g.words(200)}[g.IntN(2)]}}
	case 1: // of a call that is not here
		m.Role, m.Result = pool.ToolRole, &pool.Result{RequestID: "gone", Text: g.words(2000)}
	case 2, 3, 4:
		m.Role, m.Content = pool.User, g.parts("", "")
	default:
		m.Role = pool.Assistant
		m.Meta.Provider, m.Meta.Model = providers[g.IntN(len(providers))], model
		m.Content = g.parts(m.Meta.Provider, model)
		if g.IntN(2) == 0 {
			g.n++
			id := fmt.Sprintf("call_%d", g.n)
			m.Calls = []pool.Call{{ID: id, Tool: "read_file", Arguments: must(json.Marshal(map[string]string{"path": g.words(100)})), Status: pool.Approved, Execution: pool.Done}}
			g.calls = append(g.calls, id)
		}
	}
	return m
}

// result fills in a tool's output, half of the time with something larger beside it for people.
func (g *anything) result(m *pool.Message) {
	switch g.IntN(4) {
	case 0:
		m.Result.JSON = must(json.Marshal(map[string]string{"out": g.words(800)}))
	case 1:
		m.Result.Parts = g.parts("", "")
	case 2:
		m.Result.Text = g.words(800)
	}
	if g.IntN(2) == 0 {
		m.Content = []pool.Part{{Type: pool.DocumentPart, MediaType: "text/plain", Name: "output.txt", Data: []byte(g.words(20000))}}
	}
}

// bodyTokens returns the size of a body: all its texts, JSON as it is, and images by their size. It knows nothing of drafts.
func bodyTokens(t *testing.T, model string, body []byte) (n, places int) {
	c := tokens.NewCounter(model, nil, nil)
	var walk func(key string, v any)
	text := func(s string) {
		places++
		raw := s
		if _, data, ok := strings.Cut(s, ";base64,"); ok && strings.HasPrefix(s, "data:") {
			raw = data
		}
		if data, err := base64.StdEncoding.DecodeString(raw); err == nil && bytes.HasPrefix(data, []byte("\x89PNG")) {
			n += c.Message(&pool.Message{Role: pool.User, Content: []pool.Part{{Type: pool.ImagePart, Data: data}}}, nil)
			return
		}
		n += c.Text(s)
	}
	walk = func(key string, v any) {
		switch v := v.(type) {
		case string:
			if !opaque[key] {
				text(v)
			}
		case []any:
			for _, one := range v {
				walk("", one)
			}
		case map[string]any:
			if whole[key] {
				text(string(must(json.Marshal(v))))
				return
			}
			for key, one := range v {
				walk(key, one)
			}
		}
	}
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	walk("", v)
	return n, places
}

var (
	// opaque are fields that no model reads as text.
	opaque = map[string]bool{"signature": true, "thoughtSignature": true, "encrypted_content": true, "type": true, "role": true, "id": true, "call_id": true, "tool_call_id": true, "tool_use_id": true,
		"model": true, "media_type": true, "mimeType": true, "ttl": true, "effort": true, "status": true, "tool_name": true}
	// whole are fields whose JSON a model reads as it is.
	whole = map[string]bool{"input_schema": true, "parameters": true, "input": true, "args": true, "arguments": true, "response": true, "format": true, "responseJsonSchema": true, "schema": true}
)

// TestFiguresAreOfWhatIsSent: the figures for the next request match its body, within a tenth and some tokens for what surrounds a text; and all reports about
// the window agree.
func TestFiguresAreOfWhatIsSent(t *testing.T) {
	const perPlace = 12
	models := map[string]string{adapter.OpenAI: "gpt-4o", adapter.Responses: "gpt-5", adapter.Anthropic: "claude-sonnet-4-5", adapter.Gemini: "gemini-2.5-pro", adapter.Ollama: "llama3.2"}
	over := 0
	for seed := range testkit.Seeds(t, 12) {
		g := &anything{Rand: rand.New(rand.NewPCG(seed, 12))}
		turn := newTurn(t, &provider{t: t})
		provider := settings.Providers()[int(seed)%len(settings.Providers())]
		model := models[provider]
		b := turn.Context.Begin("")
		inForce := map[string]any{"provider": provider, "model": model, "budget": []int{0, 6000, 20000, 400000}[g.IntN(4)], "images.scale": g.IntN(3) > 0}
		if g.IntN(3) == 0 {
			inForce[provider+".tools"] = []any{map[string]any{"type": "function", "name": "extra", "description": g.words(600)}}
		}
		var set map[string]json.RawMessage
		if err := json.Unmarshal(must(json.Marshal(inForce)), &set); err != nil {
			t.Fatal(err)
		}
		b.SetSettings(set)
		if g.IntN(2) == 0 {
			b.SetSystem(g.words(300))
		}
		for range 3 + g.IntN(40) {
			m := g.message([]string{provider, provider, adapter.Anthropic, ""}, model)
			b.Append(m)
			if mark := []string{"", "", "", "", "", "excluded", "pinned"}[g.IntN(7)]; mark == "excluded" {
				b.Mark(record.RefTo(m.ID), mark)
			}
		}
		b.Append(user(g.words(30)))
		if _, err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time with the counts that were kept
			fit, err := turn.Fit(t.Context())
			var budget *enhancer.BudgetError
			if errors.As(err, &budget) {
				over++
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			req, err := turn.Request(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			figuresAgree(t, fit, req)
			got, places := bodyTokens(t, model, req.Body)
			if said := req.Report.After; said > got+got/10+perPlace*places || got > said+said/10+perPlace*places {
				t.Errorf("%s, %v: %d tokens are said, the body has %d in %d places", provider, inForce["budget"], said, got, places)
			}
		}
	}
	t.Logf("%d were over their budget", over)
}

// figuresAgree: preview and request have the same figures; messages and fixed parts add up to the total, and so do the parts of the prefix.
func figuresAgree(t *testing.T, fit, req *Request) {
	t.Helper()
	if window.Of(fit).Forecast.Tokens != window.Of(req).Forecast.Tokens || window.Of(fit).Forecast.Due != window.Of(req).Forecast.Due || !window.Of(req).Forecast.Due && window.Of(req).Forecast.Tokens != req.Report.After {
		t.Errorf("status says %+v, the request %+v, the steps %d", window.Of(fit).Forecast, window.Of(req).Forecast, req.Report.After)
	}
	of, sum := window.Of(req).Window.Shares(req.Draft)
	for _, n := range of {
		sum += n
	}
	links := 0
	for _, l := range window.Of(req).Chain {
		links += l.Tokens
	}
	if sum != req.Report.After || links != sum || window.Of(req).Prefix.Total != sum {
		t.Errorf("the messages add up to %d, the stretches to %d, the prefix is of %d; the request takes %d", sum, links, window.Of(req).Prefix.Total, req.Report.After)
	}
}
