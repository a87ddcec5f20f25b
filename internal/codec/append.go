package codec

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/chatctx/chatctx/internal/jsontree"
)

var (
	jsonWriter = reflect.TypeFor[json.Marshaler]()
	textWriter = reflect.TypeFor[encoding.TextMarshaler]()
)

// Duration is the type of a length of time, which is a text such as 1m30s in JSON.
var Duration = reflect.TypeFor[time.Duration]()

// WritesItself reports whether a type has its own JSON.
func WritesItself(t reflect.Type) bool { return t.Implements(jsonWriter) || t.Implements(textWriter) }

// Append appends the JSON of a value: on one line, with each name of an object once. Messages, which may be large, are written in place.
func (c *Codec) Append(b []byte, v any) ([]byte, error) { return c.value(b, reflect.ValueOf(v)) }

func (c *Codec) value(b []byte, v reflect.Value) ([]byte, error) {
	if !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil() {
		return append(b, "null"...), nil
	}
	if own, ok := v.Interface().(interface {
		AppendJSON([]byte) ([]byte, error)
	}); ok {
		return own.AppendJSON(b)
	}
	if raw, ok := v.Interface().(json.RawMessage); ok {
		return appendRaw(b, raw)
	}
	switch kind := v.Kind(); {
	case v.Type() == Duration:
		return fmt.Appendf(b, "%q", v.Interface()), nil
	case WritesItself(v.Type()):
	case kind == reflect.Pointer || kind == reflect.Interface:
		return c.value(b, v.Elem())
	case kind == reflect.Struct && !(v.CanAddr() && WritesItself(v.Addr().Type())):
		return c.members(b, v)
	case kind == reflect.Map && v.Type().Key().Kind() == reflect.String && !WritesItself(v.Type().Key()):
		return c.object(b, v)
	case (kind == reflect.Slice || kind == reflect.Array) && v.Type().Elem().Kind() != reflect.Uint8:
		return c.list(b, v)
	}
	return c.leaf(b, v)
}

// leaf appends what encoding/json writes.
func (c *Codec) leaf(b []byte, v reflect.Value) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(!c.Plain)
	if err := e.Encode(v.Interface()); err != nil {
		return b, err
	}
	all := buf.Bytes()
	unique, _ := jsontree.Unique(all[len(b) : len(all)-1]) // without the line's end
	return append(all[:len(b)], unique...), nil
}

func appendRaw(b []byte, raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 {
		return append(b, "null"...), nil
	}
	buf := bytes.NewBuffer(b)
	if err := json.Compact(buf, raw); err != nil { // a line must have no line ends
		return b, err
	}
	unique, same := jsontree.Unique(buf.Bytes()[len(b):])
	if !same {
		return append(b, unique...), nil
	}
	return buf.Bytes(), nil
}

func (c *Codec) list(b []byte, v reflect.Value) (_ []byte, err error) {
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = c.value(b, v.Index(i)); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

// object appends a map, sorted by its names.
func (c *Codec) object(b []byte, v reflect.Value) (_ []byte, err error) {
	names := v.MapKeys()
	slices.SortFunc(names, func(x, y reflect.Value) int { return bytes.Compare([]byte(x.String()), []byte(y.String())) })
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = c.leaf(b, name); err != nil {
			return b, err
		}
		if b, err = c.value(append(b, ':'), v.MapIndex(name)); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// members appends the JSON of a struct.
func (c *Codec) members(b []byte, v reflect.Value) (_ []byte, err error) {
	first := true
	b = append(b, '{')
	for _, f := range c.Fields(v.Type()) {
		value, err := v.FieldByIndexErr(f.Index)
		if err != nil || f.leftOut(value) { // the error means that a pointer on the way is nil
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(append(b, '"'), f.Name...), `":`...) // the names of our own types need no escapes
		if f.Null && isZero(value) {
			b = append(b, "null"...)
		} else if b, err = c.value(b, value); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// leftOut reports whether a member is left out because of its value.
func (f *Field) leftOut(v reflect.Value) bool {
	switch f.omit {
	case "zero":
		return isZero(v)
	case "empty":
		switch v.Kind() {
		case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
			return v.Len() == 0
		case reflect.Struct:
			return false
		}
		return v.IsZero()
	}
	return false
}

func isZero(v reflect.Value) bool {
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	return v.IsZero()
}
