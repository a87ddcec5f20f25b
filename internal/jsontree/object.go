package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Members are a JSON object that keeps the order of its members and the bytes of their values, so that a block can be changed in one place and otherwise sent
// back unchanged.
type Members []Field

// Field is a name and a value of Members.
type Field struct {
	Name  string
	Value json.RawMessage
}

// ParseObject parses an object. The values share memory with raw.
func ParseObject(raw []byte) (Members, error) {
	if !json.Valid(raw) {
		return nil, errors.New("not JSON")
	}
	raw = bytes.TrimSpace(raw)
	if raw[0] != '{' {
		return nil, errors.New("not a JSON object")
	}
	var o Members
	err := Each(raw, func(name, value []byte) error {
		m := Field{Value: value[:len(value):len(value)]}
		o = append(o, m)
		return json.Unmarshal(name, &o[len(o)-1].Name)
	})
	return o, err
}

// HasOther reports whether a valid object has a member with another name than these. It is false for anything but an object.
func HasOther(raw []byte, names map[string]bool) bool {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return false
	}
	return Each(raw, func(name, _ []byte) error {
		if !names[string(name[1:len(name)-1])] {
			return errOther
		}
		return nil
	}) != nil
}

var errOther = errors.New("another member")

// Get returns the value of a name, nil if there is none.
func (o Members) Get(name string) json.RawMessage {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Set replaces the value of a name in its place, or adds a new member at the end.
func (o *Members) Set(name string, value json.RawMessage) {
	for i := range *o {
		if (*o)[i].Name == name {
			(*o)[i].Value = value
			return
		}
	}
	*o = append(*o, Field{name, value})
}

// Only returns the members with one of the names.
func (o Members) Only(names ...string) Members {
	return o.filter(names, true)
}

// Without returns all other members.
func (o Members) Without(names ...string) Members {
	return o.filter(names, false)
}

func (o Members) filter(names []string, in bool) Members {
	var out Members
	for _, m := range o {
		found := false
		for _, n := range names {
			found = found || n == m.Name
		}
		if found == in {
			out = append(out, m)
		}
	}
	return out
}

// Bytes returns the object as JSON.
func (o Members) Bytes() json.RawMessage {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, Quote(m.Name)...)
		b = append(b, ':')
		b = append(b, m.Value...)
	}
	return append(b, '}')
}

// Quote returns text as a JSON string, without the escapes that only HTML needs.
func Quote(text string) json.RawMessage { return AppendString(nil, text) }

// Merge returns the older object with the members of the newer one over its own; null members change nothing. Either may be nil. It merges cumulative figures.
func Merge(older, newer json.RawMessage) json.RawMessage {
	a, errA := ParseObject(older)
	b, errB := ParseObject(newer)
	if errB != nil {
		return older
	}
	if errA != nil {
		return newer
	}
	for _, m := range b {
		if string(m.Value) != "null" {
			a.Set(m.Name, m.Value)
		}
	}
	return a.Bytes()
}
