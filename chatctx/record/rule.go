package record

import (
	"strings"
	"time"

	"github.com/chatctx/chatctx/pool"
)

// The effects of a rule.
const (
	Allow = "allow"
	Deny  = "deny"
	Ask   = "ask"
)

// Rule says what to do with waiting calls. A Judge applies it.
type Rule struct {
	ID     pool.ID `cbor:"-" json:"rule"` // in the record's key
	Effect string  `cbor:"1,keyasint" json:"effect" words:"allow deny ask"`
	// Tool is a glob of tool names; * matches everything.
	Tool     string      `cbor:"2,keyasint" json:"tool"`
	When     []Condition `cbor:"3,keyasint,omitempty" json:"when"`              // all must hold
	Unless   []Condition `cbor:"14,keyasint,omitempty" json:"unless,omitempty"` // the rule does not apply if one of these holds
	Examples []string    `cbor:"15,keyasint,omitempty" json:"examples,omitempty"`
	// Default: the rule decides the calls that no other rule decides. A scope has at most one.
	Default bool `cbor:"7,keyasint,omitempty" json:"default,omitempty"`
	// The scope: a zero Context means the store; Branch and Message narrow it to a branch or to one call of the context.
	Context pool.ID       `cbor:"-" json:"context,omitzero"` // in the record's key
	Branch  pool.ID       `cbor:"4,keyasint,omitzero" json:"branch_id,omitzero"`
	Message pool.ID       `cbor:"5,keyasint,omitzero" json:"-"`
	Index   int           `cbor:"6,keyasint,omitempty" json:"-"`                 // of the call in Message, from 1
	Expires pool.Time     `cbor:"8,keyasint,omitempty" json:"expires,omitempty"` // the end of the rule; zero: never
	After   time.Duration `cbor:"9,keyasint,omitempty" json:"after,omitempty"`   // with Ask: calls expire after this time; 0: never
	Reason  string        `cbor:"10,keyasint,omitempty" json:"reason,omitempty"`
	Mode    string        `cbor:"11,keyasint,omitempty" json:"mode,omitempty"` // the rule holds only while the setting mode has this value; "": always
	By      string        `cbor:"12,keyasint,omitempty" json:"by"`
	Created pool.Time     `cbor:"13,keyasint,omitempty" json:"created_at" empty:"null"`

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

// Condition is a condition on a call's arguments.
type Condition struct {
	// Argument is a name; a dot goes deeper, and [0] or [*] into a list: file.path, "a.b", paths[*]. {} means all arguments as an object. With the operator
	// tool it is "".
	Argument string `cbor:"1,keyasint,omitempty" json:"argument,omitempty"`
	// Op is equals, prefix, glob, regexp, range (LO..HI, one may be empty), under (a folder), each (patterns of commands) or tool (a glob).
	Op    string `cbor:"2,keyasint" json:"op"`
	Value string `cbor:"3,keyasint" json:"value"`

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

// String returns the condition as it is written.
func (c Condition) String() string {
	if c.Argument == "" {
		return c.Op + " " + c.Value
	}
	return c.Argument + " " + c.Op + " " + c.Value
}

// ScopeWord names a rule's scope: call, branch, context or store.
func (r *Rule) ScopeWord() string {
	switch {
	case r.Message != (pool.ID{}):
		return "call"
	case r.Branch != (pool.ID{}):
		return "branch"
	case r.Context != (pool.ID{}):
		return "context"
	}
	return "store"
}

// String returns the rule on one line.
func (r *Rule) String() string {
	if r.Default {
		return "default " + r.Effect
	}
	words := []string{r.Effect, r.Tool}
	for _, c := range r.When {
		words = append(words, "when "+c.String())
	}
	for _, c := range r.Unless {
		words = append(words, "unless "+c.String())
	}
	return strings.Join(words, " ")
}

// Broken is an example that the rules no longer satisfy.
type Broken struct {
	Rule    *Rule     `json:"-"` // the rule that has the example
	Example string    `json:"example"`
	Is      string    `json:"is"`           // what the rules decide
	At      pool.Time `json:"at,omitempty"` // the time from which it is broken, as rules expire; 0: at once
}

// RuleScope says where a rule holds: for a call, else on a branch, else in the context.
type RuleScope struct {
	Branch bool    // on the batch's branch only
	Call   CallRef // for this call only
}
