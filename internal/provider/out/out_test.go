package out

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzString(f *testing.F) {
	for _, s := range []string{"", "a", `"\`, "\n\r\t\x00\x1f\x7f", "\xff", "é\u2028😀", "\xed\xa0\x80", "a\xffb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var j JSON
		j.String(s)
		var got string
		if err := json.Unmarshal(j, &got); err != nil {
			t.Fatalf("%q: %v", j, err)
		}
		if want := strings.ToValidUTF8(s, "\uFFFD"); utf8.ValidString(s) && got != s || !utf8.ValidString(got) || len(want) > 0 && got == "" {
			t.Errorf("%q became %q", s, got)
		}
	})
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{`{}`, ` { "a" : [ 1 , 2 ] } `, `"\ud800"`, `"\ud83d\ude00"`, `"\ud83dx"`, `"\\ud800"`, "\"\xff\"", `1e400`, `"a b"`, `{"a":`, `"\ud800\ud800\udc00"`, `-1.5E+3`, `"1e999"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		clean, ok := Clean(raw)
		if !ok {
			if json.Valid(raw) && !bytes.ContainsAny(raw, "eE") {
				t.Errorf("%q was refused", raw)
			}
			return
		}
		if !json.Valid(clean) || !utf8.Valid(clean) {
			t.Fatalf("%q became %q", raw, clean)
		}
		var a, b any
		if json.Unmarshal(raw, &a) == nil && (json.Unmarshal(clean, &b) != nil || !reflect.DeepEqual(a, b)) {
			t.Errorf("%q became %q, another value", raw, clean)
		}
		if again, _ := Clean(clean); !bytes.Equal(again, clean) {
			t.Errorf("%q becomes %q", clean, again)
		}
	})
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		` { "a" : "b c" } `: `{"a":"b c"}`, `"\ud800"`: `"\ufffd"`, `"\ud83d\ude00"`: `"\ud83d\ude00"`, `"\udc00x\ud83d"`: `"\ufffdx\ufffd"`,
		"\"\xff\"": "\"\uFFFD\"", `[1 ,2]`: `[1,2]`, `"\\ud800 \" \\"`: `"\\ud800 \" \\"`,
	} {
		if got, ok := Clean([]byte(in)); !ok || string(got) != want {
			t.Errorf("%q became %q, %v, want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "{", `{"a":}`, "1e400", strings.Repeat("[", 20000)} {
		if got, ok := Clean([]byte(in)); ok {
			t.Errorf("%.20q became %q", in, got)
		}
	}
}

func TestCommas(t *testing.T) {
	var j JSON
	j.Open('{')
	j.Key("a")
	j.Open('[')
	j.String("x,")
	j.Bool(true)
	j.Raw([]byte("1"))
	j.Close(']')
	j.Key("b")
	j.Base64("data:,", []byte{1, 2})
	j.Key("c")
	j.Open('{')
	j.Close('}')
	j.Close('}')
	want := `{"a":["x,",true,1],"b":"data:,` + base64.StdEncoding.EncodeToString([]byte{1, 2}) + `","c":{}}`
	if string(j) != want {
		t.Errorf("%s, want %s", j, want)
	}
}
