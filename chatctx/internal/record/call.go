package record

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/pool"
)

// CallRecord is the state of a call that was open in this store at some time. A call without a record has the state that its message says.
type CallRecord struct {
	CallID    string          `cbor:"1,keyasint"` // the provider's
	Tool      string          `cbor:"2,keyasint"`
	Status    pool.Status     `cbor:"3,keyasint"`
	Execution pool.Execution  `cbor:"4,keyasint"`
	Reason    string          `cbor:"5,keyasint,omitempty"`
	Since     pool.Time       `cbor:"6,keyasint"`
	Home      pool.Home       `cbor:"7,keyasint"`           // where its message stands
	Effective json.RawMessage `cbor:"8,keyasint,omitempty"` // the arguments that an approval put in place of the proposed ones
	Expires   pool.Time       `cbor:"9,keyasint,omitempty"`
	Decisions []Decision      `cbor:"10,keyasint,omitempty"`
	Token     pool.ID         `cbor:"11,keyasint,omitzero"` // of the last claim
	// Result is the message with the call's result while no branch holds it, because no branch held the call's message when it came. The result follows
	// when the call's message comes back.
	Result pool.ID `cbor:"12,keyasint,omitzero"`
	// Program brought the call, by the operation Origin: append, reply, fork, import …
	Program string `cbor:"13,keyasint,omitempty"`
	Origin  string `cbor:"14,keyasint,omitempty"`

	// Unknown has the keys of the stored form that this program does not know.
	Unknown pool.Unknown `cbor:"-" json:"-"`
}

// Decision is one recorded step in the life of a call. From and To are values of CallState.
type Decision struct {
	At         pool.Time
	From       string
	To         string
	ByKind     string // one of the By… constants
	ByName     string
	Program    string
	Reason     string
	ArgsSHA256 pool.Hash       // of the arguments that the decision is about
	Arguments  json.RawMessage // that an approval put in place of the proposed ones
	// Said: an imported file reports the step. It is no decision of this store and has no effect.
	Said bool
	User string // on a store that a server keeps: Store.User
	// Claimed is the name that whoever took the step gave; it is not checked. ByName is the user that the program ran as.
	Claimed string
	// Runs, of an approval, is what the call was to run with; of a claim, what ran. nil: the step was stored before there was this field, or is another one, or
	// a program ran the call with something of its own.
	Runs *Runs

	// Unknown has the keys of the stored form that this program does not know.
	Unknown pool.Unknown `cbor:"-" json:"-"`
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
)

// ChangedBy returns who approved the call with other arguments, nil if nobody did. Where no decision says it, a file did.
func (c *CallRecord) ChangedBy() *pool.Decider {
	if c.Effective == nil {
		return nil
	}
	for _, d := range slices.Backward(c.Decisions) {
		if d.To == CallState(pool.Approved, pool.NotRun) && d.Arguments != nil {
			return &pool.Decider{Kind: d.ByKind, Name: d.ByName, Claimed: d.Claimed, Said: d.Said}
		}
	}
	return &pool.Decider{Kind: ByImport, Said: true}
}

func (c *CallRecord) Open() bool {
	return (&pool.Call{Status: c.Status, Execution: c.Execution}).Open()
}

// Listed reports whether the call is in the index of unanswered calls: it is open, or its result waits for a branch.
func (c *CallRecord) Listed() bool { return c.Open() || c.Result != (pool.ID{}) }

func (c *CallRecord) State() string { return CallState(c.Status, c.Execution) }

// CallState names a state of a call: pending/none, approved/running, denied/none …
func CallState(status pool.Status, execution pool.Execution) string {
	return string(status) + "/" + string(execution)
}

func CallKey(ctx, message pool.ID, index int) []byte {
	key := append(append(make([]byte, 0, 34), ctx[:]...), message[:]...)
	return binary.BigEndian.AppendUint16(key, uint16(index))
}

func OpenKey(c *CallRecord, ctx, message pool.ID, index int) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 42), uint64(c.Since)), CallKey(ctx, message, index)...)
}

