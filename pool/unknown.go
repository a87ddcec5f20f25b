package pool

import (
	"errors"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// Unknown has the pairs of a record whose keys this program does not know, as a CBOR map; "" for none. Whoever rewrites a record writes them back. A message
// has them as maps, Message.Extra.
type Unknown string

// lastKey is the key of the checksum.
const lastKey = 255

// As decodeExtra does for messages, UnmarshalKept reads a record strictly first, and only one with unknown keys a second time.
var (
	strictRecord = must(cbor.DecOptions{MaxArrayElements: mostItems, MaxMapPairs: mostItems, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField}.DecMode())
	looseRecord  = must(cbor.DecOptions{MaxArrayElements: mostItems, MaxMapPairs: mostItems}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// MarshalKept is Marshal for a struct with unknown keys. A key that the struct has a field for is the field's.
func MarshalKept(v any, unknown Unknown) ([]byte, error) {
	raw, err := Marshal(v)
	if err != nil || unknown == "" {
		return raw, err
	}
	m, extra := record{}, record{}
	if err := looseRecord.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	if err := looseRecord.Unmarshal([]byte(unknown), &extra); err != nil || extra[lastKey] != nil {
		return nil, textError(reflect.TypeOf(v).Name() + ": the unknown keys are not those of a record")
	}
	known := knownTo(reflect.TypeOf(v))
	for key, value := range extra {
		if !known[key] {
			m[key] = value
		}
	}
	return encMode.Marshal(m)
}

// UnmarshalKept decodes a record, with its checksum or without, into the struct at v, and sets unknown to the pairs that the struct has no field for.
func UnmarshalKept(raw []byte, v any, unknown *Unknown) error {
	*unknown = ""
	if CheckRecord(raw, nil) == nil {
		raw = withoutChecksum(raw)
	}
	err := strictRecord.Unmarshal(raw, v)
	if field := (*cbor.UnknownFieldError)(nil); !errors.As(err, &field) {
		return err
	}
	if err := looseRecord.Unmarshal(raw, v); err != nil {
		return err
	}
	m := record{}
	if err := looseRecord.Unmarshal(raw, &m); err != nil {
		return err
	}
	for key := range knownTo(reflect.TypeOf(v).Elem()) {
		delete(m, key)
	}
	if len(m) == 0 {
		return nil
	}
	raw, err = encMode.Marshal(m)
	*unknown = Unknown(raw)
	return err
}

// knownTo returns the keys that a struct's fields have.
func knownTo(t reflect.Type) map[uint64]bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if known, is := recordKeys.Load(t); is {
		return known.(map[uint64]bool)
	}
	known := map[uint64]bool{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("cbor"), ",")
		if t.Field(i).Anonymous {
			maps.Copy(known, knownTo(t.Field(i).Type))
		}
		if key, err := strconv.ParseUint(name, 10, 64); err == nil {
			known[key] = true
		}
	}
	recordKeys.Store(t, known)
	return known
}

var recordKeys sync.Map
