// Package settings checks settings and finds which are in force.
//
//	for _, name := range settings.Names() {
//		fmt.Println(name, settings.Does(name))
//	}
//	value := settings.Parse("max_tokens", "4000")
//	if err := settings.Check("max_tokens", value); err != nil {
//		log.Fatal(err) // names the setting and says what it takes
//	}
//	both := settings.InForce(ofStore, ofBranch)
//
// A setting has a name and a JSON value. The store, a context and a branch have settings of their own; the nearer of two values for one name wins. One table has
// all settings, with their ranges and defaults.
package settings

import (
	"encoding/json"

	"github.com/chatctx/chatctx/internal/settings"
)

// ErrSetting means that a setting is not in the table or has an invalid value. The error names it.
var ErrSetting = settings.ErrSetting

// Names returns the names of all settings, those of the providers that the program added too. A name that ends in a dot stands for all that begin with it.
func Names() []string { return settings.Names("") }

// Does says what a setting is for; "" for one that is not in the table.
func Does(name string) string {
	s, _ := settings.Lookup(name)
	return s.Does
}

// Check returns an ErrSetting if a setting is not in the table or its value is invalid. null, which removes a setting, is valid for every name.
func Check(name string, value json.RawMessage) error { return settings.Check(name, value) }

// Parse returns the value of a typed text. For a setting that is text it is the text itself, unless it is a quoted JSON string; for others it is the JSON, or a
// text if it is not JSON.
func Parse(name, typed string) json.RawMessage { return settings.Parse(name, typed) }

// InForce returns the settings of several places together, the widest first: the nearer value wins, and an address keeps its own provider and key. It leaves
// out settings that have no effect, are held, are not in the table or have an invalid value.
func InForce(places ...map[string]json.RawMessage) map[string]json.RawMessage {
	return settings.InForce(places...)
}
