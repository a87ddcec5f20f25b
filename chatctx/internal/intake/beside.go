package intake

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/pool"
)

// What a file has beside the words of a message does not make it another one: it is not stored again for it, and who imports is told.

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

// saysMore reports whether beside one message there is a text, a name or a number that is not beside the other one.
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

// tokens gives the texts, names and numbers of JSON values; what is no JSON is one text.
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
