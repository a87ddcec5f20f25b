package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
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
		return buf.Bytes(), err
	}
	switch kind := v.Kind(); {
	case v.Type().Implements(jsonMarshaler) || v.Type().Implements(textMarshaler): // it has its own JSON
	case kind == reflect.Pointer || kind == reflect.Interface:
		return appendJSON(b, v.Elem())
	case kind == reflect.Struct && !(v.CanAddr() && (v.Addr().Type().Implements(jsonMarshaler) || v.Addr().Type().Implements(textMarshaler))):
		b, _, err := appendFields(append(b, '{'), v, true)
		return append(b, '}'), err
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
	return append(b, raw...), err
}

// appendFields appends the members of a struct, those of embedded structs in their place. first means that no member comes before.
func appendFields(b []byte, v reflect.Value, first bool) ([]byte, bool, error) {
	t := v.Type()
	for i := range t.NumField() {
		f, value := t.Field(i), v.Field(i)
		var err error
		if f.Anonymous && f.Type.Kind() == reflect.Struct && f.Tag.Get("json") == "" {
			if b, first, err = appendFields(b, value, first); err != nil {
				return b, first, err
			}
			continue
		}
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if !f.IsExported() || tag == "-" || leftOut(value, strings.Split(options, ",")) {
			continue
		}
		name = cmp.Or(name, f.Name)
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(append(b, '"'), name...), `":`...) // the names of our own types need no escapes
		if b, err = appendJSON(b, value); err != nil {
			return b, first, err
		}
	}
	return b, first, nil
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
