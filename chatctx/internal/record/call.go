package record

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/pool"
)

// CallRecord is the state of a call that was open in this store at some time. A call without a record is as its message says.
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
	// Result is the message with its result, while no branch holds that: none held the call's message when it came. It goes where the call's message comes back.
	Result pool.ID `cbor:"12,keyasint,omitzero"`
	// Program brought the call, by the operation Origin: append, reply, fork, import …
	Program string `cbor:"13,keyasint,omitempty"`
	Origin  string `cbor:"14,keyasint,omitempty"`
}

// Decision is one step in the life of a call, on record. From and To are what CallState gives.
type Decision struct {
	At         pool.Time
	From       string
	To         string
	ByKind     string // one of the By… constants
	ByName     string
	Program    string
	Reason     string
	ArgsSHA256 pool.Hash       // of the arguments that were decided about
	Arguments  json.RawMessage // that an approval put in place of the proposed ones
	// Said: a file that was imported tells of it. It is no decision of this store, and nothing acts on it.
	Said bool
	User string // on a store that a server keeps: Store.User
	// Claimed is the name that whoever took the step gave. Nobody checked it: ByName is the user that the program ran as.
	Claimed string
}

// The kinds of whoever takes a step with a call.
const (
	ByPerson    = "person"
	ByRule      = "rule"      // named by its id
	ByInherited = "inherited" // a rule of a parent context, named by its id
	ByImport    = "import"
	ByExpiry    = "expiry"
	ByCancel    = "cancel" // a person too, who gave the call up
	ByProgram   = "program"
	ByCheck     = "check" // a program that found that the call cannot be run
)

func (c *CallRecord) Open() bool {
	return (&pool.Call{Status: c.Status, Execution: c.Execution}).Open()
}

// Listed reports whether the call is among the unanswered ones: it is open, or its result waits for a branch.
func (c *CallRecord) Listed() bool { return c.Open() || c.Result != (pool.ID{}) }

func (c *CallRecord) State() string { return CallState(c.Status, c.Execution) }

// CallState names the state of a call on record: pending/none, approved/running, denied/none …
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

// CallIDKey is the key of a call in the index by the provider's ids. A long id stands there as its hash.
func CallIDKey(ctx pool.ID, callID string, rest ...byte) []byte {
	if len(callID) > maxCallID {
		callID = fmt.Sprintf("%x", sha256.Sum256([]byte(callID)))
	}
	key := append(append(make([]byte, 0, 16+len(callID)+1+len(rest)), ctx[:]...), callID...)
	return append(append(key, 0), rest...)
}

// maxCallID is the length in bytes up to which a provider's id is a key as it is.
const maxCallID = 256

// DecodeCall reads a call's record, nil for none.
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

// undecided makes an open call wait for a decision here: what comes in decides nothing, whatever it says of approvals and of who runs a call. No state is pending too.
func undecided(c *pool.Call) {
	switch {
	case c.Status == pool.Denied:
		c.Execution = pool.NotRun
	case c.Status == "" || c.Open():
		c.Status, c.Execution, c.Reason = pool.Pending, pool.NotRun, ""
	}
}

// settle gives the calls of messages that come in together their state: a call whose result comes along is done, any other that was not denied waits for a decision here.
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

// ResultFor finds the result of a call among the messages after it, up to the next use of its id.
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

// CallRef names a call: MESSAGE:INDEX, the message as a Ref names one and the index counted from 1; or the provider's id, where that is unique.
type CallRef string

// Call is a call of a stored message as it is now. A call that came answered has no Since and no Decisions.
type Call struct {
	pool.Call
	Context pool.ID
	Message pool.ID
	Index   int    // in the message, from 1
	Branch  string // that holds the message; "" for none: then it is in no list and cannot be decided
	Since   pool.Time
	Expires pool.Time // zero: never
	// Effective are the arguments that an approval put in place of the proposed ones, nil for none.
	Effective json.RawMessage
	Decisions []Decision
	Claim     *Claim // who runs it; nil for nobody
}

// Ref is the whole name of the call.
func (c *Call) Ref() CallRef { return CallRef(fmt.Sprintf("%s:%d", c.Message, c.Index)) }

// State is the call's CallState.
func (c *Call) State() string { return CallState(c.Status, c.Execution) }

// RunArguments are the arguments that it runs with, in canonical form: those that an approval put in place, else the proposed ones. What is judged, approved by its hash, claimed and run is this. Those that
// cannot be read are as they came.
func (c *Call) RunArguments() json.RawMessage {
	if c.Effective != nil {
		return jsontree.Canonical(c.Effective)
	}
	return jsontree.Canonical(c.Arguments)
}

// What an open call waits for.
const (
	WaitsForPerson  = "person"  // a decision, or a word about what became of it
	WaitsForProgram = "program" // that runs it
	WaitsForChild   = "child"   // its sub-context
	WaitsForResult  = "result"  // of the program that runs it
)

// WaitsFor says what an open call waits for, "" where it waits for nothing. A decision may also be a rule's.
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
