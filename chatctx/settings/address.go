package settings

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// An address (base_url) has settings that belong to it: the provider whose protocol is spoken there, and the key that goes there (key_env).
// They hold where the address was set, in the store, a context or on a branch, and not for another address. A key without an address is
// for the own host of the provider that its place names, and without both for nobody.

// addressed are the settings before whose names an address may stand, companions those that belong to an address, without that.
var addressed, companions = func() (under, beside []string) {
	for i := range Table {
		if name, ok := strings.CutSuffix(Table[i].Name, "base_url"); ok {
			under = append(under, name)
		}
	}
	for i := range Table {
		if Table[i].Scope == Beside {
			name := Table[i].Name
			beside = append(beside, name[strings.LastIndexByte(name, '.')+1:])
		}
	}
	slices.Sort(beside)
	return under, slices.Compact(beside)
}()

// Default is the provider of an address that came without one: what nearly all servers speak.
const Default = "openai"

// Complete gives a change of a place's settings with what goes along with it: a new address takes the key of the old one away, and another provider that
// of a provider's own host, unless the change names one; an address gets the provider openai where neither the change nor the place names another.
func Complete(have, change map[string]json.RawMessage) map[string]json.RawMessage {
	out := maps.Clone(change)
	for _, under := range addressed {
		to, set := change[under+"base_url"]
		was, had := have[under+"base_url"]
		provider, own := have[under+"provider"]
		setUnlessGiven := func(name string, value json.RawMessage) {
			if _, given := change[under+name]; !given {
				out[under+name] = value
			}
		}
		_, keyed := have[under+"key_env"]
		if other, named := change[under+"provider"]; keyed && !had && own && named && string(other) != string(provider) {
			setUnlessGiven("key_env", null) // it was for that provider's own host
		}
		if !set || had && string(was) == string(to) || !had && string(to) == "null" {
			continue
		}
		if keyed {
			setUnlessGiven("key_env", null)
		}
		switch {
		case under == "embedding.": // OpenAI's protocol alone
		case string(to) == "null" && string(provider) == `"`+Default+`"`:
			setUnlessGiven("provider", null)
		case string(to) != "null" && !own:
			setUnlessGiven("provider", json.RawMessage(`"`+Default+`"`))
		}
	}
	return out
}

// InForce are the settings of several places together, the widest first: a nearer value wins, and an address keeps its own provider and key. What counts for nothing,
// is held back, is not in the table or cannot have its value is left out.
func InForce(places ...map[string]json.RawMessage) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, place := range places {
		place = takenOf(place)
		for _, under := range addressed {
			giveWay(out, place, under)
		}
		idle := idleKeys(out, place)
		for name, value := range place {
			if idle[name] == "" {
				out[name] = value
			}
		}
	}
	return out
}

// takenOf are the settings that the table has and that can have their values; null is for every one of them.
func takenOf(place map[string]json.RawMessage) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(place))
	for name, value := range place {
		if row, ok := Lookup(name); ok && (string(value) == "null" || row.takes(value)) {
			out[name] = value
		}
	}
	return out
}

// giveWay takes out of settings what belongs to a wider place's address, where a nearer place has an address or a provider of its own.
func giveWay(out, place map[string]json.RawMessage, under string) {
	address, provider := place[under+"base_url"], place[under+"provider"]
	if address == nil && (provider == nil || string(provider) == string(out[under+"provider"])) {
		return
	}
	delete(out, under+"base_url")
	for _, name := range companions {
		delete(out, under+name)
	}
	if address != nil && under != "embedding." {
		out[under+"provider"] = json.RawMessage(`"` + Default + `"`)
	}
}

// idleHere are the names of keys in a place that count for nothing beside what the wider places say.
func idleHere(wider []map[string]json.RawMessage, place map[string]json.RawMessage) map[string]string {
	out, place := InForce(wider...), takenOf(place)
	for _, under := range addressed {
		giveWay(out, place, under)
	}
	return idleKeys(out, place)
}

// idleKeys are the names of keys in a place that count for nothing, each with the reason.
func idleKeys(wider, place map[string]json.RawMessage) map[string]string {
	idle := map[string]string{}
	for _, under := range addressed {
		if why := idleKey(wider, place, under); why != "" {
			idle[under+"key_env"] = why
		}
	}
	return idle
}

// idleKey says why a key's name in a place counts for nothing, "" where it counts. wider is what the wider places have in force and the place leaves so.
func idleKey(wider, place map[string]json.RawMessage, under string) string {
	switch {
	case blank(place[under+"key_env"]) || !blank(place[under+"base_url"]):
		return ""
	case !blank(wider[under+"base_url"]):
		return "the " + under + "base_url in force stands in another place; set it there"
	case under == "embedding.":
		return "set " + under + "base_url beside it, in the same place"
	case blank(place[under+"provider"]):
		return "set beside it, in the same place, " + under + "base_url or, for a provider's own host, " + under + "provider"
	}
	return ""
}

// blank: a place says nothing of a setting.
func blank(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
