package pool

import (
	"reflect"
	"slices"
	"testing"

	"github.com/chatctx/chatctx/internal/stored"
)

// TestTablesNameEveryField: a field that no table names would be in no JSON and in no check.
func TestTablesNameEveryField(t *testing.T) {
	covers(t, entryFields, &Entry{Message: &Message{}}, "Message")
	covers(t, callFields, &Call{}, "Extra", "Later")
	covers(t, metaFields, &Metadata{}, "Extra")
	covers(t, sourceFields, &Source{}, "Extra")
	covers(t, resultFields, &Result{}, "Extra", "JSON", "Text") // those two by outcome and asideText
	for _, fields := range partFields {
		covers(t, fields, &Part{}, "Extra")
	}
	e := &Entry{Message: &Message{}}
	inMessage(t, pointers(entryFields, e), e.Message)
}

func inMessage(t *testing.T, have []uintptr, m *Message) {
	t.Helper()
	missing(t, have, reflect.ValueOf(m).Elem(), []string{"Extra", "Home", "Aside"})
}

func covers[T any](t *testing.T, fields []field[T], v *T, except ...string) {
	t.Helper()
	missing(t, pointers(fields, v), reflect.ValueOf(v).Elem(), except)
	names := map[string]bool{}
	for _, f := range fields {
		if names[f.name] {
			t.Errorf("%T: %s twice", v, f.name)
		}
		names[f.name] = true
	}
	if len(fields) > 32 {
		t.Errorf("%T has more fields than the reader's set of seen ones holds", v)
	}
}

func pointers[T any](fields []field[T], v *T) []uintptr {
	var list []uintptr
	for _, f := range fields {
		list = append(list, reflect.ValueOf(f.at(v)).Pointer())
	}
	return list
}

func missing(t *testing.T, have []uintptr, v reflect.Value, except []string) {
	t.Helper()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if !slices.Contains(except, name) && !slices.Contains(have, v.Field(i).Addr().Pointer()) {
			t.Errorf("%s.%s is in no table", v.Type(), name)
		}
	}
}

// TestVisitGoesEverywhere: into parts, calls, the result, its parts, the metadata and the source.
func TestVisitGoesEverywhere(t *testing.T) {
	m := &Message{Content: []Part{{}}, Calls: []Call{{}}, Result: &Result{Parts: []Part{{}}}, Source: &Source{}}
	places := map[string]bool{}
	err := visit(m, func(c *stored.Cursor, value any) error {
		places[string(c.Path)] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"/id", "/content/0/text", "/tool_calls/0/arguments", "/tool_result/result", "/tool_result/parts/0/native", "/metadata/usage",
		"/source/raw"} {
		if !places[place] {
			t.Errorf("%s was not visited", place)
		}
	}
}
