package poolstore

import (
	"fmt"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// usualRecord bounds the room that is made for a record before it is written, since a message's weight counts what is no part of the record.
const usualRecord = 8 << 10

// Encode returns m's record: deterministic CBOR, the same bytes for the same message, followed by its CRC-32C. Part.Data is not in it. Encode returns
// ErrInvalid for what could not be read back: text that is not UTF-8, a time that cannot be written, too many parts.
func Encode(m *pool.Message) ([]byte, error) {
	most := max(len(m.Content), len(m.Calls), len(m.AppData), len(m.Meta.ProviderData), len(m.Extra))
	if m.Result != nil {
		most = max(most, len(m.Result.Parts))
	}
	if most > stored.MaxItems || stored.Flaw(m) != nil {
		if err := m.Validate(); err != nil { // it says where
			return nil, err
		}
	}
	return stored.Seal(stored.MarshalSound(m, min(Weight(m), usualRecord)))
}

// Decode reads a record into m, which shares no memory with b. If m has an ID, the record must be that message's. The error for a record that cannot be
// read names the message and wraps kv.ErrDamaged.
func Decode(b []byte, m *pool.Message) error {
	want := m.ID
	*m = pool.Message{}
	if err := decode(b, m); err != nil {
		return damaged(want, err)
	}
	if want != (pool.ID{}) && m.ID != want {
		return damaged(want, fmt.Errorf("its record holds message %s", m.ID))
	}
	return nil
}

func damaged(id pool.ID, err error) error {
	if id == (pool.ID{}) {
		return fmt.Errorf("%w: a message's record: %v", kv.ErrDamaged, err)
	}
	return fmt.Errorf("%w: message %s: %v", kv.ErrDamaged, id, err)
}

func decode(b []byte, m *pool.Message) error {
	body, err := stored.Unseal(b)
	if err != nil {
		return err
	}
	return stored.UnmarshalMessage(body, m)
}
