package settings

import (
	"encoding/json"
	"strings"
)

// HeldPrefix begins the names of settings that a file brought and that are not in force: held.base_url is what the file says of base_url.
const HeldPrefix = "held."

// Hold gives the settings of somebody else's file as they may be stored: those that are not harmless, not known or not valid stand under HeldPrefix until
// a person accepts them. held are their names. Where the file itself has a setting under both names, the one that it holds back is held under the prefix twice.
func Hold(from map[string]json.RawMessage) (out map[string]json.RawMessage, held []string) {
	for name, value := range from {
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

// HoldAll is Hold for settings that nobody but the store's owner sets: all of them are held back.
func HoldAll(from map[string]json.RawMessage) (out map[string]json.RawMessage, held []string) {
	for name, value := range from {
		if out == nil {
			out = make(map[string]json.RawMessage, len(from))
		}
		bare := bareName(from, name)
		out[HeldPrefix+bare], held = value, append(held, bare)
	}
	return out, sorted(held)
}

// bareName is a setting's name without the prefix, unless the place has a value in force for what that is about.
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

// Held are those of a place's settings that are held back, under their own names.
func Held(of map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for name, value := range of {
		if bare, ok := strings.CutPrefix(name, HeldPrefix); ok {
			out[bare] = value
		}
	}
	return out
}

// Said are a place's settings as the file said them that brought them: an export has what is held back under its own name, or, where the place has
// a value for that in force, beside it as it is here.
func Said(of map[string]json.RawMessage) map[string]json.RawMessage {
	if of == nil {
		return nil
	}
	out := make(map[string]json.RawMessage, len(of))
	for name, value := range of {
		out[bareName(of, name)] = value
	}
	return out
}

// Accept is the change of a place's settings that puts held ones in force: those that are named, or all that this version knows and that can have their values.
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
