package settings

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
)

// File has the settings of the person's config file: the widest place of all, behind the environment. Only the chatctx command reads one.
type File struct {
	Path   string
	Values map[string]json.RawMessage
	Lines  map[string]int // where each stands
}

var inFile atomic.Pointer[File]

// UseFile makes the settings of a config file the widest place; nil removes them.
func UseFile(f *File) { inFile.Store(f) }

// fileValues returns the settings of the config file.
func fileValues() map[string]json.RawMessage {
	if f := inFile.Load(); f != nil {
		return f.Values
	}
	return nil
}

// Check returns an error with the line of a setting that is wrong or has no effect in the file.
func (f *File) Check() error {
	for name, why := range idleKeys(nil, f.Values) {
		return fmt.Errorf("%s:%d: setting %s has no effect: %s", f.Path, f.Lines[name], name, why)
	}
	return nil
}

// Origins says from where the settings in force come: with the names of the places, the widest first, the environment and the config file behind them.
func Origins(inForce map[string]json.RawMessage, getenv func(string) string, names []string, places ...map[string]json.RawMessage) map[string]string {
	env, _ := FromEnv(getenv)
	f := inFile.Load()
	out := map[string]string{}
	for name, value := range inForce {
		row, _ := Lookup(name)
		is := func(place map[string]json.RawMessage) bool { return string(place[name]) == string(value) }
		if f != nil && is(f.Values) {
			out[name] = fmt.Sprintf("%s:%d", f.Path, f.Lines[name])
		}
		if is(env) {
			out[name] = row.Env()
		}
		for i, place := range places {
			if is(place) {
				out[name] = names[i]
			}
		}
		if out[name] == "" { // a provider that goes with an address
			out[name] = "default"
		}
	}
	return out
}
