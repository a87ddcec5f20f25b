package codec

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Field is a member of a struct's JSON: a field of the struct, or one of a struct that is embedded in it.
type Field struct {
	Name     string
	Type     reflect.Type
	Required bool     // it is never left out
	Null     bool     // its zero value is null
	Doc      string   // the tag doc
	Words    []string // the tag words: all that it may be
	Default  string   // the tag default: the value without it
	Index    []int    // as in reflect.Value.FieldByIndex

	omit, after string
}

// cache has the fields of each type of struct that was asked for.
type cache struct{ m sync.Map } // reflect.Type to []Field

// Fields returns the members of a struct's JSON, in their order.
func (c *Codec) Fields(t reflect.Type) []Field {
	if known, ok := c.fields.m.Load(t); ok {
		return known.([]Field)
	}
	all := ordered(c.under(t, nil))
	c.fields.m.Store(t, all)
	return all
}

// ordered moves the members that stand behind others. Of several behind one the last comes first: what a view adds stands next to it.
func ordered(all []Field) (out []Field) {
	var put func(f Field)
	put = func(f Field) {
		out = append(out, f)
		for _, g := range slices.Backward(all) {
			if g.after == f.Name {
				put(g)
			}
		}
	}
	for _, f := range all {
		if f.after == "" || !slices.ContainsFunc(all, func(o Field) bool { return o.Name == f.after }) {
			put(f)
		}
	}
	return out
}

// docOf returns the description of a field: what its tag doc says, and behind it what only callers of the API need, which its tag api says.
func docOf(f reflect.StructField) string {
	if more := f.Tag.Get("api"); more != "" {
		return f.Tag.Get("doc") + "; " + more
	}
	return f.Tag.Get("doc")
}

// under returns the members of a struct, those of embedded structs in their place. above is the index of the struct itself.
func (c *Codec) under(t reflect.Type, above []int) (out []Field) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, only := f.Tag.Get("json"), f.Tag.Get("only")
		if tag == "-" || only == "lines" && c.Lines == nil {
			continue
		}
		index := append(slices.Clip(above), i)
		name, omit, _ := strings.Cut(tag, ",")
		after, flat := f.Tag.Get("after"), f.Anonymous && name == ""
		if name = cmp.Or(name, f.Name); c.Lines != nil {
			if stored, is := f.Tag.Lookup("cbor"); is {
				omit = stored
			}
			after = ""
			if own, is := c.Lines[t.Name()+"."+name]; is {
				own, after, _ = strings.Cut(own, " after ")
				if name, _, _ = strings.Cut(own, ","); name != own {
					omit = own
				}
				flat = name == ""
			}
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-":
		case flat && inner.Kind() == reflect.Struct:
			out = append(out, c.under(inner, index)...)
		case f.IsExported():
			field := Field{Name: name, Type: f.Type, Required: !strings.Contains(omit, "omit"), Null: f.Tag.Get("empty") == "null" && c.Lines == nil,
				Doc: docOf(f), Words: strings.Fields(f.Tag.Get("words")), Default: f.Tag.Get("default"), Index: index, after: after}
			switch {
			case strings.Contains(omit, "omitzero"):
				field.omit = "zero"
			case strings.Contains(omit, "omitempty"):
				field.omit = "empty"
			}
			out = append(out, field)
		}
	}
	return out
}
