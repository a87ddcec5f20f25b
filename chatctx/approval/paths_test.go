package approval

import (
	"encoding/json"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
)

// TestEncodedPaths: no allow is sure of a path with dots or separators that are written with %, and a deny sees through them.
func TestEncodedPaths(t *testing.T) {
	judge := func(path string, rules ...*record.Rule) *record.Ruling {
		raw, err := json.Marshal(map[string]string{"path": path})
		if err != nil {
			t.Fatal(err)
		}
		return Rules{}.Judge(rules, &record.Question{Tool: "r", Arguments: raw, Dir: "/srv"})
	}
	all := &record.Rule{Effect: record.Allow, Tool: "*"}
	on := func(effect, condition string) *record.Rule {
		return &record.Rule{Effect: effect, Tool: "r", When: []record.Condition{cond(t, "path "+condition)}}
	}
	for _, path := range []string{"/srv/%2e%2e/etc/passwd", "/srv/..%2fetc/passwd", "/srv/%2E%2E%2Fetc/passwd", "/srv/.%2e/etc/passwd", "/srv/%252e%252e/x", "/srv/%25252E./x", "/srv/a%5c..%5Cx", "/srv/%c0%ae%c0%ae/x", "/srv/%C0%AF/x",
		"/srv/%e0%80%ae./x", "/srv/%u002e%u002e/x", "/srv/a%00.txt", "%2fetc/passwd", "%2e%2e/etc/passwd", "/srv/x/%2e"} {
		for _, condition := range []string{"under /srv", "glob /srv/**", "glob **/*"} {
			if got := judge(path, on(record.Allow, condition)); got.Effect != record.Ask {
				t.Errorf("allow %s: %s is %s", condition, path, got.Effect)
			}
		}
		for _, condition := range []string{"under /etc", "glob /etc/**"} {
			if got := judge(path, on(record.Deny, condition), all); got.Effect == record.Allow {
				t.Errorf("deny %s: %s is %s", condition, path, got.Effect)
			}
		}
	}
	for _, path := range []string{"/srv/../etc", "/srv/%2e%2e/etc", "/srv/%252e%252E/etc", "/srv/%25252e./etc", "/srv/%25c0%ae./etc", "/srv/%u002E./etc"} {
		if got := judge(path, on(record.Allow, "prefix /srv/")); got.Effect != record.Ask {
			t.Errorf("a prefix is sure of the dots in %s: %s", path, got.Effect)
		}
	}
	for _, path := range []string{"/srv/a.txt", "/srv/a%20b.txt", "/srv/100%", "/srv/caf%C3%A9", "b%"} {
		if got := judge(path, on(record.Allow, "under /srv")); got.Effect != record.Allow {
			t.Errorf("%s is %s", path, got.Effect)
		}
	}
	for path, want := range map[string]string{"/etc/%70asswd": record.Deny, "%2Fetc%2Fpasswd": record.Deny, "/etc/pass%77d": record.Deny, "/srv/%70": record.Allow} {
		if got := judge(path, on(record.Deny, "glob /etc/passwd"), all); got.Effect != want {
			t.Errorf("deny of /etc/passwd: %s is %s, want %s", path, got.Effect, want)
		}
	}
}

// TestPathsOfWindows: what Windows opens for some paths is another file than their text says.
func TestPathsOfWindows(t *testing.T) {
	for _, path := range []string{`.env.`, `.env `, `.env . .`, `a\.env::$DATA`, `.env:x`, `D\.. \x`, `D\... \x`, `D/.. /x`, `D\..\. \x`, `C:x`, `C:`, `\\?\C:\x`, `\\.\COM1`, `//?/x`, `\??\C:\x`, `NUL`, `a\nul.txt`, `con`, `COM1.log`, `LPT¹`, `aux .txt`, `PROGRA~1\x`,
		`%USERPROFILE%\x`, `C:\x\..\y.\z`} {
		if otherOnWindows(path) == "" {
			t.Errorf("%s is told", path)
		}
	}
	for _, path := range []string{`.env`, `a\b.txt`, `C:\x\y`, `C:/x/../y`, `..\x`, `.\x`, `\\server\share\x`, `console.log`, `nully`, `com10`, `a b\c`, `100%`, `~x`} {
		if why := otherOnWindows(path); why != "" {
			t.Errorf("%s: %s", path, why)
		}
	}
}

