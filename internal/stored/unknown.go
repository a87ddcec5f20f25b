package stored

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// keeper is what a struct's shape knows of keys: those of its fields, the field that has the unknown ones, and the fields with records in which others may be.
type keeper struct {
	known   map[uint64]bool
	unknown []int // the index of the field, nil for none
	within  []keyed
}

// keyed is a field that is stored under a key.
type keyed struct {
	key uint64
	at  []int
	*shape
}

// keeperOf reads a struct's tags. The fields of an embedded struct without a key are its own.
func keeperOf(t reflect.Type) (k keeper) {
	k.known = map[uint64]bool{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("cbor"), ",")
		if name == "-" && (f.Name == "Unknown" || f.Name == "Extra") && (k.unknown == nil || len(f.Index) < len(k.unknown)) {
			k.unknown = f.Index
		}
		key, err := strconv.ParseUint(name, 10, 64)
		if err != nil || !f.IsExported() {
			continue
		}
		k.known[key] = true
		if s := shapeOf(f.Type); s.keeping() {
			k.within = append(k.within, keyed{key, f.Index, s})
		}
	}
	return k
}

// keeping reports whether values of a shape can have unknown keys.
func (s *shape) keeping() bool { return s != nil && s.keeps }

// has reports whether a value has unknown keys, at any level.
func (s *shape) has(v reflect.Value) bool {
	if !s.keeping() {
		return false
	}
	switch s.of.Kind() {
	case reflect.Pointer:
		return !v.IsNil() && s.item.has(v.Elem())
	case reflect.Struct:
		if s.unknown != nil && v.FieldByIndex(s.unknown).Len() > 0 {
			return true
		}
		for _, f := range s.within {
			if f.has(v.FieldByIndex(f.at)) {
				return true
			}
		}
		return false
	case reflect.Map:
		for at := v.MapRange(); at.Next(); {
			if s.item.has(at.Value()) {
				return true
			}
		}
		return false
	}
	for i := range v.Len() {
		if s.item.has(v.Index(i)) {
			return true
		}
	}
	return false
}

// marshal encodes a value that has unknown keys.
func (s *shape) marshal(v reflect.Value) ([]byte, error) {
	if !s.has(v) {
		return encMode.Marshal(v.Interface())
	}
	var all any
	switch s.of.Kind() {
	case reflect.Pointer:
		return s.item.marshal(v.Elem())
	case reflect.Map:
		items := reflect.MakeMap(reflect.MapOf(s.of.Key(), reflect.TypeFor[cbor.RawMessage]()))
		for at := v.MapRange(); at.Next(); {
			raw, err := s.item.marshal(at.Value())
			if err != nil {
				return nil, err
			}
			items.SetMapIndex(at.Key(), reflect.ValueOf(cbor.RawMessage(raw)))
		}
		all = items.Interface()
	case reflect.Struct:
		m, err := s.record(v)
		if err != nil {
			return nil, err
		}
		all = m
	default:
		items := make([]cbor.RawMessage, v.Len())
		for i := range items {
			raw, err := s.item.marshal(v.Index(i))
			if err != nil {
				return nil, err
			}
			items[i] = raw
		}
		all = items
	}
	raw, err := encMode.Marshal(all)
	if err == nil {
		err = message.loose.Wellformed(raw) // the unknown values may nest too deep
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the value of an unknown key: %w", ErrInvalid, err)
	}
	return raw, nil
}

// record returns the pairs of a struct, with the unknown ones.
func (s *shape) record(v reflect.Value) (Map, error) {
	raw, err := encMode.Marshal(v.Interface())
	if err != nil {
		return nil, err
	}
	m := Map{}
	if err := record.loose.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	for _, f := range s.within {
		if at := v.FieldByIndex(f.at); f.has(at) {
			if m[f.key], err = f.marshal(at); err != nil {
				return nil, err
			}
		}
	}
	if s.unknown == nil {
		return m, nil
	}
	unknown, isMap := v.FieldByIndex(s.unknown).Interface().(Map)
	if !isMap {
		text := v.FieldByIndex(s.unknown).String()
		if text == "" {
			return m, nil
		}
		if err := record.loose.Unmarshal([]byte(text), &unknown); err != nil || unknown[lastKey] != nil {
			return nil, textError(s.of.Name() + ": the unknown keys are not those of a record")
		}
	}
	for key, value := range unknown {
		switch {
		case !s.known[key]:
			m[key] = value
		case isMap:
			return nil, fmt.Errorf("%w: the value of an unknown key: key %d has a field of its own", ErrInvalid, key)
		}
	}
	return m, nil
}

