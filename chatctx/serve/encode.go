package serve

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/chatctx/chatctx/internal/jsontree"
)

// appendJSON appends the JSON of an answer: that of json.Marshal, except that messages, which may be large, are written in place and not copied between
// buffers, and that <, > and & are not escaped.
func appendJSON(b []byte, v reflect.Value) ([]byte, error) {
	if !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil() {
		return append(b, "null"...), nil
	}
	if own, ok := v.Interface().(interface {
		AppendJSON([]byte) ([]byte, error)
	}); ok {
		return own.AppendJSON(b)
	}
	if raw, ok := v.Interface().(json.RawMessage); ok && len(raw) > 0 {
		buf := bytes.NewBuffer(b)
		err := json.Compact(buf, raw) // a line must have no line ends
		if err != nil {
			return b, err
		}
		unique, same := jsontree.Unique(buf.Bytes()[len(b):])
		if !same {
			return append(b, unique...), nil
		}
		return buf.Bytes(), nil
	}
	switch kind := v.Kind(); {
	case v.Type().Implements(jsonMarshaler) || v.Type().Implements(textMarshaler): // it has its own JSON
	case kind == reflect.Pointer || kind == reflect.Interface:
		return appendJSON(b, v.Elem())
	case kind == reflect.Struct && !(v.CanAddr() && (v.Addr().Type().Implements(jsonMarshaler) || v.Addr().Type().Implements(textMarshaler))):
		return appendMembers(b, v)
	case kind == reflect.Slice && !v.IsNil() && v.Type().Elem().Kind() != reflect.Uint8:
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendJSON(b, v.Index(i)); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	}
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		return b, err
	}
	unique, _ := jsontree.Unique(raw)
	return append(b, unique...), nil
}

// appendMembers appends the JSON of a struct.
func appendMembers(b []byte, v reflect.Value) ([]byte, error) {
	first := true
	b = append(b, '{')
	for _, f := range fieldsOf(v.Type()) {
		value, err := v.FieldByIndexErr(f.index)
		if err != nil || leftOut(value, f.options) { // the error means that a pointer on the way is nil
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(append(b, '"'), f.name...), `":`...) // the names of our own types need no escapes
		if b, err = appendJSON(b, value); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// leftOut reports whether a member is left out because of its value.
func leftOut(v reflect.Value, options []string) bool {
	if slices.Contains(options, "omitzero") {
		if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
			return z.IsZero()
		}
		return v.IsZero()
	}
	if !slices.Contains(options, "omitempty") {
		return false
	}
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// encoded is JSON that this package has written.
type encoded []byte

// encode returns an answer's JSON, in a buffer for about size bytes.
func encode(v any, size int) (encoded, error) {
	return appendJSON(make([]byte, 0, size+size/16+1024), reflect.ValueOf(v))
}
