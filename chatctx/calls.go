package chatctx

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// callRecord is the state of a call that was open in this store at some time. A call without a record is as its message says.
type callRecord struct {
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
	Token     ID              `cbor:"11,keyasint,omitzero"` // of the last claim
}

// Decision is one step in the life of a call, on record. From and To are what CallState gives.
type Decision struct {
	At         pool.Time       `cbor:"1,keyasint"`
	From       string          `cbor:"2,keyasint"`
	To         string          `cbor:"3,keyasint"`
	ByKind     string          `cbor:"4,keyasint"` // one of the By… constants
	ByName     string          `cbor:"5,keyasint,omitempty"`
	Program    string          `cbor:"6,keyasint,omitempty"`
	Reason     string          `cbor:"7,keyasint,omitempty"`
	ArgsSHA256 pool.Hash       `cbor:"8,keyasint,omitzero"`  // of the arguments that were decided about
	Arguments  json.RawMessage `cbor:"9,keyasint,omitempty"` // that an approval put in place of the proposed ones
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
)

func (c *callRecord) open() bool {
	return (&pool.Call{Status: c.Status, Execution: c.Execution}).Open()
}

func (c *callRecord) state() string { return CallState(c.Status, c.Execution) }

// CallState names the state of a call on record: pending/none, approved/running, denied/none …
func CallState(status pool.Status, execution pool.Execution) string {
	return string(status) + "/" + string(execution)
}

func callKey(ctx, message ID, index int) []byte {
	key := append(append(make([]byte, 0, 34), ctx[:]...), message[:]...)
	return binary.BigEndian.AppendUint16(key, uint16(index))
}

func openKey(c *callRecord, ctx, message ID, index int) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 42), uint64(c.Since)), callKey(ctx, message, index)...)
}

func unansweredKey(ctx ID, home pool.Home, index int) []byte {
	key := append(make([]byte, 0, 34), ctx[:]...)
	key = binary.BigEndian.AppendUint64(key, home.Segment)
	key = binary.BigEndian.AppendUint64(key, home.Position)
	return binary.BigEndian.AppendUint16(key, uint16(index))
}

// callIDKey is the key of a call in the index by the provider's ids. A long id stands there as its hash.
func callIDKey(ctx ID, callID string, rest ...byte) []byte {
	if len(callID) > maxCallID {
		callID = fmt.Sprintf("%x", sha256.Sum256([]byte(callID)))
	}
	key := append(append(make([]byte, 0, 16+len(callID)+1+len(rest)), ctx[:]...), callID...)
	return append(append(key, 0), rest...)
}

// maxCallID is the length in bytes up to which a provider's id is a key as it is.
const maxCallID = 256

// unanswered is an open call as its index names it.
type unanswered struct {
	home    pool.Home
	message ID
	index   int
	callID  string
}

