package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// TemplatePrefix begins the names of the settings that are templates.
const TemplatePrefix = "template."

// Template is a text with gaps, {{key}}, that values fill, and a system prompt that goes with it. It has nothing else: no model, address, key, file or command.
type Template struct {
	Text   string `json:"text"`
	System string `json:"system,omitempty"`
}

// gaps finds the gaps of a template.
var gaps = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\{ ?([A-Za-z0-9_-]+) ?\}\}`) })

// Keys returns the keys of a template's gaps, sorted.
func (t Template) Keys() []string {
	var keys []string
	for _, found := range gaps().FindAllStringSubmatch(t.Text+"\n"+t.System, -1) {
		keys = append(keys, found[1])
	}
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
		return gaps().ReplaceAllStringFunc(text, func(gap string) string { return values[strings.Trim(gap, "{ }")] })
	}
	return Template{fill(t.Text), fill(t.System)}, nil
}

// isTemplate reports whether a value is a template with a text.
func isTemplate(value json.RawMessage) bool {
	var fields map[string]string
	if json.Unmarshal(value, &fields) != nil || strings.TrimSpace(fields["text"]) == "" {
		return false
	}
	delete(fields, "text")
	delete(fields, "system")
	return len(fields) == 0
}

// IsTemplateName reports whether a template may have a name: letters, digits, - and _, not beginning with a dash.
func IsTemplateName(name string) bool {
	return name != "" && name[0] != '-' && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}
