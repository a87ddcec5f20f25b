package openai_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/adaptertest"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/provider/openai"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// message has the fields that the profiles' rules concern.
type message struct {
	Role       string
	Content    any
	ToolCallID string  `json:"tool_call_id"`
	Reasoning  *string `json:"reasoning_content"`
	Calls      []struct {
		ID string
	} `json:"tool_calls"`
}

// profiled returns the body of a random draft for a server of a profile.
func profiled(t *testing.T, seed uint64, profile string) (raw []byte, messages []message) {
	t.Helper()
	d := adaptertest.Random(seed, openai.Provider, "some-model")
	d.Settings["profile"] = json.RawMessage(`"` + profile + `"`)
	b, err := openai.Adapter.Adapt(d)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err = b.MarshalJSON(); err != nil {
		t.Fatal(err)
	}
	var body struct{ Messages []message }
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	return raw, body.Messages
}

// TestStrict: nothing is sent that Mistral's servers and strict templates refuse.
func TestStrict(t *testing.T) {
	for _, profile := range []string{"strict", "mistral"} {
		for seed := range testkit.Seeds(t, 1000) {
			raw, messages := profiled(t, seed, profile)
			if err := adaptertest.ValidateOpenAI(raw); err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, raw)
			}
			last := ""
			for n, m := range messages {
				switch {
				case m.Role == "system" && n > 0,
					m.Role == "user" && last != "" && last != "system" && last != "assistant",
					m.Role == "assistant" && last != "user" && last != "tool":
					t.Fatalf("%s, seed %d: message %d of %s follows %q\n%s", profile, seed, n, m.Role, last, raw)
				}
				for _, id := range append([]string{m.ToolCallID}, ids(m)...) {
					if profile == "mistral" && id != "" && (len(id) != 9 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "") {
						t.Fatalf("seed %d: id %q", seed, id)
					}
				}
				last = m.Role
			}
		}
	}
}

func ids(m message) []string {
	var list []string
	for _, c := range m.Calls {
		list = append(list, c.ID)
	}
	return list
}

// TestDeepSeek: reasoning_content comes with calls, empty if it is not the server's own, and nowhere else.
func TestDeepSeek(t *testing.T) {
	for seed := range testkit.Seeds(t, 500) {
		raw, messages := profiled(t, seed, "deepseek")
		for n, m := range messages {
			if (m.Reasoning != nil) != (len(m.Calls) > 0) {
				t.Fatalf("seed %d: message %d\n%s", seed, n, raw)
			}
		}
	}
	own := pool.Part{Type: pool.ThinkingPart, Text: "I see", Provider: openai.Provider, Model: "deepseek-reasoner"}
	other := pool.Part{Type: pool.ThinkingPart, Text: "secret", Provider: "anthropic", Signature: "x"}
	d := &chatctx.Draft{Settings: map[string]json.RawMessage{"model": json.RawMessage(`"deepseek-reasoner"`), "profile": json.RawMessage(`"deepseek"`)}}
	for _, m := range []*pool.Message{
		pool.NewText(pool.User, "go"), {Role: pool.Assistant, Content: []pool.Part{own}, Calls: []pool.Call{{ID: "c1", Tool: "t"}}},
		{Role: pool.Assistant, Content: []pool.Part{other}, Calls: []pool.Call{{ID: "c2", Tool: "t"}}},
	} {
		d.Messages = append(d.Messages, &chatctx.DraftMessage{Entry: pool.Entry{Message: m}})
	}
	b, err := openai.Adapter.Adapt(d)
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := b.MarshalJSON()
	if !strings.Contains(string(raw), `"reasoning_content":"I see"`) || !strings.Contains(string(raw), `"reasoning_content":""`) || strings.Contains(string(raw), "secret") {
		t.Errorf("%s", raw)
	}
}

func TestUnknownProfile(t *testing.T) {
	d := adaptertest.Random(1, openai.Provider, "m")
	d.Settings["profile"] = json.RawMessage(`"deepsek"`)
	if _, err := openai.Adapter.Adapt(d); !errors.Is(err, adapter.ErrSetting) || !strings.Contains(err.Error(), "deepseek") {
		t.Error(err)
	}
}
