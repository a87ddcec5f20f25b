package intake

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/pool"
)

// If a file only changes what stands beside a message's words, the message is not stored again; the import reports it.
//
// beside returns everything that a file has beside a message's words.

// beside is all that a file has beside a message's words.
func beside(m *pool.Message) (all [][]byte) {
	for _, name := range slices.Sorted(maps.Keys(m.Meta.ProviderData)) {
		all = append(all, m.Meta.ProviderData[name])
	}
	all = append(all, m.Meta.Usage)
	if m.Source != nil {
		all = append(all, m.Source.Raw)
	}
	parts := m.Content
	if m.Result != nil {
		parts = slices.Concat(parts, m.Result.Parts)
	}
	for i := range parts {
		all = append(all, parts[i].Raw)
	}
	for i := range m.Calls {
		all = append(all, m.Calls[i].Raw)
	}
	return slices.DeleteFunc(all, func(b []byte) bool { return len(b) == 0 })
}

// saysMore reports whether now has a text, name or number beside its words that known does not have.
func saysMore(now, known *pool.Message) bool {
	had, have := beside(known), beside(now)
	if slices.EqualFunc(had, have, bytes.Equal) {
		return false
	}
	seen := map[json.Token]bool{}
	tokens(had, func(t json.Token) bool { seen[t] = true; return true })
	more := false
	tokens(have, func(t json.Token) bool { more = !seen[t]; return !more })
	return more
}

// tokens yields the texts, names and numbers of JSON values. A value that is not JSON is one text.
func tokens(all [][]byte, yield func(json.Token) bool) {
	for _, raw := range all {
		if !json.Valid(raw) {
			if !yield(string(raw)) {
				return
			}
			continue
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		for t, err := d.Token(); err == nil; t, err = d.Token() {
			if _, is := t.(json.Delim); !is && !yield(t) {
				return
			}
		}
	}
}
