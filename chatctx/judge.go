package chatctx

import (
	"encoding/json"

	"github.com/chatctx/chatctx/chatctx/internal/record"
)

// What a rule may do.
const (
	Allow = record.Allow
	Deny  = record.Deny
	Ask   = record.Ask
)

// The language of rules lies outside: a Judge knows it.
type (
	Judge    = record.Judge
	Question = record.Question
	Ruling   = record.Ruling
	RuleNote = record.RuleNote
)

// ParseExample reads an example of what rules are to decide: TOOL ARGUMENTS => EFFECT. Arguments that are left out are none.
func ParseExample(s string) (tool string, arguments json.RawMessage, effect string, err error) {
	return record.ParseExample(s)
}
