package exchange

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/testkit"
)

// The contents of files, counted without the readers: with encoding/json, and by each format's definition of a message.

type anyObject = map[string]any

// jsonValues decodes a file as one JSON value, or as one value a line; other text is nil.
func jsonValues(t *testing.T, path string) []any {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.TrimPrefix(b, []byte("\ufeff"))
	var one any
	if json.Unmarshal(b, &one) == nil {
		if list, ok := one.([]any); ok {
			return list
		}
		return []any{one}
	}
	var out []any
	for line := range bytes.Lines(b) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var v any
			_ = json.Unmarshal(line, &v) // nil if it is not JSON
			out = append(out, v)
		}
	}
	return out
}

func dig(v any, keys ...string) any {
	for _, k := range keys {
		o, _ := v.(anyObject)
		v = o[k]
	}
	return v
}

func sizeAt(v any, keys ...string) int {
	switch x := dig(v, keys...).(type) {
	case []any:
		return len(x)
	case anyObject:
		return len(x)
	}
	return 0
}

func holds(v any, key string) bool {
	o, _ := v.(anyObject)
	_, ok := o[key]
	return ok
}

// sumOf returns a function that adds up a count of values.
func sumOf(count func(v any) int) func([]any) int {
	return func(vs []any) int {
		n := 0
		for _, v := range vs {
			n += count(v)
		}
		return n
	}
}

func countClaudeCode(v any) int {
	if sizeAt(v, "loglines") > 0 {
		return sumOf(countClaudeCode)(dig(v, "loglines").([]any))
	}
	_, isObject := v.(anyObject)
	typ := dig(v, "type")
	if !isObject || typ == "user" || typ == "assistant" || holds(v, "uuid") || typ == nil {
		return 1
	}
	return 0
}

// countCodex counts response items, and a person's messages that are only in events.
func countCodex(vs []any) int {
	n, prompts, said := 0, 0, 0
	for _, v := range vs {
		p := dig(v, "payload")
		switch typ := dig(v, "type"); {
		case typ == "response_item":
			n++
			text, _ := dig(p, "content").([]any)
			if dig(p, "role") == "user" && len(text) > 0 && !strings.HasPrefix(dig(text[0], "text").(string), "<env") {
				prompts++
			}
		case typ == "event_msg" && dig(p, "type") == "user_message":
			said++
		case !holds(v, "payload") && typ != "error" && !holds(v, "instructions") && !holds(v, "record_type"):
			n++
		}
	}
	if prompts == 0 {
		n += said
	}
	return n
}

func countOASST(v any) int {
	if p := dig(v, "prompt"); p != nil {
		v = p
	}
	n := 1
	for i := range sizeAt(v, "replies") {
		n += countOASST(dig(v, "replies").([]any)[i])
	}
	return n
}

func countGemini(v any) int {
	switch {
	case sizeAt(v, "messages") > 0:
		return sizeAt(v, "messages")
	case sizeAt(v, "history") > 0:
		return sizeAt(v, "history")
	case holds(v, "sessionId") || holds(v, "$rewindTo"):
		return 0
	case holds(v, "$set"):
		return sizeAt(v, "$set", "messages")
	}
	return 1
}

func countTakeout(v any) int {
	if strings.HasPrefix(dig(v, "header").(string), "Gemini") && sizeAt(v, "safeHtmlItem") > 0 {
		return 2
	}
	return 1
}

func countShareGPT(v any) int {
	n := sizeAt(v, "conversations") + sizeAt(v, "messages")
	for _, k := range []string{"chosen", "rejected"} {
		if holds(v, k) {
			n++
		}
	}
	return n
}

func countAnthropic(v any) int {
	if holds(v, "messages") {
		return sizeAt(v, "messages")
	}
	return 1
}

var sampleCounts = map[string]func([]any) int{
	"claude-ai":       sumOf(func(v any) int { return sizeAt(v, "chat_messages") }),
	"claude-code":     sumOf(countClaudeCode),
	"codex":           countCodex,
	"gemini":          sumOf(countGemini),
	"gemini-aistudio": sumOf(func(v any) int { return sizeAt(v, "chunkedPrompt", "chunks") }),
	"gemini-takeout":  sumOf(countTakeout),
	"langchain":       func(vs []any) int { return len(vs) },
	"librechat":       sumOf(func(v any) int { return sizeAt(v, "messages") }),
	"oasst":           sumOf(countOASST),
	"open-webui":      sumOf(func(v any) int { return sizeAt(v, "history", "messages") + sizeAt(v, "chat", "history", "messages") }),
	"openai-chat": sumOf(func(v any) int {
		return sizeAt(v, "messages") + sizeAt(v, "chosen_messages") + sizeAt(v, "rejected_messages")
	}),
	"pi-mono":            func(vs []any) int { return len(vs) - 1 },
	"sharegpt":           sumOf(countShareGPT),
	"vercel-ai":          func(vs []any) int { return len(vs) },
	"anthropic-messages": sumOf(countAnthropic),
}

