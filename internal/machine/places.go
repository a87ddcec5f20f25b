package machine

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx/exchange"
)

// Folders says where the folders of programs are.
type Folders struct {
	Home    string // the person's home folder
	Config  string // for settings of programs: ~/.config, ~/Library/Application Support, %APPDATA%
	Data    string // for their data: ~/.local/share, ~/Library/Application Support, %LOCALAPPDATA%
	Current string // the program's working folder, for tools that keep their files in projects; "" means none
	Getenv  func(string) string
}

// toolPlaces are the places of tools: a letter for the folder of the machine (h, c, d, or w for the working folder), and the path in it, with * for any name. A
// variable before a bar, if set, replaces the first folder of the path.
var toolPlaces = map[string][]string{
	"aider":       {"w/.aider.chat.history.md", "h/.aider.chat.history.md"},
	"aichat":      {"c/aichat/sessions"},
	"anythingllm": {"c/anythingllm-desktop/storage/anythingllm.db"},
	"claude-code": {"CLAUDE_CONFIG_DIR|h/.claude/projects"},
	"cline":       {"h/.cline/data/sessions", "c/Code/User/globalStorage/saoudrizwan.claude-dev/tasks", "c/Cursor/User/globalStorage/saoudrizwan.claude-dev/tasks"},
	"codex":       {"CODEX_HOME|h/.codex/sessions", "CODEX_HOME|h/.codex/archived_sessions"},
	"continue":    {"CONTINUE_GLOBAL_DIR|h/.continue/sessions"},
	"crush":       {"w/.crush/crush.db", "h/.crush/crush.db"},
	"cursor":      {"h/.cursor/projects", "h/.cursor/chats", "c/Cursor/User/globalStorage/state.vscdb"},
	"gemini":      {"h/.gemini/tmp"},
	"goose":       {"d/goose/sessions", "c/Block/goose/data/sessions"},
	"gptme":       {"d/gptme/logs"},
	"jan":         {"d/Jan/data/threads", "c/Jan/data/threads", "h/jan/threads"},
	"kiro-cli":    {"d/kiro-cli/data.sqlite3"},
	"llm":         {"LLM_USER_PATH|c/io.datasette.llm/logs.db"},
	"lmstudio":    {"h/.lmstudio/conversations", "h/.cache/lm-studio/conversations"},
	"opencode":    {"d/opencode/opencode.db", "d/opencode/storage", "h/.local/share/opencode/opencode.db", "h/.local/share/opencode/storage"},
	"pi-mono":     {"h/.pi/agent/sessions"},
	"qwen-code":   {"h/.qwen/projects", "h/.qwen/tmp"},
	"roo-code":    {"c/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks", "c/Cursor/User/globalStorage/rooveterinaryinc.roo-cline/tasks"},
	"term-llm":    {"d/term-llm/sessions.db", "h/.local/share/term-llm/sessions.db"},
	"vscode-chat": {"c/Code/User/workspaceStorage/*/chatSessions", "c/Code/User/globalStorage/emptyWindowChatSessions"},
	"zed":         {"d/zed/threads/threads.db", "d/Zed/threads/threads.db"},
	"sillytavern": {"h/SillyTavern/data/*/chats"},
}

// Tools returns the tools that Places looks for, sorted.
func Tools() []string {
	return slices.Sorted(maps.Keys(toolPlaces))
}

// Places returns the existing places where the tools of a machine keep conversations, by tool. It opens no file.
func (m Folders) Places() []exchange.Place {
	var out []exchange.Place
	seen := map[string]bool{}
	for _, tool := range Tools() {
		for _, pattern := range toolPlaces[tool] {
			for _, p := range m.find(pattern) {
				if place, there := measure(tool, p); there && !seen[p] {
					seen[p] = true
					out = append(out, place)
				}
			}
		}
	}
	return out
}

// find returns the paths for a pattern of toolPlaces.
func (m Folders) find(pattern string) []string {
	variable, pattern, ok := strings.Cut(pattern, "|")
	if !ok {
		variable, pattern = "", variable
	}
	letter, rest, _ := strings.Cut(pattern, "/")
	base := map[string]string{"h": m.Home, "c": m.Config, "d": m.Data, "w": m.Current}[letter]
	if set := m.Getenv(variable); variable != "" && set != "" {
		_, rest, _ = strings.Cut(rest, "/")
		base = set
	}
	if base == "" {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(globEscape(base), filepath.FromSlash(rest)))
	if err != nil {
		return nil // the patterns of the table are valid, and the folder's path is escaped
	}
	return found
}

// globEscape returns a pattern that matches only the path.
func globEscape(p string) string {
	if os.PathSeparator == '\\' {
		return p
	}
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(p)
}

// measure returns the files and the size of a place; there is false if it has no files.
func measure(tool, p string) (place exchange.Place, there bool) {
	place = exchange.Place{Tool: tool, Path: p}
	err := filepath.WalkDir(p, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // importing reports what cannot be read
		}
		if info, err := e.Info(); err == nil {
			place.Files++
			place.Bytes += info.Size()
			if info.ModTime().After(place.Changed) {
				place.Changed = info.ModTime()
			}
		}
		return nil
	})
	return place, err == nil && place.Files > 0
}
