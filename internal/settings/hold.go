package settings

import (
	"encoding/json"
	"strings"
)

// HeldPrefix begins the names of settings that a file brought and that are not in force: held.base_url is the file's base_url.
const HeldPrefix = "held."

// Hold returns the settings of another person's file as they are stored: those that are not harmless, unknown or invalid are under HeldPrefix until a person
// accepts them. held are their names, sorted. If the file has a setting under both names, the held one gets the prefix twice.
func Hold(from map[string]json.RawMessage) (out map[string]json.RawMessage, held []string) {
	for name, value := range from {
		if IsOfStore(name) {
			continue
		}
		if out == nil {
			out = make(map[string]json.RawMessage, len(from))
		}
		if row, _ := Lookup(name); !row.Harmless || Check(name, value) != nil {
			bare := bareName(from, name)
			held = append(held, bare)
			name = HeldPrefix + bare
		}
		out[name] = value
	}
	return out, sorted(held)
}

// HoldAll is Hold for settings that only the store's owner sets: all of them are held.
func HoldAll(from map[string]json.RawMessage) (out map[string]json.RawMessage, held []string) {
	for name, value := range from {
		if IsOfStore(name) {
			continue
		}
		if out == nil {
			out = make(map[string]json.RawMessage, len(from))
		}
		bare := bareName(from, name)
		out[HeldPrefix+bare], held = value, append(held, bare)
	}
	return out, sorted(held)
}

// IsOfStore reports whether only the store has a setting, held or not: no file brings it along or takes it away.
func IsOfStore(name string) bool {
	for strings.HasPrefix(name, HeldPrefix) {
		name = strings.TrimPrefix(name, HeldPrefix)
	}
	row, _ := Lookup(name)
	return row.Scope == OfStore
}

// bareName returns a setting's name without one prefix, unless the place also has the setting in force.
func bareName(of map[string]json.RawMessage, name string) string {
	root := name
	for strings.HasPrefix(root, HeldPrefix) {
		root = strings.TrimPrefix(root, HeldPrefix)
	}
	if _, both := of[root]; both {
		return name
	}
	return strings.TrimPrefix(name, HeldPrefix)
}

// Held returns the held settings of a place, under their own names.
func Held(of map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, value := range of {
		if bare, ok := strings.CutPrefix(name, HeldPrefix); ok {
			out[bare] = value
		}
	}
	return out
}

// Said returns a place's settings as the file that brought them had them, for an export: held settings are under their own names, unless the place has a value
// in force for the name.
func Said(of map[string]json.RawMessage) map[string]json.RawMessage {
	if of == nil {
		return nil
	}
	out := make(map[string]json.RawMessage, len(of))
	for name, value := range of {
		if !IsOfStore(name) {
			out[bareName(of, name)] = value
		}
	}
	return out
}

// Accept returns the change of a place's settings that puts held ones in force: those that are named, or, without names, all that are known and valid.
func Accept(of map[string]json.RawMessage, names ...string) map[string]json.RawMessage {
	set := map[string]json.RawMessage{}
	for name, value := range Held(of) {
		wanted := len(names) == 0 && Check(name, value) == nil
		for _, n := range names {
			wanted = wanted || n == name
		}
		if wanted {
			set[name], set[HeldPrefix+name] = value, null
		}
	}
	return set
}

var null = json.RawMessage("null")
