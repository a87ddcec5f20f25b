package poolstore

import (
	"encoding/json"
	"testing"

	"github.com/chatctx/chatctx/pool"
)

func TestMakeWhole(t *testing.T) {
	half := json.RawMessage(`{"a":"\ud83d"}`)
	m := &pool.Message{Role: pool.ToolRole, Content: []pool.Part{{Raw: half}}, Calls: []pool.Call{{Arguments: half, Raw: half}}, Result: &pool.Result{JSON: half, Parts: []pool.Part{{Raw: half}}},
		AppData: map[string]json.RawMessage{"x": half, "y": json.RawMessage("1")}}
	m.Meta.Usage, m.Meta.ProviderData = half, map[string]json.RawMessage{"p": half}
	if n := MakeWhole(m); n != 8 {
		t.Errorf("%d places changed, want 8", n)
	}
	if want := `{"a":"\ufffd"}`; string(m.Result.JSON) != want || string(m.AppData["x"]) != want || string(m.Calls[0].Arguments) != want || string(m.AppData["y"]) != "1" {
		t.Errorf("%+v", m)
	}
	if n := MakeWhole(m); n != 0 {
		t.Errorf("again %d", n)
	}
}
