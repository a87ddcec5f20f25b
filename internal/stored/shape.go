package stored

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
)

// textError says what is wrong with one text. It is an ErrInvalid.
type textError string

func (e textError) Error() string { return string(e) }
func (e textError) Unwrap() error { return ErrInvalid }

// Flaw returns what keeps a value from being read back, as Marshal says, nil for nothing.
func Flaw(v any) error { return flaw("", reflect.ValueOf(v)) }

// CheckText returns an ErrInvalid if a text is not UTF-8, since neither JSON nor a record could hold it. what names the text in the error.
func CheckText(what, text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	return textError(fmt.Sprintf("%s: %.40q is not UTF-8", what, text))
}

var jsonType = reflect.TypeFor[json.RawMessage]()

// The first and the last time that RFC 3339 can express, in microseconds: the years 1 to 9999.
const (
	MinTime = -62_135_596_800_000_000
	MaxTime = 253_402_300_799_999_999
)

// isTime reports whether a type is a number of microseconds that is a time.
func isTime(t reflect.Type) bool {
	return t.Kind() == reflect.Int64 && t.Implements(reflect.TypeFor[interface{ Time() time.Time }]())
}

// flaw returns what keeps a value from being read back, nil for nothing. path names the value.
func flaw(path string, v reflect.Value) error {
	if !v.IsValid() {
		return nil
	}
	return shapeOf(v.Type()).flaw(path, v)
}

// shape says where in the values of a type a flaw can be: in some fields of a struct, in the items of a list, a map or a pointer, in a map's keys. It is nil
// for a type whose values have none, and can have no unknown keys.
type shape struct {
	of        reflect.Type
	fields    []fieldShape
	key, item *shape
	time      bool
	keeps     bool // its values can have unknown keys
	keeper
}

type fieldShape struct {
	at int
	*shape
}

func (s *shape) flaw(path string, v reflect.Value) error {
	if s == nil {
		return nil
	}
	switch kind := s.of.Kind(); {
	case s.time:
		if t := v.Int(); t < MinTime || t > MaxTime {
			return textError(path + ": a time outside the years 1 to 9999")
		}
	case s.of == jsonType:
		if !utf8.Valid(v.Bytes()) {
			return CheckText(path, string(v.Bytes()))
		}
	case kind == reflect.String:
		return CheckText(path, v.String())
	case kind == reflect.Pointer:
		if !v.IsNil() {
			return s.item.flaw(path, v.Elem())
		}
	case kind == reflect.Struct:
		if path == "" {
			path = s.of.Name()
		}
		for _, f := range s.fields {
			// the path is built only for an error
			if f.flaw("", v.Field(f.at)) != nil {
				return f.flaw(path+"."+s.of.Field(f.at).Name, v.Field(f.at))
			}
		}
	case v.Len() > mostItems:
		return TooLarge{textError(fmt.Sprintf("%s: more than %d items", path, mostItems))}
	case kind == reflect.Map:
		return s.flawOfMap(path, v)
	default:
		for i := range v.Len() {
			if s.item.flaw("", v.Index(i)) != nil {
				return s.item.flaw(path+"["+strconv.Itoa(i)+"]", v.Index(i))
			}
		}
	}
	return nil
}

func (s *shape) flawOfMap(path string, v reflect.Value) error {
	for at := v.MapRange(); at.Next(); {
		if s.key.flaw("", at.Key()) != nil {
			return s.key.flaw(path+": a name", at.Key())
		}
		if s.item.flaw("", at.Value()) != nil {
			return s.item.flaw(fmt.Sprintf("%s[%.40q]", path, fmt.Sprint(at.Key())), at.Value())
		}
	}
	return nil
}

// shapes has the shapes of all types that were written.
var shapes sync.Map

func shapeOf(t reflect.Type) *shape {
	if known, is := shapes.Load(t); is {
		return known.(*shape)
	}
	s := newShape(t)
	shapes.Store(t, s)
	return s
}

func newShape(t reflect.Type) *shape {
	s := &shape{of: t, time: isTime(t)}
	switch t.Kind() {
	case reflect.String:
		return s
	case reflect.Map:
		s.key = newShape(t.Key())
		s.item = newShape(t.Elem())
	case reflect.Slice, reflect.Array, reflect.Pointer:
		s.item = newShape(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && f.Tag.Get("cbor") != "-" {
				if in := newShape(f.Type); in != nil {
					s.fields = append(s.fields, fieldShape{i, in})
				}
			}
		}
		s.keeper = keeperOf(t)
	}
	s.keeps = s.item.keeping() || s.unknown != nil || len(s.within) > 0
	if !s.time && !s.keeps && t != jsonType && s.fields == nil && s.key == nil && s.item == nil {
		return nil
	}
	return s
}
