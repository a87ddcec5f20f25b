package base

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

func CallKey(ctx, message pool.ID, index int) []byte {
	key := append(append(make([]byte, 0, 34), ctx[:]...), message[:]...)
	return binary.BigEndian.AppendUint16(key, uint16(index))
}

func OpenKey(c *record.CallRecord, ctx, message pool.ID, index int) []byte {
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
func DecodeCall(key, raw []byte) (*record.CallRecord, error) {
	if raw == nil {
		return nil, nil
	}
	rec := &record.CallRecord{}
	err := stored.CheckRecord(raw, nil)
	if err == nil {
		err = stored.Unmarshal(raw, rec)
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
