package tokens

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// memory is a Cache in memory that counts the requests to it.
type memory struct {
	kept map[string]map[pool.ID]int
	sets int
}

func (m *memory) Counts(_ context.Context, encoding string, ids []pool.ID) ([]int, error) {
	out := make([]int, len(ids))
	for i, id := range ids {
		out[i] = m.kept[encoding][id]
	}
	return out, nil
}

func (m *memory) SetCounts(_ context.Context, encoding string, ids []pool.ID, counts []int) error {
	if m.kept == nil {
		m.kept = map[string]map[pool.ID]int{}
	}
	if m.kept[encoding] == nil {
		m.kept[encoding] = map[pool.ID]int{}
	}
	for i, id := range ids {
		m.kept[encoding][id] = counts[i]
		m.sets++
	}
	return nil
}

func draftOf(messages ...*pool.Message) *chatctx.Draft {
	d := &chatctx.Draft{}
	for i, m := range messages {
		m.ID = pool.NewID()
		d.Messages = append(d.Messages, &chatctx.DraftMessage{Entry: pool.Entry{Message: m, Position: i + 1}})
	}
	return d
}

func TestForModel(t *testing.T) {
	for _, c := range []struct {
		name           string
		encoding       Encoding
		own            bool
		family         string
		window, budget int
	}{
		{"gpt-4o", O200k, true, "openai", 128_000, 111_616},
		{"openai/gpt-4o", O200k, true, "openai", 128_000, 111_616},
		{"openrouter/openai/gpt-4o-mini", O200k, true, "openai", 128_000, 111_616},
		{"ft:gpt-4o:org::id", O200k, true, "openai", 128_000, 111_616},
		{"o1", O200k, true, "openai", 200_000, 100_000},
		{"o4-mini-2025-04-16", O200k, true, "openai", 200_000, 100_000},
		{"gpt-5.6-sol", O200k, true, "openai", 1_050_000, 922_000},
		{"gpt-4.1-nano", O200k, true, "openai", 1_047_576, 1_014_808},
		{"gpt-4", CL100k, true, "openai", 8_192, 4_096},
		{"azure/gpt-4-turbo", CL100k, true, "openai", 128_000, 123_904},
		{"gpt-3.5-turbo-0125", CL100k, true, "openai", 16_385, 12_289},
		{"claude-sonnet-4-5-20250929", CL100k, false, "anthropic", 200_000, 136_000},
		{"openrouter/anthropic/claude-3.5-sonnet", CL100k, false, "anthropic", 200_000, 191_808},
		{"us.anthropic.claude-opus-4-8-v1:0", CL100k, false, "anthropic", 1_000_000, 872_000},
		{"models/gemini-2.5-pro", CL100k, false, "gemini", 1_048_576, 983_040},
		{"ollama/llama3.2", CL100k, false, "other", 0, 0},
		{"omni-something", CL100k, false, "other", 0, 0},
		{"", CL100k, false, "other", 0, 0},
	} {
		m := ForModel(c.name)
		if m.Encoding != c.encoding || m.Own != c.own || m.Family != c.family || m.Window != c.window || m.Budget() != c.budget {
			t.Errorf("%q: %+v, budget %d", c.name, m, m.Budget())
		}
		if (m.Window == 0) != (m.Source == "" && m.Date == "") {
			t.Errorf("%q: a window without source and date, or the other way", c.name)
		}
	}
}

func TestTotalIsTextAndOverheads(t *testing.T) {
	d := draftOf(pool.NewText(pool.User, "hello world"),
		&pool.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "1", Tool: "search", Arguments: json.RawMessage(`{"q":"x"}`)}}},
		&pool.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "1", Text: "found it"}})
	c := NewCounter("gpt-4o", nil, nil)
	if err := c.Fill(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	lib := func(s string) int { return len(plain(O200k).EncodeOrdinary(s)) }
	want := 10 + 4 + lib("hello world") + 4 + 10 + lib("search") + lib(`{"q":"x"}`) + 4 + lib("found it")
	if s := c.Sizes(d); s.Total() != want {
		t.Errorf("total %d, want %d: %+v", s.Total(), want, s)
	}
	d.System, d.Tools = "be brief", []record.Tool{{Name: "search", Schema: json.RawMessage(`{"type":"object"}`)}}
	more := 4 + lib("be brief") + lib(`[{"name":"search","parameters":{"type":"object"}}]`)
	if s := c.Sizes(d); s.Total() != want+more {
		t.Errorf("total %d, want %d", s.Total(), want+more)
	}
}

