package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/internal/jsontree"
)

// TemplatePrefix begins the names of the settings that are templates.
const TemplatePrefix = "template."

// Template is a text with gaps, {{key}}, that values fill, and a system prompt that goes with it. It has nothing else: no model, address, key, file or command.
type Template struct {
	Text   string `json:"text"`
	System string `json:"system,omitempty"`
}

// gaps returns the parts of a text that stand between its gaps, and the keys of these: the key keys[i] stands behind parts[i]. A gap is {{key}} or {{ key }}.
func gaps(text string) (parts, keys []string) {
	from := 0
	for at := 0; ; {
		open := strings.Index(text[at:], "{{")
		if open < 0 {
			return append(parts, text[from:]), keys
		}
		open += at
		inside, _, closed := strings.Cut(text[open+2:], "}}")
		key := strings.TrimSuffix(strings.TrimPrefix(inside, " "), " ")
		if !closed || key == "" || strings.Trim(key, nameLetters) != "" {
			at = open + 1
			continue
		}
		parts, keys = append(parts, text[from:open]), append(keys, key)
		from = open + 2 + len(inside) + 2
		at = from
	}
}

// Keys returns the keys of a template's gaps, sorted.
func (t Template) Keys() []string {
	_, keys := gaps(t.Text)
	_, system := gaps(t.System)
	keys = append(keys, system...)
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Fill returns the template with values in its gaps. A value is not looked at for gaps. A gap without a value and a value without a gap are errors.
func (t Template) Fill(values map[string]string) (Template, error) {
	keys := t.Keys()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(keys, key) {
			return t, fmt.Errorf("the template has no {{%s}}", key)
		}
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { _, given := values[key]; return given })
	if len(keys) > 0 {
		return t, fmt.Errorf("the template needs a value for %s", strings.Join(keys, ", "))
	}
	fill := func(text string) string {
		parts, keys := gaps(text)
		filled := parts[0]
		for i, key := range keys {
			filled += values[key] + parts[i+1]
		}
		return filled
	}
	return Template{fill(t.Text), fill(t.System)}, nil
}

// isTemplate reports whether a value is a template with a text.
func isTemplate(value json.RawMessage) bool {
	v, err := jsontree.Parse(value)
	if err != nil || v.Kind != jsontree.Object {
		return false
	}
	for _, m := range v.Members {
		if m.Name != "text" && m.Name != "system" || m.Value.Kind != jsontree.String {
			return false
		}
	}
	text := v.Get("text")
	return text != nil && strings.TrimSpace(text.Text) != ""
}

// nameLetters are the characters of the names of templates and keys.
const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// IsTemplateName reports whether a template may have a name: letters, digits, - and _, not beginning with a dash.
func IsTemplateName(name string) bool {
	return name != "" && name[0] != '-' && strings.Trim(name, nameLetters) == ""
}