func UnansweredKey(ctx pool.ID, home pool.Home, index int) []byte {
	key := append(make([]byte, 0, 34), ctx[:]...)
	key = binary.BigEndian.AppendUint64(key, home.Segment)
	key = binary.BigEndian.AppendUint64(key, home.Position)
	return binary.BigEndian.AppendUint16(key, uint16(index))
}

// CallIDKey is the key of a call in the index by the provider's ids. A long id is replaced by its hash.
func CallIDKey(ctx pool.ID, callID string, rest ...byte) []byte {
	if len(callID) > maxCallID {
		callID = fmt.Sprintf("%x", sha256.Sum256([]byte(callID)))
	}
	key := append(append(make([]byte, 0, 16+len(callID)+1+len(rest)), ctx[:]...), callID...)
	return append(append(key, 0), rest...)
}

// maxCallID is the longest provider's id, in bytes, that stands in a key unchanged.
const maxCallID = 256

// DecodeCall reads a call's record; it returns nil for a nil raw.
func DecodeCall(key, raw []byte) (*CallRecord, error) {
	if raw == nil {
		return nil, nil
	}
	rec := &CallRecord{}
	err := pool.CheckRecord(raw, nil)
	if err == nil {
		err = DecMode.Unmarshal(raw, rec)
	}
	if err != nil {
		return nil, Damaged("the record of call %x: %v", key, err)
	}
	return rec, nil
}

func CallOfKey(key []byte) (message pool.ID, index int) {
	return pool.ID(key[16:32]), int(binary.BigEndian.Uint16(key[32:]))
}

func HomeBytes(h pool.Home) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, h.Segment), h.Position)
}

// undecided makes an open call wait for a decision here: incoming data decides nothing, whatever it says of approvals and of a call's execution. A call
// without a state waits too.
func undecided(c *pool.Call) {
	switch {
	case c.Status == pool.Denied:
		c.Execution = pool.NotRun
	case c.Status == "" || c.Open():
		c.Status, c.Execution, c.Reason = pool.Pending, pool.NotRun, ""
	}
}

// settle sets the states of calls in messages that come in together: a call whose result is among them is done or failed, any other that was not denied
// waits for a decision here.
func settle(msgs []*pool.Message) {
	for i, m := range msgs {
		for j := range m.Calls {
			c := &m.Calls[j]
			if c.Status == pool.Denied {
				continue
			}
			r := ResultFor(c.ID, msgs[i+1:])
			switch {
			case r == nil:
				c.Status, c.Execution, c.Reason = pool.Pending, pool.NotRun, ""
			case c.Status == pool.Pending:
				c.Status, c.Execution = pool.Approved, pool.Done
				if r.IsError {
					c.Execution = pool.Failed
				}
			}
		}
	}
}

// ResultFor finds the result of a call in the messages after it, up to the next use of its id. It returns nil if there is none.
func ResultFor(callID string, after []*pool.Message) *pool.Result {
	for _, m := range after {
		if m.Result != nil && m.Result.RequestID == callID && m.Kind != pool.Late {
			return m.Result
		}
		for i := range m.Calls {
			if m.Calls[i].ID == callID {
				return nil
			}
		}
	}
	return nil
}

// CallRef names a call: MESSAGE:INDEX, where MESSAGE is a Ref and INDEX counts from 1, or the provider's id if that is unique.
type CallRef string

// Call is a call of a stored message in its present state. A call that came with its answer has no Since and no Decisions.
type Call struct {
	pool.Call
	Context   pool.ID
	Message   pool.ID
	Index     int    // in the message, from 1
	Branch    string // the branch that holds the message; "" for none: then the call is in no list and cannot be decided
	Since     pool.Time
	Expires   pool.Time // zero: never
	Decisions []Decision
	Claim     *Claim // of the program that runs it; nil if none does
}

// Ref returns the full reference to the call.
func (c *Call) Ref() CallRef { return CallRef(fmt.Sprintf("%s:%d", c.Message, c.Index)) }

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
