package serve

import (
	"reflect"
	"testing"

	"github.com/chatctx/chatctx/internal/codec"
)

// TestNamesOnce walks the types of all results and events: no struct has two members of one name.
func TestNamesOnce(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, m := range methods() {
		walkNames(t, m.Out, seen)
		for _, e := range m.Tells {
			walkNames(t, e.Type, seen)
		}
	}
	if len(seen) < 150 {
		t.Errorf("the results have only %d types", len(seen))
	}
}

func walkNames(t *testing.T, typ reflect.Type, seen map[reflect.Type]bool) {
	t.Helper()
	if seen[typ] || codec.WritesItself(typ) || codec.WritesItself(reflect.PointerTo(typ)) {
		return
	}
	seen[typ] = true
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
		walkNames(t, typ.Elem(), seen)
	case reflect.Struct:
		names := map[string]bool{}
		for _, f := range codec.Fields(typ) {
			if names[f.Name] {
				t.Errorf("%s has two members %q", typ, f.Name)
			}
			names[f.Name] = true
			walkNames(t, f.Type, seen)
		}
	}
}
