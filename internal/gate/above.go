package gate

// programs are the names under which agents run.
var programs = map[string]string{"claude": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI", "copilot": "Copilot CLI", "opencode": "opencode"}

func agentNamed(program string) string { return programs[program] }

// agentIn returns the agent whose variables are in the environment.
func agentIn(env func(string) string) string {
	if env("CLAUDECODE") != "" || env("CLAUDE_PID") != "" {
		return programs["claude"]
	}
	return ""
}
