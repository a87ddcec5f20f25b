package codec

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/chatctx/chatctx/internal/jsontree"
)

// Exact returns an error if JSON has a name that differs from the type's in any letter, or one twice. Package json takes "Text" for "text", and the last of
// two, so that two programs could read two requests. The JSON must be valid. Types with their own decoder are not examined.
func Exact(raw []byte, t reflect.Type) error {
	for t.Kind() == reflect.Pointer && !readsItself(t) {
		t = t.Elem()
	}
	if readsItself(t) || len(raw) == 0 {
		return nil
	}
	switch {
	case t.Kind() == reflect.Struct && raw[0] == '{':
		fields := Fields(t)
		return Members(raw, func(name string, value []byte) error {
			for _, f := range fields {
				if f.Name == name {
					return Exact(value, f.Type)
				}
			}
			return fmt.Errorf("unknown field %q", name)
		})
	case t.Kind() == reflect.Map && raw[0] == '{':
		return Members(raw, func(_ string, value []byte) error { return Exact(value, t.Elem()) })
	case t.Kind() == reflect.Slice && raw[0] == '[':
		return jsontree.Each(raw, func(_, value []byte) error { return Exact(value, t.Elem()) })
	}
	return nil
}

var jsonReader, textReader = reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()

// readsItself reports whether a type decodes its own JSON.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Implements(jsonReader) || p.Implements(jsonReader) || t.Implements(textReader) || p.Implements(textReader)
}

// Members calls take for each member of a valid JSON object. The values share memory with raw.
func Members(raw []byte, take func(name string, value []byte) error) error {
	seen := map[string]bool{}
	return jsontree.Each(raw, func(quoted, value []byte) error {
		name := string(quoted[1 : len(quoted)-1])
		if strings.ContainsRune(name, '\\') {
			_ = json.Unmarshal(quoted, &name) // it is valid
		}
		if seen[name] {
			return fmt.Errorf("%q stands there twice", name)
		}
		seen[name] = true
		return take(name, value)
	})
}

// Read reads valid JSON into the value that v points to, as encoding/json does, under the names that Append writes. Unknown members are passed over.
func (c *Codec) Read(raw []byte, v any) error {
	if !json.Valid(raw) {
		return json.Unmarshal(raw, v) // it says where
	}
	return c.read(bytes.TrimSpace(raw), reflect.ValueOf(v).Elem())
}

func (c *Codec) read(raw []byte, v reflect.Value) error {
	kind := v.Kind()
	switch {
	case readsItself(v.Type()) || string(raw) == "null":
	case kind == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return c.read(raw, v.Elem())
	case kind == reflect.Struct && raw[0] == '{':
		fields := c.Fields(v.Type())
		return jsontree.Each(raw, func(quoted, value []byte) error {
			name, _ := jsontree.Text(quoted)
			for _, f := range fields {
				if f.Name == name {
					return c.read(value, v.FieldByIndex(f.Index))
				}
			}
			return nil
		})
	case kind == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8 && raw[0] == '[':
		v.SetLen(0)
		return jsontree.Each(raw, func(_, value []byte) error {
			item := reflect.New(v.Type().Elem()).Elem()
			err := c.read(value, item)
			v.Set(reflect.Append(v, item))
			return err
		})
	}
	return json.Unmarshal(raw, v.Addr().Interface())
}
