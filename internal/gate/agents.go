package gate

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/chatctx/chatctx/internal/toolcall"
)

// Agent is what differs between the agents. Its words are those of the version that was tried.
type Agent struct {
	Name   string // the format under which its sessions are imported
	Title  string
	Tried  string            // the version that the table is about
	Events map[string]Moment // its events, by their names there
	NoIDs  bool              // its hook does not say the provider's id of a call
	Unit   time.Duration     // of the timeouts in its settings
	Closed []string          // its permission modes in which a hook's "ask" is known to put the question to a person
	answer func(a *answer) any

	Nameless bool      // its hook is not told which event it is
	home     [3]string // of its settings: the variable that names their folder, else that in the home folder; and the file
	plugin   bool      // the file is a program of ours, not settings
	comments bool      // its settings may have comments
	matcher  string    // that names all tools
	entry    func(e *Entry, a *Agent, event string) any
}

// Moment is when an event comes.
type Moment string

// The moments.
const (
	Before  Moment = "before"  // a call is about to run
	After   Moment = "after"   // it ran
	Failed  Moment = "failed"  // it ran, and failed
	Batch   Moment = "batch"   // all calls of an answer have their results
	Refused Moment = "refused" // the agent or its person refused it
	Began   Moment = "began"   // a session begins or goes on
	Paused  Moment = "paused"  // the agent waits for its person
	Ended   Moment = "ended"   // the session is over
)

// answer is what a hook tells its agent before a call.
type answer struct {
	Say       string // of toolcall.Said; sayAsk: the agent asks its person
	Reason    string
	Arguments json.RawMessage // that the call has to run with, nil for its own
}

const sayAsk = "ask"

// Agents are the agents that the gate knows, in the order of lists.
var Agents = []*Agent{
	{Name: "claude-code", Title: "Claude Code", Tried: "2.1.332", Unit: time.Second, Closed: []string{"default"}, answer: likeClaude,
		home: [3]string{"CLAUDE_CONFIG_DIR", ".claude", "settings.json"}, matcher: "*", entry: (*Entry).likeClaude,
		Events: map[string]Moment{"PreToolUse": Before, "PostToolUse": After, "PostToolUseFailure": Failed, "PostToolBatch": Batch, "PermissionDenied": Refused,
			"SessionStart": Began, "Stop": Paused, "SessionEnd": Ended}},
	{Name: "codex", Title: "Codex", Tried: "0.171.0", Unit: time.Second, answer: likeClaude,
		home: [3]string{"CODEX_HOME", ".codex", "hooks.json"}, matcher: ".*", entry: (*Entry).likeClaude,
		Events: map[string]Moment{"PreToolUse": Before, "PostToolUse": After, "SessionStart": Began, "Stop": Paused, "SessionEnd": Ended}},
	{Name: "gemini", Title: "Gemini CLI", Tried: "0.61.0", Unit: time.Millisecond, NoIDs: true, answer: likeGemini,
		home: [3]string{"", ".gemini", "settings.json"}, matcher: "*", comments: true, entry: (*Entry).likeClaude,
		Events: map[string]Moment{"BeforeTool": Before, "AfterTool": After, "SessionStart": Began, "AfterAgent": Paused, "SessionEnd": Ended}},
	{Name: "copilot", Title: "Copilot CLI", Tried: "1.0.102", Unit: time.Second, NoIDs: true, answer: likeCopilot,
		home: [3]string{"", ".copilot", "settings.json"}, Nameless: true, entry: (*Entry).likeCopilot,
		Events: map[string]Moment{"preToolUse": Before, "postToolUse": After, "sessionStart": Began, "agentStop": Paused, "sessionEnd": Ended}},
	{Name: "opencode", Title: "opencode", Tried: "1.18.33", Unit: time.Second, answer: likePlugin,
		home: [3]string{"XDG_CONFIG_HOME", ".config", "opencode/plugin/chatctx-gate.js"}, Nameless: true, plugin: true,
		Events: map[string]Moment{"tool.execute.before": Before, "tool.execute.after": After}},
}

// Named returns an agent by its name, nil if there is none.
func Named(name string) *Agent {
	i := slices.IndexFunc(Agents, func(a *Agent) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return Agents[i]
}

// nothing is the answer to what asks nothing, and for Claude, Codex, Gemini and Copilot leaves a call to the agent.
var nothing = struct{}{}

func likeClaude(a *answer) any {
	if a.Say == toolcall.SayLeft {
		return nothing
	}
	type decision struct {
		Event    string          `json:"hookEventName"`
		Decision string          `json:"permissionDecision"`
		Reason   string          `json:"permissionDecisionReason,omitempty"`
		Input    json.RawMessage `json:"updatedInput,omitempty"`
	}
	return struct {
		Output decision `json:"hookSpecificOutput"`
	}{decision{"PreToolUse", a.Say, a.Reason, a.Arguments}}
}

func likeGemini(a *answer) any {
	if a.Say == toolcall.SayLeft {
		return nothing
	}
	type changed struct {
		Input json.RawMessage `json:"tool_input"`
	}
	out := struct {
		Decision string   `json:"decision"`
		Reason   string   `json:"reason,omitempty"`
		Output   *changed `json:"hookSpecificOutput,omitempty"`
	}{Decision: a.Say, Reason: a.Reason}
	if a.Arguments != nil {
		out.Output = &changed{a.Arguments}
	}
	return out
}

func likeCopilot(a *answer) any {
	if a.Say == toolcall.SayLeft {
		return nothing
	}
	return struct {
		Decision string          `json:"permissionDecision"`
		Reason   string          `json:"permissionDecisionReason,omitempty"`
		Args     json.RawMessage `json:"modifiedArgs,omitempty"`
	}{a.Say, a.Reason, a.Arguments}
}

// likePlugin is for the plugin of ours, which throws unless a call is let or left.
func likePlugin(a *answer) any {
	return struct {
		Say    string          `json:"say"`
		Reason string          `json:"reason,omitempty"`
		Args   json.RawMessage `json:"args,omitempty"`
	}{a.Say, a.Reason, a.Arguments}
}
