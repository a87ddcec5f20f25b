package serve

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/chatctx/chatctx/internal/jsontree"
)

// exact returns an error if JSON has a name that differs from the type's in any letter, or one twice. Package json takes "Text" for "text", and the last of
// two, so that two programs could read two requests. The JSON must be valid. Types with their own decoder are not examined.
func exact(raw []byte, t reflect.Type) error {
	for t.Kind() == reflect.Pointer && !readsItself(t) {
		t = t.Elem()
	}
	if readsItself(t) || len(raw) == 0 {
		return nil
	}
	switch {
	case t.Kind() == reflect.Struct && raw[0] == '{':
		fields := fieldsOf(t)
		return members(raw, func(name string, value []byte) error {
			for _, f := range fields {
				if f.name == name {
					return exact(value, f.typ)
				}
			}
			return fmt.Errorf("unknown field %q", name)
		})
	case t.Kind() == reflect.Map && raw[0] == '{':
		return members(raw, func(_ string, value []byte) error { return exact(value, t.Elem()) })
	case t.Kind() == reflect.Slice && raw[0] == '[':
		return jsontree.Each(raw, func(_, value []byte) error { return exact(value, t.Elem()) })
	}
	return nil
}

var jsonReader, textReader = reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()

// readsItself reports whether a type decodes its own JSON.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Implements(jsonReader) || p.Implements(jsonReader) || t.Implements(textReader) || p.Implements(textReader)
}

// members calls take for each member of a valid JSON object. The values share memory with raw.
func members(raw []byte, take func(name string, value []byte) error) error {
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
