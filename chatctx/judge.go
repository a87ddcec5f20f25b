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

// Judge decides about calls by rules and knows the language of their conditions. Package approval has one. Several goroutines may ask it at the same time; it is
// never asked within a transaction.
//
// Methods: Rule(r *Rule) error; Tool(t *Tool) error; Arguments(schema, arguments json.RawMessage) error; Judge(rules []*Rule, q *Question) *Ruling. For more
// of each: go doc chatctx/internal/record.Judge
type Judge = record.Judge

// Question is a call as rules see it.
//
// Fields: Context, Branch, Message ID; Index int; Tool string; Arguments json.RawMessage; Mode, Dir string; Schema json.RawMessage; Command, Env []string.
// For more of each: go doc chatctx/internal/record.Question
type Question = record.Question

// Ruling is the rules' answer to a Question.
//
// Fields: Effect string; Rule *Rule; Untold, Inherited bool; Why string; Without *Ruling; Notes []RuleNote; Question Question. For more of each: go doc
// chatctx/internal/record.Ruling
type Ruling = record.Ruling

// RuleNote says whether a rule applies.
//
// Fields: Rule *Rule; Holds bool; Why string. For more of each: go doc chatctx/internal/record.RuleNote
type RuleNote = record.RuleNote

// ParseExample parses an example of a rule, TOOL ARGUMENTS => EFFECT. The arguments may be missing.
func ParseExample(s string) (tool string, arguments json.RawMessage, effect string, err error) {
	return record.ParseExample(s)
}
