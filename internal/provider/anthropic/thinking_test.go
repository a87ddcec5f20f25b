package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/adaptertest"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/provider/anthropic"
	"github.com/chatctx/chatctx/internal/provider/binding"
	"github.com/chatctx/chatctx/pool"
)

func draftOf(model string, messages ...*pool.Message) *chatctx.Draft {
	d := &chatctx.Draft{System: "You help.", Settings: map[string]json.RawMessage{"model": json.RawMessage(`"` + model + `"`)}}
	for _, m := range messages {
		d.Messages = append(d.Messages, &chatctx.DraftMessage{Entry: pool.Entry{Message: m}})
	}
	return d
}

func bodyOf(t *testing.T, d *chatctx.Draft) (*anthropic.Body, string) {
	t.Helper()
	b, err := anthropic.Adapter.Adapt(d)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := b.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := adaptertest.ValidateAnthropic(raw); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return b, string(raw)
}

func thought(model, text string) *pool.Message {
	return &pool.Message{Role: pool.Assistant, Content: []pool.Part{
		{Type: pool.ThinkingPart, Text: "hm", Signature: "sig-" + text, Provider: anthropic.Provider, Model: model}, {Type: pool.TextPart, Text: text}}}
}

// TestBound: a model that binds thinking gets it back as long as everything that it answered is unchanged, and not after.
func TestBound(t *testing.T) {
	const model = "claude-opus-5-5"
	ask, more := pool.NewText(pool.User, "go"), pool.NewText(pool.User, "on")
	reply := func(to ...*pool.Message) *pool.Message {
		b, _ := bodyOf(t, draftOf(model, to...))
		m := thought(model, "one")
		binding.Bind(m, binding.NewChain(b.Prefix()...).Sum())
		return m
	}
	first := reply(ask)
	second := reply(ask, first, more)
	second.Content[0].Signature = "sig-two"
	for name, c := range map[string]struct {
		change   func(*chatctx.Draft)
		one, two bool
	}{
		"as it was":      {func(*chatctx.Draft) {}, true, true},
		"another system": {func(d *chatctx.Draft) { d.System = "You do not." }, false, false},
		"another tool":   {func(d *chatctx.Draft) { d.Tools = []record.Tool{{Name: "t"}} }, false, false},
		"edited":         {func(d *chatctx.Draft) { d.Messages[2].Message = pool.NewText(pool.User, "off") }, true, false},
		"dropped":        {func(d *chatctx.Draft) { d.Messages = d.Messages[2:] }, false, false},
		"no cache":       {func(d *chatctx.Draft) { d.Settings["cache"] = json.RawMessage("false") }, true, true},
		"cooler":         {func(d *chatctx.Draft) { d.Settings["max_tokens"] = json.RawMessage("9") }, true, true},
	} {
		d := draftOf(model, ask, first, more, second, more)
		c.change(d)
		_, raw := bodyOf(t, d)
		if strings.Contains(raw, "sig-one") != c.one || strings.Contains(raw, "sig-two") != c.two {
			t.Errorf("%s: %s", name, raw)
		}
		if noted := len(d.Notes) > 0; noted != (!c.one || !c.two) {
			t.Errorf("%s: notes %v", name, d.Notes)
		}
	}
}

// TestBoundUnknown: thinking without a record of what it answered is assumed to fit, unless it comes from another provider or follows a summary. Older models
// bind nothing.
func TestBoundUnknown(t *testing.T) {
	summary := &chatctx.DraftMessage{Entry: pool.Entry{Message: pool.NewText(pool.User, "before")}}
	imported := &pool.Source{Format: "claude-code"}
	for name, c := range map[string]struct {
		model   string
		summary *chatctx.DraftMessage
		source  *pool.Source
		want    bool
	}{
		"plain":            {"claude-opus-5-5", nil, nil, true},
		"imported":         {"claude-opus-5-5", nil, imported, false},
		"after a summary":  {"claude-opus-5-5", summary, nil, false},
		"imported, older":  {"claude-opus-4-6", nil, imported, true},
		"a summary, older": {"claude-opus-4-6", summary, nil, true},
		"one before 5.1":   {"claude-fable-5", summary, nil, true},
	} {
		m := thought(c.model, "one")
		m.Source = c.source
		d := draftOf(c.model, pool.NewText(pool.User, "go"), m, pool.NewText(pool.User, "on"))
		d.Summary = c.summary
		if _, raw := bodyOf(t, d); strings.Contains(raw, "sig-one") != c.want {
			t.Errorf("%s: %s", name, raw)
		}
	}
}

// TestModels: thinking goes back to the model that it comes from, whatever the date in its name.
func TestModels(t *testing.T) {
	for from, want := range map[string]bool{"claude-sonnet-4-5-20250929": true, "claude-sonnet-4-5": true, "": true, "claude-sonnet-4-20250514": false, "claude-opus-4-6": false} {
		d := draftOf("claude-sonnet-4-5", pool.NewText(pool.User, "go"), thought(from, "one"), pool.NewText(pool.User, "on"))
		if _, raw := bodyOf(t, d); strings.Contains(raw, "sig-one") != want {
			t.Errorf("%s: %s", from, raw)
		}
	}
}

// TestEnd: older models continue the assistant's words, unless that is refused.
func TestEnd(t *testing.T) {
	for name, c := range map[string]struct {
		model, text, thinking string
		want                  bool
	}{
		"old": {"claude-3-5-sonnet-20241022", "It is", "", false}, "space": {"claude-3-5-sonnet-20241022", "It is ", "", true}, "new": {"claude-opus-4-6", "It is", "", true},
		"thinks": {"claude-sonnet-4-5", "It is", `"low"`, true}, "foreign": {"glm-4.6", "It is", "", true},
	} {
		d := draftOf(c.model, pool.NewText(pool.User, "go"), pool.NewText(pool.Assistant, c.text))
		if c.thinking != "" {
			d.Settings["thinking"] = json.RawMessage(c.thinking)
		}
		if _, raw := bodyOf(t, d); strings.Contains(raw, adapter.Continue) != c.want {
			t.Errorf("%s: %s", name, raw)
		}
	}
}

// TestServerTools: calls and results of the API's own tools go back as a pair or not at all.
func TestServerTools(t *testing.T) {
	part := func(typ, raw string) pool.Part {
		return pool.Part{Type: typ, Provider: anthropic.Provider, Raw: json.RawMessage(raw)}
	}
	use := part("server_tool_use", `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}}`)
	result := part("web_search_tool_result", `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`)
	text := pool.Part{Type: pool.TextPart, Text: "found"}
	for name, c := range map[string]struct {
		parts []pool.Part
		want  bool
	}{
		"pair": {[]pool.Part{use, result, text}, true}, "half": {[]pool.Part{use, text}, false}, "other half": {[]pool.Part{result, text}, false},
		"wrong way": {[]pool.Part{result, use, text}, false}, "twice": {[]pool.Part{use, use, result, text}, false},
	} {
		m := &pool.Message{Role: pool.Assistant, Content: c.parts}
		if _, raw := bodyOf(t, draftOf("claude-opus-4-6", pool.NewText(pool.User, "go"), m, pool.NewText(pool.User, "on"))); strings.Contains(raw, "srvtoolu_1") != c.want {
			t.Errorf("%s: %s", name, raw)
		}
	}
}
