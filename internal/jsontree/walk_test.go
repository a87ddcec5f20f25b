package jsontree

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"
)

func TestWhole(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": "b"}`: "", `"\ud83d\ude00"`: "", `"\\ud83d"`: "", `"\u00e9"`: "", "": "", // "": it stays
		`"\ud83d"`: `"\ufffd"`, `["\udc00x\ud83d", 1]`: `["\ufffdx\ufffd", 1]`, `{"\ud800": "\ud83d\ud83d\ude00"}`: `{"\ufffd": "\ufffd\ud83d\ude00"}`, "\"\xff\"": "\"\uFFFD\"",
	} {
		got, n := Whole(json.RawMessage(in))
		if want == "" && (string(got) != in || n != 0) || want != "" && (string(got) != want || n == 0) {
			t.Errorf("%s: %s, %d", in, got, n)
		}
	}
}

func FuzzWhole(f *testing.F) {
	for _, s := range []string{`"\ud800\ud800\udc00"`, `{"a":"\ud83dx"}`, "\"\xed\xa0\x80\"", `"\\\ud800"`, `"\u`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, n := Whole(raw)
		if !json.Valid(raw) {
			return
		}
		if again, m := Whole(got); m != 0 || string(again) != string(got) {
			t.Errorf("%q becomes %q, and again %q", raw, got, again)
		}
		var a, b any
		if !json.Valid(got) || !utf8.Valid(got) || json.Unmarshal(raw, &a) == nil && (json.Unmarshal(got, &b) != nil || !reflect.DeepEqual(a, b)) {
			t.Errorf("%q became %q, %d", raw, got, n)
		}
	})
}

// FuzzEach compares the walk over members and elements with package json.
func FuzzEach(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"]"}] , "\"":null}`, ` [ ] `, `{}`, `[1e5 ,"\\",true]`, `{"a" : {"b" : {}}, "c":"{"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := Parse(raw)
		if err != nil || v.Kind != Object && v.Kind != List {
			return
		}
		got := Value{Kind: v.Kind}
		if err := Each(raw, func(name, value []byte) error {
			one, err := Parse(value)
			if err != nil {
				return err
			}
			if v.Kind == List {
				got.List = append(got.List, one)
				return nil
			}
			text, err := Parse(name)
			if err == nil {
				got.Members = append(got.Members, Member{text.Text, one})
			}
			return err
		}); err != nil || !reflect.DeepEqual(v, &got) {
			t.Errorf("%q is walked as %+v, %v", raw, got, err)
		}
	})
}
