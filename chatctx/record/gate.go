package record

import (
	"encoding/json"
	"errors"

	"github.com/chatctx/chatctx/pool"
)

// Gate is what the hook of another program's agent said of a call before it ran. A call with one is the agent's to run: its decisions are made here, and
// nothing here runs it.
type Gate struct {
	Agent    string `cbor:"1,keyasint" json:"agent"` // the format under which its sessions are imported: claude-code, codex …
	Version  string `cbor:"2,keyasint,omitempty" json:"agent_version,omitempty"`
	Session  string `cbor:"3,keyasint" json:"session"`
	SubAgent string `cbor:"4,keyasint,omitempty" json:"sub_agent,omitempty"`
	Turn     string `cbor:"5,keyasint,omitempty" json:"turn,omitempty"`
	// Permissions is the agent's permission mode, in its words.
	Permissions string    `cbor:"6,keyasint,omitempty" json:"permissions,omitempty"`
	Folder      string    `cbor:"7,keyasint,omitempty" json:"folder,omitempty"`
	Head        string    `cbor:"8,keyasint,omitempty" json:"head,omitempty"`  // the commit of the folder's repository
	Level       string    `cbor:"9,keyasint,omitempty" json:"level,omitempty"` // how far the agent is kept from decisions: own, apart, served
	Ordinal     int       `cbor:"10,keyasint,omitempty" json:"ordinal,omitempty"`
	Hash        pool.Hash `cbor:"11,keyasint" json:"-"` // SHA-256 of the arguments in canonical form, as the hook had them
	// Tool and Arguments are the hook's where the message that the call became has others.
	Tool      string          `cbor:"12,keyasint,omitempty" json:"hook_tool,omitempty"`
	Arguments json.RawMessage `cbor:"13,keyasint,omitempty" json:"hook_arguments,omitempty"`
	Waiter    *Claim          `cbor:"14,keyasint,omitempty" json:"-"`                  // who waits for the decision; nil: nobody, and the call may wait for long
	Past      bool            `cbor:"15,keyasint,omitempty" json:"ran_past,omitempty"` // it ran without an answer from here

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

// The modes of a gate.
const (
	GateRecord = "record" // all calls are stored, and the agent decides
	GateRules  = "rules"  // what no rule matches is left to the agent
	GateHold   = "hold"   // what no rule decides waits for a person
)

// The levels of a gate: how far the agent is kept from deciding about its own calls.
const (
	LevelOwn    = "own"    // agent and person are one user of the system: entry points refuse, and nothing holds
	LevelApart  = "apart"  // the agent is another user
	LevelServed = "served" // the store belongs to a user of its own
)

// ErrDecider means that a change needs somebody who may decide about an agent's calls (OpenOptions.Decider), and that the one who asked has not shown to be it.
var ErrDecider = errors.New("only who may decide about an agent's calls may do this")
