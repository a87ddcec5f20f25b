package chatctx

import (
	"encoding/json"

	"github.com/chatctx/chatctx/chatctx/internal/record"
)

// The effects of a rule.
const (
	Allow = record.Allow
	Deny  = record.Deny
	Ask   = record.Ask
)

// A Judge decides about calls by rules and knows the language of their conditions. Package approval has one.
type (
	Judge    = record.Judge
	Question = record.Question
	Ruling   = record.Ruling
	RuleNote = record.RuleNote
)

// ParseExample parses an example of a rule, TOOL ARGUMENTS => EFFECT. The arguments may be missing.
func ParseExample(s string) (tool string, arguments json.RawMessage, effect string, err error) {
	return record.ParseExample(s)
}
