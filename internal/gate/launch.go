package gate

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
)

// loosening are the flags of agents that switch hooks off, or replace the settings in which they stand.
var loosening = map[string][]string{
	"claude-code": {"--bare", "--safe-mode", "--setting-sources", "--settings", "--dangerously-skip-permissions", "--allow-dangerously-skip-permissions", "--permission-prompt-tool"},
	"codex":       {"--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox", "--ignore-user-config", "--profile", "-p"},
}

// Command returns the command that starts an agent so that a repository's settings cannot switch its hooks off. e is the hook for an agent whose settings have none.
func (a *Agent) Command(h Home, e *Entry, mode string, args []string) ([]string, error) {
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if slices.Contains(loosening[a.Name], name) || a.Name == "codex" && strings.Contains(arg, "hooks") {
			return nil, base.Invalid("%s takes the hooks away from %s, or is not known to leave them: start it without gate run", arg, a.Title)
		}
	}
	in := a.Installed(h)
	switch {
	case in.Broken != "" || in.Off != "" || in.Partly:
		return nil, &SettingsError{in.File, "the hooks do not work: " + in.Broken + in.Off, "chatctx gate status says what is wrong"}
	case in.Entry != nil && in.Entry.Gone():
		return nil, &SettingsError{in.File, "the program of the hooks is gone", "chatctx gate install " + a.Name}
	case a.Name == "codex" && in.Entry == nil:
		return nil, &SettingsError{in.File, "Codex takes hooks from there alone, and has none", "chatctx gate install codex"}
	case a.Name == "codex":
		return slices.Concat([]string{"codex", "-c", "features.hooks=true"}, args), nil
	}
	settings := map[string]any{"disableAllHooks": false}
	if in.Entry == nil {
		hooks := map[string]any{}
		for event := range maps.Keys(a.Events) {
			hooks[event] = []any{a.entry(e, a, event)}
		}
		settings["hooks"] = hooks
	}
	raw, err := json.Marshal(settings)
	command := []string{"claude", "--settings", string(raw)}
	if headless(args) && mode != record.GateRecord {
		if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--permission-mode") }) {
			return nil, base.Invalid("gate run starts Claude Code with --permission-mode dontAsk where nobody is at the terminal: leave --permission-mode out")
		}
		command = append(command, "--permission-mode", "dontAsk")
	}
	return append(command, args...), err
}

// headless reports whether Claude Code runs without a person at its terminal.
func headless(args []string) bool {
	return slices.Contains(args, "-p") || slices.Contains(args, "--print")
}
