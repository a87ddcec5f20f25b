package settings

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chatctx/chatctx/internal/jsontree"
)

// Values are settings in force, read by name. A missing or invalid value is the default. All methods except Has panic for a name that Lookup does not know.
type Values map[string]json.RawMessage

// value returns the value of a setting, nil if there is none.
func (v Values) value(name string) json.RawMessage {
	row, ok := Lookup(name)
	if !ok {
		panic("there is no setting " + name) // an error in the calling code
	}
	if raw := bytes.TrimSpace(v[name]); len(raw) > 0 && string(raw) != "null" && row.takes(raw) {
		return raw
	}
	if raw := Parse(name, row.Default); row.Default != "" && row.takes(raw) {
		return raw
	}
	return nil
}

// Has reports whether the setting has a valid value of its own.
func (v Values) Has(name string) bool {
	row, _ := Lookup(name)
	raw := v[name]
	return len(raw) > 0 && string(raw) != "null" && row.takes(raw)
}

// Text returns a Text, a Word or an Address, "" if there is none.
func (v Values) Text(name string) string {
	text, _ := jsontree.Text(v.value(name)) // the row takes it, or it is nil
	return text
}

// Count returns a Count, 0 if there is none or it is off.
func (v Values) Count(name string) int {
	n, err := strconv.Atoi(string(v.value(name)))
	if err != nil {
		return 0
	}
	return n
}

// Off reports whether a Count is off.
func (v Values) Off(name string) bool { return string(v.value(name)) == `"off"` }

// Number returns a Number, nil if there is none.
func (v Values) Number(name string) *float64 {
	n, err := strconv.ParseFloat(string(v.value(name)), 64)
	if err != nil {
		return nil
	}
	return &n
}

// Truth returns a Truth, false if there is none.
func (v Values) Truth(name string) bool { return string(v.value(name)) == "true" }

// Share returns a Share, 0 if there is none.
func (v Values) Share(name string) float64 {
	f, _ := parseShare(v.value(name))
	return f
}

// Time returns a Time, 0 if there is none.
func (v Values) Time(name string) time.Duration {
	d, _ := time.ParseDuration(v.Text(name))
	return d
}

// Parse returns the value of a typed text. For a setting that is text it is the text itself, unless it is a quoted JSON string; for others it is the JSON, or a
// text if it is not JSON.
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
	return jsontree.AppendString(nil, typed)
}

// FromEnv returns the settings of the environment, which are below those of every place. getenv may be nil. A value that is invalid or has no effect is not in
// force; wrong has an *Error with the name of its variable.
func FromEnv(getenv func(string) string) (out map[string]json.RawMessage, wrong []error) {
	out = map[string]json.RawMessage{}
	if getenv == nil {
		return out, nil
	}
	for i, name := range variables() {
		if name == "" || getenv(name) == "" {
			continue
		}
		value := Parse(rows()[i].Name, getenv(name))
		if !rows()[i].takes(value) {
			wrong = append(wrong, &Error{Name: rows()[i].Name, Value: string(value), Wants: rows()[i].wants(), From: name})
			continue
		}
		out[rows()[i].Name] = value
	}
	for name, why := range idleKeys(nil, out) {
		row, _ := Lookup(name)
		wrong = append(wrong, &Error{Name: name, Value: string(out[name]), From: row.Env(), Idle: why})
		delete(out, name)
	}
	return out, wrong
}

// variables returns the environment variables of the table's rows. They are made once, since a program that judges many calls reads the environment for each.
var variables = sync.OnceValue(func() []string {
	out := make([]string, len(rows()))
	for i := range rows() {
		out[i] = rows()[i].Env()
	}
	return out
})

// WithEnv returns settings in force with those of the environment below them, and those of the config file below these.
func WithEnv(inForce map[string]json.RawMessage, getenv func(string) string) map[string]json.RawMessage {
	env, _ := FromEnv(getenv)
	return InForce(fileValues(), env, inForce)
}
