// Package stored makes the bytes of records and reads them: deterministic CBOR with checksums, in which the keys that this program does not know stay. It knows no
// record: what it needs it reads from a type's tags. It is below pool, whose messages are records too.
//
// A struct keeps unknown keys in a field Unknown (a CBOR map as a text) or Extra (a map by keys) whose tag is cbor:"-". Records of a later version may have such
// keys at any level. They are rare, so they are read and written separately, by maps of raw values, and ordinary records pay nothing for it.
package stored

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Map is a record as it lies in the file.
type Map = map[uint64]cbor.RawMessage

// ErrInvalid means that a value can never be stored. The error says where and why.
var ErrInvalid = errors.New("invalid message")

// MaxItems bounds the parts, calls and named values of one message, mostItems the items of a list or map in another record. Decoders have the same bounds, so that
// a hostile record cannot claim a size that it does not have.
const (
	MaxItems  = 100_000
	mostItems = 1 << 24
)

// reading is how records of a kind are read: strict reports an unknown key, which sends the record to the slower reader; loose ignores it.
type reading struct{ strict, loose cbor.DecMode }

var (
	encMode = must(cbor.CoreDetEncOptions().UserBufferEncMode())
	message = readingOf(cbor.DecOptions{IndefLength: cbor.IndefLengthForbidden, DupMapKey: cbor.DupMapKeyEnforcedAPF, MaxArrayElements: MaxItems, MaxMapPairs: MaxItems})
	record  = readingOf(cbor.DecOptions{MaxArrayElements: mostItems, MaxMapPairs: mostItems})
)

func readingOf(o cbor.DecOptions) (r reading) {
	r.loose = must(o.DecMode())
	o.ExtraReturnErrors = cbor.ExtraDecErrorUnknownField
	r.strict = must(o.DecMode())
	return r
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Marshal returns a record: deterministic CBOR, the same bytes for the same value, unknown keys included. All records are written through it, so it refuses what
// could be written but not read back: text that is not UTF-8, a time outside the years 1 to 9999, too many items. The error is an ErrInvalid that names the field.
func Marshal(v any) ([]byte, error) {
	if err := Flaw(v); err != nil {
		return nil, err
	}
	return MarshalSound(v, 0)
}

// MarshalSound is Marshal for a value without a Flaw, whose record has about size bytes.
func MarshalSound(v any, size int) ([]byte, error) {
	if at := reflect.ValueOf(v); at.IsValid() {
		if s := shapeOf(at.Type()); s.has(at) {
			return s.marshal(at)
		}
	}
	var b bytes.Buffer
	b.Grow(size)
	err := encMode.MarshalToBuffer(v, &b)
	return b.Bytes(), err
}

// Unmarshal reads a record, with AddChecksum's checksum or without, into what v points to.
func Unmarshal(raw []byte, v any) error {
	if s := shapeOf(reflect.TypeOf(v)); !s.keeping() {
		return record.loose.Unmarshal(raw, v)
	}
	if CheckRecord(raw, nil) == nil {
		raw = withoutChecksum(raw)
	}
	return record.unmarshal(raw, v)
}

// UnmarshalMessage is Unmarshal for the record of a message, which has no checksum within and stricter bounds.
func UnmarshalMessage(raw []byte, v any) error { return message.unmarshal(raw, v) }

// UnmarshalSome reads the fields of a message's record that v has.
func UnmarshalSome(raw []byte, v any) error { return message.loose.Unmarshal(raw, v) }

// seal's checksum has so many bytes.
const checksumLen = 4

// castagnoli returns the table of CRC-32C. It is made at the first use, so that a program's start does not pay for it.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Seal appends the CRC-32C of a record's bytes, most significant byte first.
func Seal(b []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli())), nil
}

// Unseal checks the CRC that Seal appended and removes it.
func Unseal(b []byte) ([]byte, error) {
	n := len(b) - checksumLen
	if n < 1 {
		return nil, errors.New("the record is cut short")
	}
	if binary.BigEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli()) {
		return nil, errors.New("wrong checksum")
	}
	return b[:n], nil
}

// Unchecked returns what Seal sealed without looking at the checksum, nil if it is too short.
func Unchecked(b []byte) []byte { return b[:max(len(b)-checksumLen, 0)] }

// TooLarge is an error that is a kv.ErrTooLarge besides.
type TooLarge struct{ error }

// NewTooLarge returns err as a TooLarge.
func NewTooLarge(err error) error { return TooLarge{err} }

// Unwrap returns the error.
func (e TooLarge) Unwrap() error { return e.error }

// Is reports whether target is kv.ErrTooLarge.
func (TooLarge) Is(target error) bool { return target == kv.ErrTooLarge }
