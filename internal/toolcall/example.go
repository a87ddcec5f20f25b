package toolcall

import (
	"encoding/json"
	"strings"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
)

// ParseExample parses an example of a rule, TOOL ARGUMENTS => EFFECT. The arguments may be missing.
func ParseExample(s string) (tool string, arguments json.RawMessage, effect string, err error) {
	at := strings.LastIndex(s, "=>")
	if at < 0 {
		return "", nil, "", base.Invalid("the example %q cannot be read: write TOOL ARGUMENTS => allow, ask or deny", s)
	}
	tool, rest, _ := strings.Cut(strings.TrimSpace(s[:at]), " ")
	effect = strings.TrimSpace(s[at+2:])
	if arguments = json.RawMessage(strings.TrimSpace(rest)); len(arguments) == 0 {
		arguments = nil
	}
	switch {
	case tool == "":
		return "", nil, "", base.Invalid("the example %q names no tool", s)
	case arguments != nil && !json.Valid(arguments):
		return "", nil, "", base.Invalid("the arguments of the example %q are not JSON", s)
	case effect != record.Allow && effect != record.Ask && effect != record.Deny:
		return "", nil, "", base.Invalid("the example %q must end with allow, ask or deny", s)
	}
	return tool, arguments, effect, nil
}
