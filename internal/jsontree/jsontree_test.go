package jsontree

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		``:                                   `{}`,
		`null`:                               `{}`,
		" { \"b\" : 1 ,\n\"a\":[ ]} ":        `{"b":1,"a":[]}`,
		`{"n":1.50E+1,"m":-0}`:               `{"n":1.50E+1,"m":-0}`,
		`{"a":"\u0041\/\u000a\u0001\u00e9"}`: `{"a":"A/\n\u0001é"}`,
		`{"a":"\ud83d\ude00 \ud83d \ude00"}`: `{"a":"😀 \ud83d \ude00"}`,
		`{"\u0061":"\"\\\b\f\r\t<>&"}`:       `{"a":"\"\\\b\f\r\t<>&"}`,
		`{"a":1,"a":2}`:                      `{"a":1,"a":2}`,
		`{"a":1,"\u0061":2}`:                 `{"a":1,"\u0061":2}`,
		`[1]`:                                `[1]`,
		`"{}"`:                               `"{}"`,
		`{`:                                  `{`,
		`{"a":[true,false,null,{"b":"" }]}`:  `{"a":[true,false,null,{"b":""}]}`,
	} {
		if got := string(Canonical(json.RawMessage(in))); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}

// FuzzCanonical: the canonical form has the same meaning, and is its own canonical form.
func FuzzCanonical(f *testing.F) {
	f.Add(`{"a":[1,"\u00e9\ud800",{"b":null}]}`)
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Parse([]byte(s))
		if err != nil {
			return
		}
		once := v.Append(nil)
		again, err := Parse(once)
		if err != nil || string(again.Append(nil)) != string(once) || !reflect.DeepEqual(v, again) {
			t.Fatalf("%q gives %q, %v", s, once, err)
		}
		var a, b any
		if json.Unmarshal([]byte(s), &a) == nil && (json.Unmarshal(once, &b) != nil || !reflect.DeepEqual(a, b)) {
			t.Fatalf("%q and %q differ", s, once)
		}
	})
}

// TestText reads strings, null as an empty one, and nothing else.
func TestText(t *testing.T) {
	for raw, want := range map[string]string{
		`"a\n\u00e9\/"`: "a\né/", ` "x" `: "x", `""`: "", `null`: "", `"\ud83d\ude00"`: "😀", `"\ud83d\ud83d x"`: "\uFFFD\uFFFD x", "\"\xff\xfe\"": "\uFFFD\uFFFD",
	} {
		if got, ok := Text([]byte(raw)); !ok || got != want {
			t.Errorf("%s: %q, %v", raw, got, ok)
		}
	}
	for _, raw := range []string{"", "1", "true", "[]", `{"a":"b"}`, `"a`, `"a" "b"`, "nul", "\"a\nb\""} {
		if got, ok := Text([]byte(raw)); ok || got != "" {
			t.Errorf("%s is the text %q", raw, got)
		}
	}
}

// FuzzText: a text is what encoding/json reads.
func FuzzText(f *testing.F) {
	for _, raw := range []string{`"a\u0041\ud83d\ude00"`, `"\ud800\ud800\udc00"`, `"\udc00\u12"`, "\"\xed\xa0\x80\"", "null", "12", `["a"]`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want string
		err := json.Unmarshal(raw, &want)
		if got, ok := Text(raw); ok != (err == nil) || got != want {
			t.Errorf("%q: %q, %v; encoding/json: %q, %v", raw, got, ok, want, err)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	var twice *DuplicateError
	if _, err := Parse([]byte(`{"x":[{"a":1,"\u0061":2}]}`)); !errors.As(err, &twice) || twice.Name != "a" {
		t.Errorf("a key that stands there twice gives %v", err)
	}
	if _, err := Parse([]byte(strings.Repeat("[", 600) + strings.Repeat("]", 600))); !errors.Is(err, ErrDepth) {
		t.Errorf("600 lists give %v", err)
	}
	for _, s := range []string{"", "{", "1 2", "\"\xff\"", `{"a" 1}`, "nul"} {
		if _, err := Parse([]byte(s)); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q gives %v", s, err)
		}
	}
}

func TestUnwrapped(t *testing.T) {
	for in, want := range map[string]string{
		`"{\"a\": 1}"`:           `{"a": 1}`,
		`" {\"a\":1,\"a\":2}\n"`: `{"a":1,"a":2}`,
		`"{} {}"`:                `"{} {}"`,
		`"[1]"`:                  `"[1]"`,
		`"\"{}\""`:               `"\"{}\""`,
		`"{"`:                    `"{"`,
		`"text"`:                 `"text"`,
		`{"a":"{}"}`:             `{"a":"{}"}`,
		``:                       ``,
	} {
		if got := string(Unwrapped(json.RawMessage(in))); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}
