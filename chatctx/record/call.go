package record

import (
	"encoding/json"

	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/pool"
)

// CallRecord is the state of a call that was open in this store at some time. A call without a record has the state that its message says.
type CallRecord struct {
	CallID    string          `cbor:"1,keyasint" json:"call_id"` // the provider's
	Tool      string          `cbor:"2,keyasint" json:"tool_name"`
	Status    pool.Status     `cbor:"3,keyasint" json:"approval_status"`
	Execution pool.Execution  `cbor:"4,keyasint" json:"execution"`
	Reason    string          `cbor:"5,keyasint,omitempty" json:"reason"`
	Since     pool.Time       `cbor:"6,keyasint" json:"since"`
	Home      pool.Home       `cbor:"7,keyasint" json:"-"`                             // where its message stands
	Effective json.RawMessage `cbor:"8,keyasint,omitempty" json:"effective_arguments"` // the arguments that an approval put in place of the proposed ones
	Expires   pool.Time       `cbor:"9,keyasint,omitempty" json:"expires"`
	Decisions []Decision      `cbor:"10,keyasint,omitempty" json:"decisions"`
	Token     pool.ID         `cbor:"11,keyasint,omitzero" json:"-"` // of the last claim
	// Result is the message with the call's result while no branch holds it, because no branch held the call's message when it came. The result follows
	// when the call's message comes back.
	Result pool.ID `cbor:"12,keyasint,omitzero" json:"-"`
	// Program brought the call, by the operation Origin: append, reply, fork, import …
	Program string `cbor:"13,keyasint,omitempty" json:"-"`
	Origin  string `cbor:"14,keyasint,omitempty" json:"-"`
	Gate    *Gate  `cbor:"15,keyasint,omitempty" json:"-"` // nil: no agent's hook brought the call

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

// Decision is one recorded step in the life of a call. From and To are values of CallState.
type Decision struct {
	At   pool.Time `cbor:"1,keyasint" json:"at" empty:"null"`
	From string    `cbor:"2,keyasint" json:"from"`
	To   string    `cbor:"3,keyasint" json:"to"`
	// Decider took the step: its Kind is one of the By… constants, its Name the user that the program ran as.
	pool.Decider `cbor:"," json:"by"`
	Program      string          `cbor:"6,keyasint,omitempty" json:"program"`
	User         string          `cbor:"11,keyasint,omitempty" json:"user,omitempty" after:"runs"` // on a store that a server keeps: the server's user, a slash, the local user
	Reason       string          `cbor:"7,keyasint,omitempty" json:"reason"`
	ArgsSHA256   pool.Hash       `cbor:"8,keyasint,omitzero" json:"arguments_sha256,omitzero"` // of the arguments that the decision is about
	Arguments    json.RawMessage `cbor:"9,keyasint,omitempty" json:"arguments,omitempty"`      // that an approval put in place of the proposed ones
	// Runs, of an approval, is what the call was to run with; of a claim, what ran. nil: the step was stored before there was this field, or is another one, or
	// a program ran the call with something of its own.
	Runs *Runs `cbor:"13,keyasint,omitempty" json:"runs,omitempty"`

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

// The kinds of decision makers.
const (
	ByPerson    = "person"
	ByRule      = "rule"      // named by its id
	ByInherited = "inherited" // a rule of a parent context, named by its id
	ByImport    = "import"
	ByExpiry    = "expiry"
	ByCancel    = "cancel" // a person who gave the call up
	ByProgram   = "program"
	ByCheck     = "check" // a program that found that the call cannot run
	ByAgent     = "agent" // the agent that asked, in its own way
)

// CallState names a state of a call: pending/none, approved/running, denied/none …
func CallState(status pool.Status, execution pool.Execution) string {
	return string(status) + "/" + string(execution)
}

// Call is a call of a stored message in its present state. A call that came with its answer has no Since and no Decisions.
type Call struct {
	pool.Call
	Message   pool.ID    `json:"message" after:"id"`
	Context   pool.ID    `json:"context" after:"message"`
	Branch    string     `json:"branch" after:"context"` // the branch that holds the message; "" for none: then the call is in no list and cannot be decided
	Index     int        `json:"-"`                      // in the message, from 1
	Since     pool.Time  `json:"since" empty:"null"`
	Expires   pool.Time  `json:"expires,omitempty"` // zero: never
	Decisions []Decision `json:"-"`
	Claim     *Claim     `json:"-"`              // of the program that runs it; nil if none does
	Gate      *Gate      `json:"gate,omitempty"` // of a call that an agent's hook brought
}

// CallStep is one step in the life of a call: its beginning, whose From is "", or a decision.
type CallStep struct {
	ID      string  `json:"id"`
	Context pool.ID `json:"context"`
	Message pool.ID `json:"-"`
	Index   int     `json:"-"` // from 1
	Tool    string  `json:"tool_name"`
	// Origin, of a beginning, is the operation that brought the call: append, reply, fork, import …
	Origin string `json:"origin,omitempty" after:"program"`
	Decision
}

// Ref returns the full reference to the call.
func (c *Call) Ref() CallRef { return CallRefTo(c.Message, c.Index) }

// State returns the call's CallState.
func (c *Call) State() string { return CallState(c.Status, c.Execution) }

// RunArguments returns the arguments that the call runs with, in canonical form: those that an approval put in place, else the proposed ones. Rules judge
// these, an approval holds for their hash, and the tool gets them. Arguments that cannot be parsed are returned as they are.
func (c *Call) RunArguments() json.RawMessage {
	if c.Effective != nil {
		return jsontree.Canonical(c.Effective)
	}
	return jsontree.Canonical(c.Arguments)
}

// The values of WaitsFor.
const (
	WaitsForPerson  = "person"  // a decision, or word of the outcome
	WaitsForProgram = "program" // a program to run it
	WaitsForChild   = "child"   // its sub-context
	WaitsForResult  = "result"  // the program that runs it
)

// WaitsFor returns what an open call waits for, "" if the call is not open. A rule may also make the decision for which it waits.
func (c *Call) WaitsFor() string {
	switch {
	case !c.Open():
		return ""
	case c.Status == pool.Pending, c.Execution == pool.Uncertain:
		return WaitsForPerson
	case c.Execution != pool.Running:
		return WaitsForProgram
	case c.Claim != nil && c.Claim.Task != (pool.ID{}):
		return WaitsForChild
	}
	return WaitsForResult
}

// Verdict is a decision about a call.
type Verdict struct {
	Status pool.Status // Approved or Denied
	Kind   string      // one of the By… constants; "" means ByPerson
	// Name is who decides. For a rule it is the rule's id. For a person or program it is the name that they give themselves, recorded as claimed beside the
	// store's person or program; "" claims nothing.
	Name   string
	Reason string // the reason of a denial goes to the model unchanged
	// Arguments, of an approval, replace the proposed arguments. Nil keeps those.
	Arguments json.RawMessage
	// Runs, of an approval, is what the tool has to run with, as it was shown: if it is another by now, nothing is decided. Nil takes any.
	Runs *Runs
	// Key makes the decision once, as AppendOptions.Key does: the second one with it changes nothing.
	Key string
}

// Claimed is what a claim of a call gives: the right to run it.
type Claimed struct {
	Call  *Call
	Token pool.ID // lets another process renew and resolve
	// Tool is the store's tool, nil if it has none, as it was when the claim was made: the approval holds for it. Its folder is that of the setting
	// calls.folder if it names none itself.
	Tool *Tool
	// Older: the approval was stored before approvals held what the tool runs, so nothing shows whether the tool was replaced after it.
	Older bool
}

// CallAnswer is the outcome of a call. Of Parts, JSON and Text in Result the first that is not empty counts, as in pool.Result; RequestID and Tool are filled
// in.
type CallAnswer struct {
	Result pool.Result
	// Beside is further content of the result message, for people and programs: for example the full output when the result has a shortened one.
	Beside []pool.Part
	// Kind is the kind of the message: "interrupted" if the tool was ended.
	Kind string
	// By is what the person who answers calls itself, recorded as claimed beside the store's person. "" means that the program that ran the call answers,
	// or, for an uncertain call without a Token, the store's person.
	By string
	// Token is the claim's token. Without it only an uncertain call can be answered.
	Token pool.ID
}
