package settings

import (
	"encoding/json"
	"testing"
)

// TestTemplatesStay: no file brings templates along or takes them away, under whatever name, and they are in force nowhere.
func TestTemplatesStay(t *testing.T) {
	in := map[string]json.RawMessage{"template.a": json.RawMessage(`{"text":"b"}`), "held.template.a": json.RawMessage(`{"text":"b"}`), "held.held.template.b": json.RawMessage(`1`), "model": json.RawMessage(`"m"`)}
	held, names := Hold(in)
	all, _ := HoldAll(in)
	for what, got := range map[string]map[string]json.RawMessage{"Hold": held, "HoldAll": all, "Said": Said(in), "InForce": InForce(in)} {
		if len(got) != 1 {
			t.Errorf("%s: %v", what, got)
		}
	}
	if len(names) != 0 {
		t.Errorf("held: %v", names)
	}
}

// TestFill: a gap is filled once, in one go; what looks like a gap and is none stays.
func TestFill(t *testing.T) {
	for _, c := range []struct {
		text, want string
		values     map[string]string
	}{
		{"{{a}}{{b}}{{a}}", "{{b}}{{a}}{{b}}", map[string]string{"a": "{{b}}", "b": "{{a}}"}},
		{"{{ a }} {{.a}} {{a b}} {a} {{}} {{{a}}}", "1 {{.a}} {{a b}} {a} {{}} {1}", map[string]string{"a": "1"}},
		{"{{a}}", "", map[string]string{"a": ""}},
		{"{{a}}", "{{a}}", map[string]string{}},
		{"plain", "plain", map[string]string{"a": "1"}},
		{"{{a}} $1 \\0", "$1 ${a} $1 \\0", map[string]string{"a": "$1 ${a}"}},
	} {
		got, err := Template{Text: c.text, System: c.text}.Fill(c.values)
		if wrong := len(c.values) != len(Template{Text: c.text}.Keys()); wrong != (err != nil) || got.Text != c.want && err == nil || got.System != got.Text {
			t.Errorf("%q: %q %v", c.text, got.Text, err)
		}
	}
}
