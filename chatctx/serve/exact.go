package serve

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// exact fails where JSON has a name that the type does not have in these very letters, or one twice: package json takes "Text" for "text", and the last of two, so
// that two programs would read two requests. The JSON is valid. Types that read themselves are as strict as they are.
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
		s := scanner{raw: raw, at: 1}
		for s.next() != ']' {
			if err := exact(s.value(), t.Elem()); err != nil {
				return err
			}
		}
	}
	return nil
}

var jsonReader, textReader = reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()

// readsItself reports whether a type reads its own JSON.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Implements(jsonReader) || p.Implements(jsonReader) || t.Implements(textReader) || p.Implements(textReader)
}

// members takes the members of an object of valid JSON. The values lie in raw.
func members(raw []byte, take func(name string, value []byte) error) error {
	s := scanner{raw: raw, at: 1}
	seen := map[string]bool{}
	for s.next() != '}' {
		var name string
		quoted := s.value()
		if name = string(quoted[1 : len(quoted)-1]); strings.ContainsRune(name, '\\') {
			_ = json.Unmarshal(quoted, &name) // it is valid
		}
		if seen[name] {
			return fmt.Errorf("%q stands there twice", name)
		}
		seen[name] = true
		s.next()
		if err := take(name, s.value()); err != nil {
			return err
		}
	}
	return nil
}

// scanner finds where values end in valid JSON.
type scanner struct {
	raw []byte
	at  int
}

// next goes to the next byte that is more than white space or a mark between values.
func (s *scanner) next() byte {
	for strings.IndexByte(" \t\r\n,:", s.raw[s.at]) >= 0 {
		s.at++
	}
	return s.raw[s.at]
}

// value passes over the value that begins here.
func (s *scanner) value() []byte {
	from, depth := s.at, 0
	for s.at < len(s.raw) {
		switch c := s.raw[s.at]; c {
		case '"':
			s.text()
			if depth == 0 {
				return s.raw[from:s.at]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of what a number or a word stands in
				return s.raw[from:s.at]
			}
			if depth--; depth == 0 {
				s.at++
				return s.raw[from:s.at]
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return s.raw[from:s.at]
			}
		}
		s.at++
	}
	return s.raw[from:s.at]
}

// text passes over a string.
func (s *scanner) text() {
	for s.at++; s.raw[s.at] != '"'; s.at++ {
		if s.raw[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
}