func TestSecondCountComesFromTheCache(t *testing.T) {
	cache := &memory{}
	messages := []*pool.Message{pool.NewText(pool.User, "one"), pool.NewText(pool.Assistant, "two")}
	d := draftOf(messages...)
	d.System = "prompt"
	c := NewCounter("gpt-4o", nil, cache)
	if err := c.Fill(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	first := c.Sizes(d)
	if cache.sets != 3 {
		t.Fatalf("%d counts were kept, want two messages and the prompt", cache.sets)
	}
	for id := range cache.kept[string(O200k)] {
		cache.kept[string(O200k)][id] += 1000 // shows whether a count was made again
	}
	for _, m := range d.Messages {
		m.Tokens = 0
	}
	c = NewCounter("gpt-4o", nil, cache)
	if err := c.Fill(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if got := c.Sizes(d); got.Messages != first.Messages+2000 || got.System != first.System+1000 || cache.sets != 3 {
		t.Errorf("second count %+v after %+v, %d kept", got, first, cache.sets)
	}
}

func figures(m *pool.Message, model string, in, out int64) *pool.Message {
	m.Meta.Model, m.Meta.InputTokens, m.Meta.OutputTokens = model, &in, &out
	return m
}

func TestReportedFiguresCalibrate(t *testing.T) {
	text := strings.Repeat("some words that repeat. ", 40)
	build := func(factor float64) (*chatctx.Draft, *Counter) {
		c := NewCounter("claude-sonnet-4-5", nil, nil)
		var all []*pool.Message
		in := 10
		for range 6 {
			u := pool.NewText(pool.User, text)
			in += c.Message(u, nil)
			a := figures(pool.NewText(pool.Assistant, text), "claude-sonnet-4-5", int64(float64(in)*factor), 777)
			in += c.Message(a, nil)
			all = append(all, u, a)
		}
		return draftOf(all...), c
	}
	ratio := func(factor float64, model string) (float64, bool) {
		d, _ := build(factor)
		c := NewCounter(model, nil, nil)
		if err := c.Fill(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		return c.Ratio(d)
	}
	if r, ok := ratio(1.25, "claude-sonnet-4-5"); !ok || r < 1.24 || r > 1.26 {
		t.Errorf("ratio %v, %v", r, ok)
	}
	if r, ok := ratio(9, "claude-sonnet-4-5"); ok || r != 1 {
		t.Errorf("figures that are not of this text gave %v, %v", r, ok)
	}
	if r, ok := ratio(1.25, "llama3"); ok || r != 1 {
		t.Errorf("another provider's figures gave %v, %v", r, ok)
	}
}

func TestImagesByFormula(t *testing.T) {
	encoded := func(w, h int) []byte {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for _, c := range []struct {
		model      string
		w, h, want int
	}{
		{"gpt-4o", 1024, 1024, 85 + 4*170}, {"gpt-4o", 2048, 4096, 85 + 6*170}, {"gpt-4o", 100, 100, 85 + 170},
		{"gpt-4o-mini", 1024, 1024, 2833 + 4*5667}, {"gpt-4.1-mini", 1024, 1024, 1659}, {"gpt-4.1-mini", 1800, 2400, 2489}, {"o3", 512, 512, 75 + 150},
		{"claude-sonnet-4-5", 200, 200, 54}, {"claude-sonnet-4-5", 1000, 1000, 1334}, {"claude-sonnet-4-5", 4000, 3000, 1600},
		{"gemini-2.5-pro", 300, 300, 258}, {"gemini-2.5-pro", 960, 540, 6 * 258}, {"gemini-3-pro", 1000, 1000, 1120},
	} {
		m := &pool.Message{Role: pool.User, Content: []pool.Part{{Type: pool.ImagePart, MediaType: "image/png", Data: encoded(c.w, c.h)}}}
		if got := NewCounter(c.model, nil, nil).Message(m, nil) - PerMessage; got != c.want {
			t.Errorf("%s %dx%d: %d tokens, want %d", c.model, c.w, c.h, got, c.want)
		}
	}
}

func TestImageSizes(t *testing.T) {
	vp8x := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00"), 0x1f, 0x03, 0, 0x57, 0x02, 0)
	vp8 := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x00\x00\x00\x9d\x01\x2a"), 0x20, 0x03, 0x58, 0x02)
	for name, data := range map[string][]byte{"VP8X": vp8x, "VP8": vp8} {
		if w, h := imageSize(data); w != 800 || h != 600 {
			t.Errorf("%s: %d x %d, want 800 x 600", name, w, h)
		}
	}
	for _, data := range [][]byte{nil, {}, []byte("RIFF"), []byte("\x89PNG\r\n"), bytes.Repeat([]byte{0xff}, 100)} {
		if w, h := imageSize(data); w != 1024 || h != 1024 {
			t.Errorf("%q: %d x %d", data, w, h)
		}
	}
}

func TestDocuments(t *testing.T) {
	doc := func(media string, data string) *pool.Message {
		return &pool.Message{Role: pool.User, Content: []pool.Part{{Type: pool.DocumentPart, MediaType: media, Data: []byte(data)}}}
	}
	c := NewCounter("gemini-2.5-pro", nil, nil)
	if got := c.Message(doc("application/pdf", "/Type /Pages /Count 2 /Type /Page /Type/Page>>"), nil); got != PerMessage+2*258 {
		t.Errorf("two pages: %d", got)
	}
	if got := c.Message(doc("application/pdf", "/Count 7"), nil); got != PerMessage+7*258 {
		t.Errorf("seven pages by count: %d", got)
	}
	if got := c.Message(doc("text/plain", "hello world"), nil); got != PerMessage+CL100k.Count("hello world") {
		t.Errorf("text: %d", got)
	}
}

func TestPreview(t *testing.T) {
	for want, m := range map[string]*pool.Message{
		"one two":        pool.NewText(pool.User, "  one\n\t two  "),
		"abcdefghi…":     pool.NewText(pool.User, "abcdefghijklmnop"),
		"run({\"a\":1})": {Role: pool.Assistant, Calls: []pool.Call{{Tool: "run", Arguments: json.RawMessage(`{"a":1}`)}}},
		"[image x.png]":  {Role: pool.User, Content: []pool.Part{{Type: pool.ImagePart, Name: "x.png"}}},
		"out":            {Role: pool.ToolRole, Result: &pool.Result{Text: "out"}},
		"[1,2]":          {Role: pool.ToolRole, Result: &pool.Result{JSON: json.RawMessage("[1,2]")}},
		"":               {Role: pool.Assistant},
	} {
		width := 60
		if strings.HasSuffix(want, "…") {
			width = 10
		}
		if got := Preview(m, width); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
