package gate

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// pluginMark begins the plugin for opencode.
const pluginMark = "// chatctx gate: opencode asks it before a call runs. chatctx gate install opencode wrote it."

//go:embed opencode.js
var pluginText string

// plugin returns opencode's plugin. Its second line is the hook's command, as in other agents' settings.
func (e *Entry) plugin() string {
	before, _ := json.Marshal(e.command(Named("opencode"), "tool.execute.before"))
	after, _ := json.Marshal(e.command(Named("opencode"), "tool.execute.after"))
	return fmt.Sprintf("%s\nconst before = %s;\nconst after = %s;\nconst limit = %d;\n%s", pluginMark, before, after, e.limit(Named("opencode"), "tool.execute.before")*1000, pluginText)
}
