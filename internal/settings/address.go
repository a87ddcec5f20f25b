package settings

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// An address (base_url) has companions: the provider whose protocol it speaks, and the key for it (key_env). They count where the address was set, in the
// store, on a context or on a branch, and for no other address. A key without an address is for the own host of the provider that its place names; without both
// it has no effect.

// addressed are the prefixes of the names of addresses, companions the names, without prefix, of the settings that belong to an address.
var addressed, companions = func() (under, beside []string) {
	for i := range rows() {
		if name, ok := strings.CutSuffix(rows()[i].Name, "base_url"); ok {
			under = append(under, name)
		}
	}
	for i := range rows() {
		if rows()[i].Scope == Beside {
			name := rows()[i].Name
			beside = append(beside, name[strings.LastIndexByte(name, '.')+1:])
		}
	}
	slices.Sort(beside)
	return under, slices.Compact(beside)
}()

// Default is the provider of an address without one, since nearly all servers speak its protocol.
const Default = "openai"

// Complete returns a change of a place's settings with its consequences. A new address removes the key of the old one, and another provider removes the key for
// the old provider's own host, unless the change sets a key. An address gets the provider openai if neither the change nor the place names one.
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
			setUnlessGiven("key_env", null) // that key was for the old provider's own host
		}
		if !set || had && string(was) == string(to) || !had && string(to) == "null" {
			continue
		}
		if keyed {
			setUnlessGiven("key_env", null)
		}
		switch {
		case under == "embedding.": // it has only OpenAI's protocol
		case string(to) == "null" && string(provider) == `"`+Default+`"`:
			setUnlessGiven("provider", null)
		case string(to) != "null" && !own:
			setUnlessGiven("provider", json.RawMessage(`"`+Default+`"`))
		}
	}
	return out
}

// InForce returns the settings of several places together, the widest first: the nearer value wins, and an address keeps its own provider and key. It leaves
// out settings that have no effect, are held, are not in the table or have an invalid value.
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

// takenOf returns the settings of a place that are in the table, can be in force and have a valid value; null is valid for all.
func takenOf(place map[string]json.RawMessage) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(place))
	for name, value := range place {
		if row, ok := Lookup(name); ok && row.Scope != OfStore && (string(value) == "null" || row.takes(value)) {
			out[name] = value
		}
	}
	return out
}

// giveWay removes a wider place's address and its companions if a nearer place has an address or another provider.
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

// idleHere returns the names of keys in a place that have no effect besides the wider places, each with the reason.
func idleHere(wider []map[string]json.RawMessage, place map[string]json.RawMessage) map[string]string {
	out, place := InForce(wider...), takenOf(place)
	for _, under := range addressed {
		giveWay(out, place, under)
	}
	return idleKeys(out, place)
}

// idleKeys returns the names of keys in a place that have no effect, each with the reason.
func idleKeys(wider, place map[string]json.RawMessage) map[string]string {
	idle := map[string]string{}
	for _, under := range addressed {
		if why := idleKey(wider, place, under); why != "" {
			idle[under+"key_env"] = why
		}
	}
	return idle
}

// idleKey returns why a key's name in a place has no effect, "" if it has one. wider are the settings of the wider places in force, after giveWay.
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

// Addresses reports whether a setting says where requests go, with whose key or for which account: an address, a provider, or a companion of these.
func Addresses(name string) bool {
	for _, under := range addressed {
		if rest, ok := strings.CutPrefix(name, under); ok && (rest == "base_url" || rest == "provider" || slices.Contains(companions, rest)) {
			return true
		}
	}
	return false
}

// blank reports whether a place has no value for a setting.
func blank(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