// lastKey is the key of AddChecksum's checksum.
const lastKey = 255

// unmarshal reads a record strictly first, and only one with unknown keys a second time.
func (r reading) unmarshal(raw []byte, v any) error {
	err := r.strict.Unmarshal(raw, v)
	if field := (*cbor.UnknownFieldError)(nil); !errors.As(err, &field) {
		return err
	}
	to := reflect.ValueOf(v).Elem()
	to.SetZero()
	if err := r.loose.Unmarshal(raw, v); err != nil {
		return err
	}
	return r.take(raw, shapeOf(to.Type()), to)
}

// take sets the unknown keys of a value, at all levels, from its bytes.
func (r reading) take(raw []byte, s *shape, v reflect.Value) error {
	if !s.keeping() || len(raw) == 0 {
		return nil
	}
	switch s.of.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return r.take(raw, s.item, v.Elem())
	case reflect.Struct:
		return r.takeStruct(raw, s, v)
	case reflect.Map:
		items := reflect.New(reflect.MapOf(s.of.Key(), reflect.TypeFor[cbor.RawMessage]()))
		if err := r.loose.Unmarshal(raw, items.Interface()); err != nil {
			return err
		}
		for at := v.MapRange(); at.Next(); {
			item := reflect.New(s.of.Elem()).Elem()
			item.Set(at.Value())
			if err := r.take(items.Elem().MapIndex(at.Key()).Bytes(), s.item, item); err != nil {
				return err
			}
			v.SetMapIndex(at.Key(), item)
		}
		return nil
	}
	var items []cbor.RawMessage
	if err := r.loose.Unmarshal(raw, &items); err != nil {
		return err
	}
	for i := range min(len(items), v.Len()) {
		if err := r.take(items[i], s.item, v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (r reading) takeStruct(raw []byte, s *shape, v reflect.Value) error {
	m := Map{}
	if err := r.loose.Unmarshal(raw, &m); err != nil {
		return err
	}
	for _, f := range s.within {
		if err := r.take(m[f.key], f.shape, v.FieldByIndex(f.at)); err != nil {
			return err
		}
	}
	if s.unknown == nil {
		return nil
	}
	for key := range s.known {
		delete(m, key)
	}
	if len(m) == 0 {
		return nil
	}
	to := v.FieldByIndex(s.unknown)
	if to.Kind() == reflect.Map {
		to.Set(reflect.ValueOf(m))
		return nil
	}
	raw, err := encMode.Marshal(m)
	to.SetString(string(raw))
	return err
}

// Record returns the pairs of the struct that v points to, with the unknown ones.
func Record(v any) (Map, error) {
	at := reflect.ValueOf(v).Elem()
	return shapeOf(at.Type()).record(at)
}

// SetRecord sets what v points to from pairs.
func SetRecord(m Map, v any) error {
	raw, err := encMode.Marshal(m)
	if err != nil {
		return err
	}
	return message.unmarshal(raw, v)
}

// Knows reports whether the struct that v points to has a field for a key.
func Knows(v any, key uint64) bool { return shapeOf(reflect.TypeOf(v).Elem()).known[key] }

// MarshalMap and UnmarshalMap are for pairs that no struct has.
func MarshalMap(m Map) ([]byte, error) { return encMode.Marshal(m) }

// UnmarshalMap reads what MarshalMap wrote, from outside too.
func UnmarshalMap(raw []byte) (m Map, err error) {
	err = message.loose.Unmarshal(raw, &m)
	return m, err
}