// sampleSkipped are files that are read with others, or are no input by themselves.
var sampleSkipped = map[string]bool{"vshulcz__deja-vu__goose.sql": true, "vshulcz__deja-vu__opencode.sql": true, "vshulcz__deja-vu__zed.sql": true,
	"vshulcz__deja-vu__history_item.json": true, "vshulcz__deja-vu__session_synthetic_01.json": true, "jazzyalex__agent-sessions__test-store.db": true,
	"ceyaima__deepseek-exporter__test_chat_tree.json": true}

// sampleFormats are formats whose folder has another name.
var sampleFormats = map[string]string{"kiro": "kiro-cli", "roo-code": "cline"}

// sampleMessages are the numbers of messages in further samples, according to the index beside them.
var sampleMessages = map[string]int{
	"kenn-io__agentsview__aider.chat.history.md": 8, // 6 without notices, each run of which is one
	"vshulcz__deja-vu__aider.chat.history.md":    2, "cline/vshulcz__deja-vu__api_conversation_history.json": 2,
	"vshulcz__deja-vu__session_synthetic_01.messages.json": 2, "jazzyalex__agent-sessions__large.jsonl": 10, "jazzyalex__agent-sessions__test-session.jsonl": 6,
	"andrmkrff__deepseek-chat-export__sample_conversation.json": 6, // with the root
	"ceyaima__deepseek-exporter__test_chat_raw.json":            11, "vshulcz__deja-vu__20250724_1.jsonl": 2, "kenn-io__agentsview__conversation.jsonl": 7,
	"Sinity__polylogue__grok-export.json": 2, "yetanotherchris__openwebui-importer__grok_example.json": 10, "kenn-io__agentsview__standard_payload.json": 4,
	"es617__claude-replay__fixture-opencode.jsonl": 5, "jazzyalex__agent-sessions__001.jsonl": 6, // includes a telemetry record
	"jazzyalex__agent-sessions__004.jsonl": 9, "jazzyalex__agent-sessions__system_telemetry.jsonl": 8, "roo-code/vshulcz__deja-vu__api_conversation_history.json": 2,
}

// unreadable are samples that no reader can read, with the reason.
var unreadable = map[string]string{
	"es617__claude-replay__demo-session.jsonl":         "a player's own format of turns, not a session",
	"simonw__llm-anthropic__test_tools.1.response.sse": "gzip whose bytes were damaged as text",
	"minhyeong112__h20__chatbotui-export.json":         "another program's",
	"ragaeeb__blackiya__sample_grok_conversation.json": "another program's",
}

// TestSharedSamples reads the real files beside the project and compares each report with a separate count: everything in a file is imported, left out, a
// repetition or a link.
func TestSharedSamples(t *testing.T) {
	root := testkit.Shared(t, "samples")
	read := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		folder, name, inside := strings.Cut(strings.TrimPrefix(path, root+string(filepath.Separator)), string(filepath.Separator))
		if err != nil || e.IsDir() || !inside || folder == "chatgpt" || sampleSkipped[e.Name()] || strings.Contains(path, "__storage_v2") {
			return err
		}
		t.Run(folder+"/"+name, func(t *testing.T) {
			all, rep := readAll(t, Options{}, path)
			if why := unreadable[e.Name()]; why != "" {
				if rep.Outcome() != Nothing {
					t.Errorf("read, though it is %s", why)
				}
				return
			}
			read++
			for _, in := range all {
				if in.Format != folder && sampleFormats[folder] != in.Format {
					t.Errorf("read as %s", in.Format)
				}
			}
			want := 1 // a stream of events is one message
			if n := max(sampleMessages[e.Name()], sampleMessages[folder+"/"+e.Name()]); n > 0 {
				want = n
			} else if filepath.Ext(path) != ".sse" {
				want = sampleCounts[folder](jsonValues(t, path))
			}
			if got := rep.Messages + rep.Skipped + rep.Duplicated + rep.Structural; got != want || want == 0 {
				t.Errorf("%d messages + %d skipped + %d duplicated + %d structural, the file has %d", rep.Messages, rep.Skipped, rep.Duplicated, rep.Structural, want)
			}
			if rep.Outcome() == Nothing {
				t.Error("nothing was read", rep.Warnings)
			}
		})
		return nil
	})
	if err != nil || read < 60 {
		t.Errorf("%d samples read, %v", read, err)
	}
}
