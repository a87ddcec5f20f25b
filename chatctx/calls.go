package chatctx

import (
	"encoding/binary"
	"encoding/json"

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
}

// Decision is one step in the life of a call, on record.
type Decision struct {
	At         pool.Time `cbor:"1,keyasint"`
	From, To   string    `cbor:"2,keyasint"`
	ByKind     string    `cbor:"4,keyasint"` // person, rule, import, expiry, cancel, inherited, program
	ByName     string    `cbor:"5,keyasint,omitempty"`
	Program    string    `cbor:"6,keyasint,omitempty"`
	Reason     string    `cbor:"7,keyasint,omitempty"`
	ArgsSHA256 pool.Hash `cbor:"8,keyasint,omitzero"`
}

func (c *callRecord) open() bool {
	return (&pool.Call{Status: c.Status, Execution: c.Execution}).Open()
}

func (c *callRecord) state() string { return string(c.Status) + "/" + string(c.Execution) }

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
	raw, err := encMode.Marshal(rec)
	if err != nil {
		return err
	}
	return t.putRaw(callBucket, callKey(t.id, message, index), raw)
}

// callChanged keeps the indexes in step with a call's record. A call is in the open index while a branch holds its message, and among the unanswered ones
// wherever its message is, so that it waits again when an undo brings the message back.
func (t *txn) callChanged(key, before, after []byte) error {
	var was, is callRecord
	for raw, rec := range map[*callRecord][]byte{&was: before, &is: after} {
		if rec == nil {
			continue
		}
		if err := decMode.Unmarshal(rec, raw); err != nil {
			return damaged("the record of call %x: %v", key, err)
		}
	}
	message, index := ID(key[16:32]), int(binary.BigEndian.Uint16(key[32:]))
	if before != nil && was.open() {
		if err := t.tx.Delete(openBucket, openKey(&was, t.id, message, index)); err != nil {
			return err
		}
		if err := t.tx.Delete(unansweredBucket, unansweredKey(t.id, was.Home, index)); err != nil {
			return err
		}
	}
	if after == nil || !is.open() {
		return nil
	}
	value := append(append(make([]byte, 0, 16+len(is.CallID)), message[:]...), is.CallID...)
	if err := t.tx.Put(unansweredBucket, unansweredKey(t.id, is.Home, index), value); err != nil {
		return err
	}
	return t.tx.Put(openBucket, openKey(&is, t.id, message, index), homeBytes(is.Home))
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
