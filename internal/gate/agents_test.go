package gate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/toolcall"
)

// agentOf returns whose event a recorded file is, and its name where the agent does not send it.
func agentOf(file string) (a *Agent, name string) {
	for _, one := range Agents {
		if rest, is := strings.CutPrefix(file, one.Name+"-"); is {
			if one.Name == "copilot" || one.Name == "opencode" {
				name = strings.TrimPrefix(rest, "plugin-")
			}
			return one, name
		}
	}
	return nil, ""
}

// TestRecordedEvents: each event that the real agents sent is understood or refused as none of a hook's, and a call has its tool, its session and its arguments.
func TestRecordedEvents(t *testing.T) {
	files, err := filepath.Glob("testdata/fixtures/*.json")
	if err != nil || len(files) < 70 {
		t.Fatalf("%d recorded events, %v", len(files), err)
	}
	seen := map[string]int{}
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file := strings.TrimSuffix(filepath.Base(path), ".json")
		a, name := agentOf(file)
		if a == nil {
			t.Errorf("%s is of no agent", file)
			continue
		}
		e, moment, err := a.readEvent(raw, name)
		if err != nil {
			seen["refused"]++
			if moment == Before {
				t.Errorf("%s: %v", file, err)
			}
			continue
		}
		seen[a.Name+" "+string(moment)]++
		in := e.asked(a)
		if moment == Before || moment == After || moment == Failed {
			if in.Tool == "" || in.Session == "" || !json.Valid(in.Arguments) || len(in.Arguments) < 3 || (in.CallID == "") != a.NoIDs {
				t.Errorf("%s is read as %+v", file, in)
			}
			if strings.Contains(file, "in-subagent") && in.SubAgent == "" {
				t.Errorf("%s names no sub-agent", file)
			}
		}
		if moment == Batch && (len(e.Calls) == 0 || e.Calls[0].ID == "") {
			t.Errorf("%s has no calls", file)
		}
		if moment == Failed && !e.outcome(moment).Failed {
			t.Errorf("%s did not fail", file)
		}
	}
	for _, a := range Agents {
		if seen[a.Name+" before"] == 0 || seen[a.Name+" after"] == 0 {
			t.Errorf("no call of %s is recorded: %v", a.Name, seen)
		}
	}
}

// TestAnswers are in the one shape that each agent takes, with no word that it takes for something else.
func TestAnswers(t *testing.T) {
	changed := json.RawMessage(`{"command":"ls"}`)
	for _, c := range []struct {
		agent string
		answer
		want string
	}{
		{"claude-code", answer{toolcall.SayAllow, "", nil}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`},
		{"claude-code", answer{toolcall.SayDeny, "no", nil}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`},
		{"claude-code", answer{toolcall.SayAllow, "", changed}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"ls"}}}`},
		{"claude-code", answer{sayAsk, "late", nil}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"late"}}`},
		{"claude-code", answer{toolcall.SayLeft, "x", nil}, `{}`},
		{"codex", answer{toolcall.SayDeny, "no", nil}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`},
		{"codex", answer{toolcall.SayLeft, "", nil}, `{}`},
		{"gemini", answer{toolcall.SayDeny, "no", nil}, `{"decision":"deny","reason":"no"}`},
		{"gemini", answer{toolcall.SayAllow, "", changed}, `{"decision":"allow","hookSpecificOutput":{"tool_input":{"command":"ls"}}}`},
		{"gemini", answer{toolcall.SayLeft, "", nil}, `{}`},
		{"copilot", answer{toolcall.SayDeny, "no", nil}, `{"permissionDecision":"deny","permissionDecisionReason":"no"}`},
		{"copilot", answer{toolcall.SayAllow, "", changed}, `{"permissionDecision":"allow","modifiedArgs":{"command":"ls"}}`},
		{"copilot", answer{toolcall.SayLeft, "", nil}, `{}`},
		{"opencode", answer{toolcall.SayLeft, "", nil}, `{"say":"left"}`},
	} {
		got, err := json.Marshal(Named(c.agent).answer(&c.answer))
		if err != nil || string(got) != c.want {
			t.Errorf("%s is told %s, %v\nwant %s", c.agent, got, err, c.want)
		}
	}
	for _, a := range Agents { // a question is put by agents alone that are known to put it
		if len(a.Closed) > 0 && a.Name != "claude-code" {
			t.Errorf("%s is asked to ask", a.Name)
		}
	}
}
