package pool

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"
)

func TestWholeJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": "b"}`: "", `"\ud83d\ude00"`: "", `"\\ud83d"`: "", `"\u00e9"`: "", "": "", // "": it stays
		`"\ud83d"`: `"\ufffd"`, `["\udc00x\ud83d", 1]`: `["\ufffdx\ufffd", 1]`, `{"\ud800": "\ud83d\ud83d\ude00"}`: `{"\ufffd": "\ufffd\ud83d\ude00"}`, "\"\xff\"": "\"\uFFFD\"",
	} {
		got, n := WholeJSON(json.RawMessage(in))
		if want == "" && (string(got) != in || n != 0) || want != "" && (string(got) != want || n == 0) {
			t.Errorf("%s: %s, %d", in, got, n)
		}
	}
}

func FuzzWholeJSON(f *testing.F) {
	for _, s := range []string{`"\ud800\ud800\udc00"`, `{"a":"\ud83dx"}`, "\"\xed\xa0\x80\"", `"\\\ud800"`, `"\u`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, n := WholeJSON(raw)
		if !json.Valid(raw) {
			return
		}
		if again, m := WholeJSON(got); m != 0 || string(again) != string(got) {
			t.Errorf("%q becomes %q, and again %q", raw, got, again)
		}
		var a, b any
		if !json.Valid(got) || !utf8.Valid(got) || json.Unmarshal(raw, &a) == nil && (json.Unmarshal(got, &b) != nil || !reflect.DeepEqual(a, b)) {
			t.Errorf("%q became %q, %d", raw, got, n)
		}
	})
}

func TestMakeWhole(t *testing.T) {
	half := json.RawMessage(`{"a":"\ud83d"}`)
	m := &Message{Role: ToolRole, Content: []Part{{Raw: half}}, Calls: []Call{{Arguments: half, Raw: half}}, Result: &Result{JSON: half, Parts: []Part{{Raw: half}}},
		AppData: map[string]json.RawMessage{"x": half, "y": json.RawMessage("1")}}
	m.Meta.Usage, m.Meta.ProviderData = half, map[string]json.RawMessage{"p": half}
	if n := m.MakeWhole(); n != 8 {
		t.Errorf("%d places changed, want 8", n)
	}
	if want := `{"a":"\ufffd"}`; string(m.Result.JSON) != want || string(m.AppData["x"]) != want || string(m.Calls[0].Arguments) != want || string(m.AppData["y"]) != "1" {
		t.Errorf("%+v", m)
	}
	if n := m.MakeWhole(); n != 0 {
		t.Errorf("again %d", n)
	}
}
