package record

import (
	"encoding/json"

	"github.com/chatctx/chatctx/pool"
)

// Judge knows the language of rules. chatctx stores rules as records and asks the Judge about calls; package approval has one. Several goroutines may ask
// it at the same time; it is never asked within a transaction.
type Judge interface {
	// Rule prepares a rule for storage: it checks the rule (ErrInvalid) and rewrites what depends on the place where it was stated.
	Rule(r *Rule) error
	// Tool checks how a tool is described and run (ErrInvalid).
	Tool(t *Tool) error
	// Arguments checks, by the tool's schema, arguments that a person puts in place of the proposed ones (ErrInvalid).
	Arguments(schema, arguments json.RawMessage) error
	// Judge returns what the rules say of a call.
	Judge(rules []*Rule, q *Question) *Ruling
}

// Question is a call as rules see it.
type Question struct {
	Context   pool.ID
	Branch    pool.ID // its id, not its name
	Message   pool.ID // zero for a hypothetical call
	Index     int     // from 1
	Tool      string
	Arguments json.RawMessage
	Mode      string          // the setting mode
	Dir       string          // the base of relative paths; "": unknown
	Schema    json.RawMessage // of the tool's arguments; nil: unknown
	Command   []string        // the tool's command, as in Tool; nil: it is none, or unknown
	Env       []string        // the names of the variables that the tool adds to its command's environment
}

// Ruling is the rules' answer to a Question.
type Ruling struct {
	Effect string // Allow, Deny or Ask; Ask if no rule decides
	Rule   *Rule  // the rule that decides, perhaps a default; nil: none
	// Untold: the rule denies, but cannot tell whether it applies to this call.
	Untold bool
	// Inherited: the rule belongs to a parent context.
	Inherited bool
	Why       string // why the rule decides
	// Without is the ruling if there were no such rule.
	Without *Ruling
	// Notes says for each rule about this tool whether it applies, and why.
	Notes []RuleNote
	// Question is the question as completed from the call's place in the store.
	Question Question
}

// RuleNote says whether a rule applies.
type RuleNote struct {
	Rule  *Rule
	Holds bool
	Why   string
}

// RuleDifference is a recorded call that the rules would decide differently after a change.
type RuleDifference struct {
	Call          *Call
	Before, After *Ruling
}
