package all

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/adaptertest"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// TestThinkingLeavesRoomForTheAnswer: the limit of thinking fits max_tokens, or a note says that it does not; an answer never gets a single token.
func TestThinkingLeavesRoomForTheAnswer(t *testing.T) {
	for _, c := range []struct {
		provider, model string
		limit, thinking int
		body, note      string // what they contain; "" in note: there must be none
	}{
		{adapter.Anthropic, "claude-sonnet-4-5", 4096, 4096, `"budget_tokens":3072`, "thinking 3072 instead of 4096 tokens: max_tokens is 4096"},
		{adapter.Anthropic, "claude-sonnet-4-5", 1025, 1024, `"max_tokens":1025`, "thinking left out: it takes 1024 tokens or more"},
		{adapter.Anthropic, "claude-sonnet-4-5", 8000, 4096, `"budget_tokens":4096`, ""},
		{adapter.Anthropic, "claude-sonnet-4-5", 0, 100000, `"budget_tokens":100000`, ""},
		{adapter.Anthropic, "claude-opus-4-6", 2000, 16384, `"adaptive"`, "may leave nothing for the answer"},
		{adapter.Gemini, "gemini-2.5-flash", 1000, 4096, `"thinkingBudget":750`, "thinking 750 instead of 4096 tokens"},
		{adapter.Gemini, "gemini-2.5-flash", 8000, 4096, `"thinkingBudget":4096`, ""},
		{adapter.Gemini, "gemini-3-pro", 1000, 4096, `"thinkingLevel"`, "may leave nothing for the answer"},
		{adapter.OpenAI, "gpt-5", 1000, 16384, `"reasoning_effort":"high"`, "may leave nothing for the answer"},
		{adapter.OpenAI, "gpt-5", 40000, 16384, `"reasoning_effort":"high"`, ""},
		{adapter.Responses, "gpt-5", 1000, 16384, `"effort":"high"`, "may leave nothing for the answer"},
	} {
		d := &chatctx.Draft{Settings: map[string]json.RawMessage{"model": json.RawMessage(fmt.Sprintf("%q", c.model)), "thinking": json.RawMessage(fmt.Sprint(c.thinking))}}
		if c.limit > 0 {
			d.Settings["max_tokens"] = json.RawMessage(fmt.Sprint(c.limit))
		}
		m := pool.NewText(pool.User, "Hi")
		m.ID = pool.NewID()
		d.Messages = []*chatctx.DraftMessage{{Entry: chatctx.Entry{Message: m, Position: 1}, State: "in"}}
		body, err := adaptertest.Body(c.provider, d)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := body.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var notes []string
		for _, n := range d.Notes {
			notes = append(notes, n.What)
		}
		if said := strings.Join(notes, "; "); !strings.Contains(string(raw), c.body) || (c.note == "") != (said == "") || !strings.Contains(said, c.note) {
			t.Errorf("%s %s, max_tokens %d, thinking %d: %s\n%s", c.provider, c.model, c.limit, c.thinking, said, raw)
		}
	}
}