// unansweredIn gives the open calls of messages that stand in pieces, in the order of the pieces.
func unansweredIn(tx kv.Tx, ctx ID, pieces []branch.Piece) ([]unanswered, error) {
	var out []unanswered
	for _, p := range pieces {
		r := kv.Range{
			From: unansweredKey(ctx, pool.Home{Segment: p.Segment, Position: p.From}, 0),
			To:   unansweredKey(ctx, pool.Home{Segment: p.Segment, Position: p.To}, 0),
		}
		err := tx.Scan(unansweredBucket, r, func(key, value []byte) error {
			out = append(out, unanswered{
				home:    pool.Home{Segment: binary.BigEndian.Uint64(key[16:]), Position: binary.BigEndian.Uint64(key[24:])},
				message: ID(value[:16]), index: int(binary.BigEndian.Uint16(key[32:])), callID: string(value[16:]),
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// openCalls registers the open calls of a message that was just put at its home.
func (t *txn) openCalls(m *Message) error {
	for i := range m.Calls {
		c := &m.Calls[i]
		if !c.Open() {
			continue
		}
		rec := &callRecord{CallID: c.ID, Tool: c.Tool, Status: c.Status, Execution: c.Execution, Since: t.now, Home: m.Home}
		if err := t.putCall(m.ID, i, rec); err != nil {
			return err
		}
	}
	return nil
}

// putCall writes a call's state, keeps its indexes, and puts what was there on the journal.
func (t *txn) putCall(message ID, index int, rec *callRecord) error {
	raw, err := encodeRecord(rec)
	if err != nil {
		return err
	}
	return t.putRaw(callBucket, callKey(t.id, message, index), raw)
}

// callChanged keeps the indexes in step with a call's record. A call is in the open index while a branch holds its message, and among the unanswered ones
// wherever its message is, so that it waits again when an undo brings the message back. A new call comes into the open index with its message, by show.
func (t *txn) callChanged(key, before, after []byte) error {
	was, err := decodeCall(key, before)
	if err != nil {
		return err
	}
	is, err := decodeCall(key, after)
	if err != nil {
		return err
	}
	shown, err := t.unlistCall(key, was)
	if err != nil {
		return err
	}
	switch {
	case is == nil:
		return t.tx.Delete(callIDBucket, callIDKey(t.id, was.CallID, key[16:]...))
	case was == nil:
		if err := t.tx.Put(callIDBucket, callIDKey(t.id, is.CallID, key[16:]...), []byte{}); err != nil {
			return err
		}
	case !was.open() && is.open():
		holders, err := t.holders(is.Home)
		if err != nil {
			return err
		}
		shown = len(holders) > 0
	}
	return t.listCall(key, is, shown)
}

// decodeCall reads a call's record, nil for none.
func decodeCall(key, raw []byte) (*callRecord, error) {
	if raw == nil {
		return nil, nil
	}
	rec := &callRecord{}
	err := pool.CheckRecord(raw, nil)
	if err == nil {
		err = decMode.Unmarshal(raw, rec)
	}
	if err != nil {
		return nil, damaged("the record of call %x: %v", key, err)
	}
	return rec, nil
}

// unlistCall takes a call out of the indexes of those that wait, and reports whether a branch showed it.
func (t *txn) unlistCall(key []byte, rec *callRecord) (shown bool, err error) {
	if rec == nil || !rec.open() {
		return false, nil
	}
	message, index := callOfKey(key)
	at := openKey(rec, t.id, message, index)
	old, err := t.tx.Get(openBucket, at)
	if err != nil {
		return false, err
	}
	shown = old != nil
	if err := t.tx.Delete(openBucket, at); err != nil {
		return false, err
	}
	return shown, t.tx.Delete(unansweredBucket, unansweredKey(t.id, rec.Home, index))
}

// listCall puts a call that waits into the indexes; shown: a branch holds its message.
func (t *txn) listCall(key []byte, rec *callRecord, shown bool) error {
	if !rec.open() {
		return nil
	}
	message, index := callOfKey(key)
	value := append(append(make([]byte, 0, 16+len(rec.CallID)), message[:]...), rec.CallID...)
	if err := t.tx.Put(unansweredBucket, unansweredKey(t.id, rec.Home, index), value); err != nil || !shown {
		return err
	}
	return t.tx.Put(openBucket, openKey(rec, t.id, message, index), homeBytes(rec.Home))
}

func callOfKey(key []byte) (message ID, index int) {
	return ID(key[16:32]), int(binary.BigEndian.Uint16(key[32:]))
}

// holders names the branches that hold a place, at most two of them: the ones that this operation has read come first.
func (t *txn) holders(home pool.Home) ([]string, error) {
	var names []string
	err := t.each(func(b *branch.Branch) error {
		if len(names) == 2 {
			return kv.ErrStop
		}
		if branch.Place(b.Pieces, home.Segment, home.Position) >= 0 {
			names = append(names, b.Name)
		}
		return nil
	})
	return names, err
}

func homeBytes(h pool.Home) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, h.Segment), h.Position)
}

// show puts the calls that stand in pieces into the open index, or takes them out: their messages came onto a branch, or left it.
func (t *txn) show(pieces []branch.Piece, on bool) error {
	calls, err := unansweredIn(t.tx, t.id, pieces)
	if err != nil {
		return err
	}
	for _, u := range calls {
		var rec callRecord
		ok, err := getRecord(t.tx, callBucket, callKey(t.id, u.message, u.index), &rec)
		if err != nil || !ok {
			return err
		}
		key := openKey(&rec, t.id, u.message, u.index)
		if on {
			err = t.tx.Put(openBucket, key, homeBytes(rec.Home))
		} else {
			err = t.tx.Delete(openBucket, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answer closes the open call of a branch that a result is for, if there is one: a program that brings a result has run the call.
func (t *txn) answer(b *branch.Branch, r *pool.Result) error {
	for i := len(b.Pieces) - 1; i >= 0; i-- {
		calls, err := unansweredIn(t.tx, t.id, b.Pieces[i:i+1])
		if err != nil {
			return err
		}
		for j := len(calls) - 1; j >= 0; j-- {
			if u := calls[j]; u.callID == r.RequestID {
				return t.closeCall(u, r.IsError)
			}
		}
	}
	return nil
}

func (t *txn) closeCall(u unanswered, failed bool) error {
	var rec callRecord
	ok, err := getRecord(t.tx, callBucket, callKey(t.id, u.message, u.index), &rec)
	if err != nil || !ok {
		return err
	}
	from := rec.state()
	rec.Status, rec.Execution = pool.Approved, pool.Done
	if failed {
		rec.Execution = pool.Failed
	}
	rec.Decisions = append(rec.Decisions, Decision{At: t.now, From: from, To: rec.state(), ByKind: "program",
		ByName: t.store.program, Program: t.store.program, Reason: "result appended"})
	return t.putCall(u.message, u.index, &rec)
}

// fillCalls sets the calls of a message that was read to their present state.
func fillCalls(tx kv.Tx, ctx ID, m *Message) error {
	for i := range m.Calls {
		c := &m.Calls[i]
		if !c.Open() {
			continue
		}
		var rec callRecord
		ok, err := getRecord(tx, callBucket, callKey(ctx, m.ID, i), &rec)
		if err != nil {
			return err
		}
		if ok {
			c.Status, c.Execution, c.Reason = rec.Status, rec.Execution, rec.Reason
		}
	}
	return nil
}

// settle gives the calls of messages that are about to be appended together their state: a call whose result comes along is done.
func settle(msgs []*Message) {
	for i, m := range msgs {
		for j := range m.Calls {
			c := &m.Calls[j]
			if c.Execution == "" {
				c.Execution = pool.NotRun
			}
			if c.Status == "" {
				c.Status = pool.Pending
			}
			if !c.Open() {
				continue
			}
			if r := resultFor(c.ID, msgs[i+1:]); r != nil {
				c.Status, c.Execution = pool.Approved, pool.Done
				if r.IsError {
					c.Execution = pool.Failed
				}
			}
		}
	}
}

// resultFor finds the result of a call among the messages after it, up to the next use of its id.
func resultFor(callID string, after []*Message) *pool.Result {
	for _, m := range after {
		if m.Result != nil && m.Result.RequestID == callID {
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
