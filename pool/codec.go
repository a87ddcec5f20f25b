package pool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// maxItems bounds the parts, calls and named values of one message. Decoders have the same bound, so that a hostile record cannot claim a size that it does
// not have.
const maxItems = 100_000

var (
	encMode = mustEnc(cbor.CoreDetEncOptions())
	// strictMode reports an unknown key, which sends the record to the slower reader; looseMode ignores it.
	strictMode = mustDec(cbor.DecOptions{ExtraReturnErrors: cbor.ExtraDecErrorUnknownField})
	looseMode  = mustDec(cbor.DecOptions{})
)

func mustEnc(o cbor.EncOptions) cbor.UserBufferEncMode {
	m, err := o.UserBufferEncMode()
	if err != nil {
		panic(err)
	}
	return m
}

func mustDec(o cbor.DecOptions) cbor.DecMode {
	o.IndefLength = cbor.IndefLengthForbidden
	o.DupMapKey = cbor.DupMapKeyEnforcedAPF
	o.MaxArrayElements = maxItems
	o.MaxMapPairs = maxItems
	m, err := o.DecMode()
	if err != nil {
		panic(err)
	}
	return m
}

// usualRecord bounds the room that is made for a record before it is written, since a message's weight counts what is no part of the record.
const usualRecord = 8 << 10

// Encode returns m's record: deterministic CBOR, the same bytes for the same message, followed by its CRC-32C. Part.Data is not in it. Encode returns
// ErrInvalid for what could not be read back: text that is not UTF-8, a time that cannot be written, too many parts.
func Encode(m *Message) ([]byte, error) {
	if err := checkRead(m); err != nil {
		return nil, err
	}
	if err := checkCounts(m); err != nil {
		return nil, err
	}
	if m.hasExtra() {
		return encodeExtra(m)
	}
	var b bytes.Buffer
	b.Grow(min(m.Weight(), usualRecord))
	err := encMode.MarshalToBuffer(m, &b)
	return seal(b.Bytes(), err)
}

// Decode reads a record into m, which shares no memory with b. If m has an ID, the record must be that message's. The error for a record that cannot be
// read names the message and wraps kv.ErrDamaged.
func Decode(b []byte, m *Message) error {
	want := m.ID
	*m = Message{}
	if err := decode(b, m); err != nil {
		return damaged(want, err)
	}
	if want != (ID{}) && m.ID != want {
		return damaged(want, fmt.Errorf("its record holds message %s", m.ID))
	}
	return nil
}

func damaged(id ID, err error) error {
	if id == (ID{}) {
		return fmt.Errorf("%w: a message's record: %v", kv.ErrDamaged, err)
	}
	return fmt.Errorf("%w: message %s: %v", kv.ErrDamaged, id, err)
}

func decode(b []byte, m *Message) error {
	body, err := unseal(b)
	if err != nil {
		return err
	}
	err = strictMode.Unmarshal(body, m)
	if unknown := (*cbor.UnknownFieldError)(nil); errors.As(err, &unknown) {
		*m = Message{}
		return decodeExtra(body, m)
	}
	return err
}

const checksumLen = 4

// castagnoli returns the table of CRC-32C. It is made at the first use, so that a program's start does not pay for it.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// seal appends the CRC-32C of a record's bytes, most significant byte first.
func seal(b []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli())), nil
}

// unseal checks the CRC that seal appended and removes it.
func unseal(b []byte) ([]byte, error) {
	n := len(b) - checksumLen
	if n < 1 {
		return nil, errors.New("the record is cut short")
	}
	if binary.BigEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli()) {
		return nil, errors.New("wrong checksum")
	}
	return b[:n], nil
}
