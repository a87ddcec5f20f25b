package approval

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/internal/jsontree"
)

// undeclared returns the path of an argument, or of a part of one, that a schema does not declare, "" if there is none. A nil schema declares all, and so does
// one that allows other arguments. An object in an argument is closed if its schema names members or forbids others.
func undeclared(schema json.RawMessage, args *jsontree.Value) string {
	if schema == nil {
		return ""
	}
	tree, err := jsontree.Parse(schema)
	if err != nil {
		tree = &jsontree.Value{Kind: jsontree.Object}
	}
	d := &declarations{root: tree}
	return d.missing(args, d.all([]*jsontree.Value{tree}), true)
}

// declarations look for what a schema declares.
type declarations struct{ root *jsontree.Value }

// missing returns the path below a value that none of its schemas declares. closed: the value is closed whatever they say.
func (d *declarations) missing(v *jsontree.Value, schemas []*jsontree.Value, closed bool) string {
	closed = closed || slices.ContainsFunc(schemas, closes)
	for _, m := range v.Members {
		declared, inner := d.member(schemas, m.Name)
		if !declared && closed {
			return m.Name
		}
		if at := d.missing(m.Value, d.all(inner), false); at != "" {
			return m.Name + after(at)
		}
	}
	for i, one := range v.List {
		if at := d.missing(one, d.all(elements(schemas, i)), false); at != "" {
			return "[" + strconv.Itoa(i) + "]" + after(at)
		}
	}
	return ""
}

// after returns a path as it stands behind the name of what it begins in.
func after(path string) string {
	if strings.HasPrefix(path, "[") {
		return path
	}
	return "." + path
}

// deepestRef is how many references, and how many schemas in schemas, are followed.
const deepestRef = 16

// all returns schemas and those that they include.
func (d *declarations) all(from []*jsontree.Value) []*jsontree.Value {
	var out []*jsontree.Value
	var add func(s *jsontree.Value, depth int)
	add = func(s *jsontree.Value, depth int) {
		if s == nil || s.Kind != jsontree.Object || depth > deepestRef || slices.Contains(out, s) {
			return
		}
		out = append(out, s)
		for _, name := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
			if ref := s.Get(name); ref != nil && ref.Kind == jsontree.String {
				add(local(d.root, ref.Text), depth+1)
			}
		}
		for _, name := range []string{"allOf", "anyOf", "oneOf"} {
			if list := s.Get(name); list != nil {
				for _, one := range list.List {
					add(one, depth+1)
				}
			}
		}
		for _, name := range []string{"if", "then", "else"} {
			add(s.Get(name), depth+1)
		}
		for _, name := range []string{"dependentSchemas", "dependencies"} {
			if list := s.Get(name); list != nil {
				for _, m := range list.Members {
					add(m.Value, depth+1)
				}
			}
		}
	}
	for _, s := range from {
		add(s, 0)
	}
	return out
}

// closes reports whether a schema names the members of an object or forbids others.
func closes(s *jsontree.Value) bool {
	names := s.Get("properties") != nil || s.Get("patternProperties") != nil
	return names || isFalse(s.Get("additionalProperties")) || isFalse(s.Get("unevaluatedProperties"))
}

func isFalse(v *jsontree.Value) bool { return v != nil && v.Kind == jsontree.Bool && v.Text == "false" }

// member reports whether one of the schemas declares a member of an object, and returns the schemas for it.
func (d *declarations) member(schemas []*jsontree.Value, name string) (declared bool, inner []*jsontree.Value) {
	for _, s := range schemas {
		own := false
		if p := s.Get("properties"); p != nil && p.Get(name) != nil {
			own, inner = true, append(inner, p.Get(name))
		}
		if p := s.Get("patternProperties"); p != nil {
			for _, m := range p.Members {
				if re, err := regexp.Compile(m.Name); err == nil && re.MatchString(name) {
					own, inner = true, append(inner, m.Value)
				}
			}
		}
		for _, others := range []string{"additionalProperties", "unevaluatedProperties"} {
			if more := s.Get(others); !own && more != nil && !isFalse(more) {
				own, inner = true, append(inner, more)
			}
		}
		declared = declared || own
	}
	return declared, inner
}

// elements returns the schemas for an element of a list.
func elements(schemas []*jsontree.Value, i int) (out []*jsontree.Value) {
	for _, s := range schemas {
		first := s.Get("prefixItems")
		if items := s.Get("items"); items != nil && items.Kind == jsontree.List {
			first = items
		}
		if first != nil && i < len(first.List) {
			out = append(out, first.List[i])
			continue
		}
		for _, name := range []string{"items", "additionalItems", "unevaluatedItems", "contains"} {
			out = append(out, s.Get(name))
		}
	}
	return out
}

// local finds the target of a reference within a schema, nil if there is none.
func local(root *jsontree.Value, ref string) *jsontree.Value {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	if rest != "" && rest[0] != '/' {
		return anchored(root, rest)
	}
	v := root
	for _, name := range strings.Split(rest, "/")[1:] {
		if v == nil {
			return nil
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		if n, err := strconv.Atoi(name); err == nil && v.Kind == jsontree.List && n >= 0 && n < len(v.List) {
			v = v.List[n]
			continue
		}
		v = v.Get(name)
	}
	return v
}

// anchored finds the schema with an anchor, nil if there is none.
func anchored(root *jsontree.Value, name string) (found *jsontree.Value) {
	below(root, func(v *jsontree.Value) {
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			if a := v.Get(key); a != nil && a.Kind == jsontree.String && a.Text == name && found == nil {
				found = v
			}
		}
	})
	return found
}
