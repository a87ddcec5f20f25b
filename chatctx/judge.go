package chatctx

import (
	"encoding/json"

	"github.com/chatctx/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/chatctx/record"
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
// of each: go doc chatctx/internal/base.Judge
type Judge = base.Judge

// Question is a call as rules see it.
//
// Fields: Context, Branch, Message ID; Index int; Tool string; Arguments json.RawMessage; Mode, Dir string; Schema json.RawMessage; Command, Env []string.
// For more of each: go doc chatctx/internal/base.Question
type Question = base.Question

// Ruling is the rules' answer to a Question.
//
// Fields: Effect string; Rule *Rule; Untold, Inherited bool; Why string; Without *Ruling; Notes []RuleNote; Question Question. For more of each: go doc
// chatctx/internal/base.Ruling
type Ruling = base.Ruling

// RuleNote says whether a rule applies.
//
// Fields: Rule *Rule; Holds bool; Why string. For more of each: go doc chatctx/internal/base.RuleNote
type RuleNote = base.RuleNote

// ParseExample parses an example of a rule, TOOL ARGUMENTS => EFFECT. The arguments may be missing.
func ParseExample(s string) (tool string, arguments json.RawMessage, effect string, err error) {
	return record.ParseExample(s)
}
