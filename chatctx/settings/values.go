package settings

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"time"
)

// Values are settings in force, read by name: a value that the table's row cannot have, or none, is the default. Methods but Has panic for a name that Lookup does not know.
type Values map[string]json.RawMessage

// value is what a setting is, nil for nothing, with its row.
func (v Values) value(name string) (json.RawMessage, Setting) {
	row, ok := Lookup(name)
	if !ok {
		panic("there is no setting " + name) // a slip of whoever wrote the call
	}
	if raw := v[name]; len(raw) > 0 && string(raw) != "null" && row.takes(raw) {
		return raw, row
	}
	if raw := Parse(name, row.Default); row.Default != "" && row.takes(raw) {
		return raw, row
	}
	return nil, row
}

// Has reports whether the setting has a value of its own that it can have.
func (v Values) Has(name string) bool {
	row, _ := Lookup(name)
	raw := v[name]
	return len(raw) > 0 && string(raw) != "null" && row.takes(raw)
}

// Text is a Text, a Word or an Address, "" for none.
func (v Values) Text(name string) (text string) {
	raw, _ := v.value(name)
	_ = json.Unmarshal(raw, &text) // the row takes it, or it is nil
	return text
}

// Count is a Count, 0 for none and for off.
func (v Values) Count(name string) (n int) {
	raw, _ := v.value(name)
	_ = json.Unmarshal(raw, &n) // as in Text; off is no number
	return n
}

// Off reports whether a Count is off.
func (v Values) Off(name string) bool {
	raw, _ := v.value(name)
	return string(raw) == `"off"`
}

// Number is a Number, nil for none.
func (v Values) Number(name string) (n *float64) {
	raw, _ := v.value(name)
	if raw != nil {
		_ = json.Unmarshal(raw, &n) // as in Text
	}
	return n
}

// Truth is a Truth, false for none.
func (v Values) Truth(name string) bool {
	raw, _ := v.value(name)
	return string(raw) == "true"
}

// Share is a Share, 0 for none.
func (v Values) Share(name string) float64 {
	raw, _ := v.value(name)
	f, _ := parseShare(raw)
	return f
}

// Time is a Time, 0 for none.
func (v Values) Time(name string) time.Duration {
	d, _ := time.ParseDuration(v.Text(name))
	return d
}

// Parse makes a value of what was typed. Text is taken as it is, unless it is a quoted JSON string; anything else is JSON where it is some, else text.
func Parse(name, typed string) json.RawMessage {
	raw := []byte(typed)
	row, _ := Lookup(name)
	plain := row.Type == Text || row.Type == Word || row.Type == Address || row.Type == Time
	if json.Valid(raw) && (!plain || strings.HasPrefix(strings.TrimSpace(typed), `"`)) {
		var b bytes.Buffer
		if json.Compact(&b, raw) == nil {
			return b.Bytes()
		}
	}
	text, _ := json.Marshal(typed) // texts always encode
	return text
}

// FromEnv are the settings that the environment gives, which are under those of every place. getenv may be nil. A value that its setting cannot have is not in force, and stands in
// wrong with the name of its variable.
func FromEnv(getenv func(string) string) (out map[string]json.RawMessage, wrong []error) {
	out = map[string]json.RawMessage{}
	if getenv == nil {
		return out, nil
	}
	for i, name := range variables() {
		if name == "" || getenv(name) == "" {
			continue
		}
		value := Parse(Table[i].Name, getenv(name))
		if !Table[i].takes(value) {
			wrong = append(wrong, &Error{Name: Table[i].Name, Value: string(value), Wants: Table[i].wants(), From: name})
			continue
		}
		out[Table[i].Name] = value
	}
	for name, why := range idleKeys(nil, out) {
		row, _ := Lookup(name)
		wrong = append(wrong, &Error{Name: name, Value: string(out[name]), From: row.Env(), Idle: why})
		delete(out, name)
	}
	return out, wrong
}

// variables are the environment variables of the table's rows. They are made once: whoever judges many calls reads the environment for each.
var variables = sync.OnceValue(func() []string {
	out := make([]string, len(Table))
	for i := range Table {
		out[i] = Table[i].Env()
	}
	return out
})

// WithEnv are settings in force with those of the environment under them.
func WithEnv(inForce map[string]json.RawMessage, getenv func(string) string) map[string]json.RawMessage {
	env, _ := FromEnv(getenv)
	return InForce(env, inForce)
}
