package gate

import "testing"

// TestAgentsAreToldByTheirNames: the hint names an agent by its program or by its variables, and nobody else.
func TestAgentsAreToldByTheirNames(t *testing.T) {
	for program, want := range map[string]string{"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI", "copilot": "Copilot CLI", "opencode": "opencode", "bash": "", "claudette": ""} {
		if is := agentNamed(program); is != want {
			t.Errorf("%s is taken for %q", program, is)
		}
	}
	for name, want := range map[string]string{"CLAUDECODE": "Claude Code", "CLAUDE_PID": "Claude Code", "HOME": ""} {
		if is := agentIn(func(v string) string { return map[string]string{name: "1"}[v] }); is != want {
			t.Errorf("%s is taken for %q", name, is)
		}
	}
}
