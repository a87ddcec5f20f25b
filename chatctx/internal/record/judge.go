package record

import (
	"encoding/json"
	"strings"

	"github.com/chatctx/chatctx/pool"
)

// What a rule may do.
const (
	Allow = "allow"
	Deny  = "deny"
	Ask   = "ask"
)

// Judge knows the language of rules. chatctx keeps rules as records and asks it; package approval has one. It is asked outside of transactions, by several goroutines at once.
type Judge interface {
	// Rule readies a rule for being kept: what it says is checked (ErrInvalid), and what depends on where it was said is written so that it does not.
	Rule(r *Rule) error
	// Tool checks how a tool is described and run (ErrInvalid).
	Tool(t *Tool) error
	// Arguments checks arguments that a person puts in place of the proposed ones by the tool's schema (ErrInvalid).
	Arguments(schema, arguments json.RawMessage) error
	// Judge says what rules say of a call.
	Judge(rules []*Rule, q *Question) *Ruling
}

// Question is a call as rules see it.
type Question struct {
	Context   pool.ID
	Branch    pool.ID // its id, not its name
	Message   pool.ID // zero for a call that was only thought of
	Index     int     // from 1
	Tool      string
	Arguments json.RawMessage
	Mode      string          // the setting mode
	Dir       string          // relative paths are relative to it; "": they cannot be told
	Schema    json.RawMessage // of the tool's arguments; nil: none is known
}

// Ruling is what rules say of a call.
type Ruling struct {
	Effect string // Allow, Deny or Ask; Ask where no rule decides
	Rule   *Rule  // that decides, perhaps a default; nil: none
	// Untold: the rule denies, but for this call it cannot be told whether it does.
	Untold bool
	// Inherited: the rule is a parent context's.
	Inherited bool
	Why       string // the rule decides
	// Without is what would be the case without the rule.
	Without *Ruling
	// Notes say of each rule for this tool whether it holds, and why.
	Notes []RuleNote
	// Question is what was asked about a call of a store, with what stands around it there.
	Question Question
}

// RuleNote says whether a rule holds.
type RuleNote struct {
	Rule  *Rule
	Holds bool
	Why   string
}

// Broken is an example that rules do not hold to.
type Broken struct {
	Rule    *Rule // that it is kept with
	Example string
	Is      string    // what they decide
	At      pool.Time // from then on, as rules expire; 0: at once
}

// ParseExample reads an example of what rules have to decide: TOOL ARGUMENTS => EFFECT. Without arguments the call has none.
func ParseExample(s string) (tool string, arguments json.RawMessage, effect string, err error) {
	at := strings.LastIndex(s, "=>")
	if at < 0 {
		return "", nil, "", Invalidf("the example %q: write TOOL ARGUMENTS => allow, ask or deny", s)
	}
	tool, rest, _ := strings.Cut(strings.TrimSpace(s[:at]), " ")
	effect = strings.TrimSpace(s[at+2:])
	if arguments = json.RawMessage(strings.TrimSpace(rest)); len(arguments) == 0 {
		arguments = nil
	}
	switch {
	case tool == "":
		return "", nil, "", Invalidf("the example %q names no tool", s)
	case arguments != nil && !json.Valid(arguments):
		return "", nil, "", Invalidf("the example %q: its arguments are no JSON", s)
	case effect != Allow && effect != Ask && effect != Deny:
		return "", nil, "", Invalidf("the example %q ends in none of allow, ask, deny", s)
	}
	return tool, arguments, effect, nil
}