// TestUndeclaredAtEveryDepth: an allow asks for an argument that the schema does not declare, wherever the schema says what there is.
func TestUndeclaredAtEveryDepth(t *testing.T) {
	object := func(inner string) string { return `{"properties":{"o":` + inner + `}}` }
	for _, c := range []struct{ schema, args, missing string }{
		{object(`{"properties":{"a":{}}}`), `{"o":{"a":1}}`, ""}, {object(`{"properties":{"a":{}}}`), `{"o":{"a":1,"b":2}}`, "o.b"}, {object(`{"properties":{"a":{}},"additionalProperties":false}`), `{"o":{"b":2}}`, "o.b"},
		{object(`{"additionalProperties":false}`), `{"o":{"b":2}}`, "o.b"}, {object(`{"unevaluatedProperties":false}`), `{"o":{"b":2}}`, "o.b"}, {object(`{"patternProperties":{"^x":{}}}`), `{"o":{"x1":2,"y":1}}`, "o.y"},
		{object(`{"type":"object"}`), `{"o":{"b":{"c":1}}}`, ""}, {object(`{}`), `{"o":{"b":2}}`, ""}, {object(`true`), `{"o":{"b":2}}`, ""}, {object(`{"properties":{"a":{}},"additionalProperties":true}`), `{"o":{"b":2}}`, ""},
		{object(`{"additionalProperties":{"properties":{"a":{}}}}`), `{"o":{"x":{"a":1}}}`, ""}, {object(`{"additionalProperties":{"properties":{"a":{}}}}`), `{"o":{"x":{"b":1}}}`, "o.x.b"},
		{object(`{"items":{"properties":{"a":{}}}}`), `{"o":[{"a":1},{"b":1}]}`, "o[1].b"}, {object(`{"prefixItems":[{"properties":{"a":{}}},true]}`), `{"o":[{"b":1}]}`, "o[0].b"}, {object(`{"prefixItems":[true],"items":{"properties":{"a":{}}}}`), `{"o":[{"b":1},{"b":1}]}`, "o[1].b"},
		{object(`{"items":[{"properties":{"a":{}}}],"additionalItems":{"properties":{"c":{}}}}`), `{"o":[{"a":1},{"b":1}]}`, "o[1].b"}, {object(`{"items":{"items":{"properties":{"a":{}}}}}`), `{"o":[[{"b":1}]]}`, "o[0][0].b"},
		{`{"properties":{"o":{"$ref":"#/$defs/d"}},"$defs":{"d":{"properties":{"a":{},"d":{"$ref":"#/$defs/d"}}}}}`, `{"o":{"d":{"d":{"a":1,"x":1}}}}`, "o.d.d.x"}, {`{"properties":{"o":{"$ref":"#d"}},"$defs":{"d":{"$anchor":"d","properties":{"a":{}}}}}`, `{"o":{"x":1}}`, "o.x"},
		{object(`{"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}`), `{"o":{"a":1,"b":1}}`, ""}, {object(`{"anyOf":[{"properties":{"a":{}}},{"type":"string"}]}`), `{"o":{"b":1}}`, "o.b"}, {object(`{"oneOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}`), `{"o":{"c":1}}`, "o.c"},
		{object(`{"if":{"properties":{"k":{}}},"then":{"properties":{"a":{}}},"else":{"properties":{"b":{}}}}`), `{"o":{"k":1,"a":1,"b":1}}`, ""}, {object(`{"dependentSchemas":{"k":{"properties":{"a":{}}}},"properties":{"k":{}}}`), `{"o":{"k":1,"a":1,"z":1}}`, "o.z"},
		{object(`{"properties":{"A":{}}}`), `{"o":{"a":1}}`, "o.a"}, {object(`{"$ref":"#"}`), `{"o":{"o":{"x":1}}}`, "o.o.x"}, {`{"properties":{"a":{}}}`, `{"b":{"c":1}}`, "b"}, {`{"additionalProperties":{"properties":{"a":{}}}}`, `{"x":{"b":1}}`, "x.b"},
	} {
		q := &record.Question{Tool: "t", Arguments: json.RawMessage(c.args), Schema: json.RawMessage(c.schema)}
		if got := undeclared(q.Schema, subjectOf(q).args); got != c.missing {
			t.Errorf("%s in %s: %q, want %q", c.args, c.schema, got, c.missing)
		}
		want := map[bool]string{true: record.Allow, false: record.Ask}[c.missing == ""]
		if got := (Rules{}).Judge([]*record.Rule{{Effect: record.Allow, Tool: "*"}}, q); got.Effect != want {
			t.Errorf("%s in %s: %s, want %s", c.args, c.schema, got.Effect, want)
		}
	}
}
