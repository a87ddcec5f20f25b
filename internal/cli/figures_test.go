package cli

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/testkit"
)

// TestFiguresPrintedAreFiguresSent: what a command prints of the next request is what the request has, whatever the settings, for models that no table knows too.
func TestFiguresPrintedAreFiguresSent(t *testing.T) {
	for seed := range testkit.Seeds(t, 12) {
		figuresOf(t, rand.New(rand.NewPCG(uint64(seed), 1)))
	}
}

// figuresOf fills a conversation with tool results and changes its window at random.
func figuresOf(t *testing.T, random *rand.Rand) {
	s := newPrompt(t)
	var lines strings.Builder
	for i := range 4 + random.IntN(8) {
		result, _ := json.Marshal(strings.Repeat(fmt.Sprintf("line %d of the output\n", i), 1+random.IntN(400)))
		fmt.Fprintf(&lines, `{"role":"user","content":"Look at %d."}
{"role":"assistant","tool_calls":[{"id":"c%[1]d","tool_name":"look","arguments":{"at":%[1]d}}]}
{"role":"tool","tool_result":{"request_id":"c%[1]d","result":%s}}
{"role":"assistant","content":"Seen %[1]d."}
`, i, result)
	}
	s.must("", "use", "Q")
	s.must(lines.String(), "append", "-")
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	s.must("", "config", "model="+pick("house-made", "gpt-4o", "claude-sonnet-4-5"), "provider="+pick("openai", "anthropic", "ollama"),
		pick("budget=off", "budget=", "budget=6000", "budget=40000"), pick("prune.policy=auto", "prune.policy=keep_none", "prune.policy=keep_all"),
		fmt.Sprint("prune.threshold=", random.IntN(3000)), fmt.Sprint("prune.keep=", random.IntN(3000)))
	for range 5 {
		command := [][]string{
			{"prune"}, {"prune", "--keep-tokens", fmt.Sprint(random.IntN(2000))}, {"compact", "--summary", "What was looked at.", "--keep-messages", fmt.Sprint(random.IntN(9))},
			{"compact", "--digest"}, {"resume", "1"},
		}[random.IntN(5)]
		out, _, code := s.types("", append(command, "--json")...)
		if code != 0 {
			continue // nothing to do, or no gain
		}
		var did struct {
			After, RequestAfter *int
			Request             *int `json:"request_after"`
		}
		if err := json.Unmarshal([]byte(out), &did); err != nil {
			t.Fatalf("%q prints %s: %v", command, out, err)
		}
		next := requestTokens(s)
		if did.Request != nil && *did.Request != next {
			t.Errorf("%q prints %d tokens, and the next request has %d", command, *did.Request, next)
		}
		if command[0] == "compact" && did.After != nil && *did.After != next { // nil: nothing to compact
			t.Errorf("%q prints %d tokens, and the next request has %d", command, *did.After, next)
		}
	}
}

// requestTokens is the size of the next request, of which status, tokens and explain have one figure, and which its body bears out: a token is some four letters.
func requestTokens(s *prompt) int {
	s.t.Helper()
	read := func(args ...string) (v struct {
		Request int `json:"request_tokens"`
		Total   int `json:"total_tokens"`
		Due     any `json:"compaction"`
	}) {
		out, _ := s.must("", args...)
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			s.t.Fatalf("%q prints %s: %v", args, out, err)
		}
		return v
	}
	status, tokens := read("status", "--json"), read("tokens", "--json")
	if status.Request != tokens.Request {
		s.t.Errorf("status has %d tokens, tokens %d", status.Request, tokens.Request)
	}
	body, _ := s.must("", "request")
	if status.Due == nil && (len(body)/12 > status.Request || len(body)/2 < status.Request) {
		s.t.Errorf("the next request of %d tokens has %d bytes", status.Request, len(body))
	}
	return status.Request
}
