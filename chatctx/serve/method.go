package serve

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/codec"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/plural"
)

// Scope is a right that a method requires.
type Scope string

// The scopes. None of them includes another.
const (
	Read   = Scope(operation.Read)   // read everything
	Write  = Scope(operation.Write)  // change conversations
	Decide = Scope(operation.Decide) // decide about tool calls
	Run    = Scope(operation.Run)    // ask models, run tools
	Admin  = Scope(operation.Admin)  // rules, tools, the store's settings, and all settings that name hosts or keys
)

// Scopes are all scopes.
var Scopes = []Scope{Read, Write, Decide, Run, Admin}

// method is an operation, as the server calls it.
type method struct {
	*operation.Operation
	fields []codec.Field
	read   func(params json.RawMessage) (any, error)
	run    func(r *request, in any) (any, error) // with the result of read
}

// methodOf makes a method of an operation. The fields of its parameters without omitempty are required and must not be empty.
func methodOf(o *operation.Operation) *method {
	m := &method{Operation: o, fields: codec.Fields(o.In)}
	m.read = func(params json.RawMessage) (any, error) {
		in := reflect.New(o.In).Interface()
		return in, m.decode(params, in)
	}
	m.run = func(r *request, in any) (any, error) {
		r.equip()
		return o.Run(&r.Request, in)
	}
	return m
}

// define makes a method of which a server alone knows.
func define[In, Out any](name, route string, right operation.Right, does string, do func(*request, *In) (Out, error)) *method {
	m := methodOf(operation.Define[In, Out](name, route, right, does, nil))
	m.run = func(r *request, in any) (any, error) {
		out, err := do(r, in.(*In))
		m.Observe(err)
		return out, err
	}
	return m
}

func (m *method) stream(tells ...operation.Event) *method { m.Stream(tells...); return m }
func (m *method) takesBytes() *method                     { m.TakesBytes(); return m }
func (m *method) fails(kinds ...string) *method           { m.Fails(kinds...); return m }

// brief reports whether a method makes a change and is done soon. Such a change is finished once it is begun, also if nobody waits for the answer any more:
// what was made is then never answered as interrupted, and its key gives the answer.
func (m *method) brief() bool {
	return m.Verb == http.MethodPost && m.Shape == operation.Answer && !m.Long
}

func (m *method) has(name string) bool {
	return slices.ContainsFunc(m.fields, func(f codec.Field) bool { return f.Name == name })
}

// decode reads parameters. It refuses unknown ones, and required ones that are missing or empty.
func (m *method) decode(params json.RawMessage, in any) error {
	if len(params) == 0 || string(params) == "null" {
		params = json.RawMessage("{}")
	}
	if !json.Valid(params) {
		return base.Invalid("%s: the parameters are no JSON object", m.Name)
	}
	if utf8.Valid(params) { // half characters are replaced, as in an import; bytes that are not UTF-8 are refused
		params, _ = jsontree.Whole(params)
	}
	if err := codec.Exact(params, m.In); err != nil {
		return base.Invalid("%s: %s", m.Name, err)
	}
	v := reflect.ValueOf(in).Elem()
	for _, f := range m.fields {
		if f.Default != "" {
			raw, _ := jsonOf(f.Type, []string{f.Default})
			_ = json.Unmarshal(raw, v.FieldByIndex(f.Index).Addr().Interface()) // what stands in a tag fits its field
		}
	}
	if err := json.Unmarshal(params, in); err != nil {
		return base.Invalid("%s: %s", m.Name, m.paramFault(err))
	}
	for _, f := range m.fields {
		if f.Required && f.Type.Kind() != reflect.Bool && v.FieldByIndex(f.Index).IsZero() {
			return base.Invalid("%s needs %s", m.Name, f.Name)
		}
		if s := v.FieldByIndex(f.Index); len(f.Words) > 0 && !s.IsZero() && !slices.Contains(f.Words, s.String()) {
			return base.Invalid("%s: %s is %q, and has to be %s", m.Name, f.Name, s, plural.Or(f.Words))
		}
	}
	return nil
}

// timeForm says how times are written.
const timeForm = "time like 2026-01-31T12:00:00Z"

// inJSON returns the path of a field as it is in the JSON: encoding/json also names the embedded structs in front of it.
func (m *method) inJSON(path string) string {
	for rest, more := path, true; more; {
		if name, _, _ := strings.Cut(rest, "."); m.has(name) {
			return rest
		}
		_, rest, more = strings.Cut(rest, ".")
	}
	return path
}

// paramFault describes an error in parameters without the names of Go's types.
func (m *method) paramFault(err error) string {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Sprintf("%s cannot be a %s", cmp.Or(m.inJSON(kind.Field), "the parameters"), kind.Value)
	}
	var at *time.ParseError
	if errors.As(err, &at) {
		return fmt.Sprintf("%s is no %s", at.Value, timeForm)
	}
	return jsontree.Fault(err)
}

// fromText adds parameters from a path, a query or a header, which are text, to a JSON object. It may overwrite the object.
func (m *method) fromText(object []byte, text map[string][]string) (json.RawMessage, error) {
	given := map[string]bool{}
	err := codec.Members(object, func(name string, _ []byte) error {
		given[name] = true
		return nil
	})
	if err != nil {
		return nil, base.Invalid("%s: %s", m.Name, err)
	}
	all := object[:len(object)-1]
	for _, name := range slices.Sorted(maps.Keys(text)) {
		values := text[name]
		i := slices.IndexFunc(m.fields, func(f codec.Field) bool { return f.Name == name })
		if i < 0 {
			return nil, base.Invalid("%s knows no parameter %q", m.Name, name)
		}
		if given[name] || len(values) > 1 && m.fields[i].Type.Kind() != reflect.Slice {
			return nil, base.Invalid("%s: %s is given twice", m.Name, name)
		}
		if !utf8.ValidString(strings.Join(values, "")) {
			return nil, base.Invalid("%s: %s is no UTF-8", m.Name, name)
		}
		raw, err := jsonOf(m.fields[i].Type, values)
		if err != nil {
			return nil, base.Invalid("%s: %s is %q, and has to be %s", m.Name, name, values[0], err)
		}
		if len(given) > 0 {
			all = append(all, ',')
		}
		given[name] = true
		all = append(append(append(all, '"'), name...), `":`...) // the names of fields need no escapes
		all = append(all, raw...)
	}
	return append(all, '}'), nil
}

// jsonOf returns JSON of type t for a text; the error says which values are valid.
func jsonOf(t reflect.Type, values []string) (json.RawMessage, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	quoted := func(v any) json.RawMessage { b, _ := json.Marshal(v); return b }
	if t == reflect.TypeFor[time.Time]() {
		if _, err := time.Parse(time.RFC3339, values[0]); err != nil {
			return nil, errors.New("a " + timeForm)
		}
	}
	switch t.Kind() {
	case reflect.String:
		return quoted(values[0]), nil
	case reflect.Slice:
		return quoted(values), nil
	case reflect.Bool:
		if values[0] != "true" && values[0] != "false" {
			return nil, errors.New("true or false")
		}
		return json.RawMessage(values[0]), nil
	case reflect.Uint64:
		if _, err := strconv.ParseUint(values[0], 10, 64); err != nil {
			return nil, errors.New("a number of 0 or more")
		}
		return json.RawMessage(values[0]), nil
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil {
			return nil, errors.New("a number")
		}
		return quoted(n), nil
	}
	return quoted(values[0]), nil
}
