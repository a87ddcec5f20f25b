package serve

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// field is a member of a struct's JSON: a field of the struct, or one of a struct that is embedded in it.
type field struct {
	name     string
	typ      reflect.Type
	required bool
	does     string
	index    []int    // as in reflect.Value.FieldByIndex
	tagged   bool     // the name stands in the field's tag
	options  []string // those of the tag: omitempty, omitzero
}

// fieldCache has the fields of each type of struct that was asked for.
var fieldCache sync.Map // reflect.Type to []field

// fieldsOf returns the members that encoding/json reads and writes for a struct, each name once: of several fields with one name, the least deep counts, and
// among these the tagged one. If that leaves several, none counts.
func fieldsOf(t reflect.Type) []field {
	if known, ok := fieldCache.Load(t); ok {
		return known.([]field)
	}
	all := allFields(t, nil)
	out := slices.DeleteFunc(slices.Clone(all), func(f field) bool {
		return slices.ContainsFunc(all, func(other field) bool {
			return other.name == f.name && !slices.Equal(other.index, f.index) && !f.hides(other)
		})
	})
	fieldCache.Store(t, out)
	return out
}

// hides reports whether a field counts in place of another one of the same name.
func (f *field) hides(other field) bool {
	if len(f.index) != len(other.index) {
		return len(f.index) < len(other.index)
	}
	return f.tagged && !other.tagged
}

// allFields returns the fields of a struct, those of embedded structs in their place. above is the index of the struct itself.
func allFields(t reflect.Type, above []int) (out []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clip(above), i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			out = append(out, allFields(inner, index)...)
		case f.IsExported() && tag != "-":
			out = append(out, field{cmp.Or(name, f.Name), f.Type, !strings.Contains(options, "omit"), f.Tag.Get("doc"), index, name != "", strings.Split(options, ",")})
		}
	}
	return out
}
