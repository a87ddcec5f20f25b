package pool

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/fxamacker/cbor/v2"
)

// Records of a later version may have keys that this one does not know. Such records are rare, so they are read and written separately, by maps of raw
// values, and ordinary records pay nothing for it.
//
// record is a CBOR map as it is stored.

// record is a CBOR map as it lies in the file.
type record = map[uint64]cbor.RawMessage

// extensible is a pointer to a type that keeps unknown keys.
type extensible[T any] interface {
	*T
	extras() *record
}

func (m *Message) extras() *record  { return &m.Extra }
func (p *Part) extras() *record     { return &p.Extra }
func (c *Call) extras() *record     { return &c.Extra }
func (r *Result) extras() *record   { return &r.Extra }
func (d *Metadata) extras() *record { return &d.Extra }
func (s *Source) extras() *record   { return &s.Extra }

// The keys of fields that hold other records, and two keys of a part.
const (
	contentKey = 3
	callsKey   = 4
	resultKey  = 5
	metaKey    = 6
	sourceKey  = 13

	resultPartsKey = 4

	partTypeKey = 1
	partRawKey  = 13
)

// knownKeys has, for each extensible type, the keys of its fields.
var knownKeys = sync.OnceValue(func() map[reflect.Type]map[uint64]bool {
	known := map[reflect.Type]map[uint64]bool{}
	for _, v := range []any{Message{}, Part{}, Call{}, Result{}, Metadata{}, Source{}} {
		t := reflect.TypeOf(v)
		known[t] = map[uint64]bool{}
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("cbor"), ",")
			if k, err := strconv.ParseUint(name, 10, 64); err == nil {
				known[t][k] = true
			}
		}
	}
	known[reflect.TypeFor[Entry]()] = known[reflect.TypeFor[Message]()]
	return known
})

// knows reports whether T has a field for the key.
func knows[T any](key uint64) bool { return knownKeys()[reflect.TypeFor[T]()][key] }

func (m *Message) hasExtra() bool {
	return len(m.Extra) > 0 || len(m.Meta.Extra) > 0 || m.Source != nil && len(m.Source.Extra) > 0 ||
		m.Result != nil && (len(m.Result.Extra) > 0 || anyExtra(m.Result.Parts)) ||
		anyExtra(m.Content) || anyExtra(m.Calls)
}

func anyExtra[T any, P extensible[T]](list []T) bool {
	for i := range list {
		if len(*P(&list[i]).extras()) > 0 {
			return true
		}
	}
	return false
}

// encodeExtra is Encode for a message with unknown keys at any level.
func encodeExtra(m *Message) ([]byte, error) {
	var e extraEncoder
	top := toRecord(&e, m)
	if len(m.Content) > 0 {
		e.set(top, contentKey, toRecords(&e, m.Content))
	}
	if len(m.Calls) > 0 {
		e.set(top, callsKey, toRecords(&e, m.Calls))
	}
	if m.Result != nil {
		result := toRecord(&e, m.Result)
		if len(m.Result.Parts) > 0 {
			e.set(result, resultPartsKey, toRecords(&e, m.Result.Parts))
		}
		e.set(top, resultKey, result)
	}
	if meta := toRecord(&e, &m.Meta); len(meta) > 0 {
		e.set(top, metaKey, meta)
	}
	if m.Source != nil {
		e.set(top, sourceKey, toRecord(&e, m.Source))
	}
	b, err := seal(encMode.Marshal(top))
	e.check(err)
	if e.err == nil {
		e.check(looseMode.Wellformed(b[:len(b)-checksumLen])) // the unknown values may nest too deep
	}
	return b, e.err
}

// extraEncoder keeps the first error.
type extraEncoder struct{ err error }

func (e *extraEncoder) check(err error) {
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("%w: the value of an unknown key: %v", ErrInvalid, err)
	}
}

func (e *extraEncoder) set(rec record, key uint64, v any) {
	b, err := encMode.Marshal(v)
	e.check(err)
	rec[key] = b
}

// toRecord returns v's own fields together with its unknown keys.
func toRecord[T any, P extensible[T]](e *extraEncoder, v P) record {
	b, err := encMode.Marshal(v)
	e.check(err)
	rec := record{}
	e.check(looseMode.Unmarshal(b, &rec))
	for k, value := range *v.extras() {
		if knows[T](k) {
			e.check(fmt.Errorf("key %d has a field of its own", k))
		}
		rec[k] = value
	}
	return rec
}

func toRecords[T any, P extensible[T]](e *extraEncoder, list []T) []record {
	recs := make([]record, len(list))
	for i := range list {
		recs[i] = toRecord[T, P](e, &list[i])
	}
	return recs
}

// decodeExtra is Decode for a record with unknown keys at any level.
func decodeExtra(body []byte, m *Message) error {
	if err := looseMode.Unmarshal(body, m); err != nil {
		return err
	}
	top, err := takeExtra(body, m)
	if err != nil {
		return err
	}
	if m.Result != nil {
		result, err := takeExtra(top[resultKey], m.Result)
		if err != nil {
			return err
		}
		if err := takeExtras(result[resultPartsKey], m.Result.Parts); err != nil {
			return err
		}
	}
	if m.Source != nil {
		if _, err := takeExtra(top[sourceKey], m.Source); err != nil {
			return err
		}
	}
	if _, err := takeExtra(top[metaKey], &m.Meta); err != nil {
		return err
	}
	if err := takeExtras(top[contentKey], m.Content); err != nil {
		return err
	}
	return takeExtras(top[callsKey], m.Calls)
}

// takeExtra sets v's unknown keys from its record, and returns the whole record.
func takeExtra[T any, P extensible[T]](b []byte, v P) (record, error) {
	if len(b) == 0 {
		return nil, nil
	}
	var rec record
	if err := looseMode.Unmarshal(b, &rec); err != nil {
		return nil, err
	}
	for k, value := range rec {
		if knows[T](k) {
			continue
		}
		if *v.extras() == nil {
			*v.extras() = record{}
		}
		(*v.extras())[k] = value
	}
	return rec, nil
}

func takeExtras[T any, P extensible[T]](b []byte, list []T) error {
	if len(list) == 0 {
		return nil
	}
	var raw []cbor.RawMessage
	if err := looseMode.Unmarshal(b, &raw); err != nil {
		return err
	}
	// Duplicate keys were refused, so raw is the list that was decoded.
	for i := range list {
		if _, err := takeExtra[T, P](raw[i], &list[i]); err != nil {
			return err
		}
	}
	return nil
}
