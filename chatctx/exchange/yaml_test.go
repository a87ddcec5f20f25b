package exchange

import (
	"strings"
	"testing"
)

// TestYAML: what YAML says, in JSON; "" where it is refused.
func TestYAML(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: -1.5\nc: true\nd: ~\ne: null\nf:": `{"a":1,"b":-1.5,"c":true,"d":null,"e":null,"f":null}`,
		"a: 0x1F\nb: yes\nc: 07\nd: .5\ne: '1'":     `{"a":"0x1F","b":"yes","c":"07","d":".5","e":"1"}`,
		"a: 123456789012345678901234567890":         `{"a":123456789012345678901234567890}`,
		"a: b # c\nd: e#f\ng: # h\n- i":             `{"a":"b","d":"e#f","g":["i"]}`,
		"a: b # c\nd: e#f\ng: # h\n  - i":           `{"a":"b","d":"e#f","g":["i"]}`,
		"a: 'it''s'\nb: \"x\\ny \\x41 # \"":         `{"a":"it's","b":"x\ny A # "}`,
		"a: |\n  \tx\n  y\n":                        `{"a":"\tx\ny\n"}`,
		"a: |-\n  x\n\n   y\n\n":                    `{"a":"x\n\n y"}`,
		"a: |+\n  x\n\n\nb: 1":                      `{"a":"x\n\n\n","b":1}`,
		"a: |2\n   x\n":                             `{"a":" x\n"}`,
		"a: >\n  x\n  y\n\n  z\n":                   `{"a":"x y\nz\n"}`,
		"a: >-\n\n  x\n   y\n\n  z\n\n\n  u\n":      `{"a":"\nx\n y\n\nz\n\nu"}`,
		"a: |\n  x\u2028  y\n  z\u2029u\n":          `{"a":"x\u2028y\nz\u2029u\n"}`,
		"- - a\n  - b\n- c: d\n  e: f":              `[["a","b"],{"c":"d","e":"f"}]`,
		"---\na:\n- 1\n- 2":                         `{"a":[1,2]}`,
		"a: x\r\nb: |\r\n  y\r\n":                   `{"a":"x","b":"y\n"}`,
		"a: &x 1\nb: *x":                            "",
		"---\na: 1\n---\nb: 1":                      "",
		"a: b\nc":                                   "",
		"a: \"x":                                    "",
		strings.Repeat("- ", 2000) + "a":            "",
	} {
		got, err := yamlJSON(text)
		if (err != nil) != (want == "") || err == nil && string(got) != want {
			t.Errorf("%.60q: %s, %v", text, got, err)
		}
	}
}
